package deedbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The codes of the failures that this package makes. Codes are stable words for programs.
const (
	CodeDenied             = "denied"
	CodeEffectMismatch     = "effect-mismatch"
	CodeInFlight           = "in-flight"
	CodeOutcomeUnknown     = "outcome-unknown"
	CodeUnreachable        = "unreachable"
	CodeTimedOut           = "timed-out"
	CodeResponseTooLarge   = "response-too-large"
	CodeInvalidRequest     = "invalid-request"
	CodeConnectionLost     = "connection-lost"
	CodeBodyNotKept        = "body-not-kept"
	CodeUnexpectedBody     = "unexpected-body"
	CodeHTTPStatus         = "http-status"
	CodeMessageRefused     = "message-refused"
	CodeWriteFailed        = "write-failed"
	CodeInvalidInput       = "invalid-input"
	CodeInvalidOutput      = "invalid-output"
	CodeInvalidJSON        = "invalid-json"
	CodeInvalidName        = "invalid-name"
	CodeUnknownActivity    = "unknown-activity"
	CodeCheckpointTooLarge = "checkpoint-too-large"
	CodeCheckpointFormat   = "checkpoint-format"
	CodeSignalInvalidName  = "signal-invalid-name"
	CodeSignalTooManyCalls = "signal-too-many-calls"
	CodeSignalFormat       = "signal-format"
	CodeSignalMissing      = "signal-missing"
)

// CodeError is the code of an error that carries no [Failure]: such an attempt may be repeated.
const CodeError = "error"

// Kind says whether another attempt may succeed.
type Kind uint8

const (
	// KindRetryable: another attempt may succeed; the retry policy decides whether there is one.
	KindRetryable Kind = iota
	// KindPermanent: no further attempt is made.
	KindPermanent
)

func (k Kind) String() string {
	if k == KindPermanent {
		return "permanent"
	}
	return "retryable"
}

// Failure is the end of an attempt without a value. It is an error: return it, or wrap it with %w.
//
// A business rejection is no failure: return it as a value. A failure must never carry a secret, for it is recorded and
// shown.
type Failure struct {
	// Code is a stable word for programs, 1 to 128 characters.
	Code string
	// Message is a sentence for people.
	Message string
	Kind    Kind
	// Delay is the earliest time for the next attempt, counted from now; 0: as the policy says. The host caps it.
	Delay time.Duration
	// Details is a JSON text for programs, or nil.
	Details json.RawMessage
}

// Retryable makes a failure after which another attempt may succeed.
func Retryable(code, message string) *Failure {
	return &Failure{Code: code, Message: message, Kind: KindRetryable}
}

// Permanent makes a failure after which no further attempt is made.
func Permanent(code, message string) *Failure {
	return &Failure{Code: code, Message: message, Kind: KindPermanent}
}

// RetryAfter sets the earliest time for the next attempt, counted from now, and gives the failure itself.
func (f *Failure) RetryAfter(delay time.Duration) *Failure {
	f.Delay = delay
	return f
}

// WithDetails adds something for programs to read, and gives the failure itself. Details that cannot be written as JSON
// are replaced by the reason.
func (f *Failure) WithDetails(details any) *Failure {
	text, err := json.Marshal(details)
	if err != nil {
		text, _ = json.Marshal(map[string]string{"unwritable": err.Error()})
	}
	f.Details = text
	return f
}

func (f *Failure) Error() string {
	return f.Code + ": " + f.Message
}

// Is makes errors.Is true for a failure of the same code.
func (f *Failure) Is(target error) bool {
	other, ok := target.(*Failure)
	return ok && other.Code == f.Code
}

// HasCode tells whether a failure of that code is in the error's tree.
func HasCode(err error, code string) bool {
	return errors.Is(err, &Failure{Code: code})
}

// Refusal makes the failure by which this package reports that the host, or the reading of what it gave, ended in this
// code. The text is the host's own. Tests script hosts with it.
func Refusal(code, text string) *Failure {
	known, ok := refusals[code]
	if !ok {
		return Retryable(code, text)
	}
	message := known.message
	if known.says {
		// A copy: the text may lie where the host wrote it.
		message = strings.Clone(message + text)
	}
	return &Failure{Code: code, Message: message, Kind: known.kind}
}

type refusal struct {
	kind    Kind
	message string
	// The host's text ends the message.
	says bool
}

var refusals = map[string]refusal{
	CodeDenied:         {KindPermanent, "the deployment does not allow this: ", true},
	CodeEffectMismatch: {KindPermanent, "", true},
	CodeInFlight:       {KindRetryable, "another attempt or run holds this effect right now: try again later", false},
	CodeOutcomeUnknown: {KindPermanent, "nobody knows whether this effect happened, and policy forbids sending it again: ",
		true},
	CodeUnreachable:      {KindRetryable, "it could not be reached: ", true},
	CodeTimedOut:         {KindRetryable, "no whole answer came in time", false},
	CodeResponseTooLarge: {KindPermanent, "the answer is larger than the host's limit in bytes, ", true},
	CodeInvalidRequest:   {KindPermanent, "it cannot be sent as it stands: ", true},
	CodeConnectionLost:   {KindRetryable, "the connection broke after it was sent: ", true},
	CodeMessageRefused:   {KindRetryable, "the server refused the message: ", true},
	CodeWriteFailed:      {KindRetryable, "the file was not written: ", true},
	CodeBodyNotKept: {KindPermanent, "the recorded answer has no body, because it was larger than the host keeps",
		false},
	CodeUnexpectedBody: {KindPermanent, "the answer cannot be read as asked: ", true},
	CodeInvalidName:    {KindPermanent, "the name of a subkey has 1 to 256 bytes of UTF-8: choose another name", false},
	CodeCheckpointTooLarge: {KindPermanent,
		"the state is larger than the host allows (64 KiB unless the operator set another limit): save less", false},
	CodeCheckpointFormat: {KindPermanent, "the state does not have the expected shape: ", true},
	CodeSignalInvalidName: {KindPermanent,
		"the name of a signal has 1 to 128 characters of A-Z a-z 0-9 . _ -: choose another name", false},
	CodeSignalTooManyCalls: {KindPermanent,
		"this attempt has polled and waited more often than the host allows: wait instead of polling in a loop", false},
	CodeSignalMissing: {KindPermanent, "the host gave no signal to a wait without an end", false},
	CodeSignalFormat:  {KindPermanent, "the payload does not have the expected shape: ", true},
}

// statusFailure is what an answer with an error's status becomes.
func statusFailure(status int) *Failure {
	kind := KindPermanent
	if status == 408 || status == 425 || status == 429 || status >= 500 && status <= 599 {
		kind = KindRetryable
	}
	failure := &Failure{Code: CodeHTTPStatus, Kind: kind}
	failure.Message = fmt.Sprintf("the provider answered with status %d", status)
	return failure.WithDetails(map[string]int{"status": status})
}

// AsFailure gives what the host is told about an error that an activity returned: the failure in its tree, with the
// message of the whole error; invalid-json for an error of encoding/json; timed-out at the end of the attempt's time; else
// a retryable failure with the code "error".
func AsFailure(err error) *Failure {
	var failure *Failure
	if errors.As(err, &failure) {
		if failure == err {
			return failure
		}
		whole := *failure
		whole.Message = err.Error()
		return &whole
	}
	if isJSON(err) {
		return Permanent(CodeInvalidJSON, err.Error())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Retryable(CodeTimedOut, err.Error())
	}
	return Retryable(CodeError, err.Error())
}

func isJSON(err error) bool {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	var value *json.UnsupportedValueError
	var kind *json.UnsupportedTypeError
	var marshaler *json.MarshalerError
	return errors.As(err, &syntax) || errors.As(err, &mismatch) || errors.As(err, &value) || errors.As(err, &kind) ||
		errors.As(err, &marshaler)
}
