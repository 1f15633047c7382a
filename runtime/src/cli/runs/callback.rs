//! `deedbox runs callback`: what became of the message that tells of a run's end, and sending it once more.

use serde_json::{Value, json};

use crate::cli::client::Client;
use crate::cli::output::{Output, text, time};
use crate::cli::table::pairs;

pub(super) async fn callback(client: &Client, output: &Output, run: &str, redeliver: bool) -> anyhow::Result<()> {
    let path = ["v1", "runs", run, "callback"];
    let callback = match redeliver {
        true => client.post(&[&path[..], &["redeliver"]].concat(), &json!({})).await?,
        false => client.get(&path, &[]).await?,
    };
    output.show(&callback, show)
}

fn show(callback: &Value) -> String {
    pairs(&[
        ("run", text(callback, "/run_id")),
        ("url", text(callback, "/url")),
        ("secret", text(callback, "/secret")),
        ("state", text(callback, "/state")),
        ("message", text(callback, "/webhook_id")),
        ("tries", text(callback, "/tries")),
        ("next try", time(callback, "/next_at")),
        ("last status", text(callback, "/last_status")),
        ("last error", text(callback, "/last_error")),
        ("delivered", time(callback, "/delivered_at")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_shown_with_what_it_has() {
        let callback = json!({ "run_id": "r", "url": "https://hooks.example.com/", "secret": "webhook", "state": "due",
            "webhook_id": "msg_1", "tries": 2, "next_at": "2026-03-01T09:30:00.5Z", "last_status": 500,
            "last_error": "answered 500\u{1b}", "delivered_at": null });
        let shown = show(&callback);
        for part in ["msg_1", "2026-03-01 09:30:00Z", "answered 500\u{fffd}"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("delivered"), "{shown}");
    }
}
