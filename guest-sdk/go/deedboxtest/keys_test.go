package deedboxtest_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"deedbox.local/deedbox"
	"deedbox.local/deedbox/deedboxtest"
)

// Beside the SDKs in the repository. A copy of this package elsewhere has none.
const vectorsFile = "../../key-vectors.json"

type vector struct {
	Tenant string `json:"tenant"`
	RunID  string `json:"run_id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
}

type vectorFile struct {
	RunKeys      []vector `json:"run_keys"`
	Subkeys      []vector `json:"subkeys"`
	RefusedNames []int    `json:"refused_names"`
}

func vectors(t *testing.T) (all vectorFile) {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no key-vectors.json beside the SDK")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRunKeysAreThoseOfTheVectorsInEveryAttempt(t *testing.T) {
	checked := 0
	for _, it := range vectors(t).RunKeys {
		if it.Tenant != "test" {
			continue
		}
		fake := deedboxtest.ForTest(t, it.RunID)
		for attempt := 1; attempt <= 3; attempt++ {
			fake.SetAttempt(attempt)
			if key := fake.IdempotencyKey(); string(key) != it.Text {
				t.Errorf("%s in attempt %d: %s, want %s", it.RunID, attempt, key, it.Text)
			}
		}
		checked++
	}
	if checked < 3 {
		t.Errorf("%d vectors are too few to check anything", checked)
	}
}

func TestSubkeysAreThoseOfTheVectorsInEveryAttempt(t *testing.T) {
	checked := 0
	for _, it := range vectors(t).Subkeys {
		if it.Tenant != "test" {
			continue
		}
		fake := deedboxtest.ForTest(t, it.RunID)
		fake.SetAttempt(2)
		if key, err := fake.Subkey(it.Name); err != nil || string(key) != it.Text {
			t.Errorf("%q: %s (%v), want %s", it.Name, key, err, it.Text)
		}
		checked++
	}
	if checked < 3 {
		t.Errorf("%d vectors are too few to check anything", checked)
	}
}

func TestNamesThatTheVectorsRefuseAreErrors(t *testing.T) {
	fake := deedboxtest.ForTest(t, "00000000-0000-0000-0000-000000000000")
	for _, length := range vectors(t).RefusedNames {
		if _, err := fake.Subkey(strings.Repeat("a", length)); !deedbox.HasCode(err, deedbox.CodeInvalidName) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func TestAContextWithoutARunIDIsRefused(t *testing.T) {
	for _, id := range []string{"", "42", "0190B1C2-0000-7000-8000-000000000001", "0190b1c20000700080000000000000001"} {
		if _, err := deedboxtest.ForRun(id); err == nil {
			t.Errorf("%q was taken", id)
		}
	}
}
