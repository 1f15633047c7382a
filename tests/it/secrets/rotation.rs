//! The master key is replaced while runs are alive: nothing that was sealed, derived or recorded is lost, on any node.

use std::sync::Arc;

use deedbox::clock::SystemClock;
use deedbox::gateway::vault::{MasterKey, MasterKeys, Rotated, Vault};
use deedbox::node::{Node, NodeSettings};
use deedbox::probe;
use deedbox::store::{self, sealing_key};
use deedbox_books::Options;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{TENANT, call, policy};
use crate::api::client::{Answer, Client};
use crate::api::mint;
use crate::harness::{World, config, shared, work, work_once};

/// The key that all databases of the tests begin with, and one that follows it.
struct Masters {
    old: MasterKey,
    new: MasterKey,
}

impl Masters {
    fn of(world: &World) -> Self {
        let old = MasterKey::read(&shared::master_key_file()).unwrap();
        Self { old, new: MasterKey::read_or_create(&world.dir.path().join("new.key")).unwrap() }
    }

    /// The new one wraps, the old one opens.
    fn both(&self) -> MasterKeys {
        MasterKeys::new(self.new.clone(), vec![self.old.clone()])
    }

    /// What a node knows before any wraps with the new one.
    fn prepared(&self) -> MasterKeys {
        MasterKeys::new(self.old.clone(), vec![self.new.clone()])
    }

    fn new_alone(&self) -> MasterKeys {
        self.new.clone().into()
    }
}

pub async fn vault(world: &World, keys: MasterKeys) -> Vault {
    Vault::open(world.node.store().clone(), keys, Arc::new(SystemClock)).await.unwrap()
}

/// A node that is started with these keys, or why it does not start.
pub async fn start(world: &World, keys: MasterKeys) -> Result<Node, String> {
    let mut config = config();
    config.gateway.seal_answers = true;
    let settings = NodeSettings {
        database_url: world.database.url.clone(),
        master_keys: keys,
        cache_dir: shared::cache_dir(),
        config,
        name: "after the rotation".to_owned(),
    };
    Node::open_with(settings, Arc::new(SystemClock), probe::none()).await.map_err(|error| error.to_string())
}

/// The master keys that wrap something.
async fn wrapping(world: &World) -> Vec<String> {
    let masters = sealing_key::masters(world.node.store()).await.unwrap();
    masters.into_iter().map(|wraps| wraps.master_id).collect()
}

async fn sealing_world() -> World {
    let mut settings = config();
    settings.gateway.seal_answers = true;
    World::with(Options { keyless: false, convention: None }, settings).await
}

fn answers_again(world: &World) -> Value {
    let mut named = call(&world.charges());
    named["identity"] = json!({ "named": "charge" });
    json!({ "calls": [named], "then": ["fail", "return"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_run_has_the_same_random_numbers_after_a_rotation() {
    let world = World::keyed().await;
    let masters = Masters::of(&world);
    world.deploy("random", "stripe", json!({})).await;
    let run = world.start("random", json!({})).await;
    world.work().await;
    let before = world.output(run).await;
    let again = "update runs set state = 'queued', ended_at = null, output = null, rank = deedbox_now()";
    world.database.execute(again).await;
    vault(&world, masters.both()).await.rotate().await.unwrap();
    assert_eq!(wrapping(&world).await, [masters.new.id()]);
    work(&start(&world, masters.new_alone()).await.unwrap()).await;
    assert_eq!(world.output(run).await, before);
}

/// The credential, and an answer that was sealed before: an attempt that begins after the rotation has both.
#[tokio::test(flavor = "multi_thread")]
async fn sealed_answers_and_secrets_open_after_a_rotation() {
    let world = sealing_world().await;
    let masters = Masters::of(&world);
    world.node.gateway().vault().put(TENANT, "key", "sk_test_4242").await.unwrap();
    let mut policy = policy("stripe");
    policy["retry"] = json!({ "max_attempts": 3 });
    world.deploy("send", "stripe", policy).await;
    let run = world.start("send", answers_again(&world)).await;
    work_once(&world.node).await;
    let sealed: (Option<String>, Vec<u8>) = sqlx::query_as("select sealed_with, body from effects")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(sealed.0.as_deref(), Some("k1"));
    assert!(!String::from_utf8_lossy(&sealed.1).contains("charge"), "it must be sealed");

    let vault = vault(&world, masters.both()).await;
    vault.rotate().await.unwrap();
    assert_eq!(vault.renew(TENANT).await.unwrap(), "k2");
    let node = start(&world, masters.new_alone()).await.unwrap();
    work(&node).await;
    let output = world.output(run).await;
    assert_eq!((&output[0]["source"], &output[0]["status"]), (&json!("replayed"), &json!(201)), "{output}");

    let other = world.start("send", json!({ "calls": [call(&world.charges())] })).await;
    work(&node).await;
    assert_eq!(world.output(other).await[0]["status"], 201);
    let arrivals = world.books.arrivals().await.unwrap();
    let opened = arrivals.iter().map(|arrival| arrival.header("authorization").unwrap());
    assert_eq!(opened.collect::<Vec<_>>(), ["Bearer sk_test_4242"; 2]);
    let newest: String = sqlx::query_scalar("select sealed_with from effects order by first_sent_at desc limit 1")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(newest, "k2", "the newest key seals");
}

/// A keyed request whose digest, and a sealed answer under a key, come from before the rotation.
#[tokio::test(flavor = "multi_thread")]
async fn a_keyed_request_is_replayed_after_a_rotation() {
    let world = World::keyed().await;
    let masters = Masters::of(&world);
    world.deploy("noop", "stripe", json!({})).await;
    let stop = CancellationToken::new();
    let tokens = [mint(&world, TENANT).await, mint(&world, store::tenant::ADMIN).await];
    let before = serve(&world, masters.old.clone().into(), &stop).await;
    let first = [started(&before, &tokens[0], 1).await, minted(&before, &tokens[1]).await];
    vault(&world, masters.both()).await.rotate().await.unwrap();
    let after = serve(&world, masters.new_alone(), &stop).await;
    let second = [started(&after, &tokens[0], 1).await, minted(&after, &tokens[1]).await];
    for (first, second) in first.iter().zip(&second) {
        assert_eq!((first.status, second.status), (201, 201), "{second:?}");
        assert_eq!((first.text.as_str(), first.headers.get("openwop-idempotent-replay")), (second.text.as_str(), None));
        assert_eq!(second.header("openwop-idempotent-replay"), "true");
    }
    started(&after, &tokens[0], 2).await.refused(409, "idempotency_key_mismatch");
    stop.cancel();
}

async fn serve(world: &World, keys: MasterKeys, stop: &CancellationToken) -> String {
    let node = start(world, keys).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let stop = stop.clone();
    tokio::spawn(async move { node.serve(listener, stop).await.unwrap() });
    origin
}

async fn started(origin: &str, token: &str, input: u32) -> Answer {
    keyed(origin, token, "/v1/activities/noop/runs", &json!({ "input": input })).await
}

async fn minted(origin: &str, token: &str) -> Answer {
    keyed(origin, token, &format!("/v1/tenants/{TENANT}/tokens"), &json!({ "label": "after" })).await
}

async fn keyed(origin: &str, token: &str, path: &str, body: &Value) -> Answer {
    let client = Client::new(origin, Some(token.to_owned()));
    let request = client.request(reqwest::Method::POST, path).header("idempotency-key", "one-and-the-same-request");
    client.send(request.json(body)).await
}

/// While nodes are restarted one after another, some wrap with the old key and some with the new: each opens what any has made.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_have_both_keys_open_what_each_other_has_sealed() {
    let world = World::keyed().await;
    let masters = Masters::of(&world);
    let (first, second) = (vault(&world, masters.prepared()).await, vault(&world, masters.both()).await);
    for (by, other, tenant) in [(&first, &second, "by-old"), (&second, &first, "by-new")] {
        store::tenant::create(world.node.store(), tenant).await.unwrap();
        let key = by.current(tenant).await.unwrap();
        let sealed = key.seal(b"row", "place", b"value");
        assert_eq!(other.unseal(tenant, b"row", "place", &key.id(), &sealed).await.unwrap(), b"value");
    }
    let mut both = [masters.old.id(), masters.new.id()];
    both.sort();
    assert_eq!(wrapping(&world).await, both);

    for (alone, needed) in [(&masters.old, &masters.new), (&masters.new, &masters.old)] {
        let refused = start(&world, alone.clone().into()).await.unwrap_err();
        for word in [needed.id().as_str(), "--other-master-key-file", "deedbox key rotate"] {
            assert!(refused.contains(word), "{word}: {refused}");
        }
    }
    second.rotate().await.unwrap();
    start(&world, masters.new_alone()).await.unwrap();
    assert!(start(&world, masters.old.clone().into()).await.unwrap_err().contains(&masters.new.id()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_make_a_key_at_once_have_the_same() {
    let world = World::keyed().await;
    world.database.execute("delete from sealing_keys").await;
    let opening = (0..8).map(|_| vault(&world, shared::master_keys()));
    let vaults = futures_util::future::join_all(opening).await;
    let keys = futures_util::future::join_all(vaults.iter().map(|vault| vault.current(TENANT))).await;
    let keys: Vec<_> = keys.into_iter().map(Result::unwrap).collect();
    let sealed = keys[0].seal(b"row", "place", b"value");
    for (vault, key) in vaults.iter().zip(&keys) {
        assert_eq!(key.id(), "k1");
        assert_eq!(vault.unseal(TENANT, b"row", "place", "k1", &sealed).await.unwrap(), b"value");
        assert_eq!(*vault.random_secret(), *vaults[0].random_secret());
    }
    let renewed = futures_util::future::join_all(vaults.iter().map(|vault| vault.renew(TENANT))).await;
    assert!(renewed.iter().all(|id| id.as_ref().is_ok_and(|id| id.starts_with('k') && id != "k1")), "{renewed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_that_was_broken_off_is_done_again_from_there() {
    let world = World::keyed().await;
    let masters = Masters::of(&world);
    let before = vault(&world, masters.prepared()).await;
    for tenant in ["a", "m", "z"] {
        store::tenant::create(world.node.store(), tenant).await.unwrap();
        before.put(tenant, "key", tenant).await.unwrap();
    }
    let refuse = "create function refuse() returns trigger language plpgsql as
          $$ begin if new.tenant = 'm' then raise exception 'broken off'; end if; return new; end $$;
        create trigger refuse before update on sealing_keys for each row execute function refuse()";
    world.database.execute(refuse).await;
    let rotating = vault(&world, masters.both()).await;
    rotating.rotate().await.unwrap_err();
    let mut both = [masters.old.id(), masters.new.id()];
    both.sort();
    assert_eq!(wrapping(&world).await, both, "half is done");
    start(&world, masters.prepared()).await.unwrap();

    world.database.execute("drop trigger refuse on sealing_keys").await;
    let rest = rotating.rotate().await.unwrap();
    assert!(rest.rewrapped >= 2 && rest.left.is_empty(), "{rest:?}");
    assert_eq!(wrapping(&world).await, [masters.new.id()]);
    assert_eq!(rotating.rotate().await.unwrap(), Rotated::default());
    let after = vault(&world, masters.new_alone()).await;
    for tenant in ["a", "m", "z"] {
        assert_eq!(after.current(tenant).await.unwrap().id(), "k1");
    }
}

/// A row that was moved to another tenant, or changed, is no key.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_key_cannot_be_moved_to_another_tenant() {
    let world = World::keyed().await;
    let vault_before = world.node.gateway().vault();
    vault_before.current(TENANT).await.unwrap();
    store::tenant::create(world.node.store(), "globex").await.unwrap();
    let moved = "insert into sealing_keys (tenant, purpose, number, master_id, wrapped)
        select 'globex', purpose, number, master_id, wrapped from sealing_keys where tenant = 'acme'";
    world.database.execute(moved).await;
    let error = vault(&world, shared::master_keys()).await.current("globex").await.unwrap_err().to_string();
    assert!(error.contains("changed") && error.contains("globex"), "{error}");
}
