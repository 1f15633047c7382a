//! What callers of the API send beside JSON: keys, cursors, names, ids and tokens.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use uuid::Uuid;

use super::parts::{headers, is_name, pieces, text};
use crate::api::events::cursor as events;
use crate::api::openwop::ids;
use crate::api::request_key::{self as key, Handling};
use crate::api::{name, page};
use crate::key::{EffectId, check_name};
use crate::registry::check_name as check_activity;
use crate::token as tokens;

/// Lines of headers. A key that is taken is one by the documented grammar, and is what was sent; whoever is strict takes
/// nothing that others do not.
pub fn request_key(input: &[u8]) {
    let headers = headers(input);
    if key::handling(&headers) == Handling::Lenient {
        let said =
            |value: &http::HeaderValue| value.as_bytes().to_ascii_lowercase().windows(7).any(|w| w == b"lenient");
        assert!(headers.get_all("prefer").iter().any(said), "lenient without a word of it");
    }
    let strict = taken(&headers, Handling::Strict);
    let lenient = taken(&headers, Handling::Lenient);
    if let Some(Some(key)) = &strict {
        assert!(key.len() >= 22 && is_name(key, 128, ".-_~"), "no strict key");
        assert_eq!(lenient.as_ref(), Some(&Some(key.clone())), "strict, but not lenient");
    }
    if let Some(Some(key)) = &lenient {
        assert!((1..=255).contains(&key.len()) && key.bytes().all(|c| (0x21..=0x7e).contains(&c)), "no lenient key");
        let sent = headers.get("idempotency-key").map(http::HeaderValue::as_bytes);
        let quoted = format!("\"{key}\"");
        assert!([Some(key.as_bytes()), Some(quoted.as_bytes())].contains(&sent), "not the key that was sent");
    }
    let none = [&strict, &lenient].map(|taken| matches!(taken, Some(None)));
    assert_eq!(none, [!headers.contains_key("idempotency-key"); 2], "a key that is there is never no key");
}

fn taken(headers: &HeaderMap, handling: Handling) -> Option<Option<String>> {
    key::of(headers, handling).ok()
}

/// A cursor or an event's id. One that is taken is written again as it was, and is one of a single form.
pub fn cursor(input: &[u8]) {
    let text = text(input);
    let after = Some(text);
    let forms = [
        page::place::<Uuid>(after).ok().flatten().map(|(time, id)| same_time(time, page::cursor(time, &id))),
        page::place::<Vec<u8>>(after).ok().flatten().map(|(time, id)| same_time(time, page::cursor(time, &id))),
        page::name_place(after).ok().flatten().map(|name| page::name_cursor(&name)),
        page::number_place::<i64>(after).ok().flatten().map(page::number_cursor),
        page::number_and_name_place(after).ok().flatten().map(|(at, name)| page::number_and_name_cursor(at, &name)),
    ];
    for again in forms.iter().flatten() {
        assert_eq!(again, text, "a cursor is written otherwise than it was read");
    }
    assert!(forms.iter().flatten().count() <= 1, "a cursor of two forms");
    if let Ok(place) = events::place(text) {
        assert!(place.turn >= -1 && place.event_id >= 0, "a place that no event has");
        assert_eq!(events::of_tenant(place), text);
    }
    if let Ok(position) = events::position(text) {
        assert!(position.sequence >= 0, "less than nothing was read");
        assert!(events::position(&events::of_run(position)).is_ok_and(|again| again == position));
    }
}

/// PostgreSQL must be able to hold it.
fn same_time(time: DateTime<Utc>, cursor: String) -> String {
    assert!(time.timestamp_micros() >= 0, "a time before all rows");
    cursor
}

/// Names and ids. Each grammar is as documented, and the registry and the API agree on what an activity's name is.
pub fn names(input: &[u8]) {
    let text = text(input);
    assert_eq!(name::check("x", text).is_ok(), is_name(text, 128, "._-"));
    assert_eq!(check_activity(text).is_ok(), is_name(text, 128, "._-"));
    assert_eq!(name::check_tenant("x", text).is_ok(), name::is_tenant(text));
    if name::is_tenant(text) {
        assert!(is_name(text, 63, "-") && !text.starts_with('-') && text.to_lowercase() == text, "no tenant's name");
    }
    if name::check_label("x", text).is_ok() {
        assert!(text.len() <= 128 * 4 && !text.contains(['\0', '\n', '\r', '\u{7f}']), "no label");
    }
    assert_eq!(check_name(text).is_ok(), (1..=256).contains(&text.len()));
    assert!(name::uuid(text).is_none_or(|id| id.hyphenated().to_string() == text), "a second spelling of an id");
    assert!(name::hash(text).is_none_or(|hash| name::hex(&hash) == text), "a second spelling of a digest");
    assert!(EffectId::from_str(text).is_ok_and(|id| id.to_string() == text) == name::hash(text).is_some());
}

/// A token's text. One that is taken is put together again from its parts.
pub fn token(input: &[u8]) {
    let text = text(input);
    let Some(parsed) = tokens::parse(text) else { return };
    let again = format!("ddb.{}.{}.{}", parsed.tenant, parsed.token_id.simple(), parsed.secret);
    assert_eq!(again, text);
    assert_eq!(parsed.secret.len(), 43);
    // A tenant that repeats it has shown it itself.
    let shown = format!("{parsed:?}").contains(parsed.secret);
    assert!(!shown || parsed.tenant.contains(parsed.secret), "a token's secret is shown");
}

/// A path's segment and a tenant. A run that is named leads back to the segment's meaning, and nothing of another tenant is.
pub fn openwop_id(input: &[u8]) {
    let [segment, tenant] = pieces(input).map(text);
    let projected = ids::project(segment);
    assert!(is_name(&projected, usize::MAX, "._-~") || segment.is_empty(), "a projection is one segment");
    assert!(ids::unproject(&projected).is_ok_and(|id| id == segment), "a projection leads back");
    if let Ok(id) = ids::unproject(segment) {
        assert!(ids::unproject(&ids::project(&id)).is_ok_and(|again| again == id));
    }
    if let Ok(run) = ids::run(segment, tenant) {
        let bound = ids::bound(tenant, run);
        assert!(ids::unproject(segment).is_ok_and(|id| id == bound), "a run of another id");
        assert_eq!(ids::path(tenant, run), format!("/runs/{}", ids::project(&bound)));
        assert!(ids::run(&ids::project(&bound), tenant).is_ok_and(|again| again == run));
    }
}
