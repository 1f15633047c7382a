//! What is told to a sender that has no secret of the hook: always the same, whatever there is.

use super::*;

/// All of an answer that could tell one refusal from another.
fn told(answer: &Answer) -> (u16, String, Vec<(String, String)>) {
    let mut headers: Vec<_> =
        answer.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    headers.retain(|(name, _)| !["x-request-id", "date", "connection"].contains(&name.as_str()));
    headers.sort();
    (answer.status, answer.text.clone(), headers)
}

/// F-K01.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tenant_an_unknown_hook_and_a_wrong_signature_are_told_alike() {
    let api = api("the secret").await;
    put(&api.acme, "hook", &starting(&json!({}))).await;
    let nobody = api.nobody();
    let wrong = github("another secret", "1", "{}");
    let expected = wrong.to(&nobody, "acme.hook").await;
    expected.refused(401, "unauthenticated");
    let right = github("the secret", "1", "{}");
    for name in [
        "acme.other",
        "other.hook",
        "acme",
        "acme.",
        ".hook",
        "hook",
        "acme.hook.x",
        "acme.hook~",
        "_admin.hook",
        "ACME.hook",
    ] {
        assert_eq!(told(&right.to(&nobody, name).await), told(&expected), "{name}");
    }
    for sent in [right.with("x-hub-signature-256", None), Sent::new(&[], ""), Sent::new(&[], "no json")] {
        assert_eq!(told(&sent.to(&nobody, "acme.hook").await), told(&expected), "{sent:?}");
        assert_eq!(told(&sent.to(&nobody, "acme.none").await), told(&expected), "{sent:?}");
    }
    api.acme.delete("/v1/hooks/hook").await.expect(204);
    assert_eq!(told(&right.to(&nobody, "acme.hook").await), told(&expected), "a hook that is gone");
    assert!(runs(&api).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_whether_there_is_a_hook_or_not() {
    let api = api("s").await;
    put(&api.acme, "hook", &starting(&json!({}))).await;
    let large = github("s", "1", &format!("\"{}\"", "x".repeat(2 << 20)));
    let (known, unknown) = (large.to(&api.nobody(), "acme.hook").await, large.to(&api.nobody(), "acme.none").await);
    known.refused(413, "payload_too_large");
    assert_eq!(told(&known), told(&unknown));
}

/// F-K01.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_neither_sees_nor_uses_the_hooks_of_another() {
    let api = api("of acme").await;
    put(&api.acme, "hook", &starting(&json!({}))).await;
    accepted(&github("of acme", "1", "{}").to(&api.nobody(), "acme.hook").await);
    let other = api.tenant("other").await;
    assert!(whole_list(&other.get("/v1/hooks").await).is_empty());
    for path in ["/v1/hooks/hook", "/v1/hooks/hook/deliveries", "/v1/hooks/none", "/v1/hooks/none/deliveries"] {
        let refused = other.get(path).await.refused(404, "not_found");
        assert_eq!(refused["message"], "there is no such hook", "{path}");
    }
    other.delete("/v1/hooks/hook").await.refused(404, "not_found");
    // A secret's name is each tenant's own.
    let missing = other.put("/v1/hooks/hook", &starting(&json!({}))).await.message(400, "validation_error");
    assert!(missing.contains("no secret `key`"), "{missing}");
    put_secret(&other, "key", "of other").await;
    put(&other, "hook", &starting(&json!({}))).await;
    assert_eq!(github("of acme", "2", "{}").to(&api.nobody(), "other.hook").await.status, 401);
    let theirs = github("of other", "1", "{}").to(&api.nobody(), "other.hook").await;
    let words = theirs.message(422, "deedbox.hook_unmapped");
    assert!(words.contains("start.activity"), "the activity of acme is not theirs: {words}");
    assert_eq!(runs(&api).await.len(), 1);
    assert_eq!(deliveries(&api, "hook").await.len(), 1);
}

/// A tenant's token proves nothing to a hook, and needs no signature's place.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_no_signature() {
    let api = api("s").await;
    put(&api.acme, "hook", &starting(&json!({}))).await;
    let bare = github("s", "1", "{}").with("x-hub-signature-256", None);
    assert_eq!(bare.to(&api.acme, "acme.hook").await.status, 401);
    assert_eq!(github("s", "1", "{}").to(&api.acme, "acme.hook").await.status, 202);
}
