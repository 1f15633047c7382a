package deedboxtest

import (
	"regexp"

	"deedbox.local/deedbox"
)

var isSignalName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// place is a poll or a wait, its name, and how many of them came before it in the attempt.
type place struct {
	kind, name string
	count      int
}

// inbox has the signals to the activity under test. What a call was given it is given again in every later attempt, as by
// the host.
type inbox struct {
	delivered []*deedbox.Signal
	read      map[*deedbox.Signal]bool
	asked     map[place]int
	given     map[place]*deedbox.Signal
}

func newInbox() *inbox {
	return &inbox{read: map[*deedbox.Signal]bool{}, asked: map[place]int{}, given: map[place]*deedbox.Signal{}}
}

func (b *inbox) deliver(name, payload string) {
	sequence := uint64(len(b.delivered) + 1)
	b.delivered = append(b.delivered, &deedbox.Signal{Name: name, Payload: payload, Sequence: sequence})
}

func (b *inbox) beginAttempt() {
	clear(b.asked)
}

func (b *inbox) give(kind, name string) (*deedbox.Signal, error) {
	if !isSignalName.MatchString(name) {
		return nil, deedbox.Refusal(deedbox.CodeSignalInvalidName, "")
	}
	at := place{kind, name, b.asked[place{kind, name, 0}]}
	b.asked[place{kind, name, 0}]++
	signal, known := b.given[at]
	if !known {
		signal = b.take(name)
		b.given[at] = signal
	}
	return signal, nil
}

func (b *inbox) take(name string) *deedbox.Signal {
	for _, signal := range b.delivered {
		if signal.Name == name && !b.read[signal] {
			b.read[signal] = true
			return signal
		}
	}
	return nil
}
