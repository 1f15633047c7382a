package deedbox

import (
	"encoding/json"
	"time"
)

// Signals are messages to this run. What a call here gave is recorded by the host and given again to the same call of
// every later attempt.
type Signals struct {
	host Host
}

// Signal is one message to the run.
type Signal struct {
	Name string
	// Payload is a JSON text.
	Payload string
	// Sequence is its place among all signals of the run, from 1.
	Sequence uint64
}

// JSON reads the payload into the value that target points to. It fails with signal-format when it has another shape.
func (s *Signal) JSON(target any) error {
	if err := json.Unmarshal([]byte(s.Payload), target); err != nil {
		return Refusal(CodeSignalFormat, err.Error())
	}
	return nil
}

// Poll gives the oldest unread signal of that name, or nil when none is here.
func (s Signals) Poll(name string) (*Signal, error) {
	return s.host.Poll(name)
}

// Wait waits for a signal of that name, without end. A long wait ends this attempt without spending a retry; the run
// starts again when the signal is here, and this call then gives it.
func (s Signals) Wait(name string) (*Signal, error) {
	signal, err := s.host.Wait(name, nil)
	if err == nil && signal == nil {
		return nil, Refusal(CodeSignalMissing, "")
	}
	return signal, err
}

// WaitFor is the same with an end: nil when no signal came in time. The time is counted from the first attempt that waits
// here, and goes on while the run is suspended.
func (s Signals) WaitFor(name string, limit time.Duration) (*Signal, error) {
	millis := uint64(max(limit.Milliseconds(), 0))
	return s.host.Wait(name, &millis)
}
