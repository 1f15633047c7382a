//! What a GET sees of the applications, so that a client can find out whether something happened: which ways of asking there
//! are is the convention's choice. What has not settled yet is not seen. Reading must never change the books.

use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer::{Answer, item};
use crate::carrier::first_value;
use crate::convention::Convention;
use crate::record::Entry;
use crate::request::Request;
use crate::template::plain;
use crate::world::Settled;

/// One way of asking. In JSON: `{"by_id": {}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LookUp {
    /// GET on the path on which things are made: those that have every `name=value` of the query, in their JSON or form body.
    List(List),
    /// GET `{path on which it was made}/{id}`: the object, or 404. It fits paths whose last segment begins like an id.
    ById {
        /// What both paths end in: `.json`.
        #[serde(default)]
        suffix: String,
    },
    /// GET `{path}?{parameter}=value`: what was made anywhere with that value at the pointer of its body, under `envelope`.
    Search { path: String, parameter: String, pointer: String, envelope: String },
    /// GET `{prefix}{key}`: what was made under that key, which is a name that the client chose; or 404.
    ByName { prefix: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct List {
    /// The member that holds the objects.
    pub envelope: String,
    /// The other members.
    pub around: Map<String, Value>,
    /// The parameter that is compared with the key.
    pub key_filter: Option<String>,
    /// The parameter that is compared with the time of making: `DateSent=2026-01-31`, also with `<` (until) or `>` (from)
    /// as the last letter of its name, and with a time instead of a day.
    pub date_filter: Option<String>,
    /// Parameters that say nothing about the objects: page sizes and the like.
    pub ignored: Vec<String>,
}

impl Default for List {
    fn default() -> Self {
        Self {
            envelope: "data".into(),
            around: Map::from_iter([("object".to_owned(), Value::from("list"))]),
            key_filter: Some("idempotency_key".into()),
            date_filter: None,
            ignored: Vec::new(),
        }
    }
}

impl LookUp {
    pub fn list() -> Self {
        Self::List(List::default())
    }

    pub fn by_id() -> Self {
        Self::ById { suffix: String::new() }
    }

    /// None when the request does not ask in this way.
    fn answer(&self, convention: &Convention, request: &Request, applied: &[&Entry]) -> Option<Answer> {
        let one = |found: Option<&&Entry>| {
            found.map_or_else(Answer::not_found, |entry| Answer::json(200, &item(convention, entry)))
        };
        let many = |envelope: &str, around: &Map<String, Value>, fits: &dyn Fn(&Entry) -> bool| {
            let found = applied.iter().filter(|entry| fits(entry)).map(|entry| item(convention, entry)).collect();
            let mut body = around.clone();
            body.insert(envelope.to_owned(), Value::Array(found));
            Answer::json(200, &Value::Object(body))
        };
        match self {
            Self::List(list) => {
                let wanted: Vec<(String, String)> =
                    url::form_urlencoded::parse(request.query.as_bytes()).into_owned().collect();
                let fits = |entry: &Entry| {
                    entry.bare_path() == request.path && wanted.iter().all(|(name, value)| list.has(entry, name, value))
                };
                Some(many(&list.envelope, &list.around, &fits))
            }
            Self::ById { suffix } => {
                let (path, id) = request.path.strip_suffix(suffix.as_str())?.rsplit_once('/')?;
                let made = format!("{path}{suffix}");
                let is_it = |entry: &&&Entry| convention.id(entry.number) == id && entry.bare_path() == made;
                id.starts_with(&convention.id_prefix).then(|| one(applied.iter().find(is_it)))
            }
            Self::Search { path, parameter, pointer, envelope } => {
                let wanted = first_value(request.query.as_bytes(), parameter).filter(|_| request.path == *path)?;
                let has = |entry: &Entry| entry.fields().pointer(pointer).is_some_and(|is| plain(is) == wanted);
                Some(many(envelope, &Map::new(), &has))
            }
            Self::ByName { prefix } => {
                let name = request.path.strip_prefix(prefix.as_str())?;
                Some(one(applied.iter().find(|entry| entry.key.as_deref() == Some(name))))
            }
        }
    }
}

impl List {
    fn has(&self, entry: &Entry, name: &str, value: &str) -> bool {
        if self.key_filter.as_deref() == Some(name) {
            return entry.key.as_deref() == Some(value);
        }
        if let Some(rest) = self.date_filter.as_ref().and_then(|filter| name.strip_prefix(filter.as_str())) {
            return is_at(entry, rest, value);
        }
        self.ignored.iter().any(|ignored| ignored == name)
            || entry.fields().get(name).is_some_and(|member| plain(member) == value)
    }
}

/// A day, or a time to the second. What is neither fits nothing.
fn is_at(entry: &Entry, comparison: &str, value: &str) -> bool {
    let order = match (value.parse::<NaiveDate>(), DateTime::parse_from_rfc3339(value)) {
        (Ok(day), _) => entry.at.date_naive().cmp(&day),
        (_, Ok(time)) => entry.at.timestamp().cmp(&time.timestamp()),
        _ => return false,
    };
    match comparison {
        "" => order.is_eq(),
        "<" => order.is_le(),
        ">" => order.is_ge(),
        _ => false,
    }
}

/// The answer to a read.
pub(crate) fn answer(convention: &Convention, request: &Request, applied: &[Entry], settled: Settled) -> Answer {
    let seen: Vec<&Entry> = applied.iter().filter(|entry| settled.covers(entry.at)).collect();
    let mut ways = convention.look_ups.iter();
    ways.find_map(|way| way.answer(convention, request, &seen)).unwrap_or_else(Answer::not_found)
}
