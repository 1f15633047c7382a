package main

import "deedbox.local/deedbox"

func init() {
	deedbox.Activity("charge-once", "Charges an order, exactly once.", chargeOnce)
}

type order struct {
	ProviderURL string `json:"provider_url"`
	Order       string `json:"order"`
	AmountCents int64  `json:"amount_cents"`
	Customer    string `json:"customer"`
}

type charge struct {
	AmountCents int64  `json:"amount_cents"`
	Customer    string `json:"customer"`
	Order       string `json:"order"`
}

type charged struct {
	Outcome  string `json:"outcome"`
	ChargeID string `json:"charge_id,omitempty"`
	Status   int    `json:"status,omitempty"`
	Reason   any    `json:"reason,omitempty"`
}

func chargeOnce(ctx *deedbox.Context, in order) (charged, error) {
	body := charge{in.AmountCents, in.Customer, in.Order}
	answer, err := ctx.HTTP().Post(in.ProviderURL + "/v1/charges").Effect("charge").JSON(body).Send()
	if err != nil {
		return charged{}, err
	}
	if !answer.OK() && isRejection(answer.Status) {
		reason, err := reasonOf(answer)
		return charged{Outcome: "rejected", Status: answer.Status, Reason: reason}, err
	}
	id, err := idOf(answer)
	return charged{Outcome: "charged", ChargeID: id}, err
}

// isRejection tells a refusal of the business from one that is about who asks, or when.
func isRejection(status int) bool {
	switch status {
	case 401, 407, 408, 425, 429:
		return false
	}
	return status >= 400 && status < 500
}
