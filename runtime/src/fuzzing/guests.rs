//! What guests ask for: paths of files, messages, HTTP requests.

use std::path::{Component, Path};

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use url::Url;

use super::parts::{pairs, pieces, text};
use crate::config::GatewayConfig;
use crate::gateway::files::path::FilePath;
use crate::gateway::messaging::message;
use crate::gateway::request::{self, Identity, Options, Request};
use crate::gateway::{digest, reserved};

/// A path. One that is taken leads to a file below its grant and nowhere else, and is shown as it was written.
pub fn file_path(input: &[u8]) {
    let text = text(input);
    let Ok(path) = FilePath::parse(text) else { return };
    assert_eq!(path.to_string(), text);
    let names = || [&path.grant].into_iter().chain(&path.parents).chain([&path.file]);
    for name in names() {
        let mut parts = Path::new(name).components();
        let one = matches!((parts.next(), parts.next()), (Some(Component::Normal(own)), None) if own == name.as_str());
        assert!(one, "a name leads elsewhere");
        assert!(!name.contains(['\0', '/', '\\']) && name.len() <= 255, "no name of a file");
    }
    let root = Path::new("/granted");
    let below = names().skip(1).fold(root.to_owned(), |at, name| at.join(name));
    assert!(below.starts_with(root) && below.components().count() == 1 + names().count(), "it leaves its grant");
    let url = Url::parse(&path.url()).unwrap_or_else(|e| panic!("the ledger's form is no URL: {e}"));
    let segments = url.path_segments().into_iter().flatten().map(|name| percent_decode_str(name).decode_utf8_lossy());
    assert!(segments.eq(names().map(String::as_str)), "the ledger shows another path");
}

/// A subject, headers and a payload. A message that is taken goes to one subject that is not the server's, and sets nothing
/// that is the host's.
pub fn message(input: &[u8]) {
    let [subject, headers, payload] = pieces(input);
    let headers = pairs(headers).map(|(name, value)| (text(name).to_owned(), text(value).to_owned()));
    let message = message::Message {
        subject: text(subject).to_owned(),
        headers: headers.collect(),
        payload: Bytes::copy_from_slice(payload),
    };
    let Ok(checked) = message::check(message.clone(), &GatewayConfig::default()) else { return };
    assert_eq!(checked.subject, message.subject);
    assert!(!checked.subject.starts_with(['$', '_']) && !checked.subject.contains([' ', '\r', '\n', '\t']));
    assert!(checked.subject.split('.').all(|part| !part.is_empty() && part != "*" && part != ">"), "many subjects");
    let out = checked.headers_with("the-id");
    let mut ids = 0;
    for (name, values) in out.iter() {
        let name: &str = name.as_ref();
        let lower = name.to_ascii_lowercase();
        ids += if lower == "nats-msg-id" { values.len() } else { 0 };
        let ours = lower.starts_with("nats-") && !lower.starts_with("nats-expected-") && lower != "nats-msg-id";
        assert!(!ours && !name.contains(['\r', '\n', ':']), "a header of the server");
        let lines = values.iter().any(|value| value.as_str().contains(['\r', '\n']));
        assert!(!lines, "a header of two lines");
    }
    assert_eq!(ids, 1, "a message has one id");
    assert_eq!(checked.digest(), checked.clone().digest());
}

/// A method, a URL, headers and a body. A request that is taken has nothing in it that is the host's, and a reserved header
/// names the effect or is refused.
pub fn request(input: &[u8]) {
    let [method, url, headers, body] = pieces(input);
    let headers: Vec<_> = pairs(headers).map(|(name, value)| (text(name).to_owned(), value.to_vec())).collect();
    let ours = headers.iter().filter(|(name, _)| is_ours(name)).count();
    let mut request = Request::new(text(method), text(url));
    request.headers = headers;
    request.body = Bytes::copy_from_slice(body);
    let (config, mut options) = (GatewayConfig::default(), Options::default());
    let untaken = request::check(request.clone(), &options, &config);
    assert!(ours == 0 || untaken.is_err(), "a reserved header goes out");
    if reserved::take(&mut request, &mut options).is_err() {
        assert!(ours > 0, "refused for a header that is not there");
        return;
    }
    assert!(!request.headers.iter().any(|(name, _)| is_ours(name)), "a reserved header is left");
    let named = !matches!(options.identity, Identity::Positional) || options.on_unknown.is_some();
    assert_eq!(named, ours > 0, "a reserved header says nothing");
    let Ok(checked) = request::check(request, &options, &config) else { return };
    assert!(checked.headers.keys().all(|name| !request::is_host_header(name.as_str()) && !is_ours(name.as_str())));
    assert_eq!(Url::parse(checked.url.as_str()).as_ref(), Ok(&checked.url), "a URL that is read otherwise again");
    assert_eq!(digest::request_digest(&checked, &[]), digest::request_digest(&checked.clone(), &[]));
    let shown = checked.url_without_query();
    assert!(checked.url.query().is_none_or(str::is_empty) || !shown.contains('?'), "the ledger shows a query");
}

fn is_ours(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("deedbox-")
}
