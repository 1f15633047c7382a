package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
)

// Read reads one JSON text. The error names the place of what does not fit, beginning at "input".
func Read[T any](text string) (T, error) {
	var value T
	raw := []byte(text)
	if err := whole(raw); err != nil {
		return value, err
	}
	if err := check("input", reflect.TypeFor[T](), raw, false); err != nil {
		return value, err
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, fmt.Errorf("input: %w", err)
	}
	return value, nil
}

// whole fails when the bytes are not one JSON text.
func whole(raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return errors.New("input: it is empty")
	}
	reader := json.NewDecoder(bytes.NewReader(raw))
	var text json.RawMessage
	if err := reader.Decode(&text); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("input: the JSON text ends too early")
		}
		return fmt.Errorf("input: at byte %d: %w", reader.InputOffset(), err)
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("input: more than one JSON text, from byte %d", reader.InputOffset())
	}
	return nil
}

func check(place string, typ reflect.Type, raw json.RawMessage, quoted bool) error {
	raw = bytes.TrimSpace(raw)
	isNull := string(raw) == "null"
	if typ.Kind() == reflect.Pointer {
		if isNull {
			return nil
		}
		return check(place, typ.Elem(), raw, quoted)
	}
	if typ.Kind() == reflect.Interface || readsJSON(typ) && typ != moment {
		return leaf(place, typ, raw, false)
	}
	if isNull {
		return fmt.Errorf("%s: expected %s, found null", place, word(typ))
	}
	if isLeaf(typ) || quoted {
		return leaf(place, typ, raw, quoted)
	}
	switch typ.Kind() {
	case reflect.Struct:
		return object(place, typ, raw)
	case reflect.Map:
		return mapping(place, typ, raw)
	case reflect.Slice, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 && typ.Kind() == reflect.Slice {
			return leaf(place, typ, raw, false)
		}
		return list(place, typ, raw)
	default:
		return leaf(place, typ, raw, false)
	}
}

func object(place string, typ reflect.Type, raw json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return mismatch(place, typ, raw)
	}
	known := fields(typ)
	for _, it := range known {
		member, ok := members[it.name]
		if !ok && !it.optional {
			return fmt.Errorf("%s: the member %q is missing", place, it.name)
		}
		if !ok {
			continue
		}
		if err := check(place+"."+it.name, it.typ, member, it.quoted); err != nil {
			return err
		}
		delete(members, it.name)
	}
	if len(members) == 0 {
		return nil
	}
	names := make([]string, len(known))
	for i, it := range known {
		names[i] = it.name
	}
	unknown := slices.Sorted(maps.Keys(members))[0]
	return fmt.Errorf("%s: the member %q is unknown; known are %q", place, unknown, names)
}

func mapping(place string, typ reflect.Type, raw json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return mismatch(place, typ, raw)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := check(fmt.Sprintf("%s[%q]", place, name), typ.Elem(), members[name], false); err != nil {
			return err
		}
	}
	return nil
}

func list(place string, typ reflect.Type, raw json.RawMessage) error {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return mismatch(place, typ, raw)
	}
	if typ.Kind() == reflect.Array && len(elements) != typ.Len() {
		return fmt.Errorf("%s: expected %d elements, found %d", place, typ.Len(), len(elements))
	}
	for i, element := range elements {
		if err := check(fmt.Sprintf("%s[%d]", place, i), typ.Elem(), element, false); err != nil {
			return err
		}
	}
	return nil
}

func leaf(place string, typ reflect.Type, raw json.RawMessage, quoted bool) error {
	if quoted {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return fmt.Errorf("%s: expected a string that holds %s, found %s", place, word(typ), found(raw))
		}
		raw = json.RawMessage(text)
	}
	err := json.Unmarshal(raw, reflect.New(typ).Interface())
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && !readsJSON(typ) {
		return mismatch(place, typ, raw)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	return nil
}

func mismatch(place string, typ reflect.Type, raw json.RawMessage) error {
	return fmt.Errorf("%s: expected %s, found %s", place, word(typ), found(raw))
}

func found(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	default:
		return "the number " + string(raw[:min(len(raw), 40)])
	}
}

func word(typ reflect.Type) string {
	if readsText(typ) {
		return "a string"
	}
	switch typ.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 && typ.Kind() == reflect.Slice {
			return "a string of base64"
		}
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a truth value"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "an integer (" + typ.Kind().String() + ")"
	}
}
