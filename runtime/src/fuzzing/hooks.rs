//! What arrives at hooks: how a tenant describes one, and what a sender delivers.

use http::HeaderMap;
use serde_json::Value;
use serde_json::value::RawValue;

use super::parts::{headers, long_strings, pieces, text};
use crate::api::hooks::config::{Action, Config, Target, Written};
use crate::api::hooks::pointer::{self, Pointer};
use crate::api::hooks::text::{Arrived, Text, find};
use crate::webhook::scheme::{Scheme, Signed, is_signed};
use crate::webhook::shared_secret::{Encoding, Form};
use crate::webhook::{Algorithm, hmac_sha256, standard, standard_claim, stripe};

/// A hook's text, headers and a body. What a hook takes is in the delivery, and what it misses is said without the delivery.
pub fn hook(input: &[u8]) {
    let [written, headers, body] = pieces(input);
    let headers = super::parts::headers(headers);
    let raw = serde_json::from_slice::<&RawValue>(body).ok();
    if let Some(raw) = raw {
        points_alike(text(written), raw);
    }
    let Ok(config) = serde_json::from_slice::<Written>(written) else { return };
    let Ok(config) = config.check() else { return };
    assert!(config.delivery_id.fixed().is_none(), "all deliveries have one id");
    assert!((1..=2).contains(&config.secrets.len()));
    let arrived = Arrived { headers: &headers, body: raw };
    let strings = raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let strings = strings.iter().flat_map(long_strings).filter(|string| !text(written).contains(string));
    let strings: Vec<&str> = strings.collect();
    let _ = config.wants(&arrived);
    for taken in texts(&config).map(|text| (text, text.take(&arrived))) {
        match taken {
            (text, Ok(said)) => assert!(text.fixed().is_none_or(|fixed| fixed == said), "a fixed text that changes"),
            (_, Err(words)) => assert!(!strings.iter().any(|s| words.contains(s)), "the delivery is shown: {words}"),
        }
    }
    for place in places(&config) {
        if let Err(words) = find(place, raw) {
            assert!(!strings.iter().any(|string| words.contains(string)), "the delivery is shown: {words}");
        }
    }
}

/// A pointer leads where RFC 6901 says, as another reader of it does.
fn points_alike(pointer: &str, raw: &RawValue) {
    let (Some(own), Ok(value)) = (Pointer::read(pointer), serde_json::from_str::<Value>(raw.get())) else { return };
    let found = own.find(raw).and_then(|found| serde_json::from_str::<Value>(found.get()).ok());
    assert_eq!(found.as_ref(), value.pointer(pointer), "a pointer leads elsewhere");
    if let (Some(found), Some(raw)) = (&found, own.find(raw)) {
        let expected = match found {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(raw.get().to_owned()),
            _ => None,
        };
        assert_eq!(pointer::text(raw), expected);
    }
}

fn texts(config: &Config) -> impl Iterator<Item = &Text> {
    let own = match &config.action {
        Action::Start(start) => start.run_name.iter().chain(start.labels.values()).collect(),
        Action::Signal(signal) => match &signal.run {
            Target::Id(text) | Target::Named { run_name: text, .. } => vec![text, &signal.name],
        },
    };
    own.into_iter().chain([&config.delivery_id])
}

fn places(config: &Config) -> [&Pointer; 1] {
    match &config.action {
        Action::Start(start) => [&start.input],
        Action::Signal(signal) => [&signal.payload],
    }
}

/// Headers, a body and a secret. Nothing that was not made with the hook's secret is taken for signed, and what was made with
/// it is.
pub fn webhook(input: &[u8]) {
    let [given, body, secret] = pieces(input);
    // Nobody who writes inputs can have signed with it.
    let unknown = format!("whsec_{}", data_encoding::BASE64.encode(blake3::hash(input).as_bytes()));
    let now = 1_700_000_000;
    let (given, other) = (headers(given), [body, b"x"].concat());
    for scheme in schemes() {
        let forged = is_signed(Some(&scheme), &[&unknown], &Signed { headers: &given, body, now });
        assert!(!forged, "a signature that nobody made: {scheme:?}");
        let genuine = signed(&scheme, &unknown, body, now);
        let deliver =
            |body, now| is_signed(Some(&scheme), &["other", &unknown], &Signed { headers: &genuine, body, now });
        assert!(deliver(body, now), "what was signed is refused: {scheme:?}");
        assert!(!deliver(&other, now), "another body is taken");
        let timeless = matches!(scheme, Scheme::Github | Scheme::Hmac(_));
        assert_eq!(deliver(body, now + 301), timeless, "a signature of another time");
    }
    if let Some((time, claim)) = stripe::read(text(given.get(stripe::SIGNATURE).map_or(b"", |value| value.as_bytes())))
    {
        assert!(
            claim.before == format!("{time}.").into_bytes() || claim.before.starts_with(b"0"),
            "another time is signed"
        );
    }
    if let Ok(keys) = standard::Keys::parse(text(secret)) {
        // A few secrets may stand in one text: each has signed.
        let signature = keys.sign("id", "1700000000", body);
        for key in text(secret).split(' ').filter_map(standard_claim::key) {
            let holds =
                |time| standard_claim::read("id", time, &signature).is_some_and(|(_, claim)| claim.holds(&key, body));
            assert!(holds("1700000000") && !holds("1700000001"));
        }
        assert_eq!(format!("{keys:?}"), "Keys");
    }
}

fn schemes() -> [Scheme; 5] {
    let form = |encoding| Form {
        header: http::HeaderName::from_static("x-signature"),
        prefix: "v0=".to_owned(),
        encoding,
        algorithm: Algorithm::Sha256,
    };
    [
        Scheme::Stripe { tolerance_s: 300 },
        Scheme::Github,
        Scheme::StandardWebhooks { tolerance_s: 300 },
        Scheme::Hmac(form(Encoding::Hex)),
        Scheme::Hmac(form(Encoding::Base64)),
    ]
}

/// The headers of a delivery as its sender makes them.
fn signed(scheme: &Scheme, secret: &str, body: &[u8], now: i64) -> HeaderMap {
    use hmac::Mac;
    let key = scheme.key(secret).unwrap_or_default();
    let code = |parts: &[&[u8]]| hmac_sha256(&key, parts).finalize().into_bytes().to_vec();
    let hex = |bytes: Vec<u8>| data_encoding::HEXLOWER.encode(&bytes);
    let base64 = |bytes: Vec<u8>| data_encoding::BASE64.encode(&bytes);
    let time = now.to_string();
    let lines = match scheme {
        Scheme::Stripe { .. } => {
            format!("{}: t={time},v1={}", stripe::SIGNATURE, hex(code(&[time.as_bytes(), b".", body])))
        }
        Scheme::Github => format!("x-hub-signature-256: sha256={}", hex(code(&[body]))),
        Scheme::StandardWebhooks { .. } => {
            let signature = base64(code(&[b"msg_1.", time.as_bytes(), b".", body]));
            let (id, timestamp, header) = (standard_claim::ID, standard_claim::TIMESTAMP, standard_claim::SIGNATURE);
            format!("{id}: msg_1\n{timestamp}: {time}\n{header}: v1,{signature}")
        }
        Scheme::Hmac(Form { encoding: Encoding::Hex, .. }) => format!("x-signature: v0={}", hex(code(&[body]))),
        Scheme::Hmac(Form { encoding: Encoding::Base64, .. }) => format!("x-signature: v0={}", base64(code(&[body]))),
    };
    headers(lines.as_bytes())
}
