package deedbox

import (
	"encoding/json"
	"strings"
)

// Messages go through the ledger: the host claims each first and gives it an id that is the same in every attempt.
type Messages struct {
	host Host
}

// Message is one message, as the host gets it.
type Message struct {
	Subject   string
	Payload   []byte
	Headers   []MessageHeader
	Identity  Identity
	OnUnknown OnUnknown
}

// MessageHeader is a header of a message.
type MessageHeader struct {
	Name, Value string
}

// Published says where the server keeps a message.
type Published struct {
	Stream   string
	Sequence uint64
	// Duplicate: the server had it already.
	Duplicate bool
	// MessageID is the id on the wire.
	MessageID string
	Source    Source
	// EffectID is 64 hexadecimal digits.
	EffectID string
}

// Publish begins a message to the deployment's server, with an empty payload.
func (m Messages) Publish(subject string) *MessageBuilder {
	return &MessageBuilder{host: m.host, message: Message{Subject: subject}}
}

// MessageBuilder is a message that is not published until Send is called.
type MessageBuilder struct {
	host    Host
	message Message
	mistake error
}

// Header adds a header. The host refuses those of the server, but for Nats-Msg-Id and conditions.
func (b *MessageBuilder) Header(name, value string) *MessageBuilder {
	b.message.Headers = append(b.message.Headers, MessageHeader{name, value})
	return b
}

// Payload sets the payload.
func (b *MessageBuilder) Payload(payload []byte) *MessageBuilder {
	b.message.Payload = payload
	return b
}

// JSON sets the payload as JSON, with a content type unless one was given before.
func (b *MessageBuilder) JSON(payload any) *MessageBuilder {
	text, err := json.Marshal(payload)
	if err != nil {
		b.mistake = Refusal(CodeInvalidRequest, "the payload is not JSON: "+err.Error())
		return b
	}
	for _, header := range b.message.Headers {
		if strings.EqualFold(header.Name, "content-type") {
			return b.Payload(text)
		}
	}
	return b.Header("Content-Type", "application/json").Payload(text)
}

// Effect names this effect, 1 to 256 bytes, unique in this run. An unnamed one is known by its subject and its order.
func (b *MessageBuilder) Effect(name string) *MessageBuilder {
	b.message.Identity = Identity{Kind: ByName, Name: name}
	return b
}

// BusinessEffect names this effect by the business itself, for example ("order-paid", orderNumber): two runs that name the
// same operation and key share one message.
func (b *MessageBuilder) BusinessEffect(operation, key string) *MessageBuilder {
	b.message.Identity = Identity{Kind: ByBusiness, Operation: operation, Key: key}
	return b
}

// OnUnknown says what to do when nobody knows whether the message was published and the server may have forgotten its id.
func (b *MessageBuilder) OnUnknown(choice OnUnknown) *MessageBuilder {
	b.message.OnUnknown = choice
	return b
}

// Send publishes it and waits until the server keeps it, or answers from the ledger.
func (b *MessageBuilder) Send() (*Published, error) {
	if b.mistake != nil {
		return nil, b.mistake
	}
	return b.host.Publish(b.message)
}
