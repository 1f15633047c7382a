//! Request keys: a caller that asks again, in all the ways in which callers really do, is told what was told before,
//! and nothing is done twice. Everything is asked over sockets, as any client would.

mod at_once;
mod away;
mod crash;
mod digest;
mod grammar;
mod hang_up;
mod keeping;
mod lenient;
mod outcomes;
mod quiet;
mod replay;
mod replay_deploy;
mod routes;
mod scope;
mod signals;
mod starts;

use deedbox::config::Config;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::client::{Answer, Client, whole_list};
use super::{Api, mint, serve};
use crate::harness::{Database, World, config};
use crate::worker::until;

/// The header that tells an answer of before from one of now.
const REPLAYED: &str = "openwop-idempotent-replay";

const JSON: &str = "application/json";

/// A key that nobody has used.
fn fresh_key() -> String {
    Uuid::new_v4().to_string()
}

/// One request, which can be sent again and again.
#[derive(Clone, Debug)]
struct Ask {
    client: Client,
    method: Method,
    path: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

impl Ask {
    /// Without a key and without a body.
    fn new(client: &Client, method: Method, path: &str) -> Self {
        Self { client: client.clone(), method, path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    fn post(client: &Client, path: &str, body: &Value) -> Self {
        Self::new(client, Method::POST, path).raw(JSON, body.to_string())
    }

    fn put(client: &Client, path: &str, body: &Value) -> Self {
        Self::new(client, Method::PUT, path).raw(JSON, body.to_string())
    }

    fn delete(client: &Client, path: &str) -> Self {
        Self::new(client, Method::DELETE, path)
    }

    /// A start of the activity `noop` with this whole body.
    fn start(client: &Client, body: &Value) -> Self {
        Self::post(client, NOOP, body)
    }

    /// The same with these very bytes as its body.
    fn raw(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("content-type", kind)
    }

    fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    fn without_key(mut self) -> Self {
        self.headers.retain(|(name, _)| *name != "idempotency-key");
        self
    }

    fn lenient(self) -> Self {
        self.header("prefer", "handling=lenient")
    }

    fn by(mut self, client: &Client) -> Self {
        self.client = client.clone();
        self
    }

    /// Sets a header, in the place of one of this name.
    fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self.also(name, value)
    }

    /// Adds a header, beside those of this name.
    fn also(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    async fn send(&self) -> Answer {
        self.client.send(self.request()).await
    }

    fn request(&self) -> reqwest::RequestBuilder {
        let request = self.client.request(self.method.clone(), &self.path).body(self.body.clone());
        self.headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, HeaderValue::from_bytes(value).unwrap()))
    }
}

const NOOP: &str = "/v1/activities/noop/runs";

/// A node that serves, and the activity `noop`.
async fn noops() -> Api {
    noops_with(|_| {}).await
}

/// The same in other settings.
async fn noops_with(change: impl FnOnce(&mut Config)) -> Api {
    let settings = changed(change);
    let keyed = deedbox_books::Options { keyless: false, convention: None };
    let api = Api::with(World::with(keyed, settings.clone()).await, settings).await;
    api.deploy("noop", json!({})).await;
    api
}

fn changed(change: impl FnOnce(&mut Config)) -> Config {
    let mut settings = config();
    change(&mut settings);
    settings
}

/// `acme` at another node on the same database.
async fn another_node(api: &Api, settings: Config) -> Client {
    let origin = serve(&api.world.database, settings, api.stop.clone()).await;
    Client::new(&origin, Some(mint(&api.world, "acme").await))
}

#[track_caller]
fn run_of(answer: &Answer) -> String {
    answer.json()["run_id"].as_str().unwrap_or_else(|| panic!("no run: {answer:?}")).to_owned()
}

fn is_replay(answer: &Answer) -> bool {
    answer.headers.contains_key(REPLAYED)
}

/// Asserts that something was done now, and gives the body.
#[track_caller]
fn done(answer: &Answer, status: u16) -> Value {
    assert!(!is_replay(answer), "{answer:?}");
    answer.expect(status)
}

/// R-K15, R-K18, R-K27. Asserts that an answer is an earlier one once more, and looks like it but for what is of each
/// request.
#[track_caller]
fn replays(again: &Answer, first: &Answer) {
    assert_eq!((again.status, &again.text), (first.status, &first.text), "{again:?}");
    for name in ["location", "content-type", "content-length", "cache-control"] {
        assert_eq!(again.header(name), first.header(name), "{name}: {again:?}");
    }
    assert_eq!(again.header(REPLAYED), "true", "{again:?}");
    assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    assert!(!again.headers.contains_key("set-cookie"), "{again:?}");
}

/// Asks twice: it is done, and then told again.
async fn twice(ask: &Ask, status: u16) -> Answer {
    let first = ask.send().await;
    done(&first, status);
    replays(&ask.send().await, &first);
    first
}

/// All runs of `acme`, newest first.
async fn runs(api: &Api) -> Vec<String> {
    let list = whole_list(&api.acme.get("/v1/runs?limit=500").await);
    list.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

/// The number that a query gives.
async fn count(database: &Database, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap()
}

/// How many answers are kept.
async fn records(api: &Api) -> i64 {
    count(&api.world.database, "select count(*) from request_keys").await
}

/// Starts of `noop` stand still in the middle of their work until it is opened.
struct Gate {
    session: PgConnection,
}

impl Gate {
    async fn close(api: &Api) -> Self {
        let mut session = api.world.database.connect().await;
        // Whoever inserts a run needs a lock on its version.
        let hold = "begin; select from activity_versions where tenant = 'acme' and activity = 'noop' for update";
        sqlx::raw_sql(hold).execute(&mut session).await.unwrap();
        Self { session }
    }

    async fn open(mut self) {
        sqlx::raw_sql("rollback").execute(&mut self.session).await.unwrap();
    }
}

/// Waits until so many sessions stand before the gate.
async fn until_held(api: &Api, sessions: i64) {
    let held = "select count(*) from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock'
                  and wait_event in ('transactionid', 'tuple')";
    until("so many stand before the gate", async || count(&api.world.database, held).await == sessions).await;
}

/// Sends it in a task of its own.
fn begin(ask: &Ask) -> tokio::task::JoinHandle<Answer> {
    let ask = ask.clone();
    tokio::spawn(async move { ask.send().await })
}
