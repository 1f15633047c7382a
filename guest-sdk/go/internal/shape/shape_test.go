package shape

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type tree struct {
	Name     string           `json:"name" doc:"What it is called."`
	Children []tree           `json:"children,omitempty"`
	Leaves   map[string]uint8 `json:"leaves,omitempty"`
}

type base struct {
	ID int64 `json:"id,string"`
}

type mixed struct {
	base
	At      time.Time       `json:"at"`
	Raw     json.RawMessage `json:"raw,omitempty"`
	Maybe   *bool           `json:"maybe"`
	Pair    [2]int          `json:"pair"`
	Bytes   []byte          `json:"bytes"`
	Hidden  string          `json:"-"`
	private string
}

const good = `{"id":"7","at":"2026-01-01T00:00:00Z","raw":null,"pair":[1,2],"bytes":"AA=="}`

func TestATypeIsReadAsPackageJSONReadsIt(t *testing.T) {
	value, err := Read[mixed](good)
	if err != nil || value.ID != 7 || value.Pair != [2]int{1, 2} || len(value.Bytes) != 1 || value.private != "" {
		t.Fatalf("%+v, %v", value, err)
	}
	if string(value.Raw) != "null" || value.Maybe != nil {
		t.Errorf("%+v", value)
	}
}

// F-J04.
func TestWhatDoesNotFitIsNamed(t *testing.T) {
	replaced := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for text, want := range map[string]string{
		replaced(`"7"`, `7`):                       `input.id: expected a string that holds an integer (int64), found the number 7`,
		replaced(`"2026-`, `"x-`):                  "input.at: ",
		replaced(`[1,2]`, `[1]`):                   "input.pair: expected 2 elements, found 1",
		replaced(`[1,2]`, `[1,2.5]`):               "input.pair[1]: expected an integer (int), found the number 2.5",
		replaced(`"AA=="`, `"?"`):                  "input.bytes: ",
		replaced(`"raw"`, `"Hidden"`):              `input: the member "Hidden" is unknown`,
		replaced(`"id":"7",`, ``):                  `input: the member "id" is missing`,
		replaced(`"bytes":"AA=="`, `"bytes":null`): "input.bytes: expected a string of base64, found null",
		`[]`: "input: expected an object, found an array",
	} {
		if _, err := Read[mixed](text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	_, err := Read[tree](`{"name":"a","children":[{"name":"b","leaves":{"x":1,"y":300}}]}`)
	if err == nil || err.Error() != `input.children[0].leaves["y"]: expected an integer (uint8), found the number 300` {
		t.Error(err)
	}
}

func TestASchemaSaysWhatIsRead(t *testing.T) {
	var schema struct {
		Required   []string
		Additional bool `json:"additionalProperties"`
		Properties map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(InputSchema[mixed]()), &schema); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(schema.Required, " "); got != "at pair bytes id" || schema.Additional {
		t.Errorf("%s, %v", got, schema.Additional)
	}
	if schema.Properties["at"]["format"] != "date-time" || len(schema.Properties["raw"]) != 0 {
		t.Errorf("%v", schema.Properties)
	}
}

func TestATypeThatContainsItselfIsSaidOnce(t *testing.T) {
	text := InputSchema[tree]()
	if strings.Count(text, `"What it is called."`) != 1 || !strings.Contains(text, `"$ref":"#/$defs/tree"`) {
		t.Error(text)
	}
	if !strings.Contains(OutputSchema[[]string](), `"type":["array","null"]`) {
		t.Error(OutputSchema[[]string]())
	}
}
