package deedbox

import "encoding/json"

// Checkpoint is a small note from one attempt to the next attempt of the same run. It holds one value: saving replaces it.
//
// It is for progress, not for effects: the ledger alone remembers what was sent.
type Checkpoint struct {
	host Host
}

// Save replaces the saved state by the value as JSON. Durable once it returns.
func (c Checkpoint) Save(state any) error {
	text, err := json.Marshal(state)
	if err != nil {
		return Refusal(CodeCheckpointFormat, err.Error())
	}
	return c.SaveBytes(text)
}

// Load reads the state saved last, by this or an earlier attempt, into the value that target points to. It tells whether
// there was one, and fails with checkpoint-format when it has another shape.
func (c Checkpoint) Load(target any) (bool, error) {
	state := c.LoadBytes()
	if state == nil {
		return false, nil
	}
	if err := json.Unmarshal(state, target); err != nil {
		return false, Refusal(CodeCheckpointFormat, err.Error())
	}
	return true, nil
}

// SaveBytes replaces the saved state by these bytes.
func (c Checkpoint) SaveBytes(state []byte) error {
	return c.host.Save(state)
}

// LoadBytes gives the bytes saved last, or nil.
func (c Checkpoint) LoadBytes() []byte {
	return c.host.Load()
}
