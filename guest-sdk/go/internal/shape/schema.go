package shape

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// InputSchema is the JSON Schema of what Read takes for the type.
func InputSchema[T any]() string {
	return text(reflect.TypeFor[T](), true)
}

// OutputSchema is the JSON Schema of what encoding/json writes for the type.
func OutputSchema[T any]() string {
	return text(reflect.TypeFor[T](), false)
}

type node = map[string]any

type writer struct {
	reading     bool
	definitions node
	names       map[reflect.Type]string
}

func text(typ reflect.Type, reading bool) string {
	w := writer{reading: reading, definitions: node{}, names: map[reflect.Type]string{}}
	root := w.root(typ)
	root["$schema"] = dialect
	if len(w.definitions) > 0 {
		root["$defs"] = w.definitions
	}
	// It holds only texts, numbers, lists and maps of texts.
	written, _ := json.Marshal(root)
	return string(written)
}

// root says a struct in its own place, so that a reader finds its members at the top.
func (w *writer) root(typ reflect.Type) node {
	if typ.Kind() == reflect.Struct && !isLeaf(typ) && !mentions(typ, typ, nil) {
		return w.object(typ)
	}
	return w.schema(typ)
}

func (w *writer) schema(typ reflect.Type) node {
	switch {
	case typ.Kind() == reflect.Pointer:
		return node{"anyOf": []any{w.schema(typ.Elem()), node{"type": "null"}}}
	case typ == moment:
		return node{"type": "string", "format": "date-time"}
	case typ == number:
		return node{"type": "number"}
	case typ.Kind() == reflect.Interface || readsJSON(typ):
		return node{}
	case readsText(typ):
		return node{"type": "string"}
	}
	switch typ.Kind() {
	case reflect.Struct:
		return w.reference(typ)
	case reflect.Map:
		return w.nilable(typ, node{"type": "object", "additionalProperties": w.schema(typ.Elem())})
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return w.nilable(typ, node{"type": "string", "contentEncoding": "base64"})
		}
		return w.nilable(typ, node{"type": "array", "items": w.schema(typ.Elem())})
	case reflect.Array:
		return node{"type": "array", "items": w.schema(typ.Elem()), "minItems": typ.Len(), "maxItems": typ.Len()}
	default:
		return scalar(typ)
	}
}

// nilable: a nil slice or map is written as null, and never read from it.
func (w *writer) nilable(_ reflect.Type, schema node) node {
	if !w.reading {
		schema["type"] = []string{schema["type"].(string), "null"}
	}
	return schema
}

func scalar(typ reflect.Type) node {
	switch kind := typ.Kind(); {
	case kind == reflect.String:
		return node{"type": "string"}
	case kind == reflect.Bool:
		return node{"type": "boolean"}
	case kind == reflect.Float32 || kind == reflect.Float64:
		return node{"type": "number"}
	case kind >= reflect.Int && kind <= reflect.Int64:
		schema := node{"type": "integer"}
		if typ.Bits() < 64 {
			schema["minimum"], schema["maximum"] = -(1 << (typ.Bits() - 1)), 1<<(typ.Bits()-1)-1
		}
		return schema
	case kind >= reflect.Uint && kind <= reflect.Uintptr:
		schema := node{"type": "integer", "minimum": 0}
		if typ.Bits() < 64 {
			schema["maximum"] = 1<<typ.Bits() - 1
		}
		return schema
	default:
		panic(fmt.Sprintf("deedbox: %s has no form in JSON: use another type in inputs and outputs", typ))
	}
}

// reference says a struct once, by its name, so that a type may contain itself.
func (w *writer) reference(typ reflect.Type) node {
	name, known := w.names[typ]
	if !known {
		name = w.name(typ)
		w.names[typ] = name
		w.definitions[name] = node{}
		w.definitions[name] = w.object(typ)
	}
	return node{"$ref": "#/$defs/" + name}
}

func (w *writer) name(typ reflect.Type) string {
	base := strings.Map(func(c rune) rune {
		if strings.ContainsRune("[]/. ,*{};\"", c) {
			return '_'
		}
		return c
	}, typ.Name())
	if base == "" {
		base = "anonymous"
	}
	name := base
	for n := 2; w.definitions[name] != nil; n++ {
		name = fmt.Sprintf("%s%d", base, n)
	}
	return name
}

func (w *writer) object(typ reflect.Type) node {
	properties, required := node{}, []string{}
	for _, it := range fields(typ) {
		property := w.schema(it.typ)
		if it.quoted {
			property = node{"type": "string"}
		}
		if it.doc != "" {
			property["description"] = it.doc
		}
		properties[it.name] = property
		if !it.optional {
			required = append(required, it.name)
		}
	}
	schema := node{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// mentions tells whether a type is somewhere within another.
func mentions(within, wanted reflect.Type, seen map[reflect.Type]bool) bool {
	if seen == nil {
		seen = map[reflect.Type]bool{}
	}
	if seen[within] {
		return within == wanted
	}
	seen[within] = true
	switch within.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return within.Elem() == wanted || mentions(within.Elem(), wanted, seen)
	case reflect.Struct:
		if isLeaf(within) {
			return false
		}
		for _, it := range fields(within) {
			if it.typ == wanted || mentions(it.typ, wanted, seen) {
				return true
			}
		}
	}
	return false
}
