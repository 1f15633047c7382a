package main

import (
	"encoding/json"

	"deedbox.local/deedbox"
)

// idOf reads the member id of a good answer.
func idOf(answer *deedbox.Response) (string, error) {
	if err := answer.ErrorForStatus(); err != nil {
		return "", err
	}
	var body struct {
		ID string `json:"id"`
	}
	err := answer.JSON(&body)
	return body.ID, err
}

// reasonOf gives the body of a rejection: as JSON, or else as text.
func reasonOf(answer *deedbox.Response) (any, error) {
	text, err := answer.Text()
	if err == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return text, err
}
