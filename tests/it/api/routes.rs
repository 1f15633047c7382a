//! Every route under `/v1` that a token opens: which scope it needs, and what it answers for one's own ids and for those of
//! nobody. A test compares this list with what the server itself says that it has. What OpenWOP clients are answered is tested
//! beside this, and deliveries of webhooks, which come without a token.

use std::collections::BTreeSet;

use deedbox::token::Scope;
use serde_json::{Value, json};

use super::Api;

/// Its sender has no token.
const DELIVERY: (&str, &str) = ("POST", "/v1/hooks/{}");

/// The public key of the signer that the routes name: that of a published test vector.
pub const PUBLIC_KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// What goes along with a request.
#[derive(Clone, Debug)]
pub enum Body {
    None,
    Json(Value),
    /// What is no component.
    Junk,
}

#[derive(Clone, Debug)]
pub struct Route {
    pub method: &'static str,
    /// Each `{kind}` is the place of an id of that kind.
    pub path: &'static str,
    pub scope: Scope,
    pub body: Body,
    /// The status for one's own ids.
    pub own: u16,
    /// The status for ids of others and of nobody. The same as `own` where the path has none.
    pub none: u16,
    /// The answer goes on: only its beginning is read.
    pub streams: bool,
}

impl Route {
    fn of(method: &'static str, path: &'static str, scope: Scope, own: u16) -> Self {
        let none = if path.contains('{') { 404 } else { own };
        Self { method, path, scope, body: Body::None, own, none, streams: false }
    }

    fn with(self, body: Value) -> Self {
        Self { body: Body::Json(body), ..self }
    }

    /// A path whose id need not be there.
    fn whatever_the_id(self) -> Self {
        Self { none: self.own, ..self }
    }

    fn streams(self) -> Self {
        Self { streams: true, ..self }
    }

    /// The path with ids of each kind in it.
    pub fn at(&self, ids: &Ids) -> String {
        ids.iter().fold(self.path.to_owned(), |path, (kind, id)| path.replace(&format!("{{{kind}}}"), id))
    }

    /// The method, and the path with `{}` for each id.
    pub fn template(&self) -> (String, String) {
        (self.method.to_owned(), blank(self.path))
    }

    pub fn content(&self) -> Option<(&'static str, Vec<u8>)> {
        match &self.body {
            Body::None => None,
            Body::Json(json) => Some(("application/json", json.to_string().into_bytes())),
            Body::Junk => Some(("application/wasm", b"junk".to_vec())),
        }
    }
}

/// Kinds of ids, each with an id.
pub type Ids = Vec<(&'static str, String)>;

/// In an order in which what one request does leaves the next what it needs: a run that has ended, an effect that is settled, a
/// module in use; and what takes something away comes last.
pub fn routes() -> Vec<Route> {
    [reading(), running(), deploying(), administering()].concat()
}

fn reading() -> Vec<Route> {
    let read = |path| Route::of("GET", path, Scope::Read, 200);
    vec![
        read("/v1/modules"),
        read("/v1/modules/{module}"),
        read("/v1/activities"),
        read("/v1/activities/{activity}"),
        read("/v1/runs"),
        read("/v1/runs/{run}"),
        read("/v1/runs/{run}/attempts"),
        read("/v1/runs/{run}/effects"),
        read("/v1/runs/{run}/signals"),
        read("/v1/runs/{run}/log"),
        Route::of("GET", "/v1/runs/{run}/callback", Scope::Read, 404),
        read("/v1/callbacks"),
        read("/v1/runs/{run}/events").streams(),
        read("/v1/events").streams(),
        read("/v1/effects"),
        read("/v1/effects/{effect}"),
        read("/v1/secrets"),
        read("/v1/providers"),
        read("/v1/providers/{provider}"),
        read("/v1/hooks"),
        read("/v1/hooks/{hook}"),
        read("/v1/hooks/{hook}/deliveries"),
    ]
}

fn running() -> Vec<Route> {
    let post = |path, own| Route::of("POST", path, Scope::Run, own);
    vec![
        post("/v1/activities/{activity}/runs", 201).with(json!({ "input": { "calls": [] } })),
        post("/v1/activities/{activity}/pause", 204),
        post("/v1/activities/{activity}/resume", 204),
        post("/v1/runs/cancel", 200).with(json!({ "activity": "nobody-has-it" })),
        post("/v1/runs/{run}/cancel", 409),
        post("/v1/runs/{run}/pause", 409),
        post("/v1/runs/{run}/resume", 409),
        post("/v1/runs/{run}/retry", 409),
        post("/v1/runs/{run}/signals/{signal}", 409).with(json!(1)),
        post("/v1/runs/{run}/callback/redeliver", 404),
        post("/v1/effects/{effect}/resolve", 409).with(json!({ "outcome": "happened", "note": "a test" })),
    ]
}

fn deploying() -> Vec<Route> {
    let deploy = |method, path, own| Route::of(method, path, Scope::Deploy, own);
    vec![
        Route { body: Body::Junk, ..deploy("POST", "/v1/modules", 400) },
        deploy("PUT", "/v1/modules/{module}/signature", 400).with(json!({ "signature": "0".repeat(128) })),
        deploy("DELETE", "/v1/modules/{module}", 409),
        deploy("PUT", "/v1/activities/{activity}", 400).with(json!({ "module": "0" })).whatever_the_id(),
        deploy("DELETE", "/v1/activities/{activity}", 204),
        deploy("PUT", "/v1/secrets/{secret}", 400).with(json!({ "value": "" })).whatever_the_id(),
        deploy("DELETE", "/v1/secrets/{secret}", 204),
        deploy("PUT", "/v1/providers/{provider}", 400).with(json!({ "profile": "nonsense" })).whatever_the_id(),
        deploy("DELETE", "/v1/providers/{provider}", 204),
        deploy("PUT", "/v1/hooks/{hook}", 400).with(json!({ "verify": 1 })).whatever_the_id(),
        deploy("DELETE", "/v1/hooks/{hook}", 204),
    ]
}

fn administering() -> Vec<Route> {
    let admin = |method, path, own| Route::of(method, path, Scope::Admin, own);
    vec![
        admin("POST", "/v1/tenants", 409).with(json!({ "tenant": "acme" })),
        admin("GET", "/v1/tenants", 200),
        admin("PUT", "/v1/tenants/{tenant}/limits", 200).with(json!({})),
        admin("GET", "/v1/tenants/{tenant}/limits", 200),
        admin("PUT", "/v1/tenants/{tenant}/signers/{signer}", 200).with(json!({ "public_key": PUBLIC_KEY })),
        admin("GET", "/v1/tenants/{tenant}/signers", 200),
        admin("DELETE", "/v1/tenants/{tenant}/signers/{signer}", 204),
        admin("POST", "/v1/tenants/{tenant}/pause", 204),
        admin("POST", "/v1/tenants/{tenant}/resume", 204),
        admin("POST", "/v1/tenants/{tenant}/tokens", 201).with(json!({})),
        admin("GET", "/v1/tenants/{tenant}/tokens", 200),
        admin("DELETE", "/v1/tenants/{tenant}/tokens/{token}", 204),
    ]
}

/// The methods and paths under `/v1` that the server's own document has, with `{}` for each parameter.
pub async fn served(api: &Api) -> BTreeSet<(String, String)> {
    let document = api.nobody().get("/openapi.json").await.expect(200);
    let mut served = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys().map(|method| method.to_uppercase());
        let methods = methods.filter(|method| ["GET", "PUT", "POST", "DELETE", "PATCH"].contains(&method.as_str()));
        served.extend(methods.map(|method| (method, blank(path))));
    }
    served.retain(|(method, path)| path.starts_with("/v1/") && (method.as_str(), path.as_str()) != DELIVERY);
    served
}

/// A path with `{}` for each of its parameters.
pub fn blank(path: &str) -> String {
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}
