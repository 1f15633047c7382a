package main

import "deedbox.local/deedbox"

func init() {
	deedbox.Activity("welcome-user", "Makes an account, then sends a mail about it.", welcomeUser)
}

type user struct {
	ProviderURL string `json:"provider_url"`
	User        string `json:"user"`
	Email       string `json:"email"`
}

type welcomed struct {
	AccountID string `json:"account_id"`
	MailID    string `json:"mail_id"`
}

func welcomeUser(ctx *deedbox.Context, in user) (welcomed, error) {
	account, err := create(ctx, in.ProviderURL+"/v1/accounts", "create-account", "account",
		map[string]string{"user": in.User, "email": in.Email})
	if err != nil {
		return welcomed{}, err
	}
	mail, err := create(ctx, in.ProviderURL+"/v1/mails", "welcome-mail", "mail",
		map[string]string{"to": in.Email, "account": account})
	return welcomed{account, mail}, err
}

// create posts the body with a reference that is the same in every attempt, and gives the id of what was made.
func create(ctx *deedbox.Context, url, effect, subkey string, body map[string]string) (string, error) {
	reference, err := ctx.Subkey(subkey)
	if err != nil {
		return "", err
	}
	body["reference"] = string(reference)
	answer, err := ctx.HTTP().Post(url).Effect(effect).JSON(body).Send()
	if err != nil {
		return "", err
	}
	return idOf(answer)
}
