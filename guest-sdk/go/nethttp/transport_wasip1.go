//go:build wasip1

package nethttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deedbox.local/deedbox/internal/wit/runtime"
	"deedbox.local/deedbox/internal/wit/types"
	"deedbox.local/deedbox/internal/wit/wasi_http_outgoing_handler"
	wasi "deedbox.local/deedbox/internal/wit/wasi_http_types"
	"deedbox.local/deedbox/internal/wit/wasi_io_streams"
)

func init() {
	http.DefaultTransport = Transport{}
}

// What one call of a stream of WASI may move.
const pieceBytes = 4096

const readBytes = 64 << 10

// Transport is an http.RoundTripper over wasi:http. While it waits, no other goroutine runs.
type Transport struct{}

// RoundTrip sends one request, or has it answered from the ledger. The deadline of the request's context limits it.
func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close()
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	answer, err := send(request)
	if err != nil {
		return nil, err
	}
	response, err := read(answer)
	if err != nil {
		return nil, err
	}
	response.Request = request
	return response, nil
}

func send(request *http.Request) (*wasi.IncomingResponse, error) {
	outgoing, err := head(request)
	if err != nil {
		return nil, err
	}
	body := outgoing.Body().Ok()
	options := limits(request.Context())
	runtime.Begin()
	defer runtime.End()
	begun := wasi_http_outgoing_handler.Handle(outgoing, options)
	if begun.Tag() == types.ResultErr {
		return nil, failure(begun.Err())
	}
	future := begun.Ok()
	defer future.Drop()
	// The answer tells more than a write that broke off.
	writeErr := write(body, request.Body)
	pollable := future.Subscribe()
	defer pollable.Drop()
	if writeErr != nil && !errors.Is(writeErr, errClosed) {
		return nil, writeErr
	}
	pollable.Block()
	given := future.Get().Some().Ok()
	if given.Tag() == types.ResultErr {
		return nil, failure(given.Err())
	}
	return given.Ok(), nil
}

func head(request *http.Request) (*wasi.OutgoingRequest, error) {
	fields := wasi.FieldsFromList(headers(request))
	if fields.Tag() == types.ResultErr {
		return nil, errors.New("wasi:http: a header of the request is none that a client may set")
	}
	outgoing := wasi.MakeOutgoingRequest(fields.Ok())
	authority := request.Host
	if authority == "" {
		authority = request.URL.Host
	}
	scheme := wasi.MakeSchemeHttp()
	if request.URL.Scheme == "https" {
		scheme = wasi.MakeSchemeHttps()
	}
	method := request.Method
	if method == "" {
		method = http.MethodGet
	}
	parts := []struct {
		name string
		set  types.Result[types.Unit, types.Unit]
	}{
		{"method", outgoing.SetMethod(methodOf(method))},
		{"scheme", outgoing.SetScheme(types.Some(scheme))},
		{"host", outgoing.SetAuthority(types.Some(authority))},
		{"path", outgoing.SetPathWithQuery(types.Some(request.URL.RequestURI()))},
	}
	for _, part := range parts {
		if part.set.Tag() == types.ResultErr {
			outgoing.Drop()
			return nil, fmt.Errorf("wasi:http: the %s of the request is not one that can be sent", part.name)
		}
	}
	return outgoing, nil
}

// headers are in a fixed order, for the request is part of what the ledger compares.
func headers(request *http.Request) []types.Tuple2[string, []byte] {
	var list []types.Tuple2[string, []byte]
	for _, name := range sorted(request.Header) {
		for _, value := range request.Header[name] {
			list = append(list, types.Tuple2[string, []byte]{F0: strings.ToLower(name), F1: []byte(value)})
		}
	}
	if request.ContentLength > 0 && request.Body != nil {
		length := strconv.AppendInt(nil, request.ContentLength, 10)
		list = append(list, types.Tuple2[string, []byte]{F0: "content-length", F1: length})
	}
	return list
}

func methodOf(method string) wasi.Method {
	switch method {
	case http.MethodGet:
		return wasi.MakeMethodGet()
	case http.MethodHead:
		return wasi.MakeMethodHead()
	case http.MethodPost:
		return wasi.MakeMethodPost()
	case http.MethodPut:
		return wasi.MakeMethodPut()
	case http.MethodDelete:
		return wasi.MakeMethodDelete()
	case http.MethodConnect:
		return wasi.MakeMethodConnect()
	case http.MethodOptions:
		return wasi.MakeMethodOptions()
	case http.MethodTrace:
		return wasi.MakeMethodTrace()
	case http.MethodPatch:
		return wasi.MakeMethodPatch()
	default:
		return wasi.MakeMethodOther(method)
	}
}

// limits: the host adds the parts up, so that one part is the whole.
func limits(ctx context.Context) types.Option[*wasi.RequestOptions] {
	deadline, limited := ctx.Deadline()
	if !limited {
		return types.None[*wasi.RequestOptions]()
	}
	options := wasi.MakeRequestOptions()
	left := max(time.Until(deadline), time.Millisecond)
	options.SetFirstByteTimeout(types.Some(uint64(left)))
	return types.Some(options)
}

var errClosed = errors.New("wasi:http: the host takes no more of the request's body")

func write(body *wasi.OutgoingBody, content io.Reader) error {
	if content != nil {
		stream := body.Write().Ok()
		err := copyTo(stream, content)
		stream.Drop()
		if err != nil {
			body.Drop()
			return err
		}
	}
	runtime.Begin()
	defer runtime.End()
	if wasi.OutgoingBodyFinish(body, types.None[*wasi.Fields]()).Tag() == types.ResultErr {
		return errClosed
	}
	return nil
}

func copyTo(stream *wasi_io_streams.OutputStream, content io.Reader) error {
	piece := make([]byte, pieceBytes)
	for {
		n, err := content.Read(piece)
		if n > 0 && stream.BlockingWriteAndFlush(piece[:n]).Tag() == types.ResultErr {
			return errClosed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func read(answer *wasi.IncomingResponse) (*http.Response, error) {
	defer answer.Drop()
	response := &http.Response{
		StatusCode: int(answer.Status()), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: headersOf(answer),
	}
	response.Status = strings.TrimSpace(strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode))
	consumed := answer.Consume()
	if consumed.Tag() == types.ResultErr {
		return nil, errors.New("wasi:http: the answer has no body to read")
	}
	body := consumed.Ok()
	defer body.Drop()
	content, err := readAll(body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	response.ContentLength = int64(len(content))
	return response, nil
}

func headersOf(answer *wasi.IncomingResponse) http.Header {
	fields := answer.Headers()
	defer fields.Drop()
	runtime.Begin()
	defer runtime.End()
	header := http.Header{}
	for _, entry := range fields.Entries() {
		header.Add(runtime.Text(entry.F0), string(entry.F1))
	}
	return header
}

func readAll(body *wasi.IncomingBody) ([]byte, error) {
	begun := body.Stream()
	if begun.Tag() == types.ResultErr {
		return nil, errors.New("wasi:http: the body of the answer was read already")
	}
	stream := begun.Ok()
	defer stream.Drop()
	var content []byte
	for {
		piece, more, err := readPiece(stream)
		if err != nil || !more {
			return content, err
		}
		content = append(content, piece...)
	}
}

func readPiece(stream *wasi_io_streams.InputStream) (piece []byte, more bool, err error) {
	runtime.Begin()
	defer runtime.End()
	given := stream.BlockingRead(readBytes)
	if given.Tag() == types.ResultOk {
		return append([]byte{}, given.Ok()...), true, nil
	}
	if broken := given.Err(); broken.Tag() == wasi_io_streams.StreamError_LastOperationFailed {
		broken.LastOperationFailed().Drop()
		return nil, false, errors.New("wasi:http: the body of the answer broke off")
	}
	return nil, false, nil
}
