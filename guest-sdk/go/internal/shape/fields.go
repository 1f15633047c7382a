// Package shape reads JSON texts strictly into Go types, and says in JSON Schema what it reads. Both look at a type through
// the same eyes: the fields, names and options that package encoding/json would use.
package shape

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

type field struct {
	name     string
	typ      reflect.Type
	optional bool
	// The value is a JSON string that holds the number or truth value.
	quoted bool
	doc    string
}

// fields lists what a struct has as a JSON object, in the order of its declaration. An outer field hides an inner one of
// the same name.
func fields(typ reflect.Type) []field {
	var all []field
	seen := map[string]bool{}
	add := func(candidates []field) {
		for _, it := range candidates {
			if !seen[it.name] {
				seen[it.name] = true
				all = append(all, it)
			}
		}
	}
	var embedded []reflect.Type
	for i := range typ.NumField() {
		it := typ.Field(i)
		tag, options, _ := strings.Cut(it.Tag.Get("json"), ",")
		if inner := deref(it.Type); it.Anonymous && tag == "" && inner.Kind() == reflect.Struct && !isLeaf(inner) {
			embedded = append(embedded, inner)
			continue
		}
		if !it.IsExported() || it.Tag.Get("json") == "-" {
			continue
		}
		add([]field{of(it, tag, options)})
	}
	for _, inner := range embedded {
		add(fields(inner))
	}
	return all
}

func of(it reflect.StructField, name, options string) field {
	if name == "" {
		name = it.Name
	}
	has := func(option string) bool { return strings.Contains(","+options+",", ","+option+",") }
	return field{
		name:     name,
		typ:      it.Type,
		optional: it.Type.Kind() == reflect.Pointer || has("omitempty") || has("omitzero"),
		quoted:   has("string"),
		doc:      it.Tag.Get("doc"),
	}
}

func deref(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	marshaler       = reflect.TypeFor[json.Marshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	moment          = reflect.TypeFor[time.Time]()
	number          = reflect.TypeFor[json.Number]()
)

// isLeaf tells whether a type reads or writes itself.
func isLeaf(typ reflect.Type) bool {
	return readsJSON(typ) || readsText(typ)
}

func readsJSON(typ reflect.Type) bool {
	return either(typ, unmarshaler) || either(typ, marshaler)
}

func readsText(typ reflect.Type) bool {
	return either(typ, textUnmarshaler) || either(typ, textMarshaler)
}

func either(typ, wanted reflect.Type) bool {
	return typ.Implements(wanted) || reflect.PointerTo(typ).Implements(wanted)
}
