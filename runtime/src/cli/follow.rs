//! Follows events over connections that may break: it goes on behind the last event that it has seen, and gives up when no
//! server answers for a while. How an event is told to people is here too.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::Client;
use super::failure::Failure;
use super::output::{Output, text, time};
use super::sse::Reader;

/// The first and the longest pause before a lost connection is opened again, and how long that goes on in vain.
const MIN_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);
const GIVE_UP: Duration = Duration::from_secs(60);

/// Answers after which it is worth asking again.
const PASSING: [&str; 3] = ["runner_unavailable", "internal_error", "rate_limited"];

#[derive(Debug)]
pub(super) struct Follower {
    reader: Reader,
    /// When the last connection was lost that anything came over; none: there was none yet.
    lost: Option<Instant>,
    pause: Duration,
}

impl Follower {
    pub(super) fn new() -> Self {
        Self { reader: Reader::default(), lost: None, pause: Duration::ZERO }
    }

    /// Gives each event to `seen`, until the server says that nothing will follow.
    pub(super) async fn run(
        &mut self,
        client: &Client,
        output: &Output,
        path: &[&str],
        query: &[(&str, String)],
        mut seen: impl FnMut(&Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            match client.follow(path, query, self.reader.last_seen()).await {
                Ok(None) => return Ok(()),
                Ok(Some(mut incoming)) => {
                    self.reader.reconnect();
                    let mut heard = false;
                    while let Some(piece) = incoming.piece().await {
                        heard = true;
                        for data in self.reader.read(&piece) {
                            self.pause = Duration::ZERO;
                            seen(&serde_json::from_str(&data)?)?;
                        }
                    }
                    match heard {
                        true => self.lost = Some(Instant::now()),
                        false => self.put_up_with(nothing_came(), output)?,
                    }
                }
                Err(error) => self.put_up_with(error, output)?,
            }
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).clamp(MIN_PAUSE, MAX_PAUSE);
        }
    }

    /// An error that will not pass, or that has not passed for too long, is the end.
    fn put_up_with(&self, error: anyhow::Error, output: &Output) -> anyhow::Result<()> {
        let Some(since) = self.lost.filter(|_| may_pass(&error)) else { return Err(error) };
        if since.elapsed() < GIVE_UP {
            output.note(&format!("the connection is lost, and is tried again: {error}"));
            return Ok(());
        }
        let seconds = GIVE_UP.as_secs();
        Err(Failure::Unreachable(format!("nothing was heard of the server for {seconds} s; the runs go on: {error}"))
            .into())
    }
}

fn nothing_came() -> anyhow::Error {
    Failure::Unreachable("the server ended the stream without a word".to_owned()).into()
}

fn may_pass(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Unreachable(_)) => true,
        Some(Failure::Refused { code, .. }) => PASSING.contains(&code.as_str()),
        _ => false,
    }
}

/// When it was, what it was, and what there is to it.
pub(super) fn line(event: &Value) -> String {
    let said = format!("{}  {:<15}  {}", time(event, "/at"), text(event, "/kind"), words(event));
    said.trim_end().to_owned()
}

fn words(event: &Value) -> String {
    let said = |words: &str, value: String| if value.is_empty() { value } else { format!("{words}{value}") };
    let waits = if text(event, "/kind") == "run.waiting" { "waits for " } else { "" };
    let parts = [
        said("attempt ", text(event, "/data/attempt")),
        text(event, "/data/code"),
        said(&format!("{waits}effect "), text(event, "/data/effect_id")),
        said("at ", text(event, "/data/provider")),
        said("now ", text(event, "/data/state")),
        said(&format!("{waits}signal "), text(event, "/data/signal")),
        said("signal ", text(event, "/data/name")),
        said("number ", text(event, "/data/sequence")),
        said("due ", time(event, "/data/due_at")),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(kind: &str, data: Value) -> String {
        line(&json!({ "kind": kind, "at": "2026-03-01T09:30:00.5Z", "data": data }))
    }

    #[test]
    fn an_event_is_told_in_one_line() {
        for (kind, data, expected) in [
            ("run.queued", json!({}), "run.queued"),
            ("run.started", json!({ "attempt": 2 }), "run.started      attempt 2"),
            ("run.failed", json!({ "code": "no\u{1b}" }), "run.failed       no\u{fffd}"),
            ("run.waiting", json!({ "signal": "paid" }), "run.waiting      waits for signal paid"),
            ("run.waiting", json!({ "due_at": "2026-03-01T10:00:00Z" }), "run.waiting      due 2026-03-01 10:00:00Z"),
            ("signal.received", json!({ "name": "paid", "sequence": 3 }), "signal.received  signal paid, number 3"),
            (
                "effect.resolved",
                json!({ "effect_id": "ab", "provider": "stripe", "state": "completed" }),
                "effect.resolved  effect ab, at stripe, now completed",
            ),
        ] {
            assert_eq!(told(kind, data), format!("2026-03-01 09:30:00Z  {expected}"));
        }
    }

    #[test]
    fn only_a_server_that_was_there_is_waited_for() {
        let output = Output::new(true);
        let unreachable = || anyhow::Error::new(Failure::Unreachable("gone".to_owned()));
        let refused = |code: &str| {
            let (code, message) = (code.to_owned(), "no".to_owned());
            anyhow::Error::new(Failure::Refused { code, message, details: Value::Null })
        };
        let mut follower = Follower::new();
        assert!(follower.put_up_with(unreachable(), &output).is_err(), "it never was there");
        follower.lost = Some(Instant::now());
        assert!(follower.put_up_with(unreachable(), &output).is_ok());
        assert!(follower.put_up_with(refused("runner_unavailable"), &output).is_ok());
        assert!(follower.put_up_with(refused("not_found"), &output).is_err());
        follower.lost = Instant::now().checked_sub(GIVE_UP);
        let end = follower.put_up_with(unreachable(), &output).unwrap_err();
        assert!(matches!(end.downcast_ref::<Failure>(), Some(Failure::Unreachable(_))), "{end}");
    }
}
