//go:build wasip1

package nethttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"deedbox.local/deedbox"
	"deedbox.local/deedbox/internal/wit/types"
	wasi "deedbox.local/deedbox/internal/wit/wasi_http_types"
)

// failure says a code of wasi:http in the words of the host's own interface. What the host has no code for there has none
// here: the run's log has its words.
func failure(code wasi.ErrorCode) error {
	const inLog = "the run's log says why"
	switch code.Tag() {
	case wasi.ErrorCode_HttpRequestDenied:
		return deedbox.Refusal(deedbox.CodeDenied, inLog)
	case wasi.ErrorCode_DestinationUnavailable:
		return deedbox.Refusal(deedbox.CodeUnreachable, inLog)
	case wasi.ErrorCode_ConnectionReadTimeout:
		return deedbox.Refusal(deedbox.CodeTimedOut, "")
	case wasi.ErrorCode_ConnectionTerminated:
		return deedbox.Refusal(deedbox.CodeConnectionLost, inLog)
	case wasi.ErrorCode_HttpResponseBodySize:
		limit := "which the run's log has"
		if size := code.HttpResponseBodySize(); size.Tag() == types.OptionSome {
			limit = strconv.FormatUint(size.Some(), 10)
		}
		return deedbox.Refusal(deedbox.CodeResponseTooLarge, limit)
	case wasi.ErrorCode_InternalError:
		if text := code.InternalError(); text.Tag() == types.OptionSome {
			return errors.New("wasi:http: " + strings.Clone(text.Some()))
		}
	}
	return fmt.Errorf("wasi:http: error code %d; %s", code.Tag(), inLog)
}

func sorted(header http.Header) []string {
	return slices.Sorted(maps.Keys(header))
}
