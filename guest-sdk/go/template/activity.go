// The activities of {{name}}. What they change outside they change through ctx, which makes it happen once however often an
// activity is run again.
package main

import "deedbox.local/deedbox"

func init() {
	deedbox.Activity("charge-once", "Charges an order, exactly once.", chargeOnce)
}

type Order struct {
	Order       string `json:"order"`
	AmountCents uint64 `json:"amount_cents"`
	// Where the provider answers, without a path.
	ProviderURL string `json:"provider_url"`
}

type Charge struct {
	Order       string `json:"order"`
	AmountCents uint64 `json:"amount_cents"`
}

type Receipt struct {
	ID string `json:"id"`
}

func chargeOnce(ctx *deedbox.Context, order Order) (receipt Receipt, err error) {
	charge := Charge{order.Order, order.AmountCents}
	answer, err := ctx.HTTP().Post(order.ProviderURL + "/v1/charges").Effect("charge").JSON(charge).Send()
	if err != nil {
		return receipt, err
	}
	if err := answer.ErrorForStatus(); err != nil {
		return receipt, err
	}
	return receipt, answer.JSON(&receipt)
}

// A component has no main program: its host calls what init has registered.
func main() {}
