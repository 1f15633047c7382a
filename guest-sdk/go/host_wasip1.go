//go:build wasip1

package deedbox

import (
	"time"

	"deedbox.local/deedbox/internal/wit/deedbox_activity_checkpoint"
	"deedbox.local/deedbox/internal/wit/deedbox_activity_context"
	"deedbox.local/deedbox/internal/wit/deedbox_activity_files"
	"deedbox.local/deedbox/internal/wit/deedbox_activity_idempotency"
	"deedbox.local/deedbox/internal/wit/deedbox_activity_messaging"
	"deedbox.local/deedbox/internal/wit/deedbox_activity_signals"
	"deedbox.local/deedbox/internal/wit/runtime"
	"deedbox.local/deedbox/internal/wit/types"
)

// wasmHost is the host of a component. Whatever it hands out was copied out of the memory that the host wrote.
type wasmHost struct{}

func (wasmHost) IdempotencyKey() string {
	runtime.Begin()
	defer runtime.End()
	return runtime.Text(deedbox_activity_idempotency.IdempotencyKey())
}

func (wasmHost) Subkey(name string) (string, error) {
	runtime.Begin()
	defer runtime.End()
	result := deedbox_activity_idempotency.Subkey(name)
	if result.Tag() == types.ResultErr {
		return "", Refusal(CodeInvalidName, "")
	}
	return runtime.Text(result.Ok()), nil
}

func (wasmHost) Run() Run {
	runtime.Begin()
	defer runtime.End()
	info := deedbox_activity_context.Run()
	return Run{
		Tenant: runtime.Text(info.Tenant), ID: runtime.Text(info.RunId), Activity: runtime.Text(info.Activity),
		Attempt: int(info.Attempt), MaxAttempts: int(info.MaxAttempts), Remaining: duration(info.RemainingMs),
	}
}

// duration caps at what a time.Duration can hold.
func duration(millis uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(millis, most)) * time.Millisecond
}

func (wasmHost) Cancelled() bool {
	return deedbox_activity_context.Cancelled()
}

func (wasmHost) Publish(message Message) (*Published, error) {
	runtime.Begin()
	defer runtime.End()
	headers := make([]types.Tuple2[string, string], len(message.Headers))
	for i, header := range message.Headers {
		headers[i] = types.Tuple2[string, string]{F0: header.Name, F1: header.Value}
	}
	result := deedbox_activity_messaging.Publish(message.Subject, message.Payload, deedbox_activity_messaging.Options{
		Identity: identityOf(message.Identity), OnUnknown: uint8(message.OnUnknown), Headers: headers,
	})
	if result.Tag() == types.ResultErr {
		return nil, ofMessagingError(result.Err())
	}
	published := result.Ok()
	return &Published{
		Stream: runtime.Text(published.Stream), Sequence: published.Sequence, Duplicate: published.Duplicate,
		MessageID: runtime.Text(published.MessageId), Source: Source(published.Source),
		EffectID: runtime.Text(published.EffectId),
	}, nil
}

func ofMessagingError(err deedbox_activity_messaging.Error) *Failure {
	switch err.Tag() {
	case deedbox_activity_messaging.Error_Denied:
		return Refusal(CodeDenied, err.Denied())
	case deedbox_activity_messaging.Error_EffectMismatch:
		return Refusal(CodeEffectMismatch, err.EffectMismatch())
	case deedbox_activity_messaging.Error_InFlight:
		return Refusal(CodeInFlight, "")
	case deedbox_activity_messaging.Error_OutcomeUnknown:
		return Refusal(CodeOutcomeUnknown, err.OutcomeUnknown())
	case deedbox_activity_messaging.Error_Unreachable:
		return Refusal(CodeUnreachable, err.Unreachable())
	case deedbox_activity_messaging.Error_TimedOut:
		return Refusal(CodeTimedOut, "")
	case deedbox_activity_messaging.Error_InvalidRequest:
		return Refusal(CodeInvalidRequest, err.InvalidRequest())
	case deedbox_activity_messaging.Error_Refused:
		return Refusal(CodeMessageRefused, err.Refused())
	default:
		return Refusal(CodeConnectionLost, err.ConnectionLost())
	}
}

func (wasmHost) Write(path string, content []byte, identity Identity) (*Written, error) {
	runtime.Begin()
	defer runtime.End()
	result := deedbox_activity_files.Write(path, content, identityOf(identity))
	if result.Tag() == types.ResultErr {
		return nil, ofFilesError(result.Err())
	}
	written := result.Ok()
	return &Written{Source: Source(written.Source), EffectID: runtime.Text(written.EffectId)}, nil
}

func (wasmHost) Append(path string, content []byte) error {
	runtime.Begin()
	defer runtime.End()
	result := deedbox_activity_files.Append(path, content)
	if result.Tag() == types.ResultErr {
		return ofFilesError(result.Err())
	}
	return nil
}

func ofFilesError(err deedbox_activity_files.Error) *Failure {
	switch err.Tag() {
	case deedbox_activity_files.Error_Denied:
		return Refusal(CodeDenied, err.Denied())
	case deedbox_activity_files.Error_EffectMismatch:
		return Refusal(CodeEffectMismatch, err.EffectMismatch())
	case deedbox_activity_files.Error_InFlight:
		return Refusal(CodeInFlight, "")
	case deedbox_activity_files.Error_InvalidRequest:
		return Refusal(CodeInvalidRequest, err.InvalidRequest())
	default:
		return Refusal(CodeWriteFailed, err.Failed())
	}
}

func (wasmHost) Poll(name string) (*Signal, error) {
	runtime.Begin()
	defer runtime.End()
	return ofSignal(deedbox_activity_signals.Poll(name))
}

func (wasmHost) Wait(name string, limitMS *uint64) (*Signal, error) {
	runtime.Begin()
	defer runtime.End()
	limit := types.None[uint64]()
	if limitMS != nil {
		limit = types.Some(*limitMS)
	}
	return ofSignal(deedbox_activity_signals.Wait(name, limit))
}

func ofSignal(result types.Result[types.Option[deedbox_activity_signals.Signal], uint8]) (*Signal, error) {
	if result.Tag() == types.ResultErr {
		if result.Err() == deedbox_activity_signals.SignalError_InvalidName {
			return nil, Refusal(CodeSignalInvalidName, "")
		}
		return nil, Refusal(CodeSignalTooManyCalls, "")
	}
	given := result.Ok()
	if given.Tag() == types.OptionNone {
		return nil, nil
	}
	signal := given.Some()
	return &Signal{
		Name: runtime.Text(signal.Name), Payload: runtime.Text(signal.Payload), Sequence: signal.Sequence,
	}, nil
}

func (wasmHost) Save(state []byte) error {
	if deedbox_activity_checkpoint.Save(state).Tag() == types.ResultErr {
		return Refusal(CodeCheckpointTooLarge, "")
	}
	return nil
}

func (wasmHost) Load() []byte {
	runtime.Begin()
	defer runtime.End()
	saved := deedbox_activity_checkpoint.Load()
	if saved.Tag() == types.OptionNone {
		return nil
	}
	return append([]byte{}, saved.Some()...)
}
