//! Host names as rules write them: one host, or all hosts below a domain. What is written has one exact meaning, or is
//! refused; nothing here resolves a name.

use url::Host;

/// The hosts that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    One(Host),
    /// All hosts below a domain, however deep, not the domain itself.
    Below(String),
}

impl Hosts {
    /// Reads `api.example.com`, `127.0.0.1`, `[::1]` or `*.example.com`. Fails with the reason alone.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(domain) = text.strip_prefix("*.") else { return host(text).map(Self::One) };
        match host(domain)? {
            Host::Domain(domain) => Ok(Self::Below(domain)),
            _ => Err("nothing is below an address".to_owned()),
        }
    }

    pub fn hold(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::One(own), host) => own == host,
            (Self::Below(domain), Host::Domain(name)) => is_below(name, domain),
            (Self::Below(_), _) => false,
        }
    }

    /// Whether all of the others are among these.
    pub fn hold_all(&self, others: &Self) -> bool {
        match (self, others) {
            (own, Self::One(host)) => own.hold(host),
            (Self::Below(own), Self::Below(domain)) => own == domain || is_below(domain, own),
            (Self::One(_), Self::Below(_)) => false,
        }
    }
}

impl std::fmt::Display for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(host) => host.fmt(f),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    let labels = name.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
    labels.is_some_and(|labels| !labels.is_empty())
}

/// Reads one host.
pub fn host(text: &str) -> Result<Host, String> {
    let refused = |why: &str| Err(why.to_owned());
    if text.contains('%') {
        return refused("a host has no `%`");
    }
    if text.contains(':') && !text.starts_with('[') {
        return refused("a host has no `:`, and an IPv6 address stands in brackets");
    }
    let host = Host::parse(text).map_err(|e| e.to_string())?;
    match &host {
        // Programs disagree on what `0177.1` and the like mean.
        Host::Ipv4(ip) if ip.to_string() != text => Err(format!("write this address as {ip}")),
        // Looked at here and not in the text: IDNA makes a plain `*` and a plain dot of other characters.
        Host::Domain(name) if name.contains('*') => refused("a `*` stands only for the whole first label"),
        Host::Domain(name) if name.split('.').any(str::is_empty) => {
            refused("a label is empty; write the name without a dot at its end")
        }
        _ => Ok(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-E08.
    #[test]
    fn hosts_have_one_meaning_or_none() {
        for (text, meaning) in [
            ("api.example.com", Some("api.example.com")),
            ("API.Example.COM", Some("api.example.com")),
            ("localhost", Some("localhost")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("[::1]", Some("[::1]")),
            ("[0:0::1]", Some("[::1]")),
            ("[2001:DB8::1]", Some("[2001:db8::1]")),
            ("*.example.com", Some("*.example.com")),
            ("*.Example.com", Some("*.example.com")),
            ("*.t", Some("*.t")),
            ("", None),
            (".", None),
            ("*", None),
            ("*.", None),
            ("*.*.t", None),
            ("a.*.t", None),
            ("**.t", None),
            ("a*.t", None),
            ("*a.t", None),
            ("＊.t", None),
            ("a.t.", None),
            ("*.t.", None),
            ("a.t。", None),
            ("a..t", None),
            (".t", None),
            ("127.1", None),
            ("2130706433", None),
            ("0x7f.0.0.1", None),
            ("0177.0.0.1", None),
            ("127.0.0.1.", None),
            ("127.0.0.256", None),
            ("１２７.0.0.1", None),
            ("*.127.0.0.1", None),
            ("*.[::1]", None),
            ("::1", None),
            ("[::1", None),
            ("[::1%25eth0]", None),
            ("a.t:443", None),
            ("a%2et", None),
            ("a%00.t", None),
            ("u@a.t", None),
            ("a.t/", None),
            ("a.t\\b", None),
            ("a t", None),
            ("a\tt", None),
        ] {
            let read = Hosts::parse(text).ok().map(|hosts| hosts.to_string());
            assert_eq!(read.as_deref(), meaning, "{text}");
        }
    }

    #[test]
    fn a_wildcard_holds_what_is_below_it_and_other_wildcards_that_are_not_wider() {
        let hosts = |text: &str| Hosts::parse(text).unwrap();
        let wild = hosts("*.shop.test");
        for (host, held) in [
            ("a.shop.test", true),
            ("a.b.shop.test", true),
            ("shop.test", false),
            ("evilshop.test", false),
            ("a.shop.test.evil.test", false),
            ("[::1]", false),
        ] {
            assert_eq!(wild.hold(&super::host(host).unwrap()), held, "{host}");
            assert_eq!(wild.hold_all(&hosts(host)), held, "{host}");
        }
        // A name with a dot at its end is another name, wherever it comes from.
        assert!(!wild.hold(&Host::Domain("a.shop.test.".to_owned())));
        for (wide, narrow, held) in [
            ("*.shop.test", "*.shop.test", true),
            ("*.shop.test", "*.eu.shop.test", true),
            ("*.shop.test", "*.test", false),
            ("*.shop.test", "*.evilshop.test", false),
            ("a.shop.test", "*.shop.test", false),
            ("shop.test", "*.shop.test", false),
        ] {
            assert_eq!(hosts(wide).hold_all(&hosts(narrow)), held, "{wide} and {narrow}");
        }
    }
}
