//! Who may do what: every route × every kind of token × one's own id, another tenant's and nobody's. How long a token is good.

use std::collections::BTreeSet;

use deedbox::store::tenant::ADMIN;
use deedbox::token::{self, Scope};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::client::{Answer, Client};
use super::isolation::{belongings, told};
use super::routes::{Ids, PUBLIC_KEY, Route, routes, served};
use super::{Api, mint, no_run, serve};
use crate::harness::{config, logs, tokens};

const SCOPES: [Scope; 3] = Scope::OF_TENANTS;

/// Tokens of one owner, each with one scope.
async fn single(api: &Api, owner: &str, scopes: &[Scope]) -> Vec<(Scope, Client)> {
    let mut clients = Vec::new();
    for scope in scopes {
        let text = tokens::mint_for(api.world.node.store(), owner, &[*scope]).await;
        clients.push((*scope, api.acme.with_token(&text)));
    }
    clients
}

/// Callers that no route lets in.
async fn refused(api: &Api, admin: &Client) -> Vec<(&'static str, Client)> {
    let mint = async |body: Value| {
        let made = admin.post("/v1/tenants/acme/tokens", &body).await.expect(201);
        let id = made["token_id"].as_str().unwrap().to_owned();
        (id, api.acme.with_token(made["token"].as_str().unwrap()))
    };
    let (revoked_id, revoked) = mint(json!({})).await;
    admin.delete(&format!("/v1/tenants/acme/tokens/{revoked_id}")).await.expect(204);
    let (_, expired) = mint(json!({ "expires_in": "1h", "label": "expired" })).await;
    let past = "update tokens set expires_at = deedbox_now() where label = 'expired'";
    api.world.database.execute(past).await;
    vec![
        ("no token", api.nobody()),
        ("garbage", api.acme.with_token("ddb.acme.garbage")),
        ("unknown", api.acme.with_token(&token::mint("acme").1)),
        ("revoked", revoked),
        ("expired", expired),
    ]
}

async fn open(client: &Client, route: &Route, ids: &Ids) -> Answer {
    let method = route.method.parse().unwrap();
    let mut request = client.request(method, &route.at(ids));
    if let Some((kind, body)) = route.content() {
        request = request.header("content-type", kind).body(body);
    }
    if !route.streams {
        return client.send(request).await;
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    // Only a refusal has an end.
    let text = if status == 200 { String::new() } else { response.text().await.unwrap() };
    Answer { status, headers, text }
}

/// All that the answers tell beside the ids, which must be the same for all ids.
async fn alike(client: &Client, route: &Route, ids: &[&Ids]) -> Answer {
    let mut first: Option<(Answer, _)> = None;
    for ids in ids {
        let answer = open(client, route, ids).await;
        // Other ids may stand in what is nobody's.
        let named = |kind: &str| format!("{route:?}").contains(&format!("{{{kind}}}"));
        let own: Vec<&str> = ids.iter().filter(|(kind, _)| named(kind)).map(|(_, id)| id.as_str()).collect();
        let words = told(&answer, &own);
        match &first {
            None => first = Some((answer, words)),
            Some((_, others)) => assert_eq!(words, *others, "{} {}", route.method, route.path),
        }
    }
    first.unwrap().0
}

/// Ids of `acme` and of nobody.
async fn ids(api: &Api, admin: &Client) -> (Ids, Ids) {
    let made = admin.post("/v1/tenants/acme/tokens", &json!({})).await.expect(201);
    let token_id = made["token_id"].as_str().unwrap().to_owned();
    let mut all = belongings(api).await;
    api.acme.put("/v1/secrets/signing", &json!({ "value": "x" })).await.expect(204);
    let hook = json!({ "verify": { "scheme": "github", "secret": "signing" }, "start": { "activity": "send" } });
    api.acme.put("/v1/hooks/mine", &hook).await.expect(201);
    all.push(("hook", "mine".to_owned(), "none".to_owned()));
    all.push(("tenant", "acme".to_owned(), "nobody".to_owned()));
    all.push(("token", token_id, no_run()));
    let signer = json!({ "public_key": PUBLIC_KEY });
    admin.put("/v1/tenants/acme/signers/release", &signer).await.expect(201);
    all.push(("signer", "release".to_owned(), "none".to_owned()));
    all.push(("signal", "go".to_owned(), "go".to_owned()));
    let nobodys = all.iter().map(|(kind, _, id)| (*kind, id.clone())).collect();
    (all.into_iter().map(|(kind, id, _)| (kind, id)).collect(), nobodys)
}

/// A route that is not in the list of the tests would be opened by nobody knows what.
#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_routes_is_that_of_the_server() {
    let api = Api::idle().await;
    let listed: BTreeSet<_> = routes().iter().map(Route::template).collect();
    let served = served(&api).await;
    assert_eq!(listed.len(), routes().len());
    let odd: Vec<_> = listed.symmetric_difference(&served).collect();
    assert!(odd.is_empty(), "in one list only: {odd:?}");
}

/// F-K01, R-K08, R-K09.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_opens_for_its_own_scope_alone_and_shows_nothing_of_others() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let (own, nobodys) = ids(&api, &admin).await;
    api.tenant("other").await;
    let refused = refused(&api, &admin).await;
    let mut acme = single(&api, "acme", &SCOPES).await;
    let mut other = single(&api, "other", &SCOPES).await;
    let admins = single(&api, ADMIN, &[Scope::Admin]).await;
    acme.extend(admins.clone());
    other.extend(admins);
    for route in routes() {
        let place = format!("{} {}", route.method, route.path);
        for (name, client) in &refused {
            let answer = alike(client, &route, &[&own, &nobodys]).await;
            assert_eq!(answer.status, 401, "{place}, {name}: {answer:?}");
            answer.refused(401, "unauthenticated");
        }
        for (scope, client) in acme.iter().chain(&other).filter(|(scope, _)| *scope != route.scope) {
            let answer = alike(client, &route, &[&own, &nobodys]).await;
            assert_eq!(answer.status, 403, "{place}, {scope:?}: {answer:?}");
            answer.refused(403, "forbidden");
        }
        let opener = |all: &[(Scope, Client)]| all.iter().find(|(scope, _)| *scope == route.scope).unwrap().1.clone();
        if route.scope == Scope::Admin {
            let answer = open(&opener(&acme), &route, &nobodys).await;
            assert_eq!(answer.status, route.none, "{place}: {answer:?}");
        } else {
            let answer = alike(&opener(&other), &route, &[&own, &nobodys]).await;
            assert_eq!(answer.status, route.none, "{place}: {answer:?}");
        }
        let answer = open(&opener(&acme), &route, &own).await;
        assert_eq!(answer.status, route.own, "{place}: {answer:?}");
    }
}

/// Revoking and expiring hold for the next request, on every node.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_or_expired_token_is_refused_by_the_next_request_on_every_node() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let stop = CancellationToken::new();
    let second = serve(&api.world.database, config(), stop.clone()).await;
    let _stop = stop.drop_guard();
    for end in ["revoked", "expired"] {
        let made = admin.post("/v1/tenants/acme/tokens", &json!({ "expires_in": "1h" })).await.expect(201);
        let text = made["token"].as_str().unwrap();
        let nodes = [api.acme.with_token(text), Client::new(&second, Some(text.to_owned()))];
        for node in &nodes {
            node.get("/v1/runs").await.expect(200);
        }
        match end {
            "revoked" => {
                let path = format!("/v1/tenants/acme/tokens/{}", made["token_id"].as_str().unwrap());
                admin.delete(&path).await.expect(204);
            }
            // The clock of the database alone: that of the nodes stays.
            _ => api.world.database.advance_seconds(3601).await,
        }
        for node in &nodes {
            node.get("/v1/runs").await.refused(401, "unauthenticated");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_minted_with_scopes_and_an_end_and_listed_with_them() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let body = json!({ "label": "ci", "scopes": ["read", "run", "read"], "expires_in": "30d" });
    let made = admin.post("/v1/tenants/acme/tokens", &body).await.expect(201);
    assert_eq!(made["scopes"], json!(["run", "read"]));
    let time = |value: &Value| chrono::DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap();
    let life = time(&made["expires_at"]) - time(&made["created_at"]);
    assert_eq!(life, chrono::TimeDelta::days(30));
    let listed = admin.get("/v1/tenants/acme/tokens").await.expect(200);
    let listed = listed["items"].as_array().unwrap().iter().find(|token| token["label"] == "ci").unwrap().clone();
    for member in ["token_id", "scopes", "created_at", "expires_at"] {
        assert_eq!(listed[member], made[member], "{member}");
    }
    let never = admin.post("/v1/tenants/acme/tokens", &json!({})).await.expect(201);
    assert_eq!((&never["scopes"], &never["expires_at"]), (&json!(["deploy", "run", "read"]), &json!(null)));
    for wrong in [
        json!({ "scopes": [] }),
        json!({ "scopes": ["write"] }),
        json!({ "scopes": ["admin"] }),
        json!({ "scopes": ["read", "admin"] }),
        json!({ "scopes": "read" }),
        json!({ "expires_in": "soon" }),
        json!({ "expires_in": "0s" }),
        json!({ "expires_in": "20y" }),
        json!({ "expires_at": "2020-01-01T00:00:00Z" }),
        json!({ "expires_in": "1h", "expires_at": "2030-01-01T00:00:00Z" }),
        json!({ "colour": 1 }),
    ] {
        admin.post("/v1/tenants/acme/tokens", &wrong).await.refused(400, "validation_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_mint_tokens_of_their_own_with_no_other_scope() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let path = format!("/v1/tenants/{ADMIN}/tokens");
    let made = admin.post(&path, &json!({ "label": "second", "expires_in": "1h" })).await.expect(201);
    assert_eq!(made["scopes"], json!(["admin"]));
    let second = api.acme.with_token(made["token"].as_str().unwrap());
    second.get("/v1/tenants").await.expect(200);
    admin.post(&path, &json!({ "scopes": ["read"] })).await.refused(400, "validation_error");
    for limits in ["limits", "pause"] {
        let path = format!("/v1/tenants/{ADMIN}/{limits}");
        let method = if limits == "limits" { reqwest::Method::GET } else { reqwest::Method::POST };
        second.send(second.request(method, &path)).await.refused(404, "not_found");
    }
    admin.delete(&format!("{path}/{}", made["token_id"].as_str().unwrap())).await.expect(204);
    second.get("/v1/tenants").await.refused(401, "unauthenticated");
}

/// Only a hash is kept of a token, in every table, also of the answer that a request key replays; and nothing of it is logged.
#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_a_token_is_in_no_table_and_no_log() {
    logs::keep();
    let api = Api::idle().await;
    let admin = api.admin().await;
    let keyed = async || {
        let request = admin.request(reqwest::Method::POST, "/v1/tenants/acme/tokens");
        let request = request.header("idempotency-key", "0123456789abcdefghijklmnop").json(&json!({ "label": "till" }));
        admin.send(request).await
    };
    let made = keyed().await;
    let again = keyed().await;
    assert_eq!((made.expect(201), made.text.clone()), (again.expect(201), again.text.clone()), "a replay");
    let text = made.json()["token"].as_str().unwrap().to_owned();
    api.acme.with_token(&text).get("/v1/runs").await.expect(200);
    let minted = mint(&api.world, "acme").await;
    api.acme.with_token(&minted).get("/v1/runs").await.expect(200);
    let dump = everything(&api).await;
    assert!(dump.contains("till") && dump.contains("secret_hash"));
    let log = logs::all();
    assert!(log.contains("http.request"), "requests must have been logged");
    for text in [&text, &minted] {
        let secret = token::parse(text).unwrap().secret;
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(!dump.contains(secret) && !dump.contains(&hex), "in a table");
        assert!(!log.contains(secret), "in the log");
    }
}

/// All rows of all tables, as text; bytes as hexadecimal digits.
async fn everything(api: &Api) -> String {
    let mut connection = api.world.database.connect().await;
    let tables = "select table_name::text from information_schema.tables where table_schema = 'public'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut connection).await.unwrap();
    let mut all = String::new();
    for table in tables {
        let rows = sqlx::AssertSqlSafe(format!("select row_to_json(t)::text from {table} t"));
        let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut connection).await.unwrap();
        all.push_str(&rows.concat());
    }
    all
}
