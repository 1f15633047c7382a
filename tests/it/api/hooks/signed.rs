//! Whose deliveries are taken: those that a secret of the hook has signed, as they came, and lately.

use super::*;

const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SHARED_SECRET: &str = "a shared secret";

fn shared(sign: impl Fn(&str) -> String, body: &str) -> Sent {
    Sent::new(&[("x-signature", &sign(body)), ("x-id", "delivery-1")], body)
}

/// Asserts that the hook takes what its secret signed and nothing else, and that one run comes of it.
async fn takes_only_what_is_signed(api: &Api, hook: &str, sign: impl Fn(&str) -> Sent, wrong: &[(&str, Sent)]) {
    let (nobody, body) = (api.nobody(), r#"{"id": "evt_1", "amount": 1}"#);
    let name = format!("acme.{hook}");
    let before = runs(api).await.len();
    let right = sign(body);
    for (what, sent) in wrong {
        assert_eq!(sent.to(&nobody, &name).await.status, 401, "{what}");
    }
    let altered = Sent { body: body.replace('1', "2"), ..right.clone() };
    assert_eq!(altered.to(&nobody, &name).await.status, 401, "an altered body");
    let spaced = Sent { body: format!("{body} "), ..right.clone() };
    assert_eq!(spaced.to(&nobody, &name).await.status, 401, "the same JSON in other bytes");
    for (header, value) in &right.headers {
        if header.contains("signature") || header.contains("timestamp") {
            assert_eq!(right.with(header, None).to(&nobody, &name).await.status, 401, "without {header}");
            let twice =
                Sent { headers: [&right.headers[..], &[(header.clone(), value.clone())]].concat(), ..right.clone() };
            assert_eq!(twice.to(&nobody, &name).await.status, 401, "{header} twice");
        }
    }
    assert_eq!(runs(api).await.len(), before);
    assert_eq!(deliveries(api, hook).await, Vec::<Value>::new(), "what is not signed is noted nowhere");
    accepted(&right.to(&nobody, &name).await);
    assert_eq!(runs(api).await.len(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stripe_s_signature_is_checked_with_its_time() {
    let api = api("whsec_test").await;
    put(&api.acme, "stripe", &starting(&json!({ "verify": { "scheme": "stripe", "secret": "key" } }))).await;
    let body = r#"{"id": "evt_1", "amount": 1}"#;
    let right = stripe("whsec_test", now(), body);
    let signature = right.headers[0].1.split_once(",").unwrap().1.to_owned();
    let wrong = [
        ("another secret", stripe("whsec_other", now(), body)),
        ("too old", stripe("whsec_test", now() - 400, body)),
        ("of the future", stripe("whsec_test", now() + 400, body)),
        ("another time", right.with("stripe-signature", Some(&format!("t={},{signature}", now() + 1)))),
        ("no time", right.with("stripe-signature", Some(&signature))),
        ("a test's version", right.with("stripe-signature", Some(&right.headers[0].1.replace("v1=", "v0=")))),
    ];
    takes_only_what_is_signed(&api, "stripe", |body| stripe("whsec_test", now(), body), &wrong).await;
    let rolled = format!("{},v1={}", right.headers[0].1, "0".repeat(64));
    assert_eq!(right.with("stripe-signature", Some(&rolled)).to(&api.nobody(), "acme.stripe").await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_ages_by_the_clock_of_the_database() {
    let api = api("whsec_test").await;
    let verify = json!({ "scheme": "stripe", "secret": "key", "tolerance_s": 3600 });
    put(&api.acme, "stripe", &starting(&json!({ "verify": verify }))).await;
    let sent = stripe("whsec_test", now() - 1_000, r#"{"id": "evt_1"}"#);
    accepted(&sent.to(&api.nobody(), "acme.stripe").await);
    api.world.database.advance_seconds(3_000).await;
    assert_eq!(sent.to(&api.nobody(), "acme.stripe").await.status, 401, "a known id is no proof");
}

#[tokio::test(flavor = "multi_thread")]
async fn github_s_signature_is_checked() {
    let api = api("It's a Secret to Everybody").await;
    put(&api.acme, "github", &starting(&json!({}))).await;
    let documented = Sent::new(
        &[
            ("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
            ("x-github-delivery", "a"),
        ],
        "Hello, World!",
    );
    // Its signature is right, and only then is it found not to be JSON.
    documented.to(&api.nobody(), "acme.github").await.refused(422, "deedbox.hook_unmapped");
    assert_eq!(Sent { body: "Hello, World?".into(), ..documented }.to(&api.nobody(), "acme.github").await.status, 401);
    put(&api.acme, "other", &starting(&json!({}))).await;
    let body = r#"{"id": "evt_1", "amount": 1}"#;
    let sign = |body: &str| github("It's a Secret to Everybody", "d-1", body);
    let wrong = [
        ("another secret", github("It's a Secret", "d-1", body)),
        ("no prefix", sign(body).with("x-hub-signature-256", Some(&sign(body).headers[0].1.replace("sha256=", "")))),
    ];
    takes_only_what_is_signed(&api, "other", sign, &wrong).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standard_signature_is_checked_with_its_id_and_time() {
    let api = api(STANDARD_SECRET).await;
    put(&api.acme, "svc", &starting(&json!({ "verify": { "scheme": "standard-webhooks", "secret": "key" } }))).await;
    let body = r#"{"id": "evt_1", "amount": 1}"#;
    let sign = |body: &str| standard(STANDARD_SECRET, "msg_1", now(), body);
    let wrong = [
        ("another secret", standard("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "msg_1", now(), body)),
        ("another id", sign(body).with("webhook-id", Some("msg_2"))),
        ("no id", sign(body).with("webhook-id", None)),
        ("another time", sign(body).with("webhook-timestamp", Some(&(now() + 1).to_string()))),
        ("too old", standard(STANDARD_SECRET, "msg_1", now() - 400, body)),
        ("of the future", standard(STANDARD_SECRET, "msg_1", now() + 400, body)),
    ];
    takes_only_what_is_signed(&api, "svc", sign, &wrong).await;
    let right = sign(body);
    let several = format!("v1,{} {}", BASE64.encode(&[0; 32]), right.headers[2].1);
    assert_eq!(right.with("webhook-signature", Some(&several)).to(&api.nobody(), "acme.svc").await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_secret_s_signature_is_checked_as_it_is_described() {
    let api = api(SHARED_SECRET).await;
    let hook = |prefix: &str, encoding: &str, algorithm: &str| {
        let verify = json!({ "scheme": "hmac", "secret": "key", "header": "X-Signature", "prefix": prefix,
                             "encoding": encoding, "algorithm": algorithm });
        starting(&json!({ "verify": verify, "delivery_id": { "header": "X-Id" } }))
    };
    put(&api.acme, "hex", &hook("v0=", "hex", "sha256")).await;
    put(&api.acme, "base64", &hook("", "base64", "sha512")).await;
    let hex = |body: &str| format!("v0={}", HEXLOWER.encode(&sha256(SHARED_SECRET.as_bytes(), &[body])));
    let base64 = |body: &str| BASE64.encode(&sha512(SHARED_SECRET.as_bytes(), body));
    let body = r#"{"id": "evt_1", "amount": 1}"#;
    let wrong = [("the other form", shared(base64, body))];
    takes_only_what_is_signed(&api, "hex", |body| shared(hex, body), &wrong).await;
    let wrong = [("the other form", shared(hex, body))];
    takes_only_what_is_signed(&api, "base64", |body| shared(base64, body), &wrong).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_secret_is_changed_both_are_good() {
    let api = api("old").await;
    put_secret(&api.acme, "next", "new").await;
    let with = |secret: Value| starting(&json!({ "verify": { "scheme": "github", "secret": secret } }));
    let send = async |secret: &str, id: &str| github(secret, id, "{}").to(&api.nobody(), "acme.hook").await.status;
    put(&api.acme, "hook", &with(json!(["key", "next"]))).await;
    assert_eq!((send("old", "1").await, send("new", "2").await, send("else", "3").await), (202, 202, 401));
    put(&api.acme, "hook", &with(json!("next"))).await;
    assert_eq!((send("old", "4").await, send("new", "5").await), (401, 202));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_value_of_a_secret_counts_at_once_and_a_missing_one_proves_nothing() {
    let api = api("old").await;
    put(&api.acme, "hook", &starting(&json!({}))).await;
    let send = async |secret: &str, id: &str| github(secret, id, "{}").to(&api.nobody(), "acme.hook").await.status;
    assert_eq!((send("old", "1").await, send("new", "2").await), (202, 401));
    put_secret(&api.acme, "key", "new").await;
    assert_eq!((send("old", "3").await, send("new", "4").await), (401, 202));
    api.acme.delete("/v1/secrets/key").await.expect(204);
    assert_eq!((send("new", "5").await, send("", "6").await), (401, 401));
}
