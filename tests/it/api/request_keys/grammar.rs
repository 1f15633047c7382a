//! What a key looks like. What cannot be one is never taken for none, and a long one is never a fault of the server.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::harness::{seed, tell};

/// R-K05, R-Z03.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_22_to_128_characters_and_may_be_quoted() {
    let api = noops().await;
    let base64url = "aZ09-_aZ09-_aZ09-_aZ09";
    for key in
        ["a".repeat(22), "~".repeat(128), base64url.to_owned(), fresh_key(), "0123456789.ABC_def~xyz-".to_owned()]
    {
        let ask = Ask::start(&api.acme, &json!({ "input": 1 })).key(&key);
        let first = twice(&ask, 201).await;
        replays(&ask.clone().key(&format!("\"{key}\"")).send().await, &first);
    }
    let quoted = fresh_key();
    let ask = Ask::start(&api.acme, &json!({ "input": 1 })).key(&format!("\"{quoted}\""));
    let first = twice(&ask, 201).await;
    // White space around a header's value is not part of it.
    for same in [quoted.clone(), format!(" {quoted}\t")] {
        replays(&ask.clone().key(&same).send().await, &first);
    }
    assert_eq!(runs(&api).await.len(), 6);
}

/// R-K05, R-K07, R-C18, R-C25, R-Z03.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_key_is_refused_and_nothing_is_done() {
    let api = noops().await;
    let ask = Ask::start(&api.acme, &json!({ "input": 1 }));
    let mut wrong: Vec<Vec<u8>> = [0, 1, 21, 129, 512].map(|length| vec![b'a'; length]).into();
    let (head, tail) = ("0123456789-", "-0123456789");
    wrong.extend(" !\"#$%&'()*+,/:;<=>?@[\\]^`{|}\t".chars().map(|c| format!("{head}{c}{tail}").into_bytes()));
    wrong.extend(["ä", "ｋ", "\u{a0}"].map(|c| format!("{head}{c}{tail}").into_bytes()));
    wrong.push(vec![0xff; 30]);
    let key = fresh_key();
    wrong.extend(
        [format!("\"{key}"), format!("{key}\""), format!("'{key}'"), format!("\"{key}\";a=1")].map(String::into_bytes),
    );
    wrong.extend([format!("\"\"{key}\"\""), format!("{key}, {key}"), "\"\"".to_owned()].map(String::into_bytes));
    wrong.push(b"conn:0123456789-0123456789".to_vec());
    for value in wrong {
        let answer = ask.clone().header("idempotency-key", &value).send().await;
        let shown = String::from_utf8_lossy(&value).into_owned();
        let message = answer.message(400, "idempotency_key_invalid");
        assert!(message.contains("Idempotency-Key"), "{shown}: {answer:?}");
        assert!(shown.len() < 3 || !answer.text.contains(&shown), "it was told back: {answer:?}");
    }
    assert_eq!((runs(&api).await.len(), records(&api).await), (0, 0));
}

/// R-K07: which of two keys was meant, nobody can know.
#[tokio::test(flavor = "multi_thread")]
async fn two_headers_are_refused_even_when_they_agree() {
    let api = noops().await;
    let (one, other) = (fresh_key(), fresh_key());
    for second in [one.as_str(), other.as_str(), ""] {
        let ask = Ask::start(&api.acme, &json!({})).key(&one).also("idempotency-key", second);
        ask.send().await.refused(400, "idempotency_key_invalid");
        ask.lenient().send().await.refused(400, "idempotency_key_invalid");
    }
    assert!(runs(&api).await.is_empty());
}

/// Chance, so that nothing can be made smaller.
fn noise(dice: &mut StdRng, length: usize, letters: &[u8]) -> String {
    (0..length).map(|_| char::from(letters[dice.random_range(0..letters.len())])).collect()
}

/// F-A15.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_key_or_name_is_taken_or_refused_and_never_a_fault() {
    let seed = seed();
    tell(&format!("long keys: seed {seed}"));
    let mut dice = StdRng::seed_from_u64(seed);
    let letters: Vec<u8> = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z').collect();
    let api = noops().await;
    let start = Ask::start(&api.acme, &json!({ "input": 1 }));
    for length in [128, 129, 255, 256, 2_704, 8_192] {
        let text = noise(&mut dice, length, &letters);
        let strict = start.clone().key(&text).send().await;
        let lenient = start.clone().lenient().key(&text).send().await;
        let in_body = Ask::start(&api.acme, &json!({ "idempotency_key": text })).send().await;
        if length <= 128 {
            done(&strict, 201);
            lenient.expect(200);
            in_body.refused(409, "idempotency_key_mismatch");
            continue;
        }
        // Headers have a limit of their own.
        assert!(strict.status == 431 || strict.refused(400, "idempotency_key_invalid").is_object(), "{strict:?}");
        in_body.refused(400, "idempotency_key_invalid");
        match length {
            129 | 255 => drop(done(&lenient, 201)),
            _ => assert!(lenient.status == 431 || lenient.refused(400, "idempotency_key_invalid").is_object()),
        }
    }
    let run = runs(&api).await.remove(0);
    for length in [255, 256, 257, 2_704, 8_192] {
        let text = noise(&mut dice, length, &letters);
        let named = Ask::start(&api.acme, &json!({ "run_name": text })).key(&fresh_key()).send().await;
        assert_eq!(named.status, if length <= 256 { 201 } else { 400 }, "{named:?}");
        for path in [
            format!("/v1/runs/{run}/signals/{text}"),
            format!("/v1/runs/{run}/signals/go?idempotency_key={text}"),
            format!("/v1/runs/{text}/cancel"),
            format!("/v1/activities/{text}/runs"),
        ] {
            let ask = Ask::post(&api.acme, &path, &json!({}));
            let answer = if path.contains('?') { ask.send().await } else { ask.key(&fresh_key()).send().await };
            assert!((200..500).contains(&answer.status), "{length}: {answer:?}");
            assert!(answer.status < 300 || answer.json()["error"].is_string(), "{length}: {answer:?}");
        }
    }
    api.acme.get("/v1/runs").await.expect(200);
}
