package main

import (
	"encoding/json"
	"fmt"
	"time"

	"deedbox.local/deedbox"
)

func init() {
	deedbox.Activity("fail", "Fails as it is told.", fail)
	deedbox.Activity("panic", "Panics with the words it is given.", panicWith)
	deedbox.Activity("spend", "Spends time, memory or stack without end.", spend)
}

type failing struct {
	Code         string          `json:"code"`
	Message      string          `json:"message"`
	Kind         string          `json:"kind"`
	RetryAfterMS *int64          `json:"retry_after_ms"`
	Details      json.RawMessage `json:"details,omitempty"`
}

func fail(_ *deedbox.Context, in failing) (any, error) {
	failure := deedbox.Retryable(in.Code, in.Message)
	if in.Kind == "permanent" {
		failure = deedbox.Permanent(in.Code, in.Message)
	}
	if in.RetryAfterMS != nil {
		failure.RetryAfter(time.Duration(*in.RetryAfterMS) * time.Millisecond)
	}
	if in.Details != nil {
		failure.WithDetails(in.Details)
	}
	return nil, failure
}

type words struct {
	Words string `json:"words"`
}

func panicWith(_ *deedbox.Context, in words) (any, error) {
	panic(in.Words)
}

type spending struct {
	Kind string `json:"kind"`
}

func spend(_ *deedbox.Context, in spending) (int, error) {
	switch in.Kind {
	case "loop":
		for n := 0; ; n++ {
			kept = kept[:0]
		}
	case "memory":
		for {
			kept = append(kept, make([]byte, 1<<20))
		}
	case "stack":
		return deeper(1), nil
	}
	return 0, fmt.Errorf("the kind %q is none of loop, memory and stack", in.Kind)
}

var kept [][]byte

func deeper(n int) int {
	return deeper(n+1) + len(kept)
}
