//! One rule of egress: a place that a deployment may send to, and what it may send there. A rule is exact, or it is
//! refused when it is read.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::hosts::Hosts;
use super::origin::{self, Origin};
use super::path;

/// A place that a deployment may send to, and what it may send there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub scheme: String,
    pub hosts: Hosts,
    pub port: u16,
    /// None: all.
    pub methods: Option<Vec<String>>,
    /// Whole segments that the path begins with. None: all paths.
    pub path_prefix: Option<String>,
}

/// A rule that says more than an origin.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleForm {
    /// `http` or `https`. Absent: `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    /// One host, or all hosts below a domain: `api.example.com`, `*.example.com`, `[2001:db8::1]`.
    host: String,
    /// 1 to 65535. Absent: that of the scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    /// In upper case, at least one. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    methods: Option<Vec<String>>,
    /// Whole segments that the path begins with: `/v1` allows `/v1` and `/v1/x`, and not `/v10`. Absent: all paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_prefix: Option<String>,
}

impl Rule {
    /// Reads the short form, an origin: all methods and all paths there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, hosts, port) = origin::read(text)?;
        Ok(Self { scheme, hosts, port, methods: None, path_prefix: None })
    }

    /// All methods and all paths of an origin.
    pub fn of(origin: &Origin) -> Self {
        let Origin { scheme, host, port } = origin.clone();
        Self { scheme, hosts: Hosts::One(host), port, methods: None, path_prefix: None }
    }

    /// A rule for one request that this one does not allow, as narrow as this one where it can be.
    pub fn beside(&self, origin: &Origin, method: &str, path: &str) -> Self {
        let methods = self.methods.is_some() && is_method(method);
        let path_prefix = self.path_prefix.is_some() && path::check_prefix(path).is_ok();
        Self {
            methods: methods.then(|| vec![method.to_owned()]),
            path_prefix: path_prefix.then(|| path.to_owned()),
            ..Self::of(origin)
        }
    }

    /// The origin, where the rule names one host.
    pub fn origin(&self) -> Option<Origin> {
        match &self.hosts {
            Hosts::One(host) => Some(Origin { scheme: self.scheme.clone(), host: host.clone(), port: self.port }),
            Hosts::Below(_) => None,
        }
    }

    pub fn names(&self, origin: &Origin) -> bool {
        self.scheme == origin.scheme && self.port == origin.port && self.hosts.hold(&origin.host)
    }

    pub fn takes_method(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.iter().any(|own| own == method))
    }

    pub fn takes_path(&self, path: &str) -> bool {
        self.path_prefix.as_ref().is_none_or(|prefix| path::is_under(path, prefix))
    }

    /// How much of a request at its origin it does not allow.
    pub fn misses(&self, method: &str, path: &str) -> u8 {
        u8::from(!self.takes_method(method)) + u8::from(!self.takes_path(path))
    }

    /// As a policy writes it.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn is_whole_origin(&self) -> bool {
        self.methods.is_none() && self.path_prefix.is_none()
    }

    fn form(&self) -> RuleForm {
        RuleForm {
            scheme: Some(self.scheme.clone()).filter(|scheme| scheme != "https"),
            host: self.hosts.to_string(),
            port: Some(self.port).filter(|port| origin::default_port(&self.scheme) != Some(*port)),
            methods: self.methods.clone(),
            path_prefix: self.path_prefix.clone(),
        }
    }
}

impl TryFrom<RuleForm> for Rule {
    type Error = String;

    fn try_from(form: RuleForm) -> Result<Self, String> {
        let RuleForm { scheme, host, port, methods, path_prefix } = form;
        let scheme = scheme.unwrap_or_else(|| "https".to_owned());
        let default =
            origin::default_port(&scheme).ok_or_else(|| format!("scheme `{scheme}`: it must be http or https"))?;
        let hosts = Hosts::parse(&host).map_err(|why| format!("host `{host}`: {why}"))?;
        if port == Some(0) {
            return Err("port 0: it must be 1 to 65535".to_owned());
        }
        if methods.as_ref().is_some_and(Vec::is_empty) {
            return Err("methods: name at least one, or leave it out to allow all".to_owned());
        }
        if let Some(method) = methods.iter().flatten().find(|method| !is_method(method)) {
            return Err(format!("methods: `{method}` is not a method in upper case, such as POST"));
        }
        path_prefix.as_deref().map_or(Ok(()), path::check_prefix)?;
        Ok(Self { scheme, hosts, port: port.unwrap_or(default), methods, path_prefix })
    }
}

/// Letters as all registered methods have them. HTTP tells cases apart, and knows no `*`.
fn is_method(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_')
}

/// The place alone.
impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.hosts)?;
        if origin::default_port(&self.scheme) == Some(self.port) { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_whole_origin() { serializer.collect_str(self) } else { self.form().serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherForm)
    }
}

struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = Rule;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an origin such as \"https://api.example.com\", or an object with a host")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Rule, E> {
        Rule::parse(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rule, A::Error> {
        let form = RuleForm::deserialize(MapAccessDeserializer::new(map))?;
        Rule::try_from(form).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Rule, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    /// F-E08.
    #[test]
    fn a_rule_is_read_exactly_and_written_in_its_shortest_form() {
        for (text, written) in [
            (r#""https://api.example.com""#, r#""https://api.example.com""#),
            (r#""HTTPS://API.example.com:443/""#, r#""https://api.example.com""#),
            (r#""https://*.example.com""#, r#""https://*.example.com""#),
            (r#""http://*.t:8080""#, r#""http://*.t:8080""#),
            (r#""https://[2001:db8::1]:8443""#, r#""https://[2001:db8::1]:8443""#),
            (r#"{"host": "api.example.com"}"#, r#""https://api.example.com""#),
            (r#"{"host": "*.t"}"#, r#""https://*.t""#),
            (r#"{"host": "notwild.t"}"#, r#""https://notwild.t""#),
            (r#"{"host": "[::1]"}"#, r#""https://[::1]""#),
            (r#"{"scheme": "http", "host": "a.t", "port": 80}"#, r#""http://a.t""#),
            (r#"{"host": "a.t", "methods": ["POST"]}"#, r#"{"host":"a.t","methods":["POST"]}"#),
            (
                r#"{"path_prefix": "/v1", "scheme": "http", "host": "*.A.t", "port": 8080, "methods": ["GET", "M-SEARCH"]}"#,
                r#"{"scheme":"http","host":"*.a.t","port":8080,"methods":["GET","M-SEARCH"],"path_prefix":"/v1"}"#,
            ),
        ] {
            let rule = read(text).unwrap();
            assert_eq!(rule.json(), written, "{text}");
            assert_eq!(read(written).unwrap(), rule, "{text}");
        }
    }

    /// F-E08: never all ports, never another host.
    #[test]
    fn what_is_no_rule_is_refused_with_the_reason() {
        for (text, why) in [
            (r#""[::1]""#, "no scheme"),
            (r#""[2001:db8::1]:8443""#, "no scheme"),
            (r#""host:0""#, "no scheme"),
            (r#""*.t""#, "no scheme"),
            (r#""notwild.t""#, "no scheme"),
            (r#""*""#, "no scheme"),
            (r#""https://host:0""#, "1 to 65535"),
            (r#""https://host:99999""#, "1 to 65535"),
            (r#""https://host:""#, "1 to 65535"),
            (r#""https://*.com:""#, "1 to 65535"),
            (r#""https://2001:db8::1""#, "brackets"),
            (r#""https://*""#, "first label"),
            (r#""https://*.*.t""#, "first label"),
            (r#""https://a.*.t""#, "first label"),
            (r#""https://a.t.""#, "dot at its end"),
            (r#""https://*.t.""#, "dot at its end"),
            (r#""https://127.1""#, "127.0.0.1"),
            (r#""https://0177.0.0.1""#, "127.0.0.1"),
            (r#""https://a.t/v1""#, "beside"),
            (r#""ftp://a.t""#, "http or https"),
            (r#"{"host": "a.t:8443"}"#, "no `:`"),
            (r#"{"host": "https://a.t"}"#, "no `:`"),
            (r#"{"host": "::1"}"#, "brackets"),
            (r#"{"host": ""}"#, "host"),
            (r#"{"host": "a.t", "port": 0}"#, "1 to 65535"),
            (r#"{"host": "a.t", "port": 99999}"#, "99999"),
            (r#"{"host": "a.t", "port": "443"}"#, "443"),
            (r#"{"host": "a.t", "scheme": "ws"}"#, "http or https"),
            (r#"{"host": "a.t", "methods": []}"#, "at least one"),
            (r#"{"host": "a.t", "methods": ["post"]}"#, "upper case"),
            (r#"{"host": "a.t", "methods": ["*"]}"#, "upper case"),
            (r#"{"host": "a.t", "methods": ["GET "]}"#, "upper case"),
            (r#"{"host": "a.t", "methods": [""]}"#, "upper case"),
            (r#"{"host": "a.t", "path_prefix": "v1"}"#, "begin with"),
            (r#"{"host": "a.t", "path_prefix": ""}"#, "begin with"),
            (r#"{"host": "a.t", "path_prefix": "/v1/.."}"#, "plain"),
            (r#"{"host": "a.t", "path": "/v1"}"#, "path"),
            (r#"{"scheme": "https"}"#, "host"),
            ("{}", "host"),
            ("[]", "an origin such as"),
            ("null", "an origin such as"),
            ("1", "an origin such as"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
