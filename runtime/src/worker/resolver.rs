//! Asks providers about effects whose outcome nobody knows, each again and again with growing pauses, until it is known.
//! It only asks: what cannot be told stays open for a person.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::gateway::Gateway;
use crate::store;

/// Asks about all questions that are due, and gives their number.
pub async fn run_once(gateway: &Arc<Gateway>) -> Result<usize, store::Error> {
    let mut asked = 0;
    loop {
        let batch = gateway.look_up_due().await?;
        asked += batch;
        if batch == 0 {
            return Ok(asked);
        }
    }
}

pub async fn run_forever(gateway: &Arc<Gateway>, pause: Duration) -> Infallible {
    loop {
        tokio::time::sleep(pause).await;
        if let Err(error) = run_once(gateway).await {
            tracing::warn!(error = %error, "asking providers failed; it is tried again");
        }
    }
}
