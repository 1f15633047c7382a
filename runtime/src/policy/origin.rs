//! Places on the network: the origin of a URL, and the address of a NATS server.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

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
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("its port is no port"))?)
            }
            _ => (rest, NATS_PORT),
        };
        if port == 0 || host.contains('*') {
            return Err(wrong("it must name one host and one port"));
        }
        let host = url::Host::parse(host).map_err(|e| wrong(&e.to_string()))?;
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
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        if port == 0 {
            return Err("port 0 cannot be reached".to_owned());
        }
        Ok(Self { scheme: url.scheme().to_owned(), host, port })
    }

    /// Reads an origin as a policy writes it: nothing may follow the port.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url =
            Url::parse(text).map_err(|e| format!("`{text}` is not an origin such as https://api.example.com: {e}"))?;
        let origin = Self::of(&url).map_err(|e| format!("`{text}`: {e}"))?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let wildcard = text.contains('*');
        if !bare || wildcard {
            return Err(format!("`{text}` must be a scheme, one host and a port, and nothing else"));
        }
        Ok(origin)
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let default = if self.scheme == "https" { 443 } else { 80 };
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.port == default { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
