//! Whether a request may go out: by the rules of its deployment, and by what its tenant may reach at most. Only judges: no
//! name is resolved and nothing is connected to here.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Mutex;

use http::Method;
use url::Url;

use super::addresses;
use super::attempt::lock;
use super::request::Refusal;
use crate::policy::{Ceiling, Egress, Origin, Rule, Verdict};

/// Where rules stand, in denials.
const ALLOW: &str = "policy.egress.allow";

/// So many different denials of one attempt are in the log: a guest must not be able to fill it.
const MAX_LINES: usize = 16;

/// Why a request may not go out.
#[derive(Debug)]
pub struct Denial {
    refusal: Refusal,
    missing: Option<Missing>,
}

/// What would allow it: a JSON text, and where to add it.
#[derive(Debug)]
struct Missing {
    place: &'static str,
    json: String,
}

/// The denials of one attempt that the log has.
#[derive(Debug, Default)]
pub struct Told(Mutex<HashSet<String>>);

/// Checks a request against the policy and the tenant's ceiling.
pub fn authorise(method: &Method, url: &Url, egress: &Egress, ceiling: Option<&Ceiling>) -> Result<Origin, Denial> {
    let origin = Origin::of(url).map_err(Denial::invalid)?;
    judge(method, url, &origin, egress)?;
    within(&origin, ceiling)?;
    Ok(origin)
}

/// Checks a request that the host has changed since, or made itself. It still goes to the same origin.
pub fn still(method: &Method, url: &Url, origin: &Origin, egress: &Egress) -> Result<(), Denial> {
    let now = Origin::of(url).map_err(Denial::invalid)?;
    if now != *origin {
        return Err(Denial::invalid(format!("the request is for {origin}, and its URL names {now}")));
    }
    judge(method, url, origin, egress)
}

fn judge(method: &Method, url: &Url, origin: &Origin, egress: &Egress) -> Result<(), Denial> {
    match egress.judge(origin, method.as_str(), url.path()) {
        Verdict::Allowed => Ok(()),
        Verdict::Elsewhere => Err(elsewhere(origin)),
        Verdict::Other(at, rule) => {
            let path = url.path();
            let json = rule.beside(origin, method.as_str(), path).json();
            let closest = format!("{ALLOW}[{at}], {}, comes closest", rule.json());
            let why = format!("{closest} and does not allow {method} {path}; add {json} to allow it");
            Err(Denial::of(why, ALLOW, json))
        }
        Verdict::Unclear(at) => {
            let why = "the path has an encoded or disguised `.` or `..`, which servers read in different ways";
            Err(Denial::invalid(format!("{why}, and {ALLOW}[{at}] bounds the path; write it plainly")))
        }
    }
}

/// Some origins can be asked for and not be named by a rule: those with a dot at the end of their host.
fn elsewhere(origin: &Origin) -> Denial {
    match Rule::parse(&origin.to_string()) {
        Ok(rule) => {
            let json = rule.json();
            Denial::of(format!("no rule of {ALLOW} names {origin}; add {json} to allow it"), ALLOW, json)
        }
        Err(why) => Denial {
            refusal: Refusal::Denied(format!("no rule of {ALLOW} names {origin}, and none can: {why}")),
            missing: None,
        },
    }
}

/// Checks an origin against what its tenant may reach at most. None: everything.
pub fn within(origin: &Origin, ceiling: Option<&Ceiling>) -> Result<(), Denial> {
    if ceiling.is_none_or(|ceiling| ceiling.holds(origin)) {
        return Ok(());
    }
    let json = format!("\"{}\"", origin.host);
    let why = format!("the tenant's limit `egress` does not name {origin}; an administrator can add {json} to it");
    Err(Denial::of(why, "the tenant's limit `egress`", json))
}

/// Whether the policy lets a name lead to this address.
pub fn allowed(ip: IpAddr, egress: &Egress) -> bool {
    addresses::is_public(ip) || egress.private_addresses.contains(&ip)
}

impl Denial {
    fn of(why: String, place: &'static str, json: String) -> Self {
        Self { refusal: Refusal::Denied(why), missing: Some(Missing { place, json }) }
    }

    fn invalid(why: String) -> Self {
        Self { refusal: Refusal::InvalidRequest(why), missing: None }
    }

    /// The refusal, once the log says what would allow the request.
    pub fn logged(self, tenant: &str) -> Refusal {
        if let Some(Missing { place, json }) = &self.missing {
            tracing::warn!(
                tenant.id = tenant,
                place,
                add = %json,
                "a request was denied; what would allow it can be added"
            );
        }
        self.refusal
    }
}

impl Told {
    /// As [`Denial::logged`], once for each thing that is missing, and for so many.
    pub fn tell(&self, denial: Denial, tenant: &str) -> Refusal {
        let Some(missing) = &denial.missing else { return denial.refusal };
        let mut told = lock(&self.0);
        if told.len() < MAX_LINES && told.insert(missing.json.clone()) { denial.logged(tenant) } else { denial.refusal }
    }

    /// The same for a denial that comes with its own words.
    pub fn note(&self, refusal: &Refusal, tenant: &str) {
        let Refusal::Denied(why) = refusal else { return };
        let mut told = lock(&self.0);
        if told.len() < MAX_LINES && told.insert(why.clone()) {
            tracing::warn!(tenant.id = tenant, why, "a request was denied");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn egress() -> Egress {
        let rules = r#"["https://api.t", {"host": "limited.t", "methods": ["POST"], "path_prefix": "/v1"}, "https://*.wild.t"]"#;
        Egress { allow: serde_json::from_str(rules).unwrap(), ..Egress::default() }
    }

    fn denial(method: &str, url: &str) -> Denial {
        let ceiling = serde_json::from_str(r#"["api.t", "limited.t", "*.eu.wild.t"]"#).unwrap();
        let url = Url::parse(url).unwrap();
        authorise(&method.parse().unwrap(), &url, &egress(), Some(&ceiling)).unwrap_err()
    }

    /// F-E07, F-E08: what a denial says to add allows the request, and is a rule.
    #[test]
    fn a_denial_names_the_rule_that_comes_closest_and_what_would_allow_the_request() {
        for (method, url, said, json) in [
            ("POST", "http://api.t/", "names http://api.t", r#""http://api.t""#),
            ("POST", "https://api.t:8443/", "names https://api.t:8443", r#""https://api.t:8443""#),
            (
                "GET",
                "https://limited.t/v1/x?key=canary",
                "policy.egress.allow[1]",
                r#"{"host":"limited.t","methods":["GET"],"path_prefix":"/v1/x"}"#,
            ),
            (
                "POST",
                "https://limited.t/v2",
                r#"{"host":"limited.t","methods":["POST"],"path_prefix":"/v1"}, comes closest"#,
                r#"{"host":"limited.t","methods":["POST"],"path_prefix":"/v2"}"#,
            ),
            ("get", "https://limited.t/v1", "get /v1", r#"{"host":"limited.t","path_prefix":"/v1"}"#),
        ] {
            let Denial { refusal, missing } = denial(method, url);
            let (Refusal::Denied(why), Some(missing)) = (refusal, missing) else { panic!("{url}") };
            assert!(why.contains(said) && why.contains(json) && why.contains(ALLOW), "{why}");
            assert!(!why.contains("canary"), "{why}");
            assert_eq!((missing.place, missing.json.as_str()), (ALLOW, json));
            let mut more = egress();
            more.allow.push(serde_json::from_str(json).unwrap());
            authorise(&method.parse().unwrap(), &Url::parse(url).unwrap(), &more, None).unwrap();
        }
    }

    /// F-E07: `api.t.` is another name than `api.t`, for certificates and for providers too.
    #[test]
    fn a_dot_at_the_end_of_a_host_is_denied_and_the_denial_says_so() {
        let Denial { refusal, missing } = denial("POST", "https://API.T./");
        let said = |why: &str| why.contains(ALLOW) && why.contains("without a dot at its end");
        assert!(matches!(&refusal, Refusal::Denied(why) if said(why)) && missing.is_none(), "{refusal}");
    }

    #[test]
    fn a_wildcard_does_not_lift_the_ceiling() {
        let Denial { refusal, missing } = denial("POST", "https://a.wild.t/");
        assert!(matches!(refusal, Refusal::Denied(why) if why.contains("limit `egress`")));
        assert_eq!(missing.unwrap().json, r#""a.wild.t""#);
        let url = Url::parse("https://a.eu.wild.t/").unwrap();
        let ceiling = serde_json::from_str(r#"["*.eu.wild.t"]"#).unwrap();
        authorise(&Method::POST, &url, &egress(), Some(&ceiling)).unwrap();
    }

    #[test]
    fn what_cannot_be_judged_is_an_invalid_request() {
        for url in [
            "ws://api.t/",
            "file:///etc/passwd",
            "https://api.t@evil.t/",
            "https://api.t:0/",
            "https://limited.t/v1/..%2fv2",
        ] {
            let Denial { refusal, missing } = denial("POST", url);
            assert!(matches!(refusal, Refusal::InvalidRequest(_)) && missing.is_none(), "{url}: {refusal}");
        }
    }

    #[test]
    fn a_request_that_the_host_has_changed_is_judged_again() {
        let origin = Origin::parse("https://limited.t").unwrap();
        let still = |url: &str| still(&Method::POST, &Url::parse(url).unwrap(), &origin, &egress());
        assert!(still("https://limited.t/v1/key?k=1").is_ok());
        assert!(still("https://limited.t/v2/key").is_err());
        assert!(still("https://api.t/v1/key").is_err(), "it would be allowed, but was resolved as another");
    }

    #[test]
    fn an_attempt_is_told_of_each_thing_once_and_of_so_many() {
        let told = Told::default();
        let denial = |json: usize| Denial::of("why".to_owned(), ALLOW, json.to_string());
        for json in 0..100 {
            assert_eq!(told.tell(denial(json % 50), "acme"), Refusal::Denied("why".to_owned()));
        }
        assert_eq!(lock(&told.0).len(), MAX_LINES);
    }
}
