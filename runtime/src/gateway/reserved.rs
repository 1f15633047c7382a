//! The reserved request headers: how a client that knows nothing of Deedbox names an effect. They are read here and taken
//! out, so that none ever reaches a digest, the ledger or the wire.

use super::request::{Identity, Options, Refusal, Request};

/// Every header whose name begins so is the host's.
const PREFIX: &str = "deedbox-";

const NAME: &str = "deedbox-effect";
const OPERATION: &str = "deedbox-business-operation";
const KEY: &str = "deedbox-business-key";
const ON_UNKNOWN: &str = "deedbox-on-unknown";

/// True for a header that belongs to Deedbox, known or not.
pub fn is_reserved(name: &str) -> bool {
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Takes the reserved headers out of a request and puts what they say into the options. A header that is not known, is
/// there twice, or contradicts the options is refused.
pub fn take(request: &mut Request, options: &mut Options) -> Result<(), Refusal> {
    let mut said = Said::default();
    let (reserved, rest) = std::mem::take(&mut request.headers).into_iter().partition(|(name, _)| is_reserved(name));
    request.headers = rest;
    let reserved: Vec<(String, Vec<u8>)> = reserved;
    for (name, value) in reserved {
        said.hear(&name.to_ascii_lowercase(), value)?;
    }
    if let Some(identity) = said.identity()? {
        if !matches!(options.identity, Identity::Positional) {
            return Err(invalid("a reserved header names the effect, and so does the call itself: name it once"));
        }
        options.identity = identity;
    }
    if let Some(choice) = said.on_unknown {
        let unknown = |_| invalid(&format!("{ON_UNKNOWN} is `ask`, `at-most-once` or `at-least-once`"));
        if options.on_unknown.is_some() {
            return Err(invalid(&format!("{ON_UNKNOWN} is there, and the call itself says the same: say it once")));
        }
        options.on_unknown = Some(choice.parse().map_err(unknown)?);
    }
    Ok(())
}

/// What a look-up, or any request that is no effect, is told about such a header.
pub fn refused(name: &str) -> Refusal {
    invalid(&format!(
        "header `{}`: names that begin with `{PREFIX}` are reserved; known for an effect are {NAME}, {OPERATION} with {KEY}, and {ON_UNKNOWN}",
        name.escape_debug()
    ))
}

#[derive(Default)]
struct Said {
    name: Option<String>,
    operation: Option<String>,
    key: Option<String>,
    on_unknown: Option<String>,
}

impl Said {
    fn hear(&mut self, name: &str, value: Vec<u8>) -> Result<(), Refusal> {
        let place = match name {
            NAME => &mut self.name,
            OPERATION => &mut self.operation,
            KEY => &mut self.key,
            ON_UNKNOWN => &mut self.on_unknown,
            other => return Err(refused(other)),
        };
        let text =
            String::from_utf8(value).map_err(|_| invalid(&format!("header `{name}`: its value is not UTF-8")))?;
        if place.replace(text).is_some() {
            return Err(invalid(&format!("header `{name}` is there more than once")));
        }
        Ok(())
    }

    fn identity(&mut self) -> Result<Option<Identity>, Refusal> {
        match (self.name.take(), self.operation.take(), self.key.take()) {
            (None, None, None) => Ok(None),
            (Some(name), None, None) => Ok(Some(Identity::Named(name))),
            (None, Some(operation), Some(key)) => Ok(Some(Identity::Business { operation, key })),
            (None, ..) => Err(invalid(&format!("{OPERATION} and {KEY} go together: one of them is missing"))),
            (Some(_), ..) => Err(invalid(&format!("an effect has one identity: {NAME}, or {OPERATION} with {KEY}"))),
        }
    }
}

fn invalid(why: &str) -> Refusal {
    Refusal::InvalidRequest(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::OnUnknown;

    fn taken(headers: &[(&str, &str)]) -> Result<(Request, Options), String> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        let mut request = Request { headers: headers.collect(), ..Request::new("POST", "https://a.test/") };
        let mut options = Options::default();
        take(&mut request, &mut options).map_err(|refusal| refusal.to_string())?;
        Ok((request, options))
    }

    #[test]
    fn they_name_the_effect_and_are_gone_from_the_request() {
        let all = [("Deedbox-Effect", "pay"), ("a", "b"), ("deedbox-on-unknown", "at-most-once")];
        let (request, options) = taken(&all).unwrap();
        assert_eq!(request.headers, [("a".to_owned(), b"b".to_vec())]);
        assert!(matches!(options.identity, Identity::Named(name) if name == "pay"));
        assert_eq!(options.on_unknown, Some(OnUnknown::AtMostOnce));
        let (_, options) = taken(&[("deedbox-business-key", "7"), ("deedbox-business-operation", "pay")]).unwrap();
        assert!(matches!(options.identity, Identity::Business { operation, key } if operation == "pay" && key == "7"));
    }

    #[test]
    fn what_is_unknown_half_or_double_is_refused_in_words() {
        let refused: [(&[(&str, &str)], &str); 6] = [
            (&[("deedbox-efect", "pay")], "known for an effect are deedbox-effect"),
            (&[("deedbox-effect", "a"), ("deedbox-effect", "b")], "more than once"),
            (&[("deedbox-business-key", "7")], "one of them is missing"),
            (&[("deedbox-effect", "a"), ("deedbox-business-key", "7")], "one identity"),
            (&[("deedbox-on-unknown", "maybe")], "at-least-once"),
            (&[("deedbox-", "")], "reserved"),
        ];
        for (headers, expected) in refused {
            let error = taken(headers).map(drop).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_name_in_both_places_is_refused() {
        let mut request = Request::new("POST", "https://a.test/");
        request.headers.push(("deedbox-effect".to_owned(), b"a".to_vec()));
        let mut options = Options { identity: Identity::Named("b".to_owned()), ..Options::default() };
        assert!(take(&mut request, &mut options).unwrap_err().to_string().contains("once"));
    }
}
