package main

import (
	"testing"

	"deedbox.local/deedbox/deedboxtest"
)

func TestAnOrderIsCharged(t *testing.T) {
	fake := deedboxtest.ForTest(t, "0190b1c2-0000-7000-8000-000000000001")
	fake.Answer(deedboxtest.JSON(map[string]string{"id": "ch_1"}))
	input := `{"order": "42", "amount_cents": 1999, "provider_url": "https://api.example.com"}`
	output, err := fake.RunNamed("charge-once", input)
	if err != nil || output != `{"id":"ch_1"}` {
		t.Fatal(output, err)
	}
	sent := fake.Sent()[0]
	if sent.URL != "https://api.example.com/v1/charges" || string(sent.Body) != `{"order":"42","amount_cents":1999}` {
		t.Errorf("%s %s", sent.URL, sent.Body)
	}
}
