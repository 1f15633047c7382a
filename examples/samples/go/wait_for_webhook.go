package main

import (
	"time"

	"deedbox.local/deedbox"
)

func init() {
	deedbox.Activity("wait-for-webhook", "Asks for a payment and waits until it was made.", waitForWebhook)
}

type payment struct {
	ProviderURL string `json:"provider_url"`
	Order       string `json:"order"`
	WaitMS      *int64 `json:"wait_ms"`
}

type paid struct {
	Outcome   string `json:"outcome"`
	PaymentID string `json:"payment_id,omitempty"`
	By        any    `json:"by,omitempty"`
}

func waitForWebhook(ctx *deedbox.Context, in payment) (paid, error) {
	body := map[string]string{"order": in.Order, "reference": string(ctx.IdempotencyKey())}
	answer, err := ctx.HTTP().Post(in.ProviderURL + "/v1/payments").Effect("request-payment").JSON(body).Send()
	if err != nil {
		return paid{}, err
	}
	id, err := idOf(answer)
	if err != nil {
		return paid{}, err
	}
	signal, err := wait(ctx, in.WaitMS)
	if err != nil {
		return paid{}, err
	}
	if signal == nil {
		return paid{Outcome: "expired"}, nil
	}
	var payload struct {
		By any `json:"by"`
	}
	err = signal.JSON(&payload)
	return paid{"paid", id, payload.By}, err
}

func wait(ctx *deedbox.Context, millis *int64) (*deedbox.Signal, error) {
	if millis == nil {
		return ctx.Signals().Wait("paid")
	}
	return ctx.Signals().WaitFor("paid", time.Duration(*millis)*time.Millisecond)
}
