package deedbox

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Response is an answer with any status, from the provider or from the record of an earlier send.
type Response struct {
	Status int
	// Headers are in the order received.
	Headers []HTTPHeader
	// Body is the whole body. Read it by Bytes, Text or JSON, which fail when the record has none.
	Body []byte
	// BodyNotKept: the record has no body, because it was larger than the host keeps.
	BodyNotKept bool
	Source      Source
	// EffectID is 64 hexadecimal digits for a claimed call; empty for a read.
	EffectID string
}

// OK tells whether the status is 200 to 299.
func (r *Response) OK() bool {
	return r.Status >= 200 && r.Status < 300
}

// Header gives the first header of that name, in any case, or the empty string.
func (r *Response) Header(name string) string {
	return headerOf(r.Headers, name)
}

// Bytes gives the body. It fails with body-not-kept when the record has none: a missing body is never an empty one.
func (r *Response) Bytes() ([]byte, error) {
	if r.BodyNotKept {
		return nil, Refusal(CodeBodyNotKept, "")
	}
	return r.Body, nil
}

// Text gives the body as UTF-8.
func (r *Response) Text() (string, error) {
	body, err := r.Bytes()
	if err != nil {
		return "", err
	}
	if !utf8.Valid(body) {
		return "", Refusal(CodeUnexpectedBody, "it is not UTF-8")
	}
	return string(body), nil
}

// JSON reads the body into the value that target points to. Members that it does not know are passed over.
func (r *Response) JSON(target any) error {
	body, err := r.Bytes()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, target); err != nil {
		return Refusal(CodeUnexpectedBody, err.Error())
	}
	return nil
}

// ErrorForStatus is nil unless the status is 400 or higher. As a failure, 5xx, 408, 425 and 429 are retryable and the
// others permanent.
func (r *Response) ErrorForStatus() error {
	if r.Status < 400 {
		return nil
	}
	return statusFailure(r.Status)
}

func headerOf(headers []HTTPHeader, name string) string {
	for _, header := range headers {
		if strings.EqualFold(header.Name, name) {
			return string(header.Value)
		}
	}
	return ""
}
