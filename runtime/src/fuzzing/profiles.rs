//! Profiles of providers, and what they make of a request: which operation it is, and where its key goes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use url::Url;

use super::parts::{headers, pieces, text};
use crate::gateway::provider::pattern::{HostPattern, PathPattern, text_fits};
use crate::gateway::provider::template::{self, Values};
use crate::gateway::provider::{Asked, Carrier, Operation, Parts, Profile, Profiles, Rate};
use crate::key::{EffectId, Key, wire_key};
use crate::policy::Origin;

/// A request as it would be sent.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Sent {
    /// None when it could not be sent, whatever its profile says.
    fn read(url: &[u8], lines: &[u8], body: &[u8]) -> Option<Self> {
        let url = Url::parse(text(url)).ok().filter(|url| Origin::of(url).is_ok())?;
        Some(Self { url, headers: headers(lines), body: Bytes::copy_from_slice(body) })
    }

    fn key(&self, carrier: &Carrier) -> Option<String> {
        carrier.read(&self.url, &self.headers, &self.body)
    }

    fn with(&self, carrier: &Carrier, key: &str) -> Option<Self> {
        self.edited(|parts| carrier.inject(parts, key))
    }

    fn stripped(&self, carrier: &Carrier) -> Option<Self> {
        self.edited(|parts| carrier.strip(parts))
    }

    fn edited(&self, edit: impl FnOnce(Parts<'_>) -> Result<(), String>) -> Option<Self> {
        let mut next = self.clone();
        edit(Parts { url: &mut next.url, headers: &mut next.headers, body: &mut next.body }).ok()?;
        Some(next)
    }
}

/// A carrier, a URL, headers and a body. A key that was put in is read back, and nothing is left of it when it is taken out.
pub fn carrier(input: &[u8]) {
    let [carrier, url, lines, body] = pieces(input);
    let Ok(carrier) = serde_json::from_slice::<Carrier>(carrier) else { return };
    let Some(sent) = Sent::read(url, lines, body).filter(|_| carrier.check().is_ok()) else { return };
    let _ = sent.key(&carrier);
    let (a, b) = (key_of(body).text(), key_of(url).text());
    let Some(with) = sent.with(&carrier, &a) else { return };
    assert_eq!(with.key(&carrier).as_ref(), Some(&a), "another key than was put in");
    assert_eq!(Origin::of(&with.url), Origin::of(&sent.url), "the key leads elsewhere");
    let again = with.with(&carrier, &b).and_then(|other| other.with(&carrier, &a));
    assert_eq!(again.as_ref(), Some(&with), "a key that is put in again changes the request");
    let stripped = with.stripped(&carrier);
    assert!(stripped.is_some(), "a key that cannot be taken out");
    assert_eq!(stripped.as_ref().and_then(|stripped| stripped.key(&carrier)), None, "a key is left");
    assert_eq!(
        sent.with(&carrier, &b).and_then(|other| other.stripped(&carrier)),
        stripped,
        "a trace of the key is left"
    );
    assert_eq!(sent.stripped(&carrier), stripped, "two keys make two requests");
}

fn key_of(bytes: &[u8]) -> Key {
    wire_key(&EffectId(*blake3::hash(bytes).as_bytes()))
}

/// A pattern, and what it is tried on. A pattern of hosts covers no more than its last two labels say.
pub fn pattern(input: &[u8]) {
    let [pattern, subject] = pieces(input).map(text);
    if let Ok(hosts) = HostPattern::try_from(pattern.to_owned()) {
        let last = |host: &str| host.rsplit('.').take(2).map(str::to_owned).collect::<Vec<_>>();
        if hosts.matched(subject).is_some() {
            let subject = subject.strip_suffix('.').unwrap_or(subject);
            assert_eq!(last(subject), last(pattern), "a pattern of all names");
            assert_eq!(subject.split('.').count(), pattern.split('.').count());
        }
        assert_eq!(hosts.as_str(), pattern);
    }
    if let Ok(paths) = PathPattern::try_from(pattern.to_owned())
        && let Some(captures) = paths.matched(subject)
    {
        assert!(captures.keys().all(|name| paths.capture_names().any(|own| own == name)));
        assert!(paths.capture_names().all(|name| captures.get(name).is_some_and(|value| !value.is_empty())));
        let segments = |path: &str| path.strip_prefix('/').unwrap_or(path).split('/').count();
        assert!(pattern.ends_with("**") || segments(pattern) == segments(subject), "a pattern of another depth");
    }
    if !pattern.contains('*') {
        assert_eq!(text_fits(pattern, subject), pattern == subject);
    }
    assert!(text_fits("*", subject) && text_fits(subject, subject) | subject.contains('*'));
}

/// A template, a URL, a body and a value. What is filled in stays what it is: one part of a URL, one JSON string.
pub fn template(input: &[u8]) {
    let [template, url, body, value] = pieces(input);
    let (template, value) = (text(template), text(value));
    let captures = BTreeMap::from([("name".to_owned(), value.to_owned())]);
    let url = Url::parse(text(url)).ok();
    let values = Values {
        key: Some(value),
        effect: Some("effect"),
        captures: Some(&captures),
        url: url.as_ref(),
        request: Some(body),
        answer: Some(body),
        first_sent: Some(sent_at()),
    };
    let all = [
        template::fill(template, &values),
        template::fill_url(template, &values),
        template::fill_json(template, &values),
    ];
    for filled in all.iter().flatten() {
        assert!(template.contains('{') || filled == template, "a template without placeholders changes");
    }
    if let Ok(kept) = template::fill(template, &Values::default()) {
        assert_eq!(kept, template, "what is not known yet is filled in");
    }
    let in_url = template::fill_url("{key}", &values).unwrap_or_default();
    assert!(in_url.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._~%".contains(&c)), "more than one part of a URL");
    assert_eq!(percent_decode_str(&in_url).decode_utf8().ok().as_deref(), Some(value));
    let in_json = template::fill_json("\"{key}\"", &values).unwrap_or_default();
    assert_eq!(serde_json::from_str::<String>(&in_json).ok().as_deref(), Some(value), "more than one JSON string");
    let marks = |text: &str| text.chars().filter(|c| "/?#&=@:".contains(*c)).collect::<String>();
    let bare = template::placeholders(template).iter().all(|name| marks(name).is_empty());
    if let Ok(filled) = &all[1]
        && bare
    {
        assert_eq!(marks(filled), marks(template), "a value adds to a URL");
    }
}

/// 2023-11-14T22:13:20Z.
fn sent_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap_or_default()
}

/// A profile's file, a URL, headers and a body. What is taken is read again alike, keeps to its bounds, puts keys where it
/// finds them, and asks where the effect was sent and nowhere else.
pub fn profile(input: &[u8]) {
    let [file, url, lines, body] = pieces(input);
    let Ok(profile) = Profile::parse("own.toml", text(file), shipped()) else { return };
    let again = Profile::parse("own.toml", &profile.text, None);
    let again = again.unwrap_or_else(|e| panic!("a profile is refused as it is kept: {e}"));
    assert_eq!(format!("{again:?}"), format!("{profile:?}"), "a profile is read otherwise again");
    let bounded = |Rate { per_second, burst }: &Rate| (0.001..=100_000.0).contains(per_second) && *burst >= 1;
    assert!(profile.rate.as_ref().is_none_or(bounded), "a rate without bounds");
    for host in &profile.hosts {
        assert!(
            host.as_str().rsplit('.').take(2).all(|label| !label.contains(['*', '{'])) && host.as_str().contains('.')
        );
    }
    let Some(sent) = Sent::read(url, lines, body) else { return };
    for method in [Method::POST, Method::PUT, Method::GET] {
        let asked = Asked { method: &method, url: &sent.url, headers: &sent.headers, body: &sent.body };
        if let Some((at, captures)) = profile.operation(asked) {
            operation(&profile.operations[at], &sent, &captures);
        }
    }
}

fn operation(operation: &Operation, sent: &Sent, captures: &BTreeMap<String, String>) {
    let effect = EffectId(*blake3::hash(&sent.body).as_bytes());
    let value = operation.key.as_ref().and_then(|rule| rule.value(&wire_key(&effect), captures).ok());
    if let (Some(rule), Some(value)) = (&operation.key, &value) {
        let _ = rule.more_headers(effect);
        let with = sent.with(&rule.carrier, value).filter(|_| rule.is_bare());
        assert!(with.is_none_or(|with| with.key(&rule.carrier).as_ref() == Some(value)), "a key that is not found");
    }
    let Ok(origin) = Origin::of(&sent.url) else { return };
    let id = effect.to_string();
    let values = Values {
        key: value.as_deref(),
        effect: Some(&id),
        captures: Some(captures),
        url: Some(&sent.url),
        request: Some(&sent.body),
        ..Values::default()
    };
    let pinned = operation.lookup.as_ref().and_then(|lookup| lookup.pin(&origin.to_string(), &values).ok());
    let Some(pinned) = pinned.and_then(|pinned| pinned.at(sent_at()).ok()) else { return };
    if let Ok(url) = Url::parse(&pinned.url) {
        assert_eq!(Origin::of(&url).as_ref(), Ok(&origin), "a look-up goes elsewhere");
    }
    let _ = pinned.says(200, &sent.headers, &sent.body, true);
}

/// Those that come with the program: a file may extend one.
fn shipped() -> Option<&'static Profiles> {
    static SHIPPED: OnceLock<Option<Profiles>> = OnceLock::new();
    SHIPPED.get_or_init(|| Profiles::load(None).ok()).as_ref()
}
