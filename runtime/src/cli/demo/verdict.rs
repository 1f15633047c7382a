//! How the story ended, by the provider's books and by the ledger, which have to agree. What the run says about itself is not enough.

use serde_json::Value;

use super::super::effects;
use super::super::output::{items, text, time};
use super::super::table::Table;

/// One attempt was killed, one completed.
const SENDS: usize = 2;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub sends: usize,
    pub wire_key: String,
}

/// One charge in the books, two requests under one key, one completed effect with that key and two sends; anything else is an
/// error that lists what is otherwise.
pub(super) fn judge(run: &Value, books: &Value, effects: &Value) -> anyhow::Result<Verdict> {
    let (arrivals, applied) = (list(books, "arrivals"), list(books, "applied"));
    let effect = items(effects).first().unwrap_or(&Value::Null);
    let sends = list(effect, "sends");
    let wire_key = text(effect, "/wire_key");
    let charge = text(run, "/output/charge_id");
    let keys = |rows: &[Value]| rows.iter().all(|row| text(row, "/key") == wire_key);
    let attempts: Vec<String> = sends.iter().map(|send| text(send, "/attempt")).collect();
    let rules = [
        (text(run, "/state") == "completed" && !charge.is_empty(), "the run did not complete with a charge"),
        (applied.len() == 1, "the provider did not apply exactly one charge"),
        (arrivals.len() == SENDS, "the provider did not receive exactly two requests"),
        (
            !wire_key.is_empty() && keys(arrivals) && keys(applied),
            "the provider did not see the ledger's wire key on every request",
        ),
        (items(effects).len() == 1, "the ledger does not hold exactly one effect"),
        (
            text(effect, "/state") == "completed" && effect["doubled"] != Value::Bool(true),
            "the effect is not completed once",
        ),
        (
            sends.len() == SENDS && attempts.first() != attempts.last(),
            "the ledger does not hold two sends of two attempts",
        ),
    ];
    let broken: Vec<&str> = rules.iter().filter(|(holds, _)| !holds).map(|(_, words)| *words).collect();
    if broken.is_empty() {
        return Ok(Verdict { sends: sends.len(), wire_key });
    }
    Err(anyhow::anyhow!("{}\nthe run: {run}\nthe books: {books}\nthe ledger: {effects}", broken.join("\n")))
}

/// Both sides for people.
pub(super) fn tables(books: &Value, effects: &Value) -> String {
    let mut arrived = Table::new(&["request", "at", "idempotency key"]);
    for arrival in list(books, "arrivals") {
        arrived.row([text(arrival, "/number"), time(arrival, "/at"), text(arrival, "/key")]);
    }
    let mut applied = Table::new(&["charge", "at", "idempotency key", "body…"]);
    for entry in list(books, "applied") {
        applied.row([text(entry, "/number"), time(entry, "/at"), text(entry, "/key"), text(entry, "/body")]);
    }
    let ledger: Vec<String> = items(effects).iter().map(effects::show).collect();
    format!(
        "\nthe provider received\n{}\nthe provider applied\n{}\nthe ledger says\n{}",
        arrived.render("nothing\n"),
        applied.render("nothing\n"),
        ledger.join("\n")
    )
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> (Value, Value, Value) {
        let run = json!({ "state": "completed", "output": { "outcome": "charged", "charge_id": "ch_1" } });
        let books = json!({ "arrivals": [{ "key": "k" }, { "key": "k" }], "applied": [{ "key": "k" }] });
        let effects = json!({ "items": [{ "state": "completed", "wire_key": "k", "doubled": false,
            "sends": [{ "send": 1, "attempt": 1 }, { "send": 2, "attempt": 2 }] }] });
        (run, books, effects)
    }

    #[test]
    fn one_charge_under_one_key_is_the_only_good_end() {
        let (run, books, effects) = good();
        assert_eq!(judge(&run, &books, &effects).unwrap(), Verdict { sends: 2, wire_key: "k".to_owned() });
    }

    #[test]
    fn every_other_end_is_told() {
        type Change = fn(&mut Value, &mut Value, &mut Value);
        let changes: [(&str, Change); 8] = [
            ("did not complete", |run, _, _| run["state"] = json!("failed")),
            ("exactly one charge", |_, books, _| books["applied"] = json!([{ "key": "k" }, { "key": "k" }])),
            ("exactly two requests", |_, books, _| books["arrivals"] = json!([{ "key": "k" }])),
            ("wire key", |_, books, _| books["arrivals"][1]["key"] = json!("other")),
            ("exactly one effect", |_, _, effects| effects["items"] = json!([])),
            ("completed once", |_, _, effects| effects["items"][0]["doubled"] = json!(true)),
            ("completed once", |_, _, effects| effects["items"][0]["state"] = json!("escaped")),
            ("two attempts", |_, _, effects| effects["items"][0]["sends"][1]["attempt"] = json!(1)),
        ];
        for (words, change) in changes {
            let (mut run, mut books, mut effects) = good();
            change(&mut run, &mut books, &mut effects);
            let error = judge(&run, &books, &effects).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
