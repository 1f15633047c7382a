//! Wake-ups over LISTEN/NOTIFY. They only save waiting: whoever listens must poll as well.

use sqlx::postgres::PgListener;

use super::{Error, Result, Store, bounded};

/// What one connection hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Runs became ready.
    Due,
    /// A run ended; `tenant/run id`.
    Ended(String),
    /// A signal was delivered to a run; `tenant/run id`.
    Signal(String),
    /// The owner of a running run wants it to stop; `tenant/run id`.
    Wish(String),
    /// The echo of [`echo`].
    Echo(String),
}

const DUE: &str = "deedbox_due";
const ENDED: &str = "deedbox_ended";
const SIGNAL: &str = "deedbox_signal";
const WISH: &str = "deedbox_wish";
const ECHO: &str = "deedbox_echo";

/// A connection of its own that hears all channels.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    pub async fn open(store: &Store) -> Result<Self> {
        let mut listener = PgListener::connect_with(&store.pool).await?;
        listener.listen_all([DUE, ENDED, SIGNAL, WISH, ECHO]).await?;
        Ok(Self(listener))
    }

    /// What is said next. Fails when the connection was lost: what was said meanwhile was not heard, so the caller must
    /// look for itself and open another.
    pub async fn next(&mut self) -> Result<Heard> {
        loop {
            let notification = self.0.try_recv().await?.ok_or(Error::ConnectionLost)?;
            let payload = notification.payload().to_owned();
            return Ok(match notification.channel() {
                DUE => Heard::Due,
                ENDED => Heard::Ended(payload),
                SIGNAL => Heard::Signal(payload),
                WISH => Heard::Wish(payload),
                ECHO => Heard::Echo(payload),
                _ => continue,
            });
        }
    }
}

/// Says a word to all who listen: one who does not hear it is deaf, as behind a pooler that shares connections.
pub async fn echo(store: &Store, word: &str) -> Result<()> {
    let said = sqlx::query!("select pg_notify('deedbox_echo', $1)", word);
    bounded(said.fetch_one(&store.pool)).await?;
    Ok(())
}
