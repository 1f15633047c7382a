//! Where the deployments of a tenant may send at most, whatever their own policies allow. An administrator sets it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{NatsServer, Origin};

/// The most entries of one ceiling.
const MAX_PLACES: usize = 1000;

/// The places that a tenant may reach. Empty: none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Ceiling(Vec<Place>);

/// One entry of a ceiling.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Scheme, host and port.
    Origin(Origin),
    /// A host, with any scheme and port.
    Host(url::Host),
    /// All hosts below a domain, not the domain itself.
    Below(String),
}

impl Ceiling {
    /// Whether a deployment may name this origin.
    pub fn holds(&self, origin: &Origin) -> bool {
        self.0.iter().any(|place| place.holds(origin))
    }
}

impl<'de> Deserialize<'de> for Ceiling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let places = Vec::deserialize(deserializer)?;
        if places.len() > MAX_PLACES {
            return Err(serde::de::Error::custom(format!(
                "a tenant has at most {MAX_PLACES} places that it may reach"
            )));
        }
        Ok(Self(places))
    }
}

impl Place {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "`{text}` is no place such as api.example.com, *.example.com or https://api.example.com:8443: {why}"
            )
        };
        if let Some((scheme, _)) = text.split_once("://") {
            return match scheme {
                "nats" | "tls" => NatsServer::parse(text).map(|server| Self::Origin(server.0)),
                _ => Origin::parse(text).map(Self::Origin),
            };
        }
        let (below, host) = text.strip_prefix("*.").map_or((false, text), |domain| (true, domain));
        if host.contains('*') {
            return Err(wrong("a `*` stands only for the whole first label"));
        }
        match url::Host::parse(host).map_err(|e| wrong(&e.to_string()))? {
            url::Host::Domain(domain) if below => Ok(Self::Below(domain)),
            _ if below => Err(wrong("nothing is below an address")),
            host => Ok(Self::Host(host)),
        }
    }

    fn holds(&self, origin: &Origin) -> bool {
        match self {
            Self::Origin(own) => own == origin,
            Self::Host(host) => *host == origin.host,
            Self::Below(domain) => match &origin.host {
                url::Host::Domain(host) => {
                    let first = host.strip_suffix(domain.as_str()).and_then(|rest| rest.strip_suffix('.'));
                    first.is_some_and(|first| !first.is_empty())
                }
                _ => false,
            },
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Origin(origin) => origin.fmt(f),
            Self::Host(host) => host.fmt(f),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Ceiling {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_ceiling_holds_what_it_names_and_nothing_else() {
        let ceiling = read(
            r#"["api.example.com", "*.shop.test", "https://one.test:8443", "nats://queue.test", "127.0.0.1", "[::1]"]"#,
        );
        for held in [
            "https://api.example.com",
            "http://API.example.com:8080",
            "https://a.shop.test",
            "https://a.b.shop.test",
            "https://one.test:8443",
            "http://127.0.0.1:9",
            "http://[::1]:9",
        ] {
            assert!(ceiling.holds(&Origin::parse(held).unwrap()), "{held}");
        }
        for above in [
            "https://example.com",
            "https://api.example.com.evil.test",
            "https://shop.test",
            "https://evilshop.test",
            "https://one.test",
            "http://one.test:8443",
            "http://127.0.0.2:9",
        ] {
            assert!(!ceiling.holds(&Origin::parse(above).unwrap()), "{above}");
        }
        assert!(ceiling.holds(&NatsServer::parse("nats://queue.test:4222").unwrap().0));
        assert!(!ceiling.holds(&NatsServer::parse("tls://queue.test:4222").unwrap().0));
        assert!(!read("[]").holds(&Origin::parse("https://api.example.com").unwrap()));
    }

    #[test]
    fn a_ceiling_is_written_as_it_is_read() {
        let text = r#"["api.example.com","*.shop.test","https://one.test:8443","nats://queue.test:4222"]"#;
        assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for wrong in
            ["", "*", "*.", "a.*.test", "**.test", "*.127.0.0.1", "https://a.test/x", "ftp://a.test", "a b", "a/b"]
        {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
        let many = serde_json::to_string(&vec!["a.test"; MAX_PLACES + 1]).unwrap();
        assert!(serde_json::from_str::<Ceiling>(&many).is_err());
    }
}
