//! Where a deployment may send, and what its rules say of one request. Judges only what it is given: nothing here resolves
//! a name or knows what a tenant may reach.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::origin::{NatsServer, Origin};
use super::path;
use super::rule::Rule;

/// Where a deployment may send. Nothing is allowed by default.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Egress {
    /// Rules: an origin such as `https://api.stripe.com`, or an object that says more. One that fits a request allows it.
    pub allow: Vec<Rule>,
    /// Addresses inside private, loopback or link-local ranges that an allowed host may have. An allowed origin that is
    /// written with such an address allows that address.
    #[schema(value_type = Vec<String>)]
    pub private_addresses: Vec<IpAddr>,
    /// Certificates of authorities in PEM, one or more, that this deployment's HTTP calls, look-ups and callbacks trust beside
    /// those of the host. At most 32 of them, in 65536 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// What the rules say of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    Allowed,
    /// No rule names the origin.
    Elsewhere,
    /// The rule at this place comes closest: it names the origin, and not the method or the path.
    Other(usize, &'a Rule),
    /// The rule at this place bounds the path, and this path may mean something else to a server.
    Unclear(usize),
}

impl Egress {
    /// Judges a request by the URL that is sent, in its normal form.
    pub fn judge(&self, origin: &Origin, method: &str, path: &str) -> Verdict<'_> {
        let named: Vec<_> = self.allow.iter().enumerate().filter(|(_, rule)| rule.names(origin)).collect();
        let fitting: Vec<_> = named.iter().filter(|(_, rule)| rule.takes_method(method)).collect();
        let unclear = !path::is_plain(path);
        if fitting.iter().any(|(_, rule)| rule.path_prefix.is_none() || (!unclear && rule.takes_path(path))) {
            return Verdict::Allowed;
        }
        if unclear && let Some((at, _)) = fitting.first() {
            return Verdict::Unclear(*at);
        }
        let closest = named.into_iter().min_by_key(|(_, rule)| rule.misses(method, path));
        closest.map_or(Verdict::Elsewhere, |(at, rule)| Verdict::Other(at, rule))
    }

    /// The origins that are named with their host.
    pub fn origins(&self) -> impl Iterator<Item = Origin> {
        self.allow.iter().filter_map(Rule::origin)
    }
}

/// Where messages go: a NATS server with JetStream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Messaging {
    /// `nats://host:4222`, or `tls://host:4222` to insist on TLS. What is written here is allowed; the rules for private
    /// addresses are those of `egress`.
    pub server: NatsServer,
    /// The name of the secret: a token, or the password of `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The account that the credential belongs to. It is part of an effect's identity.
    #[serde(default)]
    pub account: String,
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn egress() -> Egress {
        let rules = r#"[
            "https://api.t",
            {"host": "limited.t", "methods": ["GET", "POST"], "path_prefix": "/v1"},
            {"host": "limited.t", "methods": ["DELETE"], "path_prefix": "/v1/things"},
            {"host": "*.wild.t", "methods": ["POST"]},
            {"scheme": "http", "host": "both.t", "path_prefix": "/v1"},
            {"scheme": "http", "host": "both.t", "methods": ["GET"]}
        ]"#;
        Egress { allow: serde_json::from_str(rules).unwrap(), ..Egress::default() }
    }

    fn judged(method: &str, url: &str) -> String {
        let url = Url::parse(url).unwrap();
        match egress().judge(&Origin::of(&url).unwrap(), method, url.path()) {
            Verdict::Allowed => "allowed".to_owned(),
            Verdict::Elsewhere => "elsewhere".to_owned(),
            Verdict::Other(at, _) => format!("not by {at}"),
            Verdict::Unclear(at) => format!("unclear for {at}"),
        }
    }

    /// F-E07: a rule is about its scheme, its host and its port together.
    #[test]
    fn an_origin_is_matched_as_a_whole() {
        for (url, verdict) in [
            ("https://api.t/", "allowed"),
            ("https://API.T:443/x?y", "allowed"),
            ("http://api.t/", "elsewhere"),
            ("https://api.t:8443/", "elsewhere"),
            ("http://api.t:443/", "elsewhere"),
            ("https://API.T./", "elsewhere"),
            ("https://api.t.evil.t/", "elsewhere"),
            ("https://xapi.t/", "elsewhere"),
            ("https://evil.t/?https://api.t", "elsewhere"),
            ("https://evil.t/#@api.t", "elsewhere"),
        ] {
            assert_eq!(judged("POST", url), verdict, "{url}");
        }
    }

    #[test]
    fn a_rule_bounds_methods_and_paths() {
        for (method, url, verdict) in [
            ("POST", "https://limited.t/v1", "allowed"),
            ("GET", "https://limited.t/v1/x?y=/v2", "allowed"),
            ("DELETE", "https://limited.t/v1/things/1", "allowed"),
            ("POST", "https://limited.t/v10", "not by 1"),
            ("POST", "https://limited.t/v2", "not by 1"),
            ("DELETE", "https://limited.t/v1/other", "not by 1"),
            ("DELETE", "https://limited.t/v2", "not by 2"),
            ("PATCH", "https://limited.t/v1/x", "not by 1"),
            ("post", "https://limited.t/v1/x", "not by 1"),
            ("POST", "https://a.wild.t/x", "allowed"),
            ("POST", "https://a.b.wild.t/x", "allowed"),
            ("GET", "https://a.wild.t/x", "not by 3"),
            ("POST", "https://wild.t/x", "elsewhere"),
            ("POST", "http://a.wild.t/x", "elsewhere"),
        ] {
            assert_eq!(judged(method, url), verdict, "{method} {url}");
        }
    }

    /// What is judged is what is sent: the URL's own rules take `..` out of it, and what only a server would is refused.
    #[test]
    fn a_path_cannot_climb_out_of_its_prefix() {
        for (url, verdict) in [
            ("https://limited.t/v1/../v2", "not by 1"),
            ("https://limited.t/v1/%2e%2e/v2", "not by 1"),
            ("https://limited.t/v1/.%2E/v2", "not by 1"),
            ("https://limited.t/v1\\..\\v2", "not by 1"),
            ("https://limited.t/v2/../v1/x", "allowed"),
            ("https://limited.t/v1/..%2fv2", "unclear for 1"),
            ("https://limited.t/v1/%2e%2e%2fv2", "unclear for 1"),
            ("https://limited.t/v1/..%5cv2", "unclear for 1"),
            ("https://limited.t/v1/%252e%252e/v2", "unclear for 1"),
            ("https://limited.t/v1/..;/v2", "unclear for 1"),
            ("https://limited.t/v1%2f..%2fv2", "unclear for 1"),
            ("https://limited.t/v1/a%2Fb", "allowed"),
            // Nothing bounds the path there.
            ("https://api.t/v1/..%2fv2", "allowed"),
        ] {
            assert_eq!(judged("POST", url), verdict, "{url}");
        }
        assert_eq!(judged("GET", "http://both.t/v1/..%2fv2"), "allowed", "by the rule that bounds no path");
        assert_eq!(judged("POST", "http://both.t/v1/..%2fv2"), "unclear for 4");
    }
}
