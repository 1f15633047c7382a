package main

import (
	"fmt"
	"strconv"
	"strings"

	"deedbox.local/deedbox"
)

func init() {
	deedbox.Activity("import-csv", "Adds up a list and writes the sum to a file.", importCSV)
}

type source struct {
	SourceURL string `json:"source_url"`
	Path      string `json:"path"`
}

type sum struct {
	Rows       int   `json:"rows"`
	TotalCents int64 `json:"total_cents"`
}

func importCSV(ctx *deedbox.Context, in source) (sum, error) {
	answer, err := ctx.HTTP().Get(in.SourceURL).Send()
	if err != nil {
		return sum{}, err
	}
	if err := answer.ErrorForStatus(); err != nil {
		return sum{}, err
	}
	text, err := answer.Text()
	if err != nil {
		return sum{}, err
	}
	total, err := add(text)
	if err != nil {
		return sum{}, err
	}
	summary := fmt.Sprintf("rows,total_cents\n%d,%d\n", total.Rows, total.TotalCents)
	_, err = ctx.Files().Write(in.Path, []byte(summary)).Effect("summary").Send()
	return total, err
}

// add reads lines of the form name,amount_cents below a header line.
func add(text string) (sum, error) {
	var total sum
	for i, line := range strings.Split(strings.TrimRight(text, "\r\n"), "\n") {
		if i == 0 {
			continue
		}
		_, amount, _ := strings.Cut(strings.TrimRight(line, "\r"), ",")
		cents, err := strconv.ParseInt(strings.TrimSpace(amount), 10, 64)
		if err != nil {
			message := fmt.Sprintf("line %d is not of the form name,amount_cents", i+1)
			return sum{}, deedbox.Permanent("bad-csv", message)
		}
		total.Rows++
		total.TotalCents += cents
	}
	return total, nil
}
