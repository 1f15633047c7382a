//! What the applied operations have made of the world: tables, counters, topics and objects. It is nothing but the sum of the
//! booked lines, so that it is the same after a kill. It must never change by anything that is not booked.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::carrier::first_value;
use crate::convention::{Convention, OnRepeat};
use crate::object::{Conditions, Content, Object};
use crate::place::Place;
use crate::record::Entry;
use crate::request::Request;
use crate::template::{Words, plain};

#[derive(Debug, Default)]
pub(crate) struct World {
    tables: BTreeMap<String, Vec<Row>>,
    counters: BTreeMap<String, Counter>,
    topics: BTreeMap<String, Vec<Message>>,
    objects: BTreeMap<String, Object>,
}

#[derive(Debug)]
struct Row {
    id: u64,
    values: Value,
    at: DateTime<Utc>,
}

#[derive(Debug, Default)]
struct Counter {
    sum: i64,
    increments: u64,
    contributions: BTreeMap<String, i64>,
}

#[derive(Debug)]
struct Message {
    offset: u64,
    id: Option<String>,
    body: Value,
    at: DateTime<Utc>,
}

/// Since when what is read must have been there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    pub lag: TimeDelta,
    pub now: DateTime<Utc>,
}

impl Settled {
    pub fn covers(self, at: DateTime<Utc>) -> bool {
        self.now.signed_duration_since(at) >= self.lag
    }
}

impl World {
    /// The answer to an operation that changes nothing: it is a repeat by its own nature, or cannot be done. None: apply it.
    pub fn refuse(&self, convention: &Convention, entry: &Entry) -> Option<Answer> {
        let place = place(convention, entry)?;
        match (entry.method.as_str(), &place) {
            ("POST", Place::Rows(table)) => self.refuse_insert(table, entry),
            ("DELETE", Place::Row(table, id)) => self.row(table, id).is_none().then(Answer::not_found),
            ("POST", Place::Increment(_)) => by(entry).is_none().then(|| wrong("send {\"by\": a whole number}")),
            ("PUT", Place::Contribution(counter, id)) => self.refuse_contribution(counter, id, entry),
            ("POST", Place::Messages(topic)) => {
                let id = message_id(entry)?;
                let first = self.messages(topic).iter().find(|message| message.id.as_deref() == Some(id))?;
                Some(Answer::json(200, &json!({"offset": first.offset, "duplicate": true})))
            }
            ("PUT" | "POST", Place::Object(name)) => self.refuse_write(convention, name, entry),
            ("DELETE", Place::Object(name)) => {
                let refused = || self.refuse_write(convention, name, entry);
                self.object(name).and_then(Object::latest).is_none().then(Answer::not_found).or_else(refused)
            }
            ("POST", Place::Append(name)) => self.refuse_write(convention, name, entry),
            _ => Some(Answer::json(405, &json!({"error": {"type": "method_not_allowed"}}))),
        }
    }

    /// Does what a booked line says and answers for it. None when the line is not about the world.
    pub fn apply(&mut self, convention: &Convention, entry: &Entry) -> Option<Answer> {
        let answer = match place(convention, entry)? {
            Place::Rows(table) => {
                let row = Row { id: entry.number, values: entry.fields(), at: entry.at };
                let shown = row.shown();
                self.tables.entry(table).or_default().push(row);
                Answer::json(201, &shown)
            }
            Place::Row(table, id) => {
                self.tables.entry(table).or_default().retain(|row| row.id.to_string() != id);
                Answer::json(204, &Value::Null)
            }
            Place::Increment(counter) => {
                let counter = self.counters.entry(counter).or_default();
                counter.increments += 1;
                counter.add(by(entry)?)
            }
            Place::Contribution(counter, id) => {
                let (counter, by) = (self.counters.entry(counter).or_default(), by(entry)?);
                counter.contributions.insert(id, by);
                counter.add(by)
            }
            Place::Messages(topic) => {
                let messages = self.topics.entry(topic).or_default();
                let (offset, id) = (messages.len() as u64 + 1, message_id(entry).map(str::to_owned));
                messages.push(Message { offset, id, body: entry.shown(), at: entry.at });
                Answer::json(201, &json!({"offset": offset, "duplicate": false}))
            }
            Place::Object(name) => {
                let object = self.objects.entry(name.clone()).or_default();
                let kind = entry.header("content-type").map(str::to_owned);
                let is_meta = |name: &str| name.starts_with("x-amz-meta-") || name.starts_with("x-goog-meta-");
                let meta = entry.headers.iter().filter(|(name, _)| is_meta(name)).cloned().collect();
                let content = (entry.method != "DELETE").then(|| Content { kind, meta, body: entry.body.clone() });
                object.write(entry.number, content, entry.at);
                object.written(&name)
            }
            Place::Append(name) => {
                let object = self.objects.entry(name.clone()).or_default();
                object.append(entry.number, &entry.body, entry.at);
                object.written(&name)
            }
            Place::Counter(_) => return None,
        };
        Some(answer.with_applied_headers(convention, entry))
    }

    /// What a GET sees of what has settled. None when the path is none of the world's.
    pub fn read(&self, convention: &Convention, request: &Request, settled: Settled) -> Option<Answer> {
        let place = Place::of(convention, request.method.as_str(), &request.path, &request.query)?;
        Some(match place {
            Place::Rows(table) => {
                let wanted: Vec<_> = url::form_urlencoded::parse(request.query.as_bytes()).collect();
                let fits = |row: &&Row| {
                    let has = |name: &str, value: &str| row.values.get(name).is_some_and(|is| plain(is) == value);
                    settled.covers(row.at) && wanted.iter().all(|(name, value)| has(name, value))
                };
                let rows: Vec<Value> = self.rows(&table).iter().filter(fits).map(Row::shown).collect();
                Answer::json(200, &json!({ "rows": rows }))
            }
            Place::Row(table, id) => self
                .row(&table, &id)
                .filter(|row| settled.covers(row.at))
                .map_or_else(Answer::not_found, |row| Answer::json(200, &row.shown())),
            Place::Messages(topic) => {
                let seen = self.messages(&topic).iter().filter(|message| settled.covers(message.at));
                Answer::json(200, &json!({"messages": seen.map(Message::shown).collect::<Vec<_>>()}))
            }
            Place::Object(name) | Place::Append(name) => {
                let read = |object: &Object| object.read(&request.query, settled.lag, settled.now);
                self.object(&name).map_or_else(Answer::not_found, read)
            }
            Place::Counter(counter) => {
                let value = self.counters.get(&counter).map_or(0, |counter| counter.sum);
                Answer::json(200, &json!({ "value": value }))
            }
            Place::Contribution(counter, id) => {
                let by = self.counters.get(&counter).and_then(|counter| counter.contributions.get(&id));
                by.map_or_else(Answer::not_found, |by| Answer::json(200, &json!({ "by": by })))
            }
            Place::Increment(_) => Answer::not_found(),
        })
    }

    /// All of it, as it is now:
    /// `{"tables": {table: [{"id", "values"}]}, "counters": {counter: {"value", "increments", "contributions"}},`
    /// `"topics": {topic: [{"offset", "message_id", "body"}]}, "objects": {name: {"body", "generation", "writes"}}}`.
    pub fn shown(&self) -> Value {
        json!({
            "tables": each(&self.tables, |rows| Some(rows.iter().map(Row::shown).collect())),
            "counters": each(&self.counters, |counter| Some(counter.shown())),
            "topics": each(&self.topics, |messages| Some(messages.iter().map(Message::shown).collect())),
            "objects": each(&self.objects, Object::shown),
        })
    }

    pub fn object(&self, name: &str) -> Option<&Object> {
        self.objects.get(name)
    }

    fn rows(&self, table: &str) -> &[Row] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }

    fn row(&self, table: &str, id: &str) -> Option<&Row> {
        self.rows(table).iter().find(|row| row.id.to_string() == id)
    }

    fn messages(&self, topic: &str) -> &[Message] {
        self.topics.get(topic).map_or(&[], Vec::as_slice)
    }

    fn refuse_insert(&self, table: &str, entry: &Entry) -> Option<Answer> {
        let values = entry.fields();
        if !values.is_object() {
            return Some(wrong("send the row as a JSON object"));
        }
        let unique = first_value(entry.query().as_bytes(), "on_conflict")?;
        let value = values.get(&unique)?;
        let first = self.rows(table).iter().find(|row| row.values.get(&unique) == Some(value))?;
        Some(Answer::json(200, &first.shown()))
    }

    fn refuse_contribution(&self, counter: &str, id: &str, entry: &Entry) -> Option<Answer> {
        let known = self.counters.get(counter);
        if let Some(counter) = known.filter(|counter| counter.contributions.contains_key(id)) {
            return Some(counter.answer());
        }
        by(entry).is_none().then(|| wrong("send {\"by\": a whole number}"))
    }

    fn refuse_write(&self, convention: &Convention, name: &str, entry: &Entry) -> Option<Answer> {
        let conditions = Conditions::of(|header| entry.header(header), entry.query());
        if conditions.hold(self.object(name)) {
            return None;
        }
        let OnRepeat::Precondition(template) = &convention.on_repeat else {
            return Some(Answer::json(412, &json!({"error": {"type": "precondition_failed"}})));
        };
        Some(template.answer(&Words { key: entry.key.as_deref(), body: &entry.body, ..Words::default() }))
    }
}

impl Row {
    fn shown(&self) -> Value {
        json!({"id": self.id, "values": self.values})
    }
}

impl Counter {
    fn add(&mut self, by: i64) -> Answer {
        self.sum = self.sum.saturating_add(by);
        self.answer()
    }

    fn answer(&self) -> Answer {
        Answer::json(200, &json!({ "value": self.sum }))
    }

    fn shown(&self) -> Value {
        json!({"value": self.sum, "increments": self.increments, "contributions": self.contributions})
    }
}

impl Message {
    fn shown(&self) -> Value {
        json!({"offset": self.offset, "message_id": self.id, "body": self.body})
    }
}

fn place(convention: &Convention, entry: &Entry) -> Option<Place> {
    Place::of(convention, &entry.method, entry.bare_path(), entry.query())
}

fn by(entry: &Entry) -> Option<i64> {
    entry.fields().get("by")?.as_i64()
}

fn message_id(entry: &Entry) -> Option<&str> {
    entry.header("message-id").or_else(|| entry.header("nats-msg-id"))
}

fn wrong(words: &str) -> Answer {
    Answer::json(400, &json!({"error": {"type": "invalid_request", "message": words}}))
}

fn each<T>(things: &BTreeMap<String, T>, show: impl Fn(&T) -> Option<Value>) -> Value {
    Value::Object(things.iter().filter_map(|(name, thing)| Some((name.clone(), show(thing)?))).collect::<Map<_, _>>())
}
