//! What is followed, and how far it was told: the events of one run, or those of a tenant. One page is read at a time, and
//! no connection to the database is held between two.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::cursor;
use crate::api::error::Result;
use crate::api::extract::raw;
use crate::api::time::Time;
use crate::store::event::{self, Place, Position};
use crate::store::{self, Store};

#[derive(Clone, Debug)]
pub enum Feed {
    Run { run_id: Uuid, at: Position },
    Tenant { only: Only, at: Place },
}

/// Which events of a tenant are told. What is passed over was read all the same, so that it is not read again.
#[derive(Clone, Debug, Default)]
pub struct Only {
    pub activity: Option<String>,
    pub kind: Option<String>,
}

/// An event as its owner sees it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct Event {
    /// Where to go on behind it.
    #[serde(skip)]
    pub id: String,
    run_id: Uuid,
    activity: String,
    pub kind: String,
    at: Time,
    /// Its number within its run, from 1. Only where one run is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<i64>,
    #[schema(value_type = Object)]
    data: Box<RawValue>,
}

/// What was read at once.
#[derive(Debug)]
pub struct Batch {
    pub events: Vec<Event>,
    /// There may be more already.
    pub more: bool,
    /// Nothing will follow.
    pub over: bool,
}

impl Feed {
    /// Reads on, at most `limit` events.
    pub async fn next(&mut self, store: &Store, tenant: &str, limit: usize) -> Result<Batch> {
        let rows = i64::try_from(limit).unwrap_or(i64::MAX);
        match self {
            Self::Run { run_id, at } => {
                let read = event::list_of_run(store, tenant, *run_id, *at, rows).await?;
                if let Some(last) = read.last() {
                    *at = Position { sequence: last.sequence, place: Some(last.event.place) };
                }
                let (more, nothing) = (read.len() == limit, read.is_empty());
                let events = read.into_iter().map(Event::of_run).collect::<Result<Vec<_>>>()?;
                Ok(Batch { events, more, over: nothing && self.is_over(store, tenant).await? })
            }
            Self::Tenant { only, at } => {
                let mut read = event::list(store, tenant, *at, rows).await?;
                let more = read.len() == limit;
                *at = read.last().map_or(*at, |last| last.place);
                read.retain(|event| only.fits(event));
                let events = read.into_iter().map(Event::of_tenant).collect::<Result<Vec<_>>>()?;
                Ok(Batch { events, more, over: false })
            }
        }
    }

    /// True when a run has ended, and all of it was told; also when it is gone.
    pub async fn is_over(&self, store: &Store, tenant: &str) -> store::Result<bool> {
        match self {
            Self::Run { run_id, at } => Ok(event::is_over(store, tenant, *run_id, *at).await?.unwrap_or(true)),
            Self::Tenant { .. } => Ok(false),
        }
    }

    /// Where to go on behind all that was read.
    pub fn id(&self) -> String {
        match self {
            Self::Run { at, .. } => cursor::of_run(*at),
            Self::Tenant { at, .. } => cursor::of_tenant(*at),
        }
    }

    /// The run, where one run is followed.
    pub fn run_id(&self) -> Option<Uuid> {
        match self {
            Self::Run { run_id, .. } => Some(*run_id),
            Self::Tenant { .. } => None,
        }
    }
}

impl Only {
    fn fits(&self, event: &event::Event) -> bool {
        self.activity.as_ref().is_none_or(|activity| *activity == event.activity)
            && self.kind.as_ref().is_none_or(|kind| *kind == event.kind)
    }
}

impl Event {
    fn of_run(row: event::Numbered) -> Result<Self> {
        let event::Numbered { sequence, event } = row;
        let id = cursor::of_run(Position { sequence, place: Some(event.place) });
        Self::new(id, Some(sequence), event)
    }

    fn of_tenant(event: event::Event) -> Result<Self> {
        Self::new(cursor::of_tenant(event.place), None, event)
    }

    fn new(id: String, sequence: Option<i64>, event: event::Event) -> Result<Self> {
        let event::Event { run_id, activity, kind, data, at, .. } = event;
        Ok(Self { id, run_id, activity, kind, at: at.into(), sequence, data: raw(data)? })
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn event(kind: &str) -> event::Event {
        let place = Place { turn: 1, event_id: 2 };
        let (activity, data) = ("charge".to_owned(), r#"{"attempt":1}"#.to_owned());
        event::Event { place, run_id: Uuid::nil(), activity, kind: kind.to_owned(), data, at: DateTime::UNIX_EPOCH }
    }

    #[test]
    fn an_event_is_told_in_one_line() {
        let shown = Event::of_run(event::Numbered { sequence: 2, event: event("run.started") }).unwrap();
        let run_id = Uuid::nil();
        let expected = format!(
            r#"{{"run_id":"{run_id}","activity":"charge","kind":"run.started","at":"1970-01-01T00:00:00.000000Z","sequence":2,"data":{{"attempt":1}}}}"#
        );
        assert_eq!(serde_json::to_string(&shown).unwrap(), expected);
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let only = |activity: Option<&str>, kind: Option<&str>| Only {
            activity: activity.map(str::to_owned),
            kind: kind.map(str::to_owned),
        };
        let fits = |only: Only| only.fits(&event("run.failed"));
        assert!(fits(only(None, None)) && fits(only(Some("charge"), Some("run.failed"))));
        assert!(!fits(only(Some("refund"), None)) && !fits(only(Some("charge"), Some("run.queued"))));
    }
}
