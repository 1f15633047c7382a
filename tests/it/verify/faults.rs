//! Each planted fault is found, by the cases that can show it.

use super::{FAULTY, verify};

macro_rules! faults {
    ($($name:ident ($activity:literal, $profile:literal, $only:literal) => $code:literal)*) => {
        $(
            /// R-D44.
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                found($activity, $profile, $only, $code).await;
            }
        )*
    };
}

faults! {
    the_attempt_in_a_name_doubles("attempt-in-name", "stripe", "crash") => "doubled"
    the_time_as_a_business_key_doubles("key-from-time", "stripe", "crash") => "doubled"
    a_name_that_counts_what_is_there_doubles("counted-at-provider", "stripe", "crash") => "doubled"
    the_time_in_an_address_doubles("time-in-path", "keyless", "crash") => "doubled"
    a_random_business_key_is_unstable("random-business-key", "stripe", "repeat") => "unstable-key"
    a_random_key_in_a_header_is_unstable("random-key-header", "stripe", "repeat") => "unstable-key"
    a_random_number_in_a_body_changes_the_request("random-in-body", "stripe", "repeat") => "request-changed"
    the_time_in_a_body_changes_the_request("clock-in-body", "stripe", "crash") => "request-changed"
    two_bodies_under_one_name_are_one_changed_request("two-bodies-one-name", "stripe", "crash") => "request-changed"
    effects_whose_order_changes_need_names("unnamed-shuffled", "stripe", "crash") => "unnamed-in-one-slot"
    effects_from_a_map_need_names("unordered-map", "stripe", "repeat") => "unnamed-in-one-slot"
    effects_under_way_at_once_need_names("unnamed-at-once", "stripe", "order") => "unnamed-in-one-slot"
    a_body_that_sends_again_is_a_loop("retry-loop", "stripe", "answers") => "retry-loop"
    a_look_before_an_act_takes_another_way("check-then-act", "stripe", "crash") => "output-changed"
    a_look_before_an_act_protects_nobody_without_keys("check-then-act", "keyless", "crash") => "output-changed"
    a_rejection_is_no_failure_to_try_again("rejected-as-retryable", "stripe", "answers") => "rejection-retried"
    a_panic_after_a_charge_leaves_it_standing("partial-then-panic", "stripe", "repeat") => "partial"
    progress_that_is_noted_too_early_loses("checkpoint-too-early", "stripe", "crash") => "lost"
    what_only_the_first_attempt_does_is_lost("only-first-attempt", "stripe", "crash") => "lost"
    an_answer_that_nobody_awaits_is_lost("fire-and-forget", "stripe", "answers") => "lost"
    a_status_that_nobody_reads_is_lost("unread-status", "stripe", "answers") => "lost"
    a_large_output_is_near_its_limit("too-large", "stripe", "repeat") => "payload-too-large"
    the_time_in_an_output_is_told("time-in-output", "stripe", "repeat") => "nondeterministic-output"
}

async fn found(activity: &str, profile: &str, only: &str, code: &str) {
    let told = verify(FAULTY, activity, profile, &["--only", only]).await;
    let finding = told.finding(code);
    assert!(finding["what"].as_str().is_some_and(|what| !what.is_empty()), "{finding}");
    assert!(finding["mend"].as_str().is_some_and(|mend| mend.ends_with('.')), "{finding}");
    let fails = told.codes().iter().any(|code| matches!(*code, "doubled" | "lost"));
    assert_eq!(told.code, Some(i32::from(fails)), "{:#}", told.report);
    if matches!(code, "doubled" | "lost") {
        assert_eq!(finding["severity"], "error");
    }
}

/// The bytes that differ are shown, and the effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_request_shows_where_it_differs() {
    let told = verify(FAULTY, "clock-in-body", "stripe", &["--only", "repeat"]).await;
    let finding = told.finding("request-changed");
    assert_eq!(finding["effect"]["identity"], "charge");
    let differ = &finding["differ"];
    let (one, other) = (differ["one"].as_str().unwrap(), differ["other"].as_str().unwrap());
    assert!(one.contains(r#""at":""#) && other.contains(r#""at":""#) && one != other, "{finding}");
}
