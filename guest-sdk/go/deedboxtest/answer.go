package deedboxtest

import (
	"encoding/json"

	"deedbox.local/deedbox"
)

const effectID = "0000000000000000000000000000000000000000000000000000000000000000"

// Answer is what the next request gets.
type Answer struct {
	response *deedbox.Response
	failure  *deedbox.Failure
}

// Status is an answer with this status and an empty body, sent now.
func Status(status int) Answer {
	return Answer{response: &deedbox.Response{Status: status, Body: []byte{}, EffectID: effectID}}
}

// JSON is an answer with status 200 and this JSON. It panics when the value cannot be written.
func JSON(body any) Answer {
	return Status(200).WithJSON(body)
}

// Error is no answer but the failure of this code, as the host reports it: for example
// Error(deedbox.CodeUnreachable, "connection refused").
func Error(code, text string) Answer {
	return Answer{failure: deedbox.Refusal(code, text)}
}

// WithJSON adds this body. It panics when the value cannot be written.
func (a Answer) WithJSON(body any) Answer {
	text, err := json.Marshal(body)
	if err != nil {
		panic("deedboxtest: this answer cannot be written as JSON: " + err.Error())
	}
	return a.WithHeader("content-type", "application/json").WithBody(text)
}

// WithBody adds this body.
func (a Answer) WithBody(body []byte) Answer {
	return a.change(func(response *deedbox.Response) { response.Body = body })
}

// WithHeader adds a header.
func (a Answer) WithHeader(name, value string) Answer {
	return a.change(func(response *deedbox.Response) {
		response.Headers = append(response.Headers, deedbox.HTTPHeader{Name: name, Value: []byte(value)})
	})
}

// Replayed makes it one from the record of an earlier send.
func (a Answer) Replayed() Answer {
	return a.change(func(response *deedbox.Response) { response.Source = deedbox.Replayed })
}

// WithoutBody makes it one from a record that has no body.
func (a Answer) WithoutBody() Answer {
	return a.change(func(response *deedbox.Response) {
		response.Source, response.Body, response.BodyNotKept = deedbox.Replayed, nil, true
	})
}

func (a Answer) change(change func(*deedbox.Response)) Answer {
	if a.response == nil {
		return a
	}
	changed := *a.response
	changed.Headers = append([]deedbox.HTTPHeader{}, a.response.Headers...)
	change(&changed)
	return Answer{response: &changed}
}
