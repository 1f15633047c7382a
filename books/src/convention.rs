//! What a provider promises about keys, as a value that can be written in JSON: where the key is carried, how long it is
//! remembered and what is answered when it comes again. The value without any setting is the provider as it is without one.
//! Data only: this module must never look at the books.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::carrier::{Carrier, Grammar};
use crate::lookup::LookUp;
use crate::request::Request;
use crate::template::Template;

/// Why a convention cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("correct the JSON of the convention: {0}")]
    Json(#[from] serde_json::Error),
    #[error("correct the convention: {0}")]
    Value(&'static str),
}

/// A provider's convention. Every member may be left out; the value is then that of [`Convention::default`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Convention {
    pub carrier: Carrier,
    /// Headers that must come with a key and be byte-identical on a repeat; names in any case.
    pub companions: Vec<String>,
    /// The methods whose requests take part, of POST, PUT, PATCH and DELETE. Requests that do not are applied without a key.
    pub methods: Vec<String>,
    /// Only paths that begin so take part.
    pub path_prefix: Option<String>,
    pub grammar: Grammar,
    /// A request without a key is answered with `invalid`.
    pub required: bool,
    /// The answer to a key that breaks the grammar, and to a missing key or companion. Nothing is applied.
    pub invalid: Template,
    /// In milliseconds; then the key is forgotten, and the request applies again. None: for ever.
    pub retention_ms: Option<u64>,
    pub counted_from: CountedFrom,
    pub on_repeat: OnRepeat,
    pub on_mismatch: OnMismatch,
    pub in_flight: InFlight,
    pub stores: Stores,
    /// The answer to an application; its headers also go onto the answers of tables, counters, topics and objects.
    pub applied: Template,
    /// An object's id is this and the number of its line in the books.
    pub id_prefix: String,
    /// Paths that are no table, counter or topic are objects with generations and preconditions.
    pub object_path: Option<ObjectPath>,
    /// Reads of these paths, each with its query, get these texts whatever was applied.
    pub pages: BTreeMap<String, String>,
    /// Tried in this order on every read that is not one of the world's; when none fits, 404.
    pub look_ups: Vec<LookUp>,
    /// How a look-up shows an object; like the body of `on_repeat.latest` or else of `applied` when absent.
    pub item: Option<Value>,
    /// In milliseconds: what was applied shows in look-ups and in the reads of the world only after that long.
    pub look_up_lag_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedFrom {
    /// The arrival that took the key.
    First,
    /// The latest arrival with the key.
    Last,
}

/// The same request again, when the first is done. Where nothing was applied under the key, the first answer is replayed
/// whatever stands here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OnRepeat {
    /// The first answer, with a header (name and value) that says so.
    Replay {
        #[serde(default)]
        marker: Option<(String, String)>,
    },
    /// What has become of the object since.
    Latest(Template),
    /// A refusal; `{id}` is the object that was made before.
    Conflict(Template),
    /// The first answer, as if it were fresh.
    Accepted,
    /// 412 or the like.
    Precondition(Template),
}

/// Another request under the same key. Requests are the same when method, path, query, companions and the body's bytes are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OnMismatch {
    /// `{id}` is the object that was made before.
    Answer(Template),
    /// Taken for a repeat; the difference is not seen.
    Ignore,
    /// The conflict of `on_repeat`, which must be one.
    Conflict,
}

/// The same key while the first request is still being worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InFlight {
    Answer(Template),
    /// Waits until the first is done, at most `ms` milliseconds; then the answer is `then`.
    Wait {
        ms: u64,
        then: Template,
    },
}

/// Which answers are kept under the key. After any other answer the key is free, and the request applies again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stores {
    All,
    /// All but 5xx and 429.
    #[serde(rename = "not_5xx")]
    Not5xx,
    #[serde(rename = "only_2xx")]
    Only2xx,
}

/// How an object's path is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectPath {
    /// A query parameter that is one more segment of the path. `/upload` and `/download` before the path are then no part of it.
    pub name_query: Option<String>,
}

impl Default for Convention {
    /// The header `Idempotency-Key`, remembered for ever; the first answer replayed and marked, 400 on a mismatch, 409 in flight.
    fn default() -> Self {
        let error = |code: Value| json!({ "error": code });
        Self {
            carrier: Carrier::Header("Idempotency-Key".into()),
            companions: Vec::new(),
            methods: ["POST", "PUT", "PATCH", "DELETE"].map(str::to_owned).to_vec(),
            path_prefix: None,
            grammar: Grammar::default(),
            required: false,
            invalid: Template::new(400, error(json!({"type": "idempotency_error", "code": "idempotency_key_invalid"}))),
            retention_ms: None,
            counted_from: CountedFrom::First,
            on_repeat: OnRepeat::Replay { marker: Some(("idempotent-replayed".into(), "true".into())) },
            on_mismatch: OnMismatch::Answer(Template::new(400, error(json!({"type": "idempotency_error"})))),
            in_flight: InFlight::Answer(Template::new(
                409,
                error(json!({"type": "idempotency_error", "code": "idempotency_key_in_use"})),
            )),
            stores: Stores::All,
            applied: Template::new(201, json!({"id": "{id}", "number": "{number}", "request": "{request}"})),
            id_prefix: "ch_".into(),
            object_path: None,
            pages: BTreeMap::new(),
            look_ups: vec![LookUp::list()],
            item: None,
            look_up_lag_ms: 0,
        }
    }
}

impl Convention {
    /// Reads and checks a convention in JSON.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let convention: Self = serde_json::from_str(text)?;
        convention.check()?;
        Ok(convention)
    }

    /// Fails when the provider could not act on it.
    pub fn check(&self) -> Result<(), Unusable> {
        const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];
        if !self.methods.iter().all(|method| METHODS.contains(&method.as_str())) {
            return Err(Unusable::Value("methods are POST, PUT, PATCH and DELETE"));
        }
        if !self.templates().iter().all(|template| (200..600).contains(&template.status)) {
            return Err(Unusable::Value("a status must be 200 to 599"));
        }
        if matches!(&self.carrier, Carrier::Json(pointer) if !pointer.starts_with('/')) {
            return Err(Unusable::Value("a JSON pointer begins with a slash"));
        }
        if self.on_mismatch == OnMismatch::Conflict && !matches!(self.on_repeat, OnRepeat::Conflict(_)) {
            return Err(Unusable::Value(
                "on_mismatch can be the conflict of on_repeat only when on_repeat is a conflict",
            ));
        }
        if self.grammar.max_length.is_some_and(|max| max < self.grammar.min_length) {
            return Err(Unusable::Value("max_length must not be less than min_length"));
        }
        Ok(())
    }

    fn templates(&self) -> Vec<&Template> {
        let mut templates = vec![&self.invalid, &self.applied, self.in_flight_answer()];
        if let OnRepeat::Latest(it) | OnRepeat::Conflict(it) | OnRepeat::Precondition(it) = &self.on_repeat {
            templates.push(it);
        }
        if let OnMismatch::Answer(it) = &self.on_mismatch {
            templates.push(it);
        }
        templates
    }

    /// The answer of a key in flight, also when the convention first waits.
    pub(crate) fn in_flight_answer(&self) -> &Template {
        match &self.in_flight {
            InFlight::Answer(answer) | InFlight::Wait { then: answer, .. } => answer,
        }
    }

    pub(crate) fn takes_part(&self, request: &Request) -> bool {
        self.methods.iter().any(|method| *method == request.method.as_str())
            && self.path_prefix.as_ref().is_none_or(|prefix| request.path.starts_with(prefix))
    }

    /// Whether a request asks for a change to the world. A GraphQL query does not, though it is a POST.
    pub(crate) fn is_effect(&self, request: &Request) -> bool {
        if self.carrier.is_graphql() && request.method == Method::POST && request.is_graphql_read() {
            return false;
        }
        [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(&request.method)
    }

    /// Whether a request that takes part must be refused because of its key.
    pub(crate) fn is_invalid(&self, request: &Request) -> bool {
        match request.key.as_deref() {
            None => self.required,
            Some(key) => {
                !self.grammar.allows(key)
                    || self.companions.iter().any(|name| request.header(&name.to_ascii_lowercase()).is_none())
            }
        }
    }

    pub(crate) fn id(&self, number: u64) -> String {
        format!("{}{number}", self.id_prefix)
    }

    pub(crate) fn retention(&self) -> Option<TimeDelta> {
        self.retention_ms.map(millis)
    }

    pub(crate) fn lag(&self) -> TimeDelta {
        millis(self.look_up_lag_ms)
    }
}

impl Stores {
    pub(crate) fn keeps(self, status: u16) -> bool {
        match self {
            Self::All => true,
            Self::Not5xx => status < 500 && status != 429,
            Self::Only2xx => (200..300).contains(&status),
        }
    }
}

/// Times too long for the type are as good as its longest.
fn millis(ms: u64) -> TimeDelta {
    i64::try_from(ms).ok().and_then(TimeDelta::try_milliseconds).unwrap_or(TimeDelta::MAX)
}
