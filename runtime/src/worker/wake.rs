//! Wakes the worker when a run becomes due. Notifications only save waiting: the poll finds what they miss.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::Notify;

use crate::store::Store;
use crate::store::notify::{DUE, Listener};

/// The shortest and the longest pause before a lost connection is opened again.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Wake(Notify);

impl Wake {
    /// Until a notification, or for the length of a poll.
    pub async fn wait(&self, poll: Duration) {
        let _ = tokio::time::timeout(poll, self.0.notified()).await;
    }

    pub async fn listen_forever(&self, store: &Store) -> Infallible {
        let mut pause = MIN_PAUSE;
        loop {
            match self.listen(store, &mut pause).await {
                Ok(never) => match never {},
                Err(error) => tracing::warn!(error = %error, "wake-ups are lost; polling goes on"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn listen(&self, store: &Store, pause: &mut Duration) -> Result<Infallible, crate::store::Error> {
        let mut listener = Listener::open(store, DUE).await?;
        *pause = MIN_PAUSE;
        loop {
            // Also at the beginning: something may have been said before anyone listened.
            self.0.notify_one();
            listener.next().await?;
        }
    }
}
