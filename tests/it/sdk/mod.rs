//! The conformance list: the samples of every SDK do the same, to the byte of what they send, in the ledger and in the provider's
//! books, also when their worker is lost at any point. A language is here when its components were built (`cargo xtask test`); one
//! that was not is skipped with a line that says so, one that was announced and is missing fails.

mod cases;
mod crash;
mod docs;
mod failures;
mod keys;
mod limits;
mod samples;
mod stage;
mod told;
mod waits;

use crate::harness::sdk_component;
use stage::Samples;

/// What is not the same in every language, and why.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    pub name: &'static str,
    /// How a stack without end ends: where the language has a limit of its own, by an exception that nobody catches.
    pub stack: &'static [&'static str],
    /// The component whose `plain-http` uses an HTTP client of the toolchain over `wasi:http`, if there is one.
    pub plain_http: Option<&'static str>,
    /// How many levels its logger has.
    pub levels: usize,
}

const LANGUAGES: [Language; 5] = [
    Language { name: "rust", stack: &["stack-overflow"], plain_http: Some("samples"), levels: 5 },
    Language { name: "python", stack: &["stack-overflow"], plain_http: Some("samples"), levels: 5 },
    Language { name: "js", stack: &["stack-overflow", "trap"], plain_http: Some("fetch"), levels: 4 },
    Language { name: "go", stack: &["stack-overflow", "trap"], plain_http: Some("samples"), levels: 5 },
    Language { name: "c", stack: &["stack-overflow"], plain_http: None, levels: 4 },
];

macro_rules! conforms {
    ($($language:ident)*) => {
        $(
            mod $language {
                use super::*;

                #[tokio::test(flavor = "multi_thread")]
                async fn keys_are_those_that_the_host_derives() {
                    check(stringify!($language), keys::are_the_hosts).await;
                }

                /// F-J06: with the limits that a node has when nobody sets any.
                #[tokio::test(flavor = "multi_thread")]
                async fn each_sample_sends_what_it_should_and_the_ledger_says_so() {
                    check(stringify!($language), cases::undisturbed).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn a_rejection_is_a_value_and_is_replayed() {
                    check(stringify!($language), cases::rejected).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn a_file_is_written_whole_from_what_was_read() {
                    check(stringify!($language), told::file).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn a_message_is_published_once() {
                    check(stringify!($language), told::message).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn what_is_logged_and_printed_is_in_the_runs_log() {
                    check(stringify!($language), told::logged).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn a_wait_for_a_signal_suspends_the_run_and_goes_on() {
                    check(stringify!($language), waits::signal).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn a_checkpoint_is_where_the_next_attempt_begins() {
                    check(stringify!($language), waits::checkpoint).await;
                }

                /// F-J01, F-J02.
                #[tokio::test(flavor = "multi_thread")]
                async fn each_way_to_end_has_a_code_of_its_own() {
                    check(stringify!($language), failures::ends).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn a_failure_is_as_the_activity_says() {
                    check(stringify!($language), failures::told).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn a_status_that_is_an_error_has_its_code_and_kind() {
                    check(stringify!($language), failures::statuses).await;
                }

                /// F-J04.
                #[tokio::test(flavor = "multi_thread")]
                async fn members_of_an_input_may_come_in_any_order_and_wrong_ones_are_named() {
                    check(stringify!($language), failures::inputs).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "does not hold yet"]
                async fn an_unmodified_client_is_claimed_keyed_and_replayed() {
                    check(stringify!($language), crash::plain_http).await;
                }

                /// F-B01, F-B02.
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn with_keys_nothing_is_doubled_whenever_the_worker_is_lost() {
                    check(stringify!($language), crash::keyed).await;
                }

                /// F-B01, F-B02.
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn without_keys_the_run_waits_where_nobody_can_know() {
                    check(stringify!($language), crash::keyless).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "does not hold yet"]
                async fn files_and_messages_are_made_once_whenever_the_worker_is_lost() {
                    check(stringify!($language), crash::told).await;
                }

                /// F-J08.
                #[tokio::test(flavor = "multi_thread")]
                async fn the_first_example_does_on_the_wire_what_it_says() {
                    docs::first_examples(stringify!($language)).await;
                }
            }
        )*

        const LISTED: &[&str] = &[$(stringify!($language)),*];
    };
}

conforms! { rust python js go c }

#[test]
fn every_language_of_the_table_is_listed() {
    assert_eq!(LANGUAGES.map(|language| language.name), LISTED);
}

/// Runs a part of the list against the samples of a language, if they are there.
async fn check(name: &str, part: impl AsyncFnOnce(Samples)) {
    let language = LANGUAGES.into_iter().find(|language| language.name == name).unwrap();
    if let Some(component) = sdk_component("samples", name) {
        part(Samples { language, component }).await;
    }
}
