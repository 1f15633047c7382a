//! Where an attempt may connect to. The address that was checked is the address that is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Url;

use super::request::Refusal;
use crate::policy::{Ceiling, Egress, Origin};

/// Checks a URL against the policy and the tenant's ceiling, without the network.
pub fn authorise(url: &Url, egress: &Egress, ceiling: Option<&Ceiling>) -> Result<Origin, Refusal> {
    let origin = Origin::of(url).map_err(Refusal::InvalidRequest)?;
    if !egress.allow.contains(&origin) {
        return Err(Refusal::Denied(format!(
            "no rule of policy.egress.allow names {origin}; add \"{origin}\" to allow it"
        )));
    }
    within(&origin, ceiling)?;
    Ok(origin)
}

/// Checks an origin against what its tenant may reach at most. None: everything.
pub fn within(origin: &Origin, ceiling: Option<&Ceiling>) -> Result<(), Refusal> {
    if ceiling.is_none_or(|ceiling| ceiling.holds(origin)) {
        return Ok(());
    }
    let host = &origin.host;
    Err(Refusal::Denied(format!(
        "the tenant's limit `egress` does not name {origin}; an administrator can add \"{host}\" to it"
    )))
}

/// Whether the policy lets a name lead to this address.
pub fn allowed(ip: IpAddr, egress: &Egress) -> bool {
    is_public(ip) || egress.private_addresses.contains(&ip)
}

/// False for every range that is not for the public Internet (IANA special-purpose address registries).
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = a == 0
        || ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_broadcast()
        || ip.is_documentation()
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240;
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    if let Some(v4) = embedded_v4(ip) {
        return is_public_v4(v4);
    }
    let [first, second, ..] = ip.segments();
    let global_unicast = (0x2000..0x4000).contains(&first);
    let special = (first == 0x2001 && (second < 0x0200 || second == 0x0db8)) || first == 0x3fff;
    global_unicast && !special
}

/// The IPv4 address inside a mapped, translated (64:ff9b::/96) or 6to4 address.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}
