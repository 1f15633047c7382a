//! Where the deployments of a tenant may send at most, whatever their own policies allow. An administrator sets it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::hosts::Hosts;
use super::{NatsServer, Origin, Rule};

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
    /// A host, or all hosts below a domain and not the domain itself, with any scheme and port.
    Hosts(Hosts),
}

impl Ceiling {
    /// Whether a deployment may name this origin.
    pub fn holds(&self, origin: &Origin) -> bool {
        self.0.iter().any(|place| place.holds(origin))
    }

    /// Whether a deployment may have this rule: no origin that it names is above the ceiling.
    pub fn holds_all(&self, rule: &Rule) -> bool {
        self.0.iter().any(|place| place.holds_all(rule))
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
        Hosts::parse(text).map(Self::Hosts).map_err(|why| wrong(&why))
    }

    fn holds(&self, origin: &Origin) -> bool {
        match self {
            Self::Origin(own) => own == origin,
            Self::Hosts(hosts) => hosts.hold(&origin.host),
        }
    }

    fn holds_all(&self, rule: &Rule) -> bool {
        match self {
            Self::Origin(own) => rule.origin().is_some_and(|origin| origin == *own),
            Self::Hosts(hosts) => hosts.hold_all(&rule.hosts),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Origin(origin) => origin.fmt(f),
            Self::Hosts(hosts) => hosts.fmt(f),
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
    fn a_rule_with_a_wildcard_is_held_by_a_wildcard_that_is_no_narrower() {
        let ceiling = read(r#"["api.example.com", "*.shop.test", "https://one.test:8443"]"#);
        let holds = |json: &str| ceiling.holds_all(&serde_json::from_str(json).unwrap());
        for held in [
            r#""https://api.example.com:1""#,
            r#""https://one.test:8443""#,
            r#""https://*.shop.test""#,
            r#""http://*.shop.test:8080""#,
            r#""https://*.eu.shop.test""#,
            r#"{"host": "*.shop.test", "methods": ["GET"]}"#,
            r#"{"host": "one.test", "port": 8443, "path_prefix": "/v1"}"#,
        ] {
            assert!(holds(held), "{held}");
        }
        for above in [
            r#""https://*.test""#,
            r#""https://*.api.example.com""#,
            r#""https://*.example.com""#,
            r#""https://*.one.test:8443""#,
            r#""https://shop.test""#,
            r#""https://*.evilshop.test""#,
            r#"{"host": "*.test", "methods": ["GET"], "path_prefix": "/v1"}"#,
        ] {
            assert!(!holds(above), "{above}");
        }
    }

    #[test]
    fn a_ceiling_is_written_as_it_is_read() {
        let text = r#"["api.example.com","*.shop.test","https://one.test:8443","nats://queue.test:4222"]"#;
        assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for wrong in [
            "",
            "*",
            "*.",
            "a.*.test",
            "**.test",
            "*.127.0.0.1",
            "https://a.test/x",
            "https://*.a.test",
            "ftp://a.test",
            "a b",
            "a/b",
            "a.test:",
            "a.test:80",
            "https://a.test:",
            "a.test.",
            "127.1",
            "::1",
        ] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
        let many = serde_json::to_string(&vec!["a.test"; MAX_PLACES + 1]).unwrap();
        assert!(serde_json::from_str::<Ceiling>(&many).is_err());
    }
}
