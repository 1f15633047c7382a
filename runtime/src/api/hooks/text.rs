//! Short texts that a hook takes from a delivery: a fixed one, a value of the body, a header, or several of them in a template.

use axum::http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::pointer::{self, Pointer};
use crate::api::error::{Problem, Result};
use crate::webhook::scheme;

/// A delivery whose signature was right.
#[derive(Clone, Copy)]
pub struct Arrived<'a> {
    pub headers: &'a HeaderMap,
    /// None when it is not JSON, or is nested too deeply.
    pub body: Option<&'a RawValue>,
}

/// How a text is written in a hook: one of these members.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookText)]
pub struct WrittenText {
    pub value: Option<String>,
    pub pointer: Option<String>,
    pub header: Option<String>,
    pub template: Option<String>,
}

/// A text to take from a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Fixed(String),
    Pointer(Pointer),
    Header(HeaderName),
}

impl WrittenText {
    pub fn is_empty(&self) -> bool {
        [&self.value, &self.pointer, &self.header, &self.template].iter().all(|member| member.is_none())
    }

    /// `field` says where it stands.
    pub fn check(&self, field: &str) -> Result<Text> {
        let pieces = match (&self.value, &self.pointer, &self.header, &self.template) {
            (Some(value), None, None, None) => vec![Piece::Fixed(value.clone())],
            (None, Some(text), None, None) => vec![Piece::Pointer(read_pointer(&format!("{field}.pointer"), text)?)],
            (None, None, Some(name), None) => vec![Piece::Header(read_header(&format!("{field}.header"), name)?)],
            (None, None, None, Some(text)) => pieces(&format!("{field}.template"), text)?,
            _ => return Err(Problem::validation(format!("{field}: give one of value, pointer, header and template"))),
        };
        Ok(Text(pieces))
    }
}

impl Text {
    pub fn pointer(pointer: Pointer) -> Self {
        Self(vec![Piece::Pointer(pointer)])
    }

    pub fn header(name: &'static str) -> Self {
        Self(vec![Piece::Header(HeaderName::from_static(name))])
    }

    /// The text, when it is the same for every delivery.
    pub fn fixed(&self) -> Option<String> {
        let each = self.0.iter().map(|piece| match piece {
            Piece::Fixed(text) => Some(text.as_str()),
            _ => None,
        });
        each.collect()
    }

    /// Whether the body is needed for it.
    pub fn reads_body(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Pointer(_)))
    }

    /// Takes it from a delivery; or says what is missing, in words that hold nothing of the delivery.
    pub fn take(&self, arrived: &Arrived<'_>) -> std::result::Result<String, String> {
        self.0.iter().map(|piece| piece.take(arrived)).collect()
    }
}

impl Piece {
    fn take(&self, arrived: &Arrived<'_>) -> std::result::Result<String, String> {
        match self {
            Self::Fixed(text) => Ok(text.clone()),
            Self::Header(name) => {
                let value = scheme::header(arrived.headers, name.as_str());
                value.map(str::to_owned).ok_or_else(|| format!("there is not just one header `{name}`"))
            }
            Self::Pointer(pointer) => {
                let text = pointer::text(find(pointer, arrived.body)?);
                text.ok_or_else(|| format!("what is at `{}` is no string, number, true or false", pointer.as_str()))
            }
        }
    }
}

/// The value that a pointer leads to in a body; or what is missing.
pub fn find<'a>(pointer: &Pointer, body: Option<&'a RawValue>) -> std::result::Result<&'a RawValue, String> {
    let body = body.ok_or("the body is not JSON, or is nested too deeply")?;
    pointer.find(body).ok_or_else(|| format!("there is nothing at `{}`", pointer.as_str()))
}

pub fn read_pointer(field: &str, text: &str) -> Result<Pointer> {
    let rule = "must be a JSON pointer: empty, or a / before each step, with ~1 for / and ~0 for ~";
    Pointer::read(text).ok_or_else(|| Problem::validation(format!("{field}: {rule}")))
}

pub fn read_header(field: &str, name: &str) -> Result<HeaderName> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| Problem::validation(format!("{field}: is no header's name")))
}

/// Takes a template apart: `{/pointer}` and `{header:NAME}` are replaced; `{{` and `}}` stand for `{` and `}`.
fn pieces(field: &str, template: &str) -> Result<Vec<Piece>> {
    let wrong = |rule: &str| Problem::validation(format!("{field}: {rule}"));
    let (mut pieces, mut fixed) = (Vec::new(), String::new());
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        fixed.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix(brace) {
            fixed.push_str(brace);
            rest = behind;
            continue;
        }
        let (place, behind) = rest
            .split_once('}')
            .filter(|_| brace == "{")
            .ok_or_else(|| wrong("a { and a } belong together; write {{ and }} for the characters themselves"))?;
        rest = behind;
        if !fixed.is_empty() {
            pieces.push(Piece::Fixed(std::mem::take(&mut fixed)));
        }
        pieces.push(match place.strip_prefix("header:") {
            Some(name) => Piece::Header(read_header(field, name)?),
            None if place.starts_with('/') => Piece::Pointer(read_pointer(field, place)?),
            None => return Err(wrong("a placeholder must be {/pointer} or {header:NAME}")),
        });
    }
    fixed.push_str(rest);
    if !fixed.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Fixed(fixed));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn take(text: &Text, body: &str) -> std::result::Result<String, String> {
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-event"), HeaderValue::from_static("push"))]);
        text.take(&Arrived { headers: &headers, body: serde_json::from_str(body).ok() })
    }

    fn template(text: &str) -> Result<Text> {
        WrittenText { template: Some(text.to_owned()), ..WrittenText::default() }.check("x")
    }

    fn filled(text: &str) -> String {
        take(&template(text).unwrap(), r#"{"a": {"b": 1.0}, "c": "ä"}"#).unwrap()
    }

    #[test]
    fn a_template_is_filled_from_body_and_headers() {
        assert_eq!(filled("order-{/a/b}-{/c}{header:X-Event}"), "order-1.0-äpush");
        assert_eq!(
            (filled(""), filled("plain"), filled("{{{/c}}}")),
            (String::new(), "plain".to_owned(), "{ä}".to_owned())
        );
        assert_eq!(filled("{{/c}}"), "{/c}");
    }

    #[test]
    fn a_wrong_template_is_refused_in_words() {
        for wrong in ["{", "}", "a{/c", "{/c}}", "{c}", "{}", "{header:}", "{header:a b}", "{/~}"] {
            assert!(template(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn just_one_way_is_given() {
        let two = WrittenText { value: Some(String::new()), pointer: Some(String::new()), ..WrittenText::default() };
        for wrong in [WrittenText::default(), two] {
            assert!(wrong.check("x").is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said_without_what_is_there() {
        let at = |pointer: &str| Text::pointer(Pointer::read(pointer).unwrap());
        let body = r#"{"secret": {"a": "canary"}}"#;
        assert!(take(&at("/none"), body).unwrap_err().contains("nothing at `/none`"));
        let words = take(&at("/secret"), body).unwrap_err();
        assert!(words.contains("no string") && !words.contains("canary"), "{words}");
        assert!(take(&at("/a"), "no json").unwrap_err().contains("not JSON"));
        assert!(take(&Text::header("x-none"), body).unwrap_err().contains("x-none"));
    }

    #[test]
    fn a_fixed_text_is_known_before() {
        assert_eq!(template("a{{b").unwrap().fixed().as_deref(), Some("a{b"));
        assert_eq!(template("a{/b}").unwrap().fixed(), None);
        assert!(template("a{/b}").unwrap().reads_body() && !Text::header("x-event").reads_body());
    }
}
