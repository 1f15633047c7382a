package deedbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deedbox.local/deedbox/internal/shape"
)

// Descriptor is what a component says about one of its activities.
type Descriptor struct {
	Name, Summary string
	// JSON Schema texts.
	InputSchema, OutputSchema string
}

type registration struct {
	descriptor func() Descriptor
	call       func(ctx *Context, input string) (string, error)
}

var registered = map[string]registration{}

// Activity registers a function as an activity of this component. Call it in a func init, once for each activity: main is
// not run in a component. The name has 1 to 128 letters, digits, '.', '_' and '-'; the summary is one line for people.
//
// The input is read strictly: a member that In does not have is refused, and a missing one is named. A field may be absent
// when it is a pointer, or has omitempty or omitzero in its json tag.
//
// It panics when the name is no name or was registered before, and the component cannot be uploaded then.
func Activity[In, Out any](name, summary string, run func(ctx *Context, input In) (Out, error)) {
	if !isName(name) {
		panic(fmt.Sprintf("deedbox: %q is no name for an activity: 1 to 128 letters, digits, '.', '_' and '-'", name))
	}
	if _, taken := registered[name]; taken {
		panic(fmt.Sprintf("deedbox: two activities have the name %q", name))
	}
	registered[name] = registration{
		descriptor: func() Descriptor {
			return Descriptor{name, summary, shape.InputSchema[In](), shape.OutputSchema[Out]()}
		},
		call: func(ctx *Context, text string) (string, error) {
			input, err := shape.Read[In](text)
			if err != nil {
				return "", Permanent(CodeInvalidInput, err.Error())
			}
			output, err := run(ctx, input)
			if err != nil {
				return "", err
			}
			return write(output)
		},
	}
}

// Activities describes every activity of this component, by name.
func Activities() []Descriptor {
	all := make([]Descriptor, 0, len(registered))
	for _, name := range names() {
		all = append(all, registered[name].descriptor())
	}
	return all
}

// RunNamed runs the activity of that name on a JSON text, as the host does. It fails with unknown-activity when there is
// none. Tests call it by way of package deedboxtest.
func RunNamed(ctx *Context, name, input string) (string, *Failure) {
	found, ok := registered[name]
	if !ok {
		message := fmt.Sprintf("this module has no activity %q; it has: %s", name, strings.Join(names(), ", "))
		return "", Permanent(CodeUnknownActivity, message)
	}
	output, err := found.call(ctx, input)
	if err != nil {
		return "", AsFailure(err)
	}
	return output, nil
}

func names() []string {
	return slices.Sorted(maps.Keys(registered))
}

func write(output any) (string, error) {
	text, err := json.Marshal(output)
	if err != nil {
		return "", Permanent(CodeInvalidOutput, "the output cannot be written as JSON: "+err.Error())
	}
	return string(text), nil
}

func isName(name string) bool {
	other := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c))
	}
	return len(name) >= 1 && len(name) <= 128 && !strings.ContainsFunc(name, other)
}
