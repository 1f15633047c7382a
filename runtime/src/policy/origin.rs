//! Places on the network: the origin of a URL, and the address of a NATS server.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use super::hosts::{self, Hosts};

/// The address of a NATS server. The origin's scheme is `nats` or `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsServer(pub Origin);

const NATS_PORT: u16 = 4222;

impl NatsServer {
    /// Reads an address: nothing may follow the port.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a server such as nats://nats.example.com:4222: {why}");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        if !matches!(scheme, "nats" | "tls") {
            return Err(wrong("its scheme must be nats or tls"));
        }
        let (host, port) = authority(rest).map_err(|why| wrong(&why))?;
        let host = hosts::host(host).map_err(|why| wrong(&why))?;
        let port = port.unwrap_or(NATS_PORT);
        Ok(Self(Origin { scheme: scheme.to_owned(), host, port }))
    }
}

impl std::fmt::Display for NatsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.0.scheme, self.0.host, self.0.port)
    }
}

impl<'de> Deserialize<'de> for NatsServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for NatsServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Scheme, host and port of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub scheme: String,
    pub host: url::Host,
    pub port: u16,
}

impl Origin {
    /// The origin of an `http` or `https` URL.
    pub fn of(url: &Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("the scheme `{}` is not http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("user information is not allowed in a URL".to_owned());
        }
        let host = url.host().ok_or("the URL has no host")?.to_owned();
        // What a denial says is copied into policies, where a `*` would stand for other hosts.
        if host.to_string().contains('*') {
            return Err("a URL names one host: there is none with a `*`".to_owned());
        }
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        if port == 0 {
            return Err("port 0 cannot be reached".to_owned());
        }
        Ok(Self { scheme: url.scheme().to_owned(), host, port })
    }

    /// Reads an origin as a policy writes it: nothing may follow the port.
    pub fn parse(text: &str) -> Result<Self, String> {
        match read(text)? {
            (scheme, Hosts::One(host), port) => Ok(Self { scheme, host, port }),
            (_, Hosts::Below(_), _) => {
                Err(format!("`{text}` must name one host: a `*` stands only in rules of egress"))
            }
        }
    }
}

/// Reads a scheme, hosts and a port as a rule writes them: `https://api.example.com`, `https://*.example.com:8443`.
pub fn read(text: &str) -> Result<(String, Hosts, u16), String> {
    let wrong = |why: &str| format!("`{text}` is not an origin such as https://api.example.com: {why}");
    let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
    let scheme = scheme.to_ascii_lowercase();
    let default = default_port(&scheme).ok_or_else(|| wrong("its scheme must be http or https"))?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains(['/', '\\', '?', '#', '@']) {
        return Err(wrong("nothing may stand beside the host and the port"));
    }
    let (host, port) = authority(rest).map_err(|why| wrong(&why))?;
    let hosts = Hosts::parse(host).map_err(|why| wrong(&why))?;
    Ok((scheme, hosts, port.unwrap_or(default)))
}

/// The port of an `http` or `https` origin that names none. None for other schemes.
pub fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// Takes `host`, `host:port`, `[::1]` or `[::1]:port` apart. A port that is written is one.
fn authority(text: &str) -> Result<(&str, Option<u16>), String> {
    let end = if text.starts_with('[') { text.find(']').map(|at| at + 1) } else { text.find(':') };
    let (host, rest) = text.split_at(end.unwrap_or(text.len()));
    if rest.is_empty() {
        return Ok((host, None));
    }
    let digits = rest.strip_prefix(':').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|digits| digits.parse::<u16>().ok()).filter(|port| *port != 0);
    let port = port.ok_or("its port must be 1 to 65535, and an IPv6 address stands in brackets")?;
    Ok((host, Some(port)))
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if default_port(&self.scheme) == Some(self.port) { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-E08.
    #[test]
    fn an_origin_is_exact_or_refused() {
        for (text, meaning) in [
            ("https://api.example.com", Some("https://api.example.com")),
            ("https://api.example.com/", Some("https://api.example.com")),
            ("https://api.example.com:443", Some("https://api.example.com")),
            ("http://api.example.com:443", Some("http://api.example.com:443")),
            ("HTTPS://API.t", Some("https://api.t")),
            ("http://127.0.0.1:65535", Some("http://127.0.0.1:65535")),
            ("https://[::1]", Some("https://[::1]")),
            ("https://[2001:db8::1]:8443", Some("https://[2001:db8::1]:8443")),
            ("https://host:0", None),
            ("https://host:99999", None),
            ("https://host:65536", None),
            ("https://host:", None),
            ("https://host:+80", None),
            ("https://host:80:80", None),
            ("https://host:-1", None),
            ("https://host: 80", None),
            ("https://[::1]:", None),
            ("https://[::1]8443", None),
            ("https://::1", None),
            ("https://2001:db8::1:8443", None),
            ("https://*.t", None),
            ("https://*", None),
            ("https://*:443", None),
            ("[::1]", None),
            ("host:443", None),
            ("notwild.t", None),
            ("//host", None),
            ("https:host", None),
            ("https:/host", None),
            ("https:///host", None),
            ("https://", None),
            ("https://host//", None),
            ("https://host/x", None),
            ("https://host?x", None),
            ("https://host#x", None),
            ("https://host\\x", None),
            ("https://user@host", None),
            ("https://user:1@host", None),
            ("https://host.", None),
            ("https://host\n", None),
            (" https://host", None),
            ("ftp://host", None),
            ("ws://host", None),
            ("file:///x", None),
        ] {
            let read = Origin::parse(text).ok().map(|origin| origin.to_string());
            assert_eq!(read.as_deref(), meaning, "{text}");
        }
    }

    #[test]
    fn a_server_is_exact_or_refused() {
        for (text, meaning) in [
            ("nats://a", Some("nats://a:4222")),
            ("tls://[::1]", Some("tls://[::1]:4222")),
            ("nats://[::1]:1", Some("nats://[::1]:1")),
            ("nats://a:", None),
            ("nats://a:+1", None),
            ("nats://a:0", None),
            ("nats://*.a", None),
            ("nats://a.", None),
            ("nats://127.1", None),
            ("nats://::1", None),
            ("nats://a/", None),
            ("NATS://a", None),
        ] {
            let read = NatsServer::parse(text).ok().map(|server| server.to_string());
            assert_eq!(read.as_deref(), meaning, "{text}");
        }
    }
}
