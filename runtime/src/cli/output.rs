//! What a command prints: text for people or JSON for programs, on standard output. It must never let text from the network
//! steer a terminal: control characters are shown, not sent.

use std::io::Write;

use serde_json::Value;

/// Which of the two is wanted.
#[derive(Debug)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints the value for programs, or what `text` makes of it for people.
    pub(super) fn show(&self, value: &Value, text: impl FnOnce(&Value) -> String) -> anyhow::Result<()> {
        if self.json { line(&value.to_string()) } else { line(&text(value)) }
    }

    /// Says to people what is going on, on standard error; programs are not told.
    pub(super) fn note(&self, text: &str) {
        if !self.json {
            // Progress that cannot be shown is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }
}

/// One line on standard output, written at once.
pub(super) fn line(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n'))?;
    Ok(out.flush()?)
}

/// The member at a path such as `/waiting_for/effect_id` as plain text; empty when it is absent or null.
pub(super) fn text(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => plain(text),
        Some(other) => plain(&other.to_string()),
    }
}

/// A time of the API to the second: `2026-03-01 09:30:00Z`; empty when it is absent.
pub(super) fn time(value: &Value, pointer: &str) -> String {
    let text = text(value, pointer);
    match chrono::DateTime::parse_from_rfc3339(&text) {
        Ok(time) => time.to_utc().format("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => text,
    }
}

/// A time of the API to the minute, without its year: `03-01 09:30`, in UTC.
pub(super) fn short_time(value: &Value, pointer: &str) -> String {
    // The year is cut off at the front, the seconds at the end.
    time(value, pointer).chars().skip(5).take(11).collect()
}

/// The seconds between `started_at` and `ended_at`; empty as long as it goes on.
pub(super) fn took(value: &Value) -> String {
    let at = |name: &str| chrono::DateTime::parse_from_rfc3339(value.get(name)?.as_str()?).ok();
    match (at("started_at"), at("ended_at")) {
        (Some(started), Some(ended)) => format!("{:.2} s", (ended - started).as_seconds_f64()),
        _ => String::new(),
    }
}

/// The items of a list.
pub(super) fn items(list: &Value) -> &[Value] {
    list.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// JSON over several lines, indented as a block.
pub(super) fn block(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    pretty.lines().map(|line| format!("  {}\n", plain(line))).collect()
}

/// The text without what would steer a terminal; line ends and tabs stay.
pub(super) fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_from_the_network_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\r\u{9b}c\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\n");
    }

    #[test]
    fn members_are_shown_plainly() {
        let value = json!({ "a": { "b": "x" }, "n": 3, "none": null });
        let shown = ["/a/b", "/n", "/none", "/absent"].map(|pointer| text(&value, pointer));
        assert_eq!(shown, ["x", "3", "", ""]);
    }

    #[test]
    fn times_are_shown_in_utc_to_the_second() {
        let value = json!({ "at": "2026-03-01T10:30:00.123456+01:00" });
        assert_eq!(time(&value, "/at"), "2026-03-01 09:30:00Z");
        assert_eq!(short_time(&value, "/at"), "03-01 09:30");
    }

    #[test]
    fn how_long_something_took_is_known_once_it_has_ended() {
        let mut value = json!({ "started_at": "2026-03-01T10:30:00.1Z", "ended_at": null });
        assert_eq!(took(&value), "");
        value["ended_at"] = json!("2026-03-01T10:31:01.35Z");
        assert_eq!(took(&value), "61.25 s");
    }
}
