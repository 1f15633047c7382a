//! Wake-ups over LISTEN/NOTIFY. They only save waiting: whoever listens must poll as well.

use sqlx::postgres::PgListener;

use super::{Result, Store};

/// A run became due.
pub const DUE: &str = "deedbox_due";
/// A run ended; the payload is `tenant/run id`.
pub const ENDED: &str = "deedbox_ended";

/// A connection of its own that hears one channel.
pub struct Listener(PgListener);

impl Listener {
    pub async fn open(store: &Store, channel: &str) -> Result<Self> {
        let mut listener = PgListener::connect_with(&store.pool).await?;
        listener.listen(channel).await?;
        Ok(Self(listener))
    }

    /// The next payload. Reconnects by itself; an error means that what was said meanwhile is lost.
    pub async fn next(&mut self) -> Result<String> {
        Ok(self.0.recv().await?.payload().to_owned())
    }
}
