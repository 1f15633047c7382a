//! A message as the guest wrote it, and the checks that need nothing but the message.

use std::str::FromStr;

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;

use crate::config::GatewayConfig;

/// Where the server looks for a message's id.
pub const ID_HEADER: &str = "Nats-Msg-Id";

/// The only other headers of the server's own that a guest may set: conditions, which change nothing.
const CONDITIONS: &str = "nats-expected-";

const MAX_SUBJECT_BYTES: usize = 512;

/// One message.
#[derive(Clone, Debug)]
pub struct Message {
    pub subject: String,
    pub headers: Vec<(String, String)>,
    pub payload: Bytes,
}

/// A message that can be published.
#[derive(Clone, Debug)]
pub struct Checked {
    pub subject: String,
    /// Without the id.
    pub headers: Vec<(String, String)>,
    pub payload: Bytes,
    /// The id that the guest has set itself.
    pub own_id: Option<String>,
}

/// The error says what is wrong.
pub fn check(message: Message, config: &GatewayConfig) -> Result<Checked, String> {
    let Message { subject, headers, payload } = message;
    check_subject(&subject)?;
    if payload.len() > config.max_request_bytes {
        return Err(format!("the payload has {} bytes, the limit is {}", payload.len(), config.max_request_bytes));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > config.max_header_bytes {
        return Err(format!("the headers have {bytes} bytes, the limit is {}", config.max_header_bytes));
    }
    headers.iter().try_for_each(|(name, value)| check_header(name, value))?;
    let is_id = |(name, _): &(String, String)| name.eq_ignore_ascii_case(ID_HEADER);
    let (ids, headers): (Vec<_>, Vec<_>) = headers.into_iter().partition(is_id);
    if ids.len() > 1 {
        return Err(format!("there are {} headers `{ID_HEADER}`", ids.len()));
    }
    let own_id = ids.into_iter().next().map(|(_, id)| id).filter(|id| !id.is_empty());
    Ok(Checked { subject, headers, payload, own_id })
}

fn check_subject(subject: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("the subject `{}` {why}", subject.escape_debug()));
    match subject {
        _ if subject.len() > MAX_SUBJECT_BYTES => Err(format!("a subject has at most {MAX_SUBJECT_BYTES} bytes")),
        _ if subject.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            wrong("has a space or a control character")
        }
        _ if subject.split('.').any(str::is_empty) => wrong("has an empty part"),
        _ if subject.split('.').any(|part| matches!(part, "*" | ">")) => wrong("has a wildcard"),
        _ if subject.starts_with(['$', '_']) => wrong("belongs to the server"),
        _ => Ok(()),
    }
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let wrong = |why: &str| format!("header `{}`: {why}", name.escape_debug());
    let parsed = HeaderName::from_str(name).ok().filter(|_| !name.is_empty());
    parsed.ok_or_else(|| wrong("this is not a header name"))?;
    HeaderValue::from_str(value).map_err(|_| wrong("its value has a line break"))?;
    let lower = name.to_ascii_lowercase();
    let ours = lower.starts_with("nats-") && !lower.starts_with(CONDITIONS) && !name.eq_ignore_ascii_case(ID_HEADER);
    if ours { Err(wrong("it belongs to the server; leave it out")) } else { Ok(()) }
}

impl Checked {
    /// BLAKE3 over subject, headers and payload, each length-prefixed. Not over the id: client libraries invent a new one
    /// for every call.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("deedbox 2026 message digest");
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(self.subject.as_bytes());
        field(&(self.headers.len() as u64).to_le_bytes());
        for (name, value) in &self.headers {
            field(name.as_bytes());
            field(value.as_bytes());
        }
        field(&self.payload);
        *hasher.finalize().as_bytes()
    }

    /// As they go out, with the id.
    pub fn headers_with(&self, id: &str) -> HeaderMap {
        let mut map = HeaderMap::new();
        let pairs = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in pairs.chain([(ID_HEADER, id)]) {
            // Each was checked when the call was made; the id is a UUID.
            if let (Ok(name), Ok(value)) = (HeaderName::from_str(name), HeaderValue::from_str(value)) {
                map.append(name, value);
            }
        }
        map
    }

    /// What the server measures against its limit, from above.
    pub fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        // The version line, the id with its header, and the empty line.
        self.payload.len() + headers + 80
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str, headers: &[(&str, &str)]) -> Result<Checked, String> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let message = Message { subject: subject.to_owned(), headers, payload: Bytes::from_static(b"x") };
        check(message, &GatewayConfig::default())
    }

    #[test]
    fn a_subject_of_the_server_or_of_many_is_refused() {
        for subject in ["", "a..b", ".a", "a.", "a b", "a\nb", "a.*", ">", "$JS.API.STREAM.DELETE.X", "_INBOX.1"] {
            assert!(message(subject, &[]).is_err(), "{subject:?}");
        }
        assert!(message("orders.2026.paid", &[]).is_ok());
    }

    #[test]
    fn headers_of_the_server_are_refused_but_for_the_id_and_conditions() {
        for header in [("Nats-Rollup", "all"), ("nats-batch-id", "1"), ("a b", "x"), ("x", "a\r\nb"), ("", "x")] {
            assert!(message("a", &[header]).is_err(), "{header:?}");
        }
        assert!(message("a", &[("Nats-Msg-Id", "1"), ("Nats-Msg-Id", "2")]).is_err());
        let checked = message("a", &[("x", "y"), ("nats-msg-id", "1"), ("Nats-Expected-Stream", "S")]).unwrap();
        assert_eq!((checked.own_id.as_deref(), checked.headers.len()), (Some("1"), 2));
    }

    #[test]
    fn the_id_is_not_part_of_what_is_compared() {
        let digest = |headers: &[(&str, &str)]| message("a", headers).unwrap().digest();
        assert_eq!(digest(&[("x", "y")]), digest(&[("x", "y"), ("Nats-Msg-Id", "1")]));
        assert_ne!(digest(&[("x", "y")]), digest(&[("x", "z")]));
        assert_ne!(digest(&[]), digest(&[("x", "y")]));
    }
}
