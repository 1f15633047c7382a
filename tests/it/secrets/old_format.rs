//! Databases from before there were data keys: what a master key has sealed itself opens, what was derived from it stays, and a
//! rotation leaves nothing of it. The old form is made here, with nothing of the program's own.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use data_encoding::{BASE64, HEXLOWER};
use deedbox::gateway::vault::{MasterKey, MasterKeys};
use deedbox_books::Options;
use serde_json::json;

use super::rotation::{start, vault};
use super::{TENANT, call, policy};
use crate::harness::{World, config, shared, work, work_once};

/// A master key as the first version used it.
struct Old([u8; 32]);

impl Old {
    fn shared() -> Self {
        let text = std::fs::read_to_string(shared::master_key_file()).unwrap();
        Self(HEXLOWER.decode(text.trim().as_bytes()).unwrap().try_into().unwrap())
    }

    fn id(&self) -> String {
        HEXLOWER.encode(&blake3::derive_key("deedbox 2026 master key id", &self.0)[..8])
    }

    fn seal_secret(&self, name: &str, value: &str) -> Vec<u8> {
        seal(&self.0, format!("{TENANT}\0{name}").as_bytes(), value.as_bytes())
    }

    fn seal_value(&self, id: &[u8], place: &str, value: &[u8]) -> Vec<u8> {
        let key = blake3::derive_key("deedbox 2026 tenant key", &[&self.0[..], TENANT.as_bytes()].concat());
        seal(&key, &[id, place.as_bytes()].concat(), value)
    }
}

fn seal(key: &[u8; 32], bound: &[u8], value: &[u8]) -> Vec<u8> {
    let nonce = *uuid::Uuid::new_v4().as_bytes();
    let nonce = [&nonce[..], &nonce[..8]].concat();
    let cipher = XChaCha20Poly1305::new(Key::from_slice(key));
    let sealed = cipher.encrypt(XNonce::from_slice(&nonce), Payload { msg: value, aad: bound }).unwrap();
    [nonce, sealed].concat()
}

async fn put_old_secret(world: &World, old: &Old, value: &str) {
    sqlx::query("insert into secrets (tenant, name, key_id, sealed) values ($1, 'key', $2, $3)")
        .bind(TENANT)
        .bind(old.id())
        .bind(old.seal_secret("key", value))
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
}

/// Seals the only effect's answer, which is there as it came, in the old form.
async fn seal_answer_the_old_way(world: &World, old: &Old) {
    let mut connection = world.database.connect().await;
    let (id, headers, body): (Vec<u8>, String, Vec<u8>) =
        sqlx::query_as("select effect_id, headers, body from effects where sealed_with is null")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    sqlx::query("update effects set sealed_with = $1, headers = $2, body = $3")
        .bind(old.id())
        .bind(BASE64.encode(&old.seal_value(&id, "headers", headers.as_bytes())))
        .bind(old.seal_value(&id, "body", &body))
        .execute(&mut connection)
        .await
        .unwrap();
}

/// The ids that name what seals: of the secret, and of the answer.
async fn named(world: &World) -> (String, String) {
    sqlx::query_as("select s.key_id, e.sealed_with from secrets s, effects e")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_derived_from_the_master_key_stays_as_it_was() {
    let world = World::keyed().await;
    let old = Old::shared();
    world.deploy("noop", "stripe", json!({})).await;
    world.database.execute("delete from sealing_keys").await;
    let vault = vault(&world, shared::master_keys()).await;
    for (context, is) in [
        ("deedbox 2026 random secret", vault.random_secret()),
        ("deedbox 2026 artefact key", vault.artefact_key()),
        ("deedbox 2026 request digest key", vault.digest_key()),
    ] {
        assert_eq!(*is, blake3::derive_key(context, &old.0), "{context}");
    }
}

/// The key that sealed the secrets counts, even if another is current already.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_taken_over_with_the_key_that_sealed_its_secrets() {
    let world = World::keyed().await;
    let old = Old::shared();
    put_old_secret(&world, &old, "sk_old").await;
    world.database.execute("delete from sealing_keys").await;
    let new = MasterKey::read_or_create(&world.dir.path().join("new.key")).unwrap();
    let refused = start(&world, new.clone().into()).await.unwrap_err();
    assert!(refused.contains(&old.id()) && refused.contains("docs/secrets.md"), "{refused}");
    let shared = MasterKey::read(&shared::master_key_file()).unwrap();
    let vault = vault(&world, MasterKeys::new(new, vec![shared])).await;
    assert_eq!(*vault.random_secret(), blake3::derive_key("deedbox 2026 random secret", &old.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_nobody_has_used_gets_keys_by_chance() {
    let world = World::keyed().await;
    let old = Old::shared();
    let made = || async {
        // The first test of the process has the modules that are compiled for all.
        world.database.execute("delete from modules; delete from sealing_keys").await;
        *vault(&world, shared::master_keys()).await.random_secret()
    };
    let (first, second) = (made().await, made().await);
    assert_ne!(first, second);
    assert_ne!(first, blake3::derive_key("deedbox 2026 random secret", &old.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_master_key_sealed_itself_opens_and_is_sealed_anew_by_a_rotation() {
    let world = World::with(Options { keyless: false, convention: None }, config()).await;
    let old = Old::shared();
    put_old_secret(&world, &old, "sk_old").await;
    let mut policy = policy("stripe");
    policy["retry"] = json!({ "max_attempts": 4 });
    world.deploy("send", "stripe", policy).await;
    let mut charge = call(&world.charges());
    charge["identity"] = json!({ "named": "charge" });
    let run = world.start("send", json!({ "calls": [charge], "then": ["fail", "fail", "return"] })).await;
    work_once(&world.node).await;
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals[0].header("authorization"), Some("Bearer sk_old"), "the old form opens");
    seal_answer_the_old_way(&world, &old).await;
    work_once(&world.node).await;
    let outcomes = world.outcomes(run).await;
    assert!(
        outcomes.len() == 2 && outcomes[0] == outcomes[1],
        "it has read the answer and failed as told: {outcomes:?}"
    );
    assert_eq!(named(&world).await, (old.id(), old.id()));

    let shared = MasterKey::read(&shared::master_key_file()).unwrap();
    let new = MasterKey::read_or_create(&world.dir.path().join("new.key")).unwrap();
    let rotated = vault(&world, MasterKeys::new(new.clone(), vec![shared])).await.rotate().await.unwrap();
    assert_eq!((rotated.resealed, rotated.left.len()), (2, 0), "{rotated:?}");
    assert_eq!(named(&world).await, ("k1".to_owned(), "k1".to_owned()));
    let node = start(&world, new.into()).await.unwrap();
    work(&node).await;
    let output = world.output(run).await;
    assert_eq!((&output[0]["source"], &output[0]["status"]), (&json!("replayed"), &json!(201)), "{output}");
    let second = world.start("send", json!({ "calls": [call(&world.charges())] })).await;
    work(&node).await;
    assert_eq!(world.output(second).await[0]["status"], 201);
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals.last().unwrap().header("authorization"), Some("Bearer sk_old"));
}

/// What cannot be opened is told of, and keeps nothing else from being sealed anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_leaves_what_it_cannot_open_and_goes_on() {
    let world = World::keyed().await;
    let old = Old::shared();
    put_old_secret(&world, &old, "sk_old").await;
    let strange = "insert into secrets (tenant, name, key_id, sealed) values ('acme', 'a', '0000000000000000', 'x')";
    world.database.execute(strange).await;
    let rotated = vault(&world, shared::master_keys()).await.rotate().await.unwrap();
    assert_eq!((rotated.resealed, rotated.left.len()), (1, 1), "{rotated:?}");
    assert!(rotated.left[0].contains("`a`") && rotated.left[0].contains("0000000000000000"), "{rotated:?}");
}
