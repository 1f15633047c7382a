package main

import "deedbox.local/deedbox"

func init() {
	deedbox.Activity("reject-as-data", "Places an order; a refusal is a value, not a failure.", rejectAsData)
}

type placement struct {
	ProviderURL string `json:"provider_url"`
	Order       string `json:"order"`
}

type placed struct {
	Outcome string `json:"outcome"`
	OrderID string `json:"order_id,omitempty"`
	Reason  any    `json:"reason,omitempty"`
}

func rejectAsData(ctx *deedbox.Context, in placement) (placed, error) {
	request := ctx.HTTP().Post(in.ProviderURL+"/v1/orders").BusinessEffect("place-order", in.Order)
	answer, err := request.JSON(map[string]string{"order": in.Order}).Send()
	if err != nil {
		return placed{}, err
	}
	if answer.Status == 409 || answer.Status == 422 {
		reason, err := reasonOf(answer)
		return placed{Outcome: "rejected", Reason: reason}, err
	}
	id, err := idOf(answer)
	return placed{Outcome: "placed", OrderID: id}, err
}
