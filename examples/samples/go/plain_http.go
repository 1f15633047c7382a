package main

import (
	"io"
	"net/http"
	"strings"

	"deedbox.local/deedbox"
	// Makes net/http go through the host.
	_ "deedbox.local/deedbox/nethttp"
)

func init() {
	deedbox.Activity("plain-http", "Posts a text by net/http, which knows nothing of Deedbox.", plainHTTP)
}

type post struct {
	URL  string `json:"url"`
	Body string `json:"body"`
}

type posted struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

func plainHTTP(ctx *deedbox.Context, in post) (posted, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, strings.NewReader(in.Body))
	if err != nil {
		return posted{}, err
	}
	request.Header.Set("Content-Type", "text/plain")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return posted{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return posted{answer.StatusCode, string(body)}, err
}
