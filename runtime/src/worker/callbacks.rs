//! Delivers the messages that tell of the ends of runs, many at once, few of one tenant: a receiver that hangs holds up only
//! its own tenant. What a node has under way when it ends is sent again by another, under the same id.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

use crate::gateway::Gateway;
use crate::store;

/// Tries what is due and has a place, each message once, and gives the number of tries.
pub async fn run_once(gateway: &Arc<Gateway>) -> Result<usize, store::Error> {
    let mut sends = Sends::default();
    let begun = sends.take(gateway).await?;
    while sends.end_one().await {}
    Ok(begun)
}

pub async fn run_forever(gateway: &Arc<Gateway>, poll: Duration) -> Infallible {
    let mut sends = Sends::default();
    loop {
        if let Err(error) = sends.take(gateway).await {
            tracing::warn!(error = %error, "looking for callbacks failed; it is tried again");
            tokio::time::sleep(poll).await;
        }
        tokio::select! {
            true = sends.end_one() => {}
            () = tokio::time::sleep(poll) => {}
        }
    }
}

/// The tries under way. They end with it.
#[derive(Default)]
struct Sends {
    tasks: JoinSet<()>,
    tenants: HashMap<Id, String>,
    /// The tenant behind which the next look begins.
    after: String,
}

impl Sends {
    /// Begins all tries that are due and have a place, and gives their number.
    async fn take(&mut self, gateway: &Arc<Gateway>) -> Result<usize, store::Error> {
        let mut begun = 0;
        // A look that begins in the middle is followed by one from the first tenant.
        let mut rounds = if self.after.is_empty() { 1 } else { 2 };
        while rounds > 0 {
            let free = gateway.max_callbacks().saturating_sub(self.tasks.len());
            if free == 0 {
                break;
            }
            let look = gateway.take_callbacks(free, self.busy(), std::mem::take(&mut self.after)).await?;
            begun += look.taken.len();
            for taken in look.taken {
                let (gateway, tenant) = (gateway.clone(), taken.tenant().to_owned());
                let task = self.tasks.spawn(async move { gateway.deliver(taken).await });
                self.tenants.insert(task.id(), tenant);
            }
            rounds -= usize::from(look.next.is_empty());
            self.after = look.next;
        }
        Ok(begun)
    }

    fn busy(&self) -> BTreeMap<String, i32> {
        let mut busy = BTreeMap::new();
        for tenant in self.tenants.values() {
            *busy.entry(tenant.clone()).or_default() += 1;
        }
        busy
    }

    /// Waits for the end of one try; false when none is under way.
    async fn end_one(&mut self) -> bool {
        let Some(ended) = self.tasks.join_next_with_id().await else { return false };
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(error = %error, "a try of a callback broke off");
                error.id()
            }
        };
        self.tenants.remove(&id);
        true
    }
}
