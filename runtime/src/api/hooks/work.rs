//! What a hook makes of a delivery: a start or a signal. It is made ready from the delivery alone and carried out in the
//! transaction that also keeps the answer and the note of it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::config::{Action, Signal, Start, Target};
use super::pointer::Pointer;
use super::receive::{Known, Told};
use super::text::{Arrived, Text, find};
use crate::api::error::{Problem, Result};
use crate::api::keyed::{Answer, Failed, Work};
use crate::api::{Api, name, start};
use crate::store::hook::{self, Noted};
use crate::store::signal::{Delivered, Delivery};
use crate::store::start::{NewRun, Started};
use crate::store::{self, Tx, activity, signal};

/// What is to be done.
pub struct Carried {
    tenant: String,
    hook: String,
    delivery_id: String,
    max_unread: u64,
    what: What,
}

enum What {
    Start(Box<NewRun>),
    Signal { run: Addressed, delivery: Delivery },
}

enum Addressed {
    Id(Uuid),
    Named { activity: String, run_name: String },
}

/// Takes what is needed from the delivery. What is missing is the hook's matter or the sender's: either may be put right, so
/// that it is not kept as the delivery's answer.
pub async fn prepare(api: &Api, known: &Known, arrived: &Arrived<'_>, id: &str) -> Result<Carried> {
    let what = match &known.config.action {
        Action::Start(start) => What::Start(Box::new(planned(api, known, arrived, start).await?)),
        Action::Signal(signal) => addressed(api, known, arrived, id, signal)?,
    };
    Ok(Carried {
        tenant: known.tenant.clone(),
        hook: known.hook.clone(),
        delivery_id: id.to_owned(),
        max_unread: api.config.signals.max_unread,
        what,
    })
}

async fn planned(api: &Api, known: &Known, arrived: &Arrived<'_>, start: &Start) -> Result<NewRun> {
    let input = part("start.input", &start.input, arrived)?.to_owned();
    let run_name = start.run_name.as_ref().map(|name| take("start.run_name", name, arrived)).transpose()?;
    let label = |(label, text): (&String, &Text)| {
        let value = take(&format!("start.labels.{label}"), text, arrived)?;
        Ok((label.clone(), value))
    };
    let labels = start.labels.iter().map(label).collect::<Result<BTreeMap<_, _>>>()?;
    let version = activity::find_latest(&api.store, &known.tenant, &start.activity).await?;
    let version = version.ok_or_else(|| unmapped("start.activity", "there is no such activity: deploy it"))?;
    let asked = start::Start::made(input, run_name, start.reuse, labels);
    // The rules of a start are for what its caller wrote; here that is the hook.
    start::planned(api, version, asked).await.map_err(|problem| match problem.refusal() {
        Some(words) => Problem::hook_unmapped(format!("start.{words}")),
        None => problem,
    })
}

fn addressed(api: &Api, known: &Known, arrived: &Arrived<'_>, id: &str, signal: &Signal) -> Result<What> {
    let run = match &signal.run {
        Target::Id(text) => {
            let run_id = name::uuid(&take("signal.run", text, arrived)?);
            Addressed::Id(run_id.ok_or_else(|| unmapped("signal.run", "what was delivered is no run's id"))?)
        }
        Target::Named { activity, run_name } => {
            let run_name = take("signal.run.run_name", run_name, arrived)?;
            if run_name.contains('\0') {
                return Err(unmapped("signal.run.run_name", "what was delivered is no run_name"));
            }
            Addressed::Named { activity: activity.clone(), run_name }
        }
    };
    let name = take("signal.name", &signal.name, arrived)?;
    name::check("signal.name", &name).map_err(|_| unmapped("signal.name", "what was delivered is no signal's name"))?;
    let payload = part("signal.payload", &signal.payload, arrived)?.get().to_owned();
    let most = api.config.signals.max_payload_bytes;
    if payload.len() > most {
        let rule = format!("it is larger than {most} bytes: take a part of the body with a pointer");
        return Err(unmapped("signal.payload", &rule));
    }
    let idempotency_key = Some(crate::key::hook_signal(&known.hook, id));
    Ok(What::Signal { run, delivery: Delivery { name, payload, idempotency_key } })
}

fn part<'a>(field: &str, pointer: &Pointer, arrived: &Arrived<'a>) -> Result<&'a RawValue> {
    find(pointer, arrived.body).map_err(|words| unmapped(field, &words))
}

fn take(field: &str, text: &Text, arrived: &Arrived<'_>) -> Result<String> {
    text.take(arrived).map_err(|words| unmapped(field, &words))
}

fn unmapped(field: &str, words: &str) -> Problem {
    Problem::hook_unmapped(format!("{field}: {words}"))
}

impl Work for Carried {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let told = match &self.what {
            What::Start(run) => self.start(tx, run).await?,
            What::Signal { run, delivery } => self.signal(tx, run, delivery).await?,
        };
        let noted = Noted {
            delivery_id: self.delivery_id.clone(),
            outcome: if told.accepted { "accepted" } else { "declined" }.to_owned(),
            run_id: told.run_id,
            reason: told.reason.map(str::to_owned),
        };
        hook::note(tx, &self.tenant, &self.hook, &noted).await?;
        Ok(told.answer()?)
    }
}

impl Carried {
    async fn start(&self, tx: &mut Tx, run: &NewRun) -> std::result::Result<Told, Failed> {
        let started = store::start::start(tx, &self.tenant, run, self.max_unread).await?;
        Ok(match started {
            Started::Fresh { .. } => Told::accepted(run.run_id),
            Started::Attached { run_id, .. } => Told::accepted(run_id),
            Started::QueueFull => return Err(Problem::queue_full().into()),
            Started::Taken { run_id, ended: true } => Told::declined("deedbox.run_name_taken", run_id),
            Started::Taken { run_id, ended: false } => Told::declined("run_already_active", run_id),
        })
    }

    async fn signal(&self, tx: &mut Tx, run: &Addressed, delivery: &Delivery) -> std::result::Result<Told, Failed> {
        let run_id = match run {
            Addressed::Id(run_id) => *run_id,
            Addressed::Named { activity, run_name } => {
                let found = hook::find_named(&mut *tx, &self.tenant, activity, run_name).await?;
                found.ok_or_else(|| unmapped("signal.run.run_name", "no run of the activity has this run_name"))?
            }
        };
        match signal::deliver(tx, &self.tenant, run_id, delivery, self.max_unread).await? {
            Delivered::Fresh | Delivered::Duplicate => Ok(Told::accepted(run_id)),
            Delivered::Ended => Ok(Told::declined("run_terminal", run_id)),
            Delivered::Full => {
                let words = format!("the run has {} unread signals, which is the limit", self.max_unread);
                Err(Problem::rate_limited(words).into())
            }
            // It may be about to be started.
            Delivered::Unknown => Err(unmapped("signal.run", "there is no such run").into()),
        }
    }
}
