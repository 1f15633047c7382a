//! What a tenant sees of its deliveries, and what is never kept of them.

use super::*;
use crate::api::client::assert_members;
use crate::harness::logs;
use crate::secrets::tables_with;

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_each_delivery_is_listed_newest_first() {
    let api = api("s").await;
    let start = json!({ "activity": "noop", "input": { "pointer": "/a" }, "run_name": { "pointer": "/order" } });
    put(&api.acme, "hook", &starting(&json!({ "start": start }))).await;
    let send = async |id: &str, body: &str| github("s", id, body).to(&api.nobody(), "acme.hook").await;
    let run = accepted(&send("1", r#"{"a": 1, "order": "x"}"#).await);
    send("2", r#"{"a": 1, "order": "x"}"#).await.expect(202);
    send("3", "{}").await.refused(422, "deedbox.hook_unmapped");
    send("3", "{}").await.refused(422, "deedbox.hook_unmapped");
    send("1", "{}").await.expect(202);
    github("s", "x", "{}")
        .with("x-github-delivery", None)
        .to(&api.nobody(), "acme.hook")
        .await
        .refused(422, "deedbox.hook_unmapped");
    github("wrong", "4", "{}").to(&api.nobody(), "acme.hook").await.refused(401, "unauthenticated");
    let listed = deliveries(&api, "hook").await;
    let told: Vec<_> = listed.iter().map(|it| (&it["delivery_id"], &it["outcome"], &it["tries"])).collect();
    let (nothing, accepted, declined, refused) = (json!(null), json!("accepted"), json!("declined"), json!("refused"));
    let (one, two) = (json!(1), json!(2));
    let ids = [json!("1"), json!("2"), json!("3")];
    let expected =
        [(&nothing, &refused, &one), (&ids[2], &refused, &two), (&ids[1], &declined, &one), (&ids[0], &accepted, &one)];
    assert_eq!(told, expected);
    for delivery in &listed {
        assert_members(delivery, &["delivery_id", "outcome", "run_id", "reason", "tries", "last_at"]);
    }
    assert_eq!((&listed[3]["run_id"], &listed[3]["reason"]), (&json!(run), &nothing));
    assert_eq!((&listed[2]["run_id"], &listed[2]["reason"]), (&json!(run), &json!("run_already_active")));
    assert_eq!(
        (&listed[1]["run_id"], &listed[1]["reason"]),
        (&nothing, &json!("start.input: there is nothing at `/a`"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_hundred_are_kept_of_each_hook() {
    let api = api("s").await;
    for hook in ["hook", "other"] {
        put(&api.acme, hook, &starting(&json!({}))).await;
    }
    accepted(&github("s", "1", "{}").to(&api.nobody(), "acme.other").await);
    for n in 0..103 {
        accepted(&github("s", &format!("d-{n}"), "{}").to(&api.nobody(), "acme.hook").await);
    }
    let listed = deliveries(&api, "hook").await;
    assert_eq!(
        (listed.len(), &listed[0]["delivery_id"], &listed[99]["delivery_id"]),
        (100, &json!("d-102"), &json!("d-3"))
    );
    assert_eq!(deliveries(&api, "other").await.len(), 1);
    // What is forgotten here is not forgotten as a request key.
    assert!(is_replay(&github("s", "d-0", "{}").to(&api.nobody(), "acme.hook").await));
}

/// F-H01.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_signature_header_or_body_is_in_a_log_or_a_table() {
    logs::keep();
    let (secret, kept_out, header) = ("canary-secret-8c1e", "canary-body-77fa", "canary-header-02bd");
    let api = api(secret).await;
    let start = json!({ "activity": "noop", "input": { "pointer": "/wanted" } });
    put(&api.acme, "hook", &starting(&json!({ "start": start }))).await;
    let bodies = [
        json!({ "wanted": 1, "other": kept_out }).to_string(),
        json!({ "other": kept_out }).to_string(),
        kept_out.to_owned(),
    ];
    let mut signatures = Vec::new();
    for (n, body) in bodies.iter().enumerate() {
        let sent = github(secret, &format!("d-{n}"), body).with("x-more", Some(header));
        signatures.push(sent.headers[0].1.trim_start_matches("sha256=").to_owned());
        assert!(matches!(sent.to(&api.nobody(), "acme.hook").await.status, 202 | 422));
        let forged = sent.with("x-hub-signature-256", Some(&format!("sha256={}", "ab".repeat(32))));
        assert_eq!(forged.to(&api.nobody(), "acme.hook").await.status, 401);
    }
    let told = format!("{:?}", deliveries(&api, "hook").await) + &api.acme.get("/v1/hooks/hook").await.text;
    let logged = logs::all();
    assert!(logged.contains("deedbox"), "something must have been logged");
    for canary in [secret, kept_out, header].into_iter().chain(signatures.iter().map(String::as_str)) {
        assert!(!told.contains(canary), "{canary}: {told}");
        assert!(!logged.contains(canary), "{canary}");
        assert_eq!(tables_with(&api.world, canary).await, Vec::<String>::new(), "{canary}");
    }
}
