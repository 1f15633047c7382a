//! Tenants and their tokens.

use deedbox::token;
use serde_json::{Value, json};
use sqlx::Row;

use super::client::{assert_members, whole_list};
use super::{Api, mint};
use crate::harness::{Database, logs};

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_makes_tenants_and_their_tokens() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    assert_eq!(
        admin.post("/v1/tenants", &json!({ "tenant": "shop-1" })).await.expect(201),
        json!({ "tenant": "shop-1" })
    );
    admin.post("/v1/tenants", &json!({ "tenant": "shop-1" })).await.refused(409, "version_conflict");
    let tenants = whole_list(&admin.get("/v1/tenants").await);
    let mut names: Vec<&str> = tenants.iter().map(|tenant| tenant["tenant"].as_str().unwrap()).collect();
    // The first test of the process leaves the tenant that compiled the guests.
    names.retain(|name| *name != "compiler");
    assert_eq!(names, ["acme", "shop-1"]);

    let made = admin.post("/v1/tenants/shop-1/tokens", &json!({ "label": "the till" })).await.expect(201);
    assert_members(&made, &["token_id", "token", "label", "scopes", "created_at", "expires_at"]);
    let text = made["token"].as_str().unwrap();
    let parsed = token::parse(text).unwrap();
    assert_eq!((parsed.tenant, json!(parsed.token_id.simple().to_string())), ("shop-1", made["token_id"].clone()));
    let shop = api.acme.with_token(text);
    assert!(whole_list(&shop.get("/v1/runs").await).is_empty());

    let tokens = admin.get("/v1/tenants/shop-1/tokens").await;
    assert!(!tokens.text.contains(parsed.secret));
    let listed = whole_list(&tokens);
    assert_members(&listed[0], &["token_id", "label", "scopes", "created_at", "expires_at"]);
    assert_eq!((listed.len(), &listed[0]["label"], &listed[0]["token_id"]), (1, &json!("the till"), &made["token_id"]));
    assert_eq!(admin.post("/v1/tenants/shop-1/tokens", &json!({})).await.expect(201)["label"], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_at_once_and_the_others_are_not() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let mut tokens = Vec::new();
    for label in ["one", "two"] {
        tokens.push(admin.post("/v1/tenants/acme/tokens", &json!({ "label": label })).await.expect(201));
    }
    let [one, two] = [0, 1].map(|n| api.acme.with_token(tokens[n]["token"].as_str().unwrap()));
    one.get("/v1/runs").await.expect(200);
    let path = format!("/v1/tenants/acme/tokens/{}", tokens[0]["token_id"].as_str().unwrap());
    admin.delete(&path).await.expect(204);
    let answer = one.get("/v1/runs").await;
    answer.refused(401, "unauthenticated");
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    two.get("/v1/runs").await.expect(200);
    admin.delete(&path).await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_and_labels_have_a_grammar_and_unknown_ones_are_unknown() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    for name in ["", "-a", "A", "a_b", "a.b", "ä", "_admin", "a/b", "a b", "a\0", &"a".repeat(64)] {
        admin.post("/v1/tenants", &json!({ "tenant": name })).await.refused(400, "validation_error");
    }
    admin.post("/v1/tenants", &json!({ "tenant": "a".repeat(63) })).await.expect(201);
    for label in ["a\nb", "\0", &"x".repeat(129)] {
        admin.post("/v1/tenants/acme/tokens", &json!({ "label": label })).await.refused(400, "validation_error");
    }
    for tenant in ["nobody", "_adm", "A", "%00", "acme%2Ftokens"] {
        admin.post(&format!("/v1/tenants/{tenant}/tokens"), &json!({})).await.refused(404, "not_found");
        admin.get(&format!("/v1/tenants/{tenant}/tokens")).await.refused(404, "not_found");
        admin.delete(&format!("/v1/tenants/{tenant}/tokens/{}", super::no_run())).await.refused(404, "not_found");
    }
    admin.delete("/v1/tenants/acme/tokens/x").await.refused(404, "not_found");
}

/// Neither kind of token opens what belongs to the other, whether or not it is there.
#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_token_is_no_tenants_token_and_the_reverse() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let of_tenants = ["/v1/modules", "/v1/activities", "/v1/runs", "/v1/effects", "/v1/secrets", "/v1/providers"];
    for path in of_tenants {
        admin.get(path).await.refused(403, "forbidden");
        api.acme.get(path).await.expect(200);
        api.nobody().get(path).await.refused(401, "unauthenticated");
    }
    admin.get(&format!("/runs/acme~2F{}/effects", super::no_run())).await.refused(403, "forbidden");
    api.acme.get("/v1/tenants").await.refused(403, "forbidden");
    api.acme.post("/v1/tenants", &json!({ "tenant": "mine" })).await.refused(403, "forbidden");
    api.acme.post("/v1/tenants/acme/tokens", &json!({})).await.refused(403, "forbidden");
    let (mine, none) = (api.acme.get("/v1/tenants/acme/tokens").await, api.acme.get("/v1/tenants/nobody/tokens").await);
    assert_eq!(mine.refused(403, "forbidden"), none.refused(403, "forbidden"));
    assert_eq!(whole_list(&admin.get("/v1/tenants/acme/tokens").await).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_exactly_a_known_token_opens_nothing() {
    let api = Api::idle().await;
    let good = mint(&api.world, "acme").await;
    let (_, unknown, _) = token::mint("acme");
    let parsed = token::parse(&good).unwrap();
    api.tenant("other").await;
    let other = token::parse(&unknown).unwrap();
    let forged = [
        unknown.clone(),
        good.replacen("acme", "other", 1),
        good.replacen("acme", "_admin", 1),
        good.replacen("acme", "no-such-tenant", 1),
        format!("ddb.acme.{}.{}", parsed.token_id.simple(), other.secret),
        format!("ddb.acme.{}.{}", other.token_id.simple(), parsed.secret),
        good[..good.len() - 1].to_owned(),
        format!("{good}A"),
        good.to_uppercase(),
        "x".to_owned(),
        String::new(),
    ];
    for token in forged {
        api.acme.with_token(&token).get("/v1/runs").await.refused(401, "unauthenticated");
    }
    for value in [format!("Basic {good}"), good.clone(), format!("Bearer{good}")] {
        let request = api.nobody().request(reqwest::Method::GET, "/v1/runs").header("authorization", value);
        api.nobody().send(request).await.refused(401, "unauthenticated");
    }
    api.nobody().get(&format!("/v1/runs?token={good}")).await.refused(401, "unauthenticated");
    api.acme.with_token(&good).get("/v1/runs").await.expect(200);
}

/// Only a hash is kept of a token, and nothing of it is logged, whatever becomes of the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_in_no_table_and_no_log() {
    logs::keep();
    let api = Api::idle().await;
    let admin = api.admin().await;
    let made = admin.post("/v1/tenants/acme/tokens", &json!({})).await.expect(201);
    let text = made["token"].as_str().unwrap();
    let client = api.acme.with_token(text);
    client.get("/v1/runs").await.expect(200);
    client.get("/v1/tenants").await.refused(403, "forbidden");
    client.get("/v1/runs?limit=0").await.refused(400, "validation_error");
    client.get("/nowhere").await.refused(404, "not_found");
    let cut = format!("{text}x");
    api.acme.with_token(&cut).get("/v1/runs").await.refused(401, "unauthenticated");
    admin.delete(&format!("/v1/tenants/acme/tokens/{}", made["token_id"].as_str().unwrap())).await.expect(204);
    client.get("/v1/runs").await.refused(401, "unauthenticated");

    let live = mint(&api.world, "acme").await;
    let (gone, live) = (token::parse(text).unwrap(), token::parse(&live).unwrap());
    assert_eq!(hash_of(&api.world.database, live.token_id).await, token::hash(live.secret));
    let dump = dump_of_tokens(&api.world.database).await;
    assert!(dump.contains("acme"), "{dump}");
    assert!(!dump.contains(live.secret) && !dump.contains(&hex(live.secret.as_bytes())));
    let log = logs::all();
    assert!(log.contains("http.request"), "requests must have been logged");
    assert!([gone.secret, live.secret].iter().all(|secret| !log.contains(secret)));
}

async fn hash_of(database: &Database, token_id: uuid::Uuid) -> Vec<u8> {
    let hash = sqlx::query("select secret_hash from tokens where token_id = $1").bind(token_id);
    hash.fetch_one(&mut database.connect().await).await.unwrap().get(0)
}

async fn dump_of_tokens(database: &Database) -> String {
    let rows = sqlx::query_scalar::<_, String>("select row_to_json(t)::text from tokens t");
    rows.fetch_all(&mut database.connect().await).await.unwrap().concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_named_and_never_read() {
    let api = Api::idle().await;
    let canary = "canary-value-93b1";
    for name in ["b", "a"] {
        let answer = api.acme.put(&format!("/v1/secrets/{name}"), &json!({ "value": canary })).await;
        assert_eq!((answer.expect(204), answer.text.len()), (Value::Null, 0));
    }
    api.acme.put("/v1/secrets/a", &json!({ "value": "another" })).await.expect(204);
    let answer = api.acme.get("/v1/secrets").await;
    assert!(!answer.text.contains(canary));
    let listed = whole_list(&answer);
    listed.iter().for_each(|secret| assert_members(secret, &["name", "updated_at"]));
    assert_eq!(listed.iter().map(|secret| secret["name"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    api.acme.get("/v1/secrets/a").await.refused(405, "deedbox.method_not_allowed");
    api.acme.delete("/v1/secrets/a").await.expect(204);
    api.acme.delete("/v1/secrets/a").await.refused(404, "not_found");
    for (name, value) in [("a", ""), ("a", "x\ny"), ("a", "\0"), ("a", "ä"), ("a%20b", "x"), ("a", &"x".repeat(8193))]
    {
        let answer = api.acme.put(&format!("/v1/secrets/{name}"), &json!({ "value": value })).await;
        let body = answer.refused(400, "validation_error");
        assert!(value.is_empty() || name != "a" || !body.to_string().contains(&format!("`{value}`")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_known_providers_are_listed_with_their_sources() {
    let api = Api::idle().await;
    let providers = whole_list(&api.acme.get("/v1/providers").await);
    providers.iter().for_each(|provider| {
        assert_members(provider, &["name", "version", "own", "hosts", "source", "confidence", "guessed"])
    });
    let names: Vec<&str> = providers.iter().map(|provider| provider["name"].as_str().unwrap()).collect();
    assert!(["generic", "keyless", "stripe"].iter().all(|name| names.contains(name)), "{names:?}");
    let stripe = providers.iter().find(|provider| provider["name"] == "stripe").unwrap();
    assert_eq!(stripe["hosts"], json!(["api.stripe.com"]));
    assert!(stripe["source"].as_str().unwrap().contains("docs.stripe.com"), "{stripe}");
}
