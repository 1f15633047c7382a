package deedboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"deedbox.local/deedbox"
	"deedbox.local/deedbox/deedboxtest"
)

const (
	run     = "0190b1c2-0000-7000-8000-000000000001"
	address = "https://provider.test/v1/charges"
)

type line struct {
	Amount uint `json:"amount"`
}

type order struct {
	Order string `json:"order"`
	Lines []line `json:"lines,omitempty"`
}

func init() {
	deedbox.Activity("add-up", "Adds up an order.", func(_ *deedbox.Context, in order) (sum uint, err error) {
		for _, it := range in.Lines {
			sum += it.Amount
		}
		return sum, nil
	})
	deedbox.Activity("charge", "Charges an order.", func(ctx *deedbox.Context, in order) (out any, err error) {
		answer, err := ctx.HTTP().Post(address).BusinessEffect("charge", in.Order).JSON(in).Send()
		if err != nil {
			return nil, fmt.Errorf("the charge: %w", err)
		}
		if err := answer.ErrorForStatus(); err != nil {
			return nil, err
		}
		return out, answer.JSON(&out)
	})
}

func failureOf(t *testing.T, err error) *deedbox.Failure {
	t.Helper()
	var failure *deedbox.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("%v is no failure", err)
	}
	return failure
}

func TestAnActivityRunsByItsNameOnJSON(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	output, err := fake.RunNamed("add-up", `{"order": "42", "lines": [{"amount": 1}, {"amount": 2}]}`)
	if err != nil || output != "3" {
		t.Errorf("%s, %v", output, err)
	}
}

// F-J04.
func TestAnInputThatDoesNotFitNamesThePlace(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	for input, want := range map[string]string{
		`{"order": "42", "lines": [{"amount": 1}, {"amount": "x"}]}`: "input.lines[1].amount: expected an integer",
		`{"lines": []}`:               `input: the member "order" is missing`,
		`{"order": "42", "other": 1}`: `input: the member "other" is unknown`,
		`{"Order": "42"}`:             `input: the member "order" is missing`,
		`{"order": "42"} trailing`:    "input: more than one JSON text",
		`{"order": null}`:             "input.order: expected a string, found null",
		`{"order": "4`:                "input: the JSON text ends too early",
		``:                            "input: it is empty",
	} {
		_, err := fake.RunNamed("add-up", input)
		failure := failureOf(t, err)
		if failure.Code != deedbox.CodeInvalidInput || failure.Kind != deedbox.KindPermanent ||
			!strings.Contains(failure.Message, want) {
			t.Errorf("%s: %v", input, err)
		}
	}
}

func TestAnUnknownNameIsAPermanentFailureThatListsTheKnown(t *testing.T) {
	_, err := deedboxtest.ForTest(t, run).RunNamed("nobody", "null")
	failure := failureOf(t, err)
	if failure.Code != deedbox.CodeUnknownActivity || !strings.Contains(failure.Message, "add-up, charge") {
		t.Error(err)
	}
}

func TestARequestReachesTheHostAsItWasWritten(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	fake.Answer(deedboxtest.JSON(map[string]string{"id": "ch_1"}).Replayed())
	answer, err := fake.HTTP().Request("PROPFIND", address).Header("Content-Type", "application/vnd.x+json").
		JSON([]int{1}).Timeout(1500 * time.Microsecond).OnUnknown(deedbox.AtMostOnce).Effect("first").Send()
	if err != nil || answer.Source != deedbox.Replayed || answer.Header("CONTENT-TYPE") != "application/json" {
		t.Fatal(answer, err)
	}
	two := uint32(2)
	headers := []deedbox.HTTPHeader{{Name: "Content-Type", Value: []byte("application/vnd.x+json")}}
	want := deedboxtest.Sent{
		HTTPRequest: deedbox.HTTPRequest{
			Method: "PROPFIND", URL: address, Headers: headers, Body: []byte("[1]"), TimeoutMS: &two,
		},
		HTTPOptions: deedbox.HTTPOptions{
			Identity: deedbox.Identity{Kind: deedbox.ByName, Name: "first"}, OnUnknown: deedbox.AtMostOnce,
		},
	}
	if sent := fake.Sent()[0]; !reflect.DeepEqual(sent, want) {
		t.Errorf("%+v", sent)
	}
}

func TestAWrappedErrorKeepsItsCodeAndItsKind(t *testing.T) {
	kinds := map[string]deedbox.Kind{
		deedbox.CodeInFlight: deedbox.KindRetryable, deedbox.CodeUnreachable: deedbox.KindRetryable,
		deedbox.CodeTimedOut: deedbox.KindRetryable, deedbox.CodeConnectionLost: deedbox.KindRetryable,
		deedbox.CodeDenied: deedbox.KindPermanent, deedbox.CodeEffectMismatch: deedbox.KindPermanent,
		deedbox.CodeOutcomeUnknown: deedbox.KindPermanent, deedbox.CodeInvalidRequest: deedbox.KindPermanent,
		deedbox.CodeResponseTooLarge: deedbox.KindPermanent,
	}
	for code, kind := range kinds {
		fake := deedboxtest.ForTest(t, run)
		fake.Answer(deedboxtest.Error(code, "why"))
		_, err := fake.RunNamed("charge", `{"order": "42"}`)
		failure := failureOf(t, err)
		if failure.Code != code || failure.Kind != kind || !strings.HasPrefix(failure.Message, "the charge: ") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestAStatusBecomesAFailureOnlyWhenAsked(t *testing.T) {
	for status, kind := range map[int]deedbox.Kind{
		503: deedbox.KindRetryable, 429: deedbox.KindRetryable, 402: deedbox.KindPermanent,
	} {
		fake := deedboxtest.ForTest(t, run)
		fake.Answer(deedboxtest.Status(status), deedboxtest.Status(status))
		_, err := fake.RunNamed("charge", `{"order": "42"}`)
		failure := failureOf(t, err)
		details := fmt.Sprintf(`{"status":%d}`, status)
		if failure.Code != deedbox.CodeHTTPStatus || failure.Kind != kind || string(failure.Details) != details {
			t.Error(err)
		}
		if answer, err := fake.HTTP().Get(address).Send(); err != nil || answer.Status != status {
			t.Error(answer, err)
		}
	}
}

func TestAnErrorOfAnotherKindIsAFailureToo(t *testing.T) {
	for err, want := range map[error]*deedbox.Failure{
		errors.New("odd"): deedbox.Retryable(deedbox.CodeError, "odd"),
		fmt.Errorf("late: %w", context.DeadlineExceeded): deedbox.Retryable(deedbox.CodeTimedOut,
			"late: context deadline exceeded"),
	} {
		if failure := deedbox.AsFailure(err); !reflect.DeepEqual(failure, want) {
			t.Errorf("%+v", failure)
		}
	}
}

func TestABodyThatWasNotKeptIsAnErrorAndNeverEmpty(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	fake.Answer(deedboxtest.Status(200).WithoutBody())
	answer, err := fake.HTTP().Post(address).Send()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := answer.Text(); !deedbox.HasCode(err, deedbox.CodeBodyNotKept) {
		t.Error(err)
	}
	if err := answer.JSON(new(any)); !deedbox.HasCode(err, deedbox.CodeBodyNotKept) {
		t.Error(err)
	}
}

func TestABodyThatCannotBeWrittenIsNeverSent(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	_, err := fake.HTTP().Post(address).JSON(func() {}).Send()
	if !deedbox.HasCode(err, deedbox.CodeInvalidRequest) || len(fake.Sent()) != 0 {
		t.Error(err, fake.Sent())
	}
}

func TestMessagesAndFilesReachTheHostAsTheyWereWritten(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	published, err := fake.Messages().Publish("orders.paid").BusinessEffect("order-paid", "42").JSON(1).Send()
	if err != nil || published.Sequence != 1 {
		t.Error(published, err)
	}
	message := fake.SentMessages()[0]
	if string(message.Payload) != "1" || message.Headers[0].Value != "application/json" ||
		message.Identity != (deedbox.Identity{Kind: deedbox.ByBusiness, Operation: "order-paid", Key: "42"}) {
		t.Errorf("%+v", message)
	}
	fake.RefuseWrite(deedbox.CodeWriteFailed, "the disk is full")
	if _, err := fake.Files().Write("exports/42.txt", []byte("42")).Effect("export").Send(); !deedbox.HasCode(err,
		deedbox.CodeWriteFailed) {
		t.Error(err)
	}
	if file := fake.WrittenFiles()[0]; file.Path != "exports/42.txt" || file.Identity.Name != "export" {
		t.Errorf("%+v", file)
	}
	if err := fake.Files().Append("exports/log", nil); !deedbox.HasCode(err, deedbox.CodeDenied) {
		t.Error(err)
	}
}

func TestASignalIsReadOnceAndGivenAgainInEveryAttempt(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	poll := func() *deedbox.Signal {
		signal, err := fake.Signals().Poll("go")
		if err != nil {
			t.Fatal(err)
		}
		return signal
	}
	if signal := poll(); signal != nil {
		t.Error(signal)
	}
	fake.Deliver("go", map[string]int{"n": 1})
	given, err := fake.Signals().Wait("go")
	if err != nil || given.Payload != `{"n":1}` {
		t.Fatal(given, err)
	}
	fake.SetAttempt(2)
	fake.Deliver("go", 2)
	if signal := poll(); signal != nil {
		t.Error("not as the attempt before", signal)
	}
	if again, err := fake.Signals().Wait("go"); err != nil || again != given {
		t.Error(again, err)
	}
	if late, err := fake.Signals().WaitFor("none", time.Second); late != nil || err != nil {
		t.Error(late, err)
	}
	if _, err := fake.Signals().Poll(""); !deedbox.HasCode(err, deedbox.CodeSignalInvalidName) {
		t.Error(err)
	}
}

func TestACheckpointOutlivesTheAttemptAndHasALimit(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	var state []int
	if there, err := fake.Checkpoint().Load(&state); there || err != nil {
		t.Error(there, err)
	}
	if err := fake.Checkpoint().Save([]int{1, 2}); err != nil {
		t.Error(err)
	}
	fake.SetAttempt(2)
	if there, err := fake.Checkpoint().Load(&state); !there || err != nil || len(state) != 2 {
		t.Error(there, err, state)
	}
	if _, err := fake.Checkpoint().Load(new(string)); !deedbox.HasCode(err, deedbox.CodeCheckpointFormat) {
		t.Error(err)
	}
	if err := fake.Checkpoint().SaveBytes(make([]byte, 65537)); !deedbox.HasCode(err, deedbox.CodeCheckpointTooLarge) {
		t.Error(err)
	}
}

func TestAContextIsDoneWhenItsAttemptIsAskedToStop(t *testing.T) {
	fake := deedboxtest.ForTest(t, run)
	if _, limited := fake.Deadline(); !limited || fake.Err() != nil {
		t.Error("no deadline, or done before its time", fake.Err())
	}
	fake.Cancel()
	if !errors.Is(fake.Err(), context.Canceled) {
		t.Error(fake.Err())
	}
	<-fake.Done()
}
