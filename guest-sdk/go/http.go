package deedbox

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// HTTPRequest is one request, as the host gets it.
type HTTPRequest struct {
	// Method is in upper case.
	Method string
	// URL is absolute, http or https.
	URL     string
	Headers []HTTPHeader
	Body    []byte
	// TimeoutMS is nil where the host's default counts.
	TimeoutMS *uint32
}

// HTTPHeader is one header; names may repeat.
type HTTPHeader struct {
	Name  string
	Value []byte
}

// HTTPOptions say how the effect of a request is told apart, and what to do when its outcome is unknown.
type HTTPOptions struct {
	Identity  Identity
	OnUnknown OnUnknown
	// Lookup is nil where the provider's profile says how to ask.
	Lookup *Lookup
}

// Client is where requests through the ledger start.
//
// The host claims each effect before it sends it, and answers it from the record when it was sent before. Nothing here
// retries by itself, follows a redirect, or invents a header or a key.
type Client struct {
	host Host
}

// Get begins a read.
func (c Client) Get(address string) *Request { return c.Request("GET", address) }

// Post begins an effect.
func (c Client) Post(address string) *Request { return c.Request("POST", address) }

// Put begins an effect.
func (c Client) Put(address string) *Request { return c.Request("PUT", address) }

// Patch begins an effect.
func (c Client) Patch(address string) *Request { return c.Request("PATCH", address) }

// Delete begins an effect.
func (c Client) Delete(address string) *Request { return c.Request("DELETE", address) }

// Request begins a request with any method, in upper case. GET, HEAD and OPTIONS are reads; every other method is an
// effect.
func (c Client) Request(method, address string) *Request {
	return &Request{host: c.host, request: HTTPRequest{Method: method, URL: address}}
}

// Request is a request that is not sent until Send is called. A mistake made while building is kept and returned by Send.
type Request struct {
	host    Host
	request HTTPRequest
	options HTTPOptions
	mistake error
}

// Header adds a header. The host refuses host, hop-by-hop and framing headers.
func (r *Request) Header(name, value string) *Request {
	r.request.Headers = append(r.request.Headers, HTTPHeader{name, []byte(value)})
	return r
}

// JSON sets the body as JSON, with its content type unless one was given before.
func (r *Request) JSON(body any) *Request {
	text, err := json.Marshal(body)
	if err != nil {
		r.mistake = Refusal(CodeInvalidRequest, "the body is not JSON: "+err.Error())
		return r
	}
	return r.typed(text, "application/json")
}

// Form sets the body as an HTML form, with its content type unless one was given before. Names are in alphabetical order,
// so that the same values always give the same bytes.
func (r *Request) Form(values url.Values) *Request {
	return r.typed([]byte(values.Encode()), "application/x-www-form-urlencoded")
}

// Body sets the body.
func (r *Request) Body(body []byte) *Request {
	r.request.Body = body
	return r
}

// Timeout is how long to wait for the whole answer, rounded up to milliseconds. The host caps it by the time left for the
// attempt.
func (r *Request) Timeout(limit time.Duration) *Request {
	millis := (max(limit, 0) + time.Millisecond - 1) / time.Millisecond
	capped := uint32(min(millis, 1<<32-1))
	r.request.TimeoutMS = &capped
	return r
}

// Effect names this effect, 1 to 256 bytes, unique in this run. A named effect may move within the code between attempts;
// an unnamed one is known by its place.
func (r *Request) Effect(name string) *Request {
	r.options.Identity = Identity{Kind: ByName, Name: name}
	return r
}

// BusinessEffect names this effect by the business itself, for example ("charge", orderNumber): two runs that name the
// same operation and key share one effect.
func (r *Request) BusinessEffect(operation, key string) *Request {
	r.options.Identity = Identity{Kind: ByBusiness, Operation: operation, Key: key}
	return r
}

// OnUnknown says what to do when nobody knows whether the effect happened and sending again is not safe.
func (r *Request) OnUnknown(choice OnUnknown) *Request {
	r.options.OnUnknown = choice
	return r
}

// Lookup says how the host asks the provider whether this effect happened, when nobody knows.
func (r *Request) Lookup(lookup Lookup) *Request {
	r.options.Lookup = &lookup
	return r
}

// Send sends it, or answers it from the ledger. Every status is an answer.
func (r *Request) Send() (*Response, error) {
	if r.mistake != nil {
		return nil, r.mistake
	}
	return r.host.Send(r.request, r.options)
}

func (r *Request) typed(body []byte, contentType string) *Request {
	for _, header := range r.request.Headers {
		if strings.EqualFold(header.Name, "content-type") {
			return r.Body(body)
		}
	}
	return r.Header("content-type", contentType).Body(body)
}

// Lookup is a GET by which the host finds out whether an effect happened. It is made without the activity, maybe days
// later, so all that it needs is said here. When neither condition is true, it cannot tell.
type Lookup struct {
	URL           string
	Headers       []HTTPHeader
	Found, Absent Condition
	// Settle is how long after the send Absent may still be wrong.
	Settle time.Duration
}

// Condition recognises an answer of a look-up: it has any of these statuses and, if a pointer is given, a JSON value there.
type Condition struct {
	Statuses []uint16
	// Pointer is as in RFC 6901; * stands for every element. The value there is not null.
	Pointer string
	// Equals is a string, or the compact text of the value. Empty: any value.
	Equals string
}
