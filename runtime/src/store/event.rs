//! What happened to runs, as those who follow them read it. Triggers write the rows (`migrations/0005_events.sql`), and a
//! run's rows go with the run; nothing here changes one.
//!
//! Only events that no transaction under way can get in front of are read, so that whoever goes on behind the last one has
//! missed none. An open transaction of anyone on the database server therefore delays those of later ones.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Db, Result, Store, bounded};

/// Where an event stands among those of its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub turn: i64,
    pub event_id: i64,
}

impl Place {
    /// Before every event.
    pub const START: Self = Self { turn: -1, event_id: 0 };
}

/// How far a run's events were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// So many were read.
    pub sequence: i64,
    /// The place of the last of them. It saves counting; none: not known.
    pub place: Option<Place>,
}

impl Position {
    /// Behind the first `sequence` events of the run.
    pub const fn behind(sequence: i64) -> Self {
        Self { sequence, place: None }
    }

    /// The place to go on from, and how many events to pass over behind it.
    fn start(self) -> (Place, i64) {
        self.place.map_or((Place::START, self.sequence.max(0)), |place| (place, 0))
    }
}

/// One thing that happened to a run. `data` is a JSON text of one line; it has nothing that a guest, a caller or a provider
/// wrote, but for names and codes.
#[derive(Clone, Debug)]
pub struct Event {
    pub place: Place,
    pub run_id: Uuid,
    pub activity: String,
    pub kind: String,
    pub data: String,
    pub at: DateTime<Utc>,
}

/// An event and its number among those of its run, from 1.
#[derive(Clone, Debug)]
pub struct Numbered {
    pub sequence: i64,
    pub event: Event,
}

struct Row {
    turn: i64,
    event_id: i64,
    run_id: Uuid,
    activity: String,
    kind: String,
    data: String,
    at: DateTime<Utc>,
}

impl From<Row> for Event {
    fn from(row: Row) -> Self {
        let Row { turn, event_id, run_id, activity, kind, data, at } = row;
        Self { place: Place { turn, event_id }, run_id, activity, kind, data, at }
    }
}

/// The events of a run behind a position, in their order.
pub async fn list_of_run(
    mut db: impl Db,
    tenant: &str,
    run_id: Uuid,
    after: Position,
    limit: i64,
) -> Result<Vec<Numbered>> {
    let (place, passed) = after.start();
    let rows = sqlx::query_as!(
        Row,
        "select e.turn, e.event_id, e.run_id, r.activity, e.kind, e.data, e.at
         from events e join runs r on r.tenant = e.tenant and r.run_id = e.run_id
         where e.tenant = $1 and e.run_id = $2 and (e.turn, e.event_id) > ($3, $4)
           and e.turn < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
         order by e.turn, e.event_id offset $5 limit $6",
        tenant,
        run_id,
        place.turn,
        place.event_id,
        passed,
        limit
    );
    let rows = bounded(rows.fetch_all(&mut *db.connection().await?)).await?;
    let before = after.sequence.max(0);
    let numbered = |(row, number): (Row, i64)| Numbered { sequence: before.saturating_add(number), event: row.into() };
    Ok(rows.into_iter().zip(1..).map(numbered).collect())
}

/// How many events of a run may be told now.
pub async fn count_of_run(mut db: impl Db, tenant: &str, run_id: Uuid) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from events e
           where e.tenant = $1 and e.run_id = $2
             and e.turn < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"#,
        tenant,
        run_id
    );
    bounded(count.fetch_one(&mut *db.connection().await?)).await
}

/// Whether the run has ended and nothing of it is left behind the position, also nothing that may not be told yet. None when
/// there is no such run.
pub async fn is_over(mut db: impl Db, tenant: &str, run_id: Uuid, after: Position) -> Result<Option<bool>> {
    let (place, passed) = after.start();
    // The end and its event are of one transaction: who sees the one sees the other.
    let over = sqlx::query_scalar!(
        r#"select r.ended_at is not null and not exists (
             select from events e
             where e.tenant = $1 and e.run_id = $2 and (e.turn, e.event_id) > ($3, $4)
             order by e.turn, e.event_id offset $5 limit 1) as "over!"
           from runs r where r.tenant = $1 and r.run_id = $2"#,
        tenant,
        run_id,
        place.turn,
        place.event_id,
        passed
    );
    bounded(over.fetch_optional(&mut *db.connection().await?)).await
}

/// The events of a tenant behind a place, in their order.
pub async fn list(mut db: impl Db, tenant: &str, after: Place, limit: i64) -> Result<Vec<Event>> {
    let rows = sqlx::query_as!(
        Row,
        "select e.turn, e.event_id, e.run_id, r.activity, e.kind, e.data, e.at
         from events e join runs r on r.tenant = e.tenant and r.run_id = e.run_id
         where e.tenant = $1 and (e.turn, e.event_id) > ($2, $3)
           and e.turn < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
         order by e.turn, e.event_id limit $4",
        tenant,
        after.turn,
        after.event_id,
        limit
    );
    Ok(bounded(rows.fetch_all(&mut *db.connection().await?)).await?.into_iter().map(Event::from).collect())
}

/// The place behind all that may be told now.
pub async fn now(mut db: impl Db) -> Result<Place> {
    let open = sqlx::query_scalar!(r#"select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "open!""#);
    let open = bounded(open.fetch_one(&mut *db.connection().await?)).await?;
    Ok(Place { turn: open - 1, event_id: i64::MAX })
}

/// Numbers the events anew that come from another server, by a dump: its transactions' numbers mean nothing here, and would
/// keep them from being told. Ids that were given for them lead nowhere from then on.
pub(super) async fn renumber(store: &Store) -> Result<()> {
    // In their order, which `event_id` keeps. Not bounded: this may be a whole table, and nobody waits for it yet.
    let done = sqlx::query!(
        "update events e set turn = 0 from tenants t
         where e.tenant = t.tenant and exists (
           select from events n
           where n.tenant = t.tenant and n.turn >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
    );
    done.execute(&store.pool).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_without_a_place_is_counted() {
        let place = Place { turn: 7, event_id: 9 };
        assert_eq!(Position { sequence: 3, place: Some(place) }.start(), (place, 0));
        assert_eq!(Position::behind(3).start(), (Place::START, 3));
        assert_eq!(Position::behind(-1).start(), (Place::START, 0));
    }
}
