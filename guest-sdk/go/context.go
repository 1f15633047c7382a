package deedbox

import (
	"context"
	"time"
)

// Key is a key that the host derived: a lower-case hyphenated UUID, 36 characters. It is the same in every attempt.
type Key string

// Context is the run that an activity serves: its keys, what is known about it, and the ways out.
//
// It is a context.Context as well: its deadline is the end of this attempt, and it is done when the attempt was asked to
// stop. Nothing in here makes up a key: they come from the host, the same in every attempt.
type Context struct {
	context.Context
	cancel context.CancelFunc
	host   Host
}

var _ context.Context = (*Context)(nil)

// NewContext makes a context on a host. Activities are handed one; only tests make their own, with package deedboxtest.
func NewContext(host Host) *Context {
	// The timer belongs to the context of the standard library: it ends with the attempt.
	inner, cancel := context.WithTimeout(context.Background(), host.Run().Remaining)
	return &Context{Context: inner, cancel: cancel, host: host}
}

// Err also asks the host: an attempt that was asked to stop is done from then on.
func (c *Context) Err() error {
	if c.Context.Err() == nil && c.host.Cancelled() {
		c.cancel()
	}
	return c.Context.Err()
}

// IdempotencyKey is the run key: the same in every attempt of this run, and in no other run.
func (c *Context) IdempotencyKey() Key {
	return Key(c.host.IdempotencyKey())
}

// Subkey is a key for one of several effects of this run. The same name always gives the same key, another name another
// key. It fails with invalid-name when the name is empty or longer than 256 bytes.
func (c *Context) Subkey(name string) (Key, error) {
	key, err := c.host.Subkey(name)
	return Key(key), err
}

// Run is what is known about the run. The host is asked each time.
func (c *Context) Run() Run {
	return c.host.Run()
}

// Cancelled is true once this attempt was asked to stop. Return soon: the host stops it otherwise.
func (c *Context) Cancelled() bool {
	return c.host.Cancelled()
}

// HTTP is HTTP through the ledger.
func (c *Context) HTTP() Client {
	return Client{c.host}
}

// Messages is messages through the ledger.
func (c *Context) Messages() Messages {
	return Messages{c.host}
}

// Files is files through the ledger.
func (c *Context) Files() Files {
	return Files{c.host}
}

// Signals is what the outside tells this run.
func (c *Context) Signals() Signals {
	return Signals{c.host}
}

// Checkpoint is the note from one attempt to the next.
func (c *Context) Checkpoint() Checkpoint {
	return Checkpoint{c.host}
}

// Run is what is known about a run.
type Run struct {
	// Tenant owns the run.
	Tenant string
	// ID is a UUID, the same in every attempt.
	ID string
	// Activity is the name under which the activity was deployed.
	Activity string
	// Attempt is 1 for the first. For logging only: a key built from it differs on every attempt, and the effect would
	// happen again. Use Context.Subkey for keys.
	Attempt int
	// MaxAttempts is how many the retry policy allows, the first included.
	MaxAttempts int
	// Remaining is the time left before this attempt is stopped, as of the call.
	Remaining time.Duration
}
