//! What a tenant says of a hook: how deliveries are signed, which are wanted, and what each becomes. It is checked as a whole
//! when it is put, so that a delivery meets nothing that cannot be understood. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::ToSchema;

use super::pointer::Pointer;
use super::text::{Arrived, Text, WrittenText, read_header, read_pointer};
use crate::api::error::{Problem, Result};
use crate::api::name;
use crate::api::start::{MAX_LABELS, Reused};
use crate::webhook::scheme::{MOST_SECRETS, Scheme, TOLERANCE_S};
use crate::webhook::shared_secret::{Encoding, Form};
use crate::webhook::{Algorithm, github, standard_claim};

/// The longest tolerance, in seconds: what was signed earlier could be sent again by whoever saw it.
const MAX_TOLERANCE_S: u32 = 3_600;
const MAX_PREFIX_BYTES: usize = 64;

/// A hook as it is written.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookConfig)]
pub struct Written {
    verify: Verify,
    delivery_id: Option<WrittenText>,
    #[serde(default)]
    when: Vec<WrittenCondition>,
    start: Option<WrittenStart>,
    signal: Option<WrittenSignal>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookVerify)]
struct Verify {
    scheme: SchemeName,
    secret: SecretNames,
    tolerance_s: Option<u32>,
    header: Option<String>,
    prefix: Option<String>,
    encoding: Option<Encoding>,
    algorithm: Option<Algorithm>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = HookScheme)]
enum SchemeName {
    Stripe,
    Github,
    StandardWebhooks,
    Hmac,
}

#[derive(Clone, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be the name of a secret, or a list of one or two")]
enum SecretNames {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookCondition)]
struct WrittenCondition {
    pointer: Option<String>,
    header: Option<String>,
    #[serde(rename = "in")]
    among: Vec<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookStart)]
struct WrittenStart {
    activity: String,
    input: Option<WrittenPart>,
    run_name: Option<WrittenText>,
    reuse: Option<Reused>,
    #[serde(default)]
    labels: BTreeMap<String, WrittenText>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookSignal)]
struct WrittenSignal {
    run: WrittenRun,
    name: WrittenText,
    payload: Option<WrittenPart>,
}

/// The run's id, or with `run_name` the run that a business id stands for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookRun)]
struct WrittenRun {
    value: Option<String>,
    pointer: Option<String>,
    header: Option<String>,
    template: Option<String>,
    run_name: Option<WrittenName>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookRunName)]
struct WrittenName {
    activity: String,
    value: Option<String>,
    pointer: Option<String>,
    header: Option<String>,
    template: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be \"body\", or an object with a pointer")]
#[schema(as = HookPart)]
enum WrittenPart {
    Word(String),
    Place(WrittenPlace),
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HookPlace)]
struct WrittenPlace {
    pointer: String,
}

/// A hook that can be carried out.
pub struct Config {
    pub scheme: Scheme,
    /// Their names.
    pub secrets: Vec<String>,
    pub delivery_id: Text,
    when: Vec<Condition>,
    pub action: Action,
}

struct Condition {
    text: Text,
    among: Vec<String>,
}

pub enum Action {
    Start(Start),
    Signal(Signal),
}

pub struct Start {
    pub activity: String,
    /// Empty: the whole body.
    pub input: Pointer,
    pub run_name: Option<Text>,
    pub reuse: Option<Reused>,
    pub labels: BTreeMap<String, Text>,
}

pub struct Signal {
    pub run: Target,
    pub name: Text,
    /// Empty: the whole body.
    pub payload: Pointer,
}

pub enum Target {
    Id(Text),
    Named { activity: String, run_name: Text },
}

impl Config {
    /// Whether the delivery is wanted. What the conditions ask of a body that is not JSON is left open: such a delivery is
    /// refused later, not passed over.
    pub fn wants(&self, arrived: &Arrived<'_>) -> bool {
        self.when.iter().all(|condition| condition.holds(arrived))
    }
}

impl Condition {
    fn holds(&self, arrived: &Arrived<'_>) -> bool {
        let unreadable = arrived.body.is_none() && self.text.reads_body();
        unreadable || self.text.take(arrived).is_ok_and(|text| self.among.contains(&text))
    }
}

impl Written {
    pub fn check(self) -> Result<Config> {
        let delivery_id = match &self.delivery_id {
            Some(text) => text.check("delivery_id")?,
            None => self.verify.delivery_id()?,
        };
        if delivery_id.fixed().is_some() {
            return Err(wrong(
                "delivery_id",
                "must differ from one delivery to another: take it from a pointer or a header",
            ));
        }
        let action = match (self.start, self.signal) {
            (Some(start), None) => Action::Start(start.check()?),
            (None, Some(signal)) => Action::Signal(signal.check()?),
            _ => return Err(Problem::validation("give either start or signal")),
        };
        let when = self.when.iter().enumerate().map(|(at, condition)| condition.check(&format!("when[{at}]")));
        Ok(Config {
            scheme: self.verify.scheme()?,
            secrets: self.verify.secrets()?,
            delivery_id,
            when: when.collect::<Result<_>>()?,
            action,
        })
    }
}

impl Verify {
    fn secrets(&self) -> Result<Vec<String>> {
        let names = match self.secret.clone() {
            SecretNames::One(name) => vec![name],
            SecretNames::Several(names) => names,
        };
        let twice = names.iter().enumerate().any(|(at, name)| names[..at].contains(name));
        if !(1..=MOST_SECRETS).contains(&names.len()) || twice {
            return Err(wrong("verify.secret", "must be the name of a secret, or a list of one or two different ones"));
        }
        names.iter().try_for_each(|name| name::check("verify.secret", name))?;
        Ok(names)
    }

    fn delivery_id(&self) -> Result<Text> {
        match self.scheme {
            SchemeName::Stripe => Ok(Text::pointer(read_pointer("delivery_id", "/id")?)),
            SchemeName::Github => Ok(Text::header(github::DELIVERY_ID)),
            SchemeName::StandardWebhooks => Ok(Text::header(standard_claim::ID)),
            SchemeName::Hmac => Err(wrong(
                "delivery_id",
                "the scheme `hmac` has none of its own: say where it is, with a pointer or a header",
            )),
        }
    }

    fn scheme(&self) -> Result<Scheme> {
        let own = self.header.is_some() || self.prefix.is_some() || self.encoding.is_some() || self.algorithm.is_some();
        if own && self.scheme != SchemeName::Hmac {
            return Err(wrong("verify", "header, prefix, encoding and algorithm are for the scheme `hmac` alone"));
        }
        let timeless = matches!(self.scheme, SchemeName::Github | SchemeName::Hmac);
        if timeless && self.tolerance_s.is_some() {
            return Err(wrong("verify.tolerance_s", "this scheme signs no time"));
        }
        let tolerance_s = self.tolerance_s.unwrap_or(TOLERANCE_S);
        if !(1..=MAX_TOLERANCE_S).contains(&tolerance_s) {
            return Err(wrong("verify.tolerance_s", &format!("must be 1 to {MAX_TOLERANCE_S}")));
        }
        Ok(match self.scheme {
            SchemeName::Stripe => Scheme::Stripe { tolerance_s },
            SchemeName::Github => Scheme::Github,
            SchemeName::StandardWebhooks => Scheme::StandardWebhooks { tolerance_s },
            SchemeName::Hmac => Scheme::Hmac(self.form()?),
        })
    }

    fn form(&self) -> Result<Form> {
        let missing = |what: &str| wrong(&format!("verify.{what}"), "the scheme `hmac` needs it");
        let header = self.header.as_ref().ok_or_else(|| missing("header"))?;
        let prefix = self.prefix.clone().unwrap_or_default();
        if prefix.len() > MAX_PREFIX_BYTES || !prefix.bytes().all(|c| (b' '..=b'~').contains(&c)) {
            let rule = format!("must be at most {MAX_PREFIX_BYTES} visible ASCII characters or spaces");
            return Err(wrong("verify.prefix", &rule));
        }
        Ok(Form {
            header: read_header("verify.header", header)?,
            prefix,
            encoding: self.encoding.ok_or_else(|| missing("encoding"))?,
            algorithm: self.algorithm.ok_or_else(|| missing("algorithm"))?,
        })
    }
}

impl WrittenCondition {
    fn check(&self, field: &str) -> Result<Condition> {
        let (pointer, header) = (self.pointer.clone(), self.header.clone());
        if pointer.is_some() == header.is_some() {
            return Err(wrong(field, "give either pointer or header"));
        }
        if self.among.is_empty() {
            return Err(wrong(&format!("{field}.in"), "must have at least one text"));
        }
        let text = WrittenText { pointer, header, ..WrittenText::default() }.check(field)?;
        Ok(Condition { text, among: self.among.clone() })
    }
}

impl WrittenStart {
    fn check(self) -> Result<Start> {
        name::check("start.activity", &self.activity)?;
        if self.reuse.is_some() && self.run_name.is_none() {
            return Err(wrong("start.reuse", "it says what to do about a run_name, and there is none"));
        }
        if self.labels.len() > MAX_LABELS {
            return Err(wrong("start.labels", &format!("at most {MAX_LABELS}")));
        }
        let label = |(label, text): (String, WrittenText)| {
            name::check("start.labels", &label)?;
            let text = text.check(&format!("start.labels.{label}"))?;
            Ok((label, text))
        };
        Ok(Start {
            activity: self.activity,
            input: part("start.input", self.input)?,
            run_name: self.run_name.map(|text| text.check("start.run_name")).transpose()?,
            reuse: self.reuse,
            labels: self.labels.into_iter().map(label).collect::<Result<_>>()?,
        })
    }
}

impl WrittenSignal {
    fn check(self) -> Result<Signal> {
        let name = self.name.check("signal.name")?;
        name.fixed().map_or(Ok(()), |name| name::check("signal.name", &name))?;
        Ok(Signal { run: self.run.check()?, name, payload: part("signal.payload", self.payload)? })
    }
}

impl WrittenRun {
    fn check(self) -> Result<Target> {
        let Self { value, pointer, header, template, run_name } = self;
        let id = WrittenText { value, pointer, header, template };
        let Some(WrittenName { activity, value, pointer, header, template }) = run_name else {
            return Ok(Target::Id(id.check("signal.run")?));
        };
        if !id.is_empty() {
            return Err(wrong("signal.run", "give either the run's id or its run_name"));
        }
        name::check("signal.run.run_name.activity", &activity)?;
        let run_name = WrittenText { value, pointer, header, template }.check("signal.run.run_name")?;
        Ok(Target::Named { activity, run_name })
    }
}

fn part(field: &str, part: Option<WrittenPart>) -> Result<Pointer> {
    match part {
        None => read_pointer(field, ""),
        Some(WrittenPart::Place(place)) => read_pointer(&format!("{field}.pointer"), &place.pointer),
        Some(WrittenPart::Word(word)) if word == "body" => read_pointer(field, ""),
        Some(WrittenPart::Word(_)) => Err(wrong(field, "must be \"body\", or an object with a pointer")),
    }
}

fn wrong(field: &str, rule: &str) -> Problem {
    Problem::validation(format!("{field}: {rule}"))
}

#[cfg(test)]
mod tests;
