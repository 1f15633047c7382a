//! The routes under `/_control/` by which a test scripts the provider and waits for it. They must never be booked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::Deserialize;
use serde_json::json;

use crate::answer::Answer;
use crate::behaviour::{Behaviour, FOREIGN};
use crate::request::Request;
use crate::state::{Counts, State};

const PREFIX: &str = "/_control/";
/// The longest a wait may take, whatever the client asks for.
const MAX_WAIT_MS: u64 = 120_000;

const ROUTES: &str =
    "no such control route; there are POST script, release, use_key and forget, and GET wait, books and world";

/// The body of `use_key`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsedKey {
    key: String,
    /// The object that the other request made.
    #[serde(default = "foreign")]
    id: String,
}

fn foreign() -> String {
    FOREIGN.to_owned()
}

pub(crate) fn is_control(path: &str) -> bool {
    path.starts_with(PREFIX)
}

pub(crate) async fn run(state: &Arc<State>, request: &Request) -> Answer {
    match (&request.method, request.path.trim_start_matches(PREFIX)) {
        (&Method::POST, "script") => script(state, request),
        (&Method::POST, "release") => {
            state.release();
            Answer::json(200, &json!({}))
        }
        (&Method::GET, "wait") => wait(state, request).await,
        (&Method::GET, "books") => {
            Answer::json(200, &json!({"arrivals": state.arrivals(), "applied": state.applied()}))
        }
        (&Method::GET, "world") => Answer::json(200, &state.world()),
        (&Method::POST, "forget") => written(state, State::forget_all).await,
        (&Method::POST, "use_key") => match serde_json::from_slice::<UsedKey>(&request.body) {
            Ok(used) => written(state, move |state| state.use_key(&used.key, &used.id)).await,
            Err(error) => refusal(400, &format!("send {{\"key\": .., \"id\": ..}}, the id if you like: {error}")),
        },
        _ => refusal(404, ROUTES),
    }
}

fn script(state: &State, request: &Request) -> Answer {
    match serde_json::from_slice::<Vec<Behaviour>>(&request.body) {
        Ok(behaviours) if behaviours.iter().all(Behaviour::is_possible) => {
            state.script(behaviours);
            Answer::json(200, &json!({}))
        }
        Ok(_) => refusal(400, "a status must be 200 to 599"),
        Err(error) => refusal(400, &format!("send a JSON array of behaviours: {error}")),
    }
}

/// 200 once both counts are reached, 408 when the time is over first; either way with the counts.
async fn wait(state: &State, request: &Request) -> Answer {
    let mut wanted = Counts { arrivals: 0, applied: 0 };
    let mut ms = 0;
    for (name, value) in url::form_urlencoded::parse(request.query.as_bytes()) {
        let Ok(number) = value.parse() else {
            return refusal(400, "arrivals, applied and ms are whole numbers");
        };
        match name.as_ref() {
            "arrivals" => wanted.arrivals = number,
            "applied" => wanted.applied = number,
            "ms" => ms = number,
            _ => return refusal(400, "wait knows arrivals, applied and ms"),
        }
    }
    let mut counts = state.watch_counts();
    let reached = counts.wait_for(|now| now.arrivals >= wanted.arrivals && now.applied >= wanted.applied);
    let in_time = tokio::time::timeout(Duration::from_millis(ms.min(MAX_WAIT_MS)), reached).await.is_ok();
    let now = *state.watch_counts().borrow();
    Answer::json(if in_time { 200 } else { 408 }, &json!({"arrivals": now.arrivals, "applied": now.applied}))
}

/// 200 once the disk has it.
async fn written(state: &Arc<State>, work: impl FnOnce(&State) -> io::Result<()> + Send + 'static) -> Answer {
    let state = Arc::clone(state);
    match tokio::task::spawn_blocking(move || work(&state)).await.map_err(io::Error::other).flatten() {
        Ok(()) => Answer::json(200, &json!({})),
        Err(error) => refusal(500, &error.to_string()),
    }
}

fn refusal(status: u16, words: &str) -> Answer {
    Answer::json(status, &json!({"error": words}))
}
