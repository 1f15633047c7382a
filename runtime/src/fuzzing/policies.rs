//! Policies of deployments, ceilings of tenants, and the URLs that are judged by them.

use std::net::{IpAddr, Ipv6Addr};

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use url::Url;

use super::parts::{pieces, text};
use crate::gateway::addresses::is_public;
use crate::gateway::egress::{authorise, within};
use crate::gateway::transport::{Outgoing, Payload, on_the_wire};
use crate::policy::{Ceiling, Egress, NatsServer, Origin, Policy, Rule};

/// A policy. One that is taken is read again from what it is written as, and waits for nothing without end.
pub fn policy(input: &[u8]) {
    let Ok(policy) = Policy::parse(text(input)) else { return };
    let written = serde_json::to_string(&policy).unwrap_or_else(|e| panic!("a policy cannot be written: {e}"));
    let again = Policy::parse(&written).unwrap_or_else(|e| panic!("a policy is refused as it is written: {e}"));
    assert_eq!(format!("{again:?}"), format!("{policy:?}"), "a policy is read otherwise again");
    for (spent, chance) in [(1, 0.0), (1, 1.0), (7, 0.5), (u32::MAX, 1.0)] {
        let days = policy.retry.delay(spent, chance).as_secs() / 86_400;
        assert!(days <= 30, "a retry after {days} days");
    }
    for rule in &policy.egress.allow {
        let again = serde_json::from_str::<Rule>(&rule.json());
        assert_eq!(again.ok().as_ref(), Some(rule), "a rule is read otherwise again");
    }
    for origin in policy.egress.origins() {
        assert_eq!(Origin::parse(&origin.to_string()).as_ref(), Ok(&origin));
    }
    if let Some(messaging) = &policy.messaging {
        assert_eq!(NatsServer::parse(&messaging.server.to_string()).as_ref(), Ok(&messaging.server));
    }
}

/// A tenant's ceiling, and an origin. A ceiling is written as it is read, and holds what it names with every port, but no
/// neighbour of it.
pub fn ceiling(input: &[u8]) {
    let [places, origin] = pieces(input).map(text);
    let Ok(ceiling) = serde_json::from_str::<Ceiling>(places) else { return };
    let written = serde_json::to_string(&ceiling).unwrap_or_else(|e| panic!("a ceiling cannot be written: {e}"));
    let again = serde_json::from_str::<Ceiling>(&written);
    assert!(again.is_ok_and(|again| again == ceiling), "a ceiling is read otherwise again");
    let server = NatsServer::parse(origin).map(|server| server.0);
    let Ok(origin) = Origin::parse(origin).or(server) else { return };
    let held = ceiling.holds(&origin);
    assert_eq!(within(&origin, Some(&ceiling)).is_ok(), held);
    if let url::Host::Domain(host) = &origin.host
        && held
    {
        let host = host.to_lowercase();
        let named = places.to_lowercase();
        let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        assert!(
            named.contains(last) || !named.is_ascii() || named.contains(['%', '\\']),
            "held, but not named: {host}"
        );
    }
}

/// A URL, and a rule that allows; or an address. What was judged is what is connected to and what the request says,
/// in the reading of another library as well.
pub fn egress_url(input: &[u8]) {
    let [url, allowed] = pieces(input).map(text);
    if let Ok(ip) = url.parse::<IpAddr>() {
        judged_alike(ip);
    }
    let Ok(url) = Url::parse(url) else { return };
    let rule = serde_json::from_str::<Rule>(allowed).ok().or_else(|| Rule::parse(allowed).ok());
    let egress = Egress { allow: rule.into_iter().collect(), ..Egress::default() };
    if let Ok(origin) = authorise(&Method::POST, &url, &egress, None) {
        let names = |rule: &Rule| {
            let below = rule.path_prefix.as_ref().is_none_or(|prefix| url.path().starts_with(prefix.as_str()));
            rule.names(&origin) && below
        };
        assert!(egress.allow.iter().any(names), "a URL that is not allowed");
    }
    let Ok(origin) = Origin::of(&url) else { return };
    // A URL's host may have a dot at its end or an empty label; a rule's may not.
    let Ok(same) = Origin::parse(&origin.to_string()) else { return };
    assert_eq!(same, origin, "an origin is read otherwise again");
    let all = Egress { allow: vec![Rule::of(&origin)], ..Egress::default() };
    let judged = authorise(&Method::POST, &url, &all, None);
    assert_eq!(judged.ok().as_ref(), Some(&origin), "what is allowed is denied");
    said_alike(&url, &origin);
}

/// The request that goes out names the host and the port that were judged, and no other path.
fn said_alike(url: &Url, origin: &Origin) {
    let body = Payload::Buffered(Bytes::new());
    let outgoing = Outgoing { method: Method::GET, url: url.clone(), headers: HeaderMap::new(), body };
    let Ok(request) = on_the_wire(outgoing) else { return };
    let (host, target) = (&request.headers()["host"], request.uri());
    assert!(
        target.authority().is_none() && target.path() == url.path() && target.query() == url.query(),
        "another path"
    );
    let whole = format!("{}://{}{target}", origin.scheme, text(host.as_bytes()));
    // A name that no URI can have is refused by whoever reads it; that it is read as another one is what matters.
    let Ok(uri) = whole.parse::<Uri>() else { return };
    let default = if origin.scheme == "https" { 443 } else { 80 };
    assert_eq!(uri.port_u16().unwrap_or(default), origin.port, "another port");
    assert_eq!(uri.host(), Some(origin.host.to_string().as_str()), "another host");
    assert!(!text(host.as_bytes()).contains(['@', '/', '\\', '?', '#', ' ']), "more than a host");
}

/// An IPv4 address that is written as an IPv6 address is judged as the one that it is.
fn judged_alike(ip: IpAddr) {
    let public = is_public(ip);
    let local = ip.is_loopback() || ip.is_unspecified() || ip.is_multicast();
    assert!(!public || !local, "{ip} is not public");
    let IpAddr::V4(v4) = ip else { return };
    let [a, b, c, d] = v4.octets();
    let low = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    let mapped = IpAddr::V6(v4.to_ipv6_mapped());
    let translated = IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, low[0], low[1]));
    let sixth = IpAddr::V6(Ipv6Addr::new(0x2002, low[0], low[1], 0, 0, 0, 0, 1));
    assert_eq!([mapped, translated, sixth].map(|ip| is_public(ip) && !public), [false; 3], "{v4} in another form");
    assert!(!public || !(v4.is_private() || v4.is_link_local() || v4.is_documentation()), "{v4} is not public");
}
