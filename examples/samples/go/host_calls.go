package main

import (
	"fmt"
	"log"
	"log/slog"

	"deedbox.local/deedbox"
)

func init() {
	deedbox.Activity("keys", "Shows the keys of this run.", keys)
	deedbox.Activity("checkpointed", "Takes steps and notes how far it came.", checkpointed)
	deedbox.Activity("publish", "Publishes a message.", publish)
	deedbox.Activity("log", "Writes a line at every level.", logLines)
	deedbox.Activity("echo", "Gives back what it got.", echo)
}

type named struct {
	Names []string `json:"names"`
}

type shown struct {
	Run     deedbox.Key            `json:"run"`
	Subkeys map[string]deedbox.Key `json:"subkeys"`
}

func keys(ctx *deedbox.Context, in named) (shown, error) {
	out := shown{ctx.IdempotencyKey(), map[string]deedbox.Key{}}
	for _, name := range in.Names {
		key, err := ctx.Subkey(name)
		if err != nil {
			return shown{}, err
		}
		out.Subkeys[name] = key
	}
	return out, nil
}

type steps struct {
	Steps       int    `json:"steps"`
	ProviderURL string `json:"provider_url"`
}

type progress struct {
	Done int `json:"done"`
}

type taken struct {
	Done    int `json:"done"`
	BeganAt int `json:"began_at"`
}

func checkpointed(ctx *deedbox.Context, in steps) (taken, error) {
	var saved progress
	if _, err := ctx.Checkpoint().Load(&saved); err != nil {
		return taken{}, err
	}
	for i := saved.Done + 1; i <= in.Steps; i++ {
		request := ctx.HTTP().Post(in.ProviderURL + "/v1/steps").Effect(fmt.Sprintf("step-%d", i))
		answer, err := request.JSON(map[string]int{"step": i}).Send()
		if err != nil {
			return taken{}, err
		}
		if err := answer.ErrorForStatus(); err != nil {
			return taken{}, err
		}
		if err := ctx.Checkpoint().Save(progress{i}); err != nil {
			return taken{}, err
		}
	}
	return taken{in.Steps, saved.Done}, nil
}

type note struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

type stored struct {
	Stream   string `json:"stream"`
	Sequence uint64 `json:"sequence"`
}

func publish(ctx *deedbox.Context, in note) (stored, error) {
	published, err := ctx.Messages().Publish(in.Subject).Effect("note").Payload([]byte(in.Text)).Send()
	if err != nil {
		return stored{}, err
	}
	return stored{published.Stream, published.Sequence}, nil
}

func logLines(_ *deedbox.Context, in words) (any, error) {
	slog.Debug(in.Words)
	slog.Info(in.Words)
	slog.Warn(in.Words)
	slog.Error(in.Words)
	log.Print(in.Words)
	fmt.Println(in.Words)
	return nil, nil
}

type echoed struct {
	A      int64   `json:"a"`
	B      string  `json:"b"`
	C      *bool   `json:"c,omitempty"`
	Nested *nested `json:"nested,omitempty"`
}

type nested struct {
	List []string `json:"list"`
}

func echo(_ *deedbox.Context, in echoed) (echoed, error) {
	return in, nil
}
