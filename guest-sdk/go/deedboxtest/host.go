package deedboxtest

import (
	"fmt"

	"deedbox.local/deedbox"
)

const maxStateBytes = 64 << 10

type fake struct {
	keys          keys
	run           deedbox.Run
	cancelled     bool
	script        []Answer
	sent          []Sent
	messages      []deedbox.Message
	messageErrors []*deedbox.Failure
	files         []File
	fileErrors    []*deedbox.Failure
	inbox         *inbox
	state         []byte
}

func (f *fake) IdempotencyKey() string { return asText(f.keys.run) }

func (f *fake) Subkey(name string) (string, error) { return f.keys.subkey(name) }

func (f *fake) Run() deedbox.Run { return f.run }

func (f *fake) Cancelled() bool { return f.cancelled }

func (f *fake) Send(request deedbox.HTTPRequest, options deedbox.HTTPOptions) (*deedbox.Response, error) {
	f.sent = append(f.sent, Sent{request, options})
	if len(f.script) == 0 {
		panic(fmt.Sprintf("deedboxtest: no answer for %s %s: add one with Context.Answer", request.Method, request.URL))
	}
	answer := f.script[0]
	f.script = f.script[1:]
	if answer.failure != nil {
		return nil, answer.failure
	}
	return answer.response, nil
}

func (f *fake) Publish(message deedbox.Message) (*deedbox.Published, error) {
	f.messages = append(f.messages, message)
	if len(f.messageErrors) > 0 {
		failure := f.messageErrors[0]
		f.messageErrors = f.messageErrors[1:]
		return nil, failure
	}
	sequence := uint64(len(f.messages))
	id := fmt.Sprintf("00000000-0000-8000-8000-%012d", sequence)
	return &deedbox.Published{Stream: "TEST", Sequence: sequence, MessageID: id, EffectID: effectID}, nil
}

func (f *fake) Write(path string, content []byte, identity deedbox.Identity) (*deedbox.Written, error) {
	f.files = append(f.files, File{path, content, identity})
	if len(f.fileErrors) > 0 {
		failure := f.fileErrors[0]
		f.fileErrors = f.fileErrors[1:]
		return nil, failure
	}
	return &deedbox.Written{EffectID: effectID}, nil
}

func (f *fake) Append(string, []byte) error {
	return deedbox.Refusal(deedbox.CodeDenied, "an append that is made twice writes twice: write a file of its own for "+
		"each run, for example one named by the idempotency key")
}

func (f *fake) Poll(name string) (*deedbox.Signal, error) { return f.inbox.give("poll", name) }

// Wait with a limit is over at once when no signal is here. One without an end would never end.
func (f *fake) Wait(name string, limitMS *uint64) (*deedbox.Signal, error) {
	signal, err := f.inbox.give("wait", name)
	if err == nil && signal == nil && limitMS == nil {
		panic("deedboxtest: the activity waits for the signal " + name + " without end: deliver it with Context.Deliver")
	}
	return signal, err
}

func (f *fake) Save(state []byte) error {
	if len(state) > maxStateBytes {
		return deedbox.Refusal(deedbox.CodeCheckpointTooLarge, "")
	}
	f.state = append([]byte{}, state...)
	return nil
}

func (f *fake) Load() []byte { return f.state }
