// Package deedboxtest runs an activity in a unit test, without a host, by plain go test.
//
// It answers requests from a script and remembers what was sent. It opens no socket, and it hands out only keys that a host
// would derive from the run id that the test gave: never a random one.
package deedboxtest

import (
	"encoding/json"
	"fmt"
	"time"

	"deedbox.local/deedbox"
)

// Context is a context for a unit test. Hand its Context to the function under test: charge(fake.Context, order).
//
// Each request needs an answer in the script; one without panics and names the request.
type Context struct {
	*deedbox.Context
	fake *fake
}

// Sent is one request, as the host would have got it.
type Sent struct {
	deedbox.HTTPRequest
	deedbox.HTTPOptions
}

// Header gives the first header of that name, in any case.
func (s Sent) Header(name string) string {
	response := deedbox.Response{Headers: s.Headers}
	return response.Header(name)
}

// JSON gives the body as JSON; nil when it is none.
func (s Sent) JSON() any {
	var value any
	_ = json.Unmarshal(s.Body, &value)
	return value
}

// File is one write, as the host would have got it.
type File struct {
	Path     string
	Content  []byte
	Identity deedbox.Identity
}

// ForRun makes the first of three attempts of the run with this id, a UUID in lower case that the test writes down, so that
// its keys are the same whenever the test runs. Any other id is an error: there is no key to hand out then.
func ForRun(runID string) (*Context, error) {
	if runID == "" {
		return nil, fmt.Errorf("a test context needs a run id, for its keys come from it: write a UUID into the test")
	}
	if !isRunID.MatchString(runID) {
		return nil, fmt.Errorf("%q is not a run id: write a lower-case hyphenated UUID into the test", runID)
	}
	host := &fake{keys: keysOf(runID), inbox: newInbox()}
	host.run = deedbox.Run{
		Tenant: tenant, ID: runID, Activity: "test", Attempt: 1, MaxAttempts: 3, Remaining: time.Minute,
	}
	return &Context{deedbox.NewContext(host), host}, nil
}

// Fatal is what ForTest needs of a *testing.T.
type Fatal interface {
	Helper()
	Fatal(args ...any)
}

// ForTest is ForRun for a test, which it ends when the run id is none.
func ForTest(t Fatal, runID string) *Context {
	t.Helper()
	fake, err := ForRun(runID)
	if err != nil {
		t.Fatal(err)
	}
	return fake
}

// Answer adds answers to the next requests that have none yet.
func (c *Context) Answer(answers ...Answer) {
	c.fake.script = append(c.fake.script, answers...)
}

// Sent gives every request so far, in order.
func (c *Context) Sent() []Sent { return c.fake.sent }

// SentMessages gives every message so far, in order. Each is kept by the stream TEST unless it is refused.
func (c *Context) SentMessages() []deedbox.Message { return c.fake.messages }

// WrittenFiles gives every file so far, in order.
func (c *Context) WrittenFiles() []File { return c.fake.files }

// RefuseMessage makes the next message fail with the failure of this code.
func (c *Context) RefuseMessage(code, text string) {
	c.fake.messageErrors = append(c.fake.messageErrors, deedbox.Refusal(code, text))
}

// RefuseWrite makes the next write of a file fail with the failure of this code.
func (c *Context) RefuseWrite(code, text string) {
	c.fake.fileErrors = append(c.fake.fileErrors, deedbox.Refusal(code, text))
}

// Deliver delivers a signal to the run. It panics when the payload cannot be written as JSON.
func (c *Context) Deliver(name string, payload any) {
	text, err := json.Marshal(payload)
	if err != nil {
		panic("deedboxtest: the payload of " + name + ": " + err.Error())
	}
	c.fake.inbox.deliver(name, string(text))
}

// SetAttempt makes this the attempt of that number, with the saved state of the attempts before, and the signals that they
// were given.
func (c *Context) SetAttempt(attempt int) {
	c.fake.inbox.beginAttempt()
	c.fake.run.Attempt = attempt
}

// SetMaxAttempts sets how many attempts there may be.
func (c *Context) SetMaxAttempts(attempts int) { c.fake.run.MaxAttempts = attempts }

// SetActivity sets the name under which the activity is deployed.
func (c *Context) SetActivity(name string) { c.fake.run.Activity = name }

// SetRemaining sets the time that Run tells. The deadline of the context stays what it was.
func (c *Context) SetRemaining(left time.Duration) { c.fake.run.Remaining = left }

// Cancel asks the attempt to stop.
func (c *Context) Cancel() { c.fake.cancelled = true }

// RunNamed runs an activity by its name on a JSON text, as the host does, and gives its output as JSON text. Its error is a
// *deedbox.Failure.
func (c *Context) RunNamed(activity, input string) (string, error) {
	output, failure := deedbox.RunNamed(c.Context, activity, input)
	if failure != nil {
		return "", failure
	}
	return output, nil
}
