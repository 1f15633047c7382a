//! What one piece of evidence shows by itself, without another to compare it with: what the body does inside an attempt, and how
//! near it comes to a limit.

use serde_json::Value;

use super::evidence::{Attempt, Effect, Evidence};
use super::finding::{Code, Finding};
use crate::config::{GatewayConfig, HostConfig};

/// The part of a limit, in percent, from which on it is told.
const NEAR: usize = 80;
/// Codes of attempts that ended because something was too large.
const TOO_LARGE: [&str; 4] = ["result-too-large", "response-too-large", "call-too-large", "checkpoint-too-large"];

/// Whether an effect is known by its order alone.
pub fn is_positional(effect: &Effect) -> bool {
    effect.identity.starts_with(&format!("{} #", effect.slot()))
}

/// What the undisturbed run shows.
pub fn at_first(case: &str, base: &Evidence, input: &str) -> Vec<Finding> {
    let mut found = unnamed(case, base);
    found.extend(sizes(case, base, input));
    found.extend(failed(case, base));
    found
}

/// What any run may show.
pub fn at_any(case: &str, base: &Evidence, evidence: &Evidence) -> Vec<Finding> {
    let refused = mismatches(evidence).into_iter();
    let mut found: Vec<Finding> =
        refused.map(|(attempt, message)| mismatch(case, base, evidence, attempt, &message)).collect();
    found.extend(loops(case, evidence));
    found.extend(evidence.effects.iter().filter(|effect| effect.doubled).map(|effect| {
        let what = "the ledger has late proof that it was applied twice".to_owned();
        Finding::new(Code::Doubled, case, what).at(Some(effect))
    }));
    found
}

/// Effects that are told apart by nothing but their order.
fn unnamed(case: &str, base: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut slots: Vec<String> = Vec::new();
    for effect in base.effects.iter().filter(|effect| is_positional(effect)) {
        let slot = effect.slot();
        let here = base.effects.iter().filter(|other| is_positional(other) && other.slot() == slot).count();
        if here > 1 && !slots.contains(&slot) {
            let what = format!("{here} effects without names: in another order each is taken for another");
            found.push(Finding::new(Code::UnnamedInOneSlot, case, what).at(Some(effect)));
            slots.push(slot);
        }
    }
    found
}

/// What the host said, in each attempt, of calls that were not those that were claimed.
fn mismatches(evidence: &Evidence) -> Vec<(i32, String)> {
    let told = evidence.attempts.iter().filter_map(|attempt| {
        let failure = attempt.failure.as_ref()?;
        let message = failure["message"].as_str().unwrap_or_default();
        let said = ["was claimed with another request", "give each effect a name"];
        let known = failure["code"] == "effect-mismatch" || said.iter().any(|words| message.contains(words));
        known.then(|| (attempt.number, message.to_owned()))
    });
    told.chain(evidence.refused.iter().cloned()).collect()
}

fn mismatch(case: &str, base: &Evidence, evidence: &Evidence, attempt: i32, message: &str) -> Finding {
    let identity = message.split('`').nth(1);
    let named =
        |evidence: &Evidence| evidence.effects.iter().find(|it| Some(it.identity.as_str()) == identity).cloned();
    let effect = named(evidence).or_else(|| named(base));
    let by_order = message.contains("give each effect a name") || effect.as_ref().is_some_and(is_positional);
    let several = |slot: &str| base.effects.iter().filter(|it| it.slot() == slot).count() > 1;
    let crowded = effect.as_ref().is_none_or(|effect| several(&effect.slot()));
    let (code, words) = if by_order && crowded {
        (Code::UnnamedInOneSlot, "was met by another request in its place")
    } else {
        (Code::RequestChanged, "was called with another request than the one that it was claimed with")
    };
    let what = format!("{} {words} (attempt {attempt})", identity.unwrap_or("a call"));
    Finding::new(code, case, what).at(effect.as_ref())
}

/// Several sends of one effect in one attempt: the host sends once, so the body asked again.
fn loops(case: &str, evidence: &Evidence) -> Vec<Finding> {
    let sent = |effect: &Effect, attempt: &Attempt| {
        let sends = evidence.sends.iter().filter(|send| send.effect == effect.id && send.attempt == attempt.number);
        sends.count()
    };
    let repeated = evidence.effects.iter().filter_map(|effect| {
        let most = evidence.attempts.iter().map(|attempt| sent(effect, attempt)).max().unwrap_or_default();
        (most > 1).then(|| {
            let what = format!("the body sent it {most} times in one attempt");
            Finding::new(Code::RetryLoop, case, what).at(Some(effect))
        })
    });
    repeated.collect()
}

fn sizes(case: &str, base: &Evidence, input: &str) -> Vec<Finding> {
    let (host, gateway) = (HostConfig::default(), GatewayConfig::default());
    let near = |what: &str, size: usize, limit: usize| {
        (size.saturating_mul(100) >= limit.saturating_mul(NEAR)).then(|| {
            let what = format!("{what} has {size} bytes; the limit is {limit}");
            Finding::new(Code::PayloadTooLarge, case, what)
        })
    };
    let output = base.output.as_ref().and_then(|output| near("the output", output.len(), host.max_output_bytes));
    let mut found: Vec<Finding> =
        output.into_iter().chain(near("the input", input.len(), host.max_call_bytes)).collect();
    for booked in base.arrived.iter().filter(|booked| !booked.is_read()) {
        let effect = base.effects.iter().find(|effect| effect.slot() == booked.slot());
        let large = near("the body of a request", booked.body.len(), gateway.max_request_bytes);
        found.extend(large.map(|finding| finding.at(effect)));
    }
    let codes = base.attempts.iter().filter_map(|attempt| attempt.failure.as_ref());
    for failure in codes.filter(|failure| is_too_large(failure)) {
        let message = failure["message"].as_str().unwrap_or_default();
        found.push(Finding::new(Code::PayloadTooLarge, case, format!("the run failed: {message}")));
    }
    found
}

fn is_too_large(failure: &Value) -> bool {
    let code = failure["code"].as_str().unwrap_or_default();
    let message = failure["message"].as_str().unwrap_or_default();
    TOO_LARGE.contains(&code) || code == "invalid-request" && message.contains("bytes")
}

/// With nothing done to it the run failed, and has changed the world all the same.
fn failed(case: &str, base: &Evidence) -> Option<Finding> {
    let failure = base.failure.as_ref().filter(|_| base.state == "failed" && !base.applied.is_empty())?;
    let (code, message) = (failure["code"].as_str().unwrap_or("?"), failure["message"].as_str().unwrap_or_default());
    let what = format!("{} changes were made, and then the run failed with {code}: {message}", base.applied.len());
    Some(Finding::new(Code::Partial, case, what).at(base.effects.last()))
}

/// A final refusal of the provider after which the body asked for another attempt.
pub fn rejection(case: &str, evidence: &Evidence, status: i32) -> Option<Finding> {
    let refused = evidence.sends.iter().find(|send| send.status == Some(status))?;
    let attempt = evidence.attempts.iter().find(|attempt| attempt.number == refused.attempt)?;
    let failure = attempt.failure.as_ref()?;
    (failure["kind"] == "retryable").then(|| {
        let code = failure["code"].as_str().unwrap_or("?");
        let what =
            format!("the provider refused it for good with {status}, and the body asked for another attempt ({code})");
        Finding::new(Code::RejectionRetried, case, what).at(evidence.effect(&refused.effect))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::evidence::Send;
    use super::*;

    fn effect(identity: &str) -> Effect {
        Effect {
            id: identity.to_owned(),
            keying: "activity-recipe".to_owned(),
            identity: identity.to_owned(),
            state: "completed".to_owned(),
            provider: "stripe".to_owned(),
            method: "POST".to_owned(),
            url: "https://one.test/a".to_owned(),
            digest: Vec::new(),
            key: None,
            status: Some(201),
            doubled: false,
        }
    }

    fn send(effect: &str, attempt: i32, status: i32) -> Send {
        let (effect, result, started_at) = (effect.to_owned(), "answered".to_owned(), chrono::Utc::now());
        Send { effect, attempt, result, status: Some(status), started_at }
    }

    fn attempt(number: i32, failure: Option<Value>) -> Attempt {
        Attempt { number, outcome: "failed".to_owned(), failure }
    }

    #[test]
    fn two_effects_that_only_their_order_tells_apart_are_found() {
        let slot = "POST https://one.test/a";
        let effects = vec![effect(&format!("{slot} #0")), effect(&format!("{slot} #1"))];
        let two = Evidence { effects, ..Evidence::default() };
        assert_eq!(at_first("c", &two, "{}")[0].code, Code::UnnamedInOneSlot);
        let named = Evidence { effects: vec![effect("a"), effect("b")], ..Evidence::default() };
        assert!(at_first("c", &named, "{}").is_empty());
    }

    #[test]
    fn a_loop_is_several_sends_in_one_attempt() {
        let attempts = vec![attempt(1, None), attempt(2, None)];
        let effects = vec![effect("a")];
        let mut evidence = Evidence { attempts, effects, ..Evidence::default() };
        evidence.sends = vec![send("a", 1, 500), send("a", 2, 201)];
        assert!(at_any("c", &evidence, &evidence).is_empty());
        evidence.sends.push(send("a", 2, 201));
        assert_eq!(at_any("c", &evidence, &evidence)[0].code, Code::RetryLoop);
    }

    #[test]
    fn a_changed_request_is_found_by_what_the_host_said() {
        let message = "effect mismatch: the effect `a` was claimed with another request; make the same call";
        let attempts = vec![attempt(2, Some(json!({ "code": "own-code", "message": message })))];
        let evidence = Evidence { attempts, effects: vec![effect("a")], ..Evidence::default() };
        assert_eq!(at_any("c", &evidence, &evidence)[0].code, Code::RequestChanged);
    }

    #[test]
    fn a_refusal_is_retried_where_the_failure_says_so() {
        let mut evidence =
            Evidence { sends: vec![send("a", 1, 402)], effects: vec![effect("a")], ..Evidence::default() };
        evidence.attempts = vec![attempt(1, Some(json!({ "code": "x", "kind": "retryable" })))];
        assert!(rejection("c", &evidence, 402).is_some() && rejection("c", &evidence, 422).is_none());
        evidence.attempts = vec![attempt(1, Some(json!({ "code": "x", "kind": "permanent" })))];
        assert!(rejection("c", &evidence, 402).is_none());
    }

    #[test]
    fn what_comes_near_to_a_limit_is_told() {
        let output = Some("x".repeat(HostConfig::default().max_output_bytes * 9 / 10));
        let evidence = Evidence { output, ..Evidence::default() };
        assert_eq!(at_first("c", &evidence, "{}")[0].code, Code::PayloadTooLarge);
    }
}
