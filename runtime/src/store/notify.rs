//! Wake-ups over LISTEN/NOTIFY. They only save waiting: whoever listens must poll as well.

use sqlx::postgres::PgListener;

use super::{Error, Result, Store};

/// A run became due.
pub const DUE: &str = "deedbox_due";
/// A run ended; the payload is `tenant/run id`.
pub const ENDED: &str = "deedbox_ended";

/// A connection of its own that hears one channel.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    pub async fn open(store: &Store, channel: &str) -> Result<Self> {
        let mut listener = PgListener::connect_with(&store.pool).await?;
        listener.listen(channel).await?;
        Ok(Self(listener))
    }

    /// The next payload. Fails when the connection was lost: what was said meanwhile was not heard, so the caller must
    /// look for itself and open another.
    pub async fn next(&mut self) -> Result<String> {
        let heard = self.0.try_recv().await?;
        heard.map(|notification| notification.payload().to_owned()).ok_or(Error::ConnectionLost)
    }
}
