package deedbox

// Host is what an activity can call: exactly the imports of the WIT world. A component has the real one; package
// deedboxtest has one for tests. Every error it gives is a [*Failure].
type Host interface {
	IdempotencyKey() string
	Subkey(name string) (string, error)
	Run() Run
	Cancelled() bool
	Send(request HTTPRequest, options HTTPOptions) (*Response, error)
	Publish(message Message) (*Published, error)
	Write(path string, content []byte, identity Identity) (*Written, error)
	Append(path string, content []byte) error
	// Poll gives nil when no signal of that name is here.
	Poll(name string) (*Signal, error)
	// Wait gives nil when the time is over. No limit: without end.
	Wait(name string, limitMS *uint64) (*Signal, error)
	Save(state []byte) error
	// Load gives nil when nothing was saved.
	Load() []byte
}

// IdentityKind is the way in which an effect is told apart from all others.
type IdentityKind uint8

const (
	// ByPosition: by its place and its order within the attempt.
	ByPosition IdentityKind = iota
	// ByName: by a name that is unique in this run.
	ByName
	// ByBusiness: by the business operation itself.
	ByBusiness
)

// Identity is how an effect is told apart from all others.
type Identity struct {
	Kind IdentityKind
	// Name is for ByName: 1 to 256 bytes.
	Name string
	// Operation and Key are for ByBusiness: 1 to 256 bytes each.
	Operation, Key string
}

// OnUnknown is what to do when nobody knows whether an effect happened and sending again is not safe by itself.
type OnUnknown uint8

const (
	// ProviderDefault: as the deployment's policy, else the provider's profile, says.
	ProviderDefault OnUnknown = iota
	// Ask: the run waits until a person or a system settles the question.
	Ask
	// AtMostOnce: never send again; the call fails with outcome-unknown.
	AtMostOnce
	// AtLeastOnce: send again, and accept that the effect may happen twice.
	AtLeastOnce
)

// Source is where an answer comes from.
type Source uint8

const (
	// Sent: this send.
	Sent Source = iota
	// Replayed: the record of an earlier send; nothing was sent now.
	Replayed
	// LookedUp: a look-up at the provider.
	LookedUp
	// Supplied: a person or a system who settled the question.
	Supplied
)

func (s Source) String() string {
	return [...]string{"sent", "replayed", "looked-up", "supplied"}[s&3]
}
