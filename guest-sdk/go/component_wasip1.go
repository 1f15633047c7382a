//go:build wasip1

package deedbox

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"deedbox.local/deedbox/internal/wit/deedbox_activity_activities"
	"deedbox.local/deedbox/internal/wit/export_deedbox_activity_activities"
	// The exports that the host calls.
	_ "deedbox.local/deedbox/internal/wit/exports"
	"deedbox.local/deedbox/internal/wit/runtime"
	"deedbox.local/deedbox/internal/wit/types"
)

// trap is the exit status of a program of Go that panics.
const trap = 2

func init() {
	export_deedbox_activity_activities.Describe = describe
	export_deedbox_activity_activities.Run = run
	slog.SetDefault(slog.New(newLogHandler(os.Stderr)))
}

func describe() []deedbox_activity_activities.Descriptor {
	defer sayPanic()
	all := Activities()
	descriptors := make([]deedbox_activity_activities.Descriptor, len(all))
	for i, it := range all {
		descriptors[i] = deedbox_activity_activities.Descriptor{
			Name: it.Name, Summary: it.Summary,
			InputSchema: types.Some(it.InputSchema), OutputSchema: types.Some(it.OutputSchema),
		}
	}
	return descriptors
}

func run(activity, input string) types.Result[string, deedbox_activity_activities.Failure] {
	defer sayPanic()
	runtime.Begin()
	activity, input = runtime.Text(activity), runtime.Text(input)
	runtime.End()
	ctx := NewContext(wasmHost{})
	defer ctx.cancel()
	output, failure := RunNamed(ctx, activity, input)
	if failure != nil {
		return types.Err[string](ofFailure(failure))
	}
	return types.Ok[string, deedbox_activity_activities.Failure](output)
}

func ofFailure(failure *Failure) deedbox_activity_activities.Failure {
	told := deedbox_activity_activities.Failure{
		Code: failure.Code, Message: failure.Message, Kind: deedbox_activity_activities.FailureKind_Retryable,
	}
	if failure.Kind == KindPermanent {
		told.Kind = deedbox_activity_activities.FailureKind_Permanent
	}
	if failure.Delay > 0 {
		told.RetryAfterMs = types.Some(uint64((failure.Delay + time.Millisecond - 1) / time.Millisecond))
	}
	if failure.Details != nil {
		told.Details = types.Some(string(failure.Details))
	}
	return told
}

// sayPanic ends the program as Go does, but says the words of the panic last: who reads the failure sees the end of the
// log, and a trace is long.
func sayPanic() {
	if words := recover(); words != nil {
		fmt.Fprintf(os.Stderr, "%s\npanic: %v\n", debug.Stack(), words)
		os.Exit(trap)
	}
}
