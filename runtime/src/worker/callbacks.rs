//! Delivers the messages that tell of the ends of runs, many at once, few of one tenant, and not all of them for tenants whose
//! receivers hang: those hold up only each other. What a node has under way when it ends is sent again by another, under the
//! same id.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

use crate::gateway::Gateway;
use crate::gateway::callback::Asked;
use crate::store;

/// The most tenants that are known as silent at once.
const MAX_SILENT: usize = 1_000;

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
    tasks: JoinSet<Option<bool>>,
    tenants: HashMap<Id, String>,
    silent: Silent,
    /// The tenant behind which the next look begins: among the silent ones, and among the others.
    after_silent: String,
    after: String,
}

impl Sends {
    /// Begins all tries that are due and have a place, and gives their number.
    async fn take(&mut self, gateway: &Arc<Gateway>) -> Result<usize, store::Error> {
        gateway.give_up_callbacks().await?;
        // The silent ones come first: their share is bounded, and what is left of the places the others may have whole.
        Ok(self.take_of(gateway, true).await? + self.take_of(gateway, false).await?)
    }

    /// The same for the silent tenants alone, or for the others alone.
    async fn take_of(&mut self, gateway: &Arc<Gateway>, of_silent: bool) -> Result<usize, store::Error> {
        let mut begun = 0;
        // A look that begins in the middle is followed by one from the first tenant.
        let mut rounds = if self.place(of_silent).is_empty() { 1 } else { 2 };
        while rounds > 0 {
            let limit = self.free(gateway, of_silent);
            if limit == 0 {
                break;
            }
            let after = std::mem::take(self.place(of_silent));
            let asked = Asked { limit, busy: self.busy(), silent: self.silent.list(), of_silent, after };
            let look = gateway.take_callbacks(asked).await?;
            begun += look.taken.len();
            for taken in look.taken {
                let (gateway, tenant) = (gateway.clone(), taken.tenant().to_owned());
                let task = self.tasks.spawn(async move { gateway.deliver(taken).await });
                self.tenants.insert(task.id(), tenant);
            }
            rounds -= usize::from(look.next.is_empty());
            *self.place(of_silent) = look.next;
        }
        Ok(begun)
    }

    fn place(&mut self, of_silent: bool) -> &mut String {
        if of_silent { &mut self.after_silent } else { &mut self.after }
    }

    /// How many more tries may begin.
    fn free(&self, gateway: &Gateway, of_silent: bool) -> usize {
        let free = gateway.max_callbacks().saturating_sub(self.tasks.len());
        if !of_silent {
            return free;
        }
        if self.silent.0.is_empty() {
            return 0;
        }
        let held = self.tenants.values().filter(|tenant| self.silent.0.contains(*tenant)).count();
        free.min(gateway.max_silent_callbacks().saturating_sub(held))
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
        let (id, answered) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!(error = %error, "a try of a callback broke off");
                (error.id(), None)
            }
        };
        if let Some((tenant, answered)) = self.tenants.remove(&id).zip(answered) {
            self.silent.note(tenant, answered);
        }
        true
    }
}

/// The tenants whose last try got no answer, the latest of them last. The earliest is forgotten when there are too many.
#[derive(Default)]
struct Silent(VecDeque<String>);

impl Silent {
    fn note(&mut self, tenant: String, answered: bool) {
        self.0.retain(|other| *other != tenant);
        if answered {
            return;
        }
        self.0.push_back(tenant);
        if self.0.len() > MAX_SILENT {
            self.0.pop_front();
        }
    }

    fn list(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_silent_until_its_next_answer() {
        let mut silent = Silent::default();
        for (tenant, answered) in [("a", false), ("b", false), ("c", true), ("a", false)] {
            silent.note(tenant.to_owned(), answered);
        }
        assert_eq!(silent.list(), ["b", "a"]);
        silent.note("b".to_owned(), true);
        assert_eq!(silent.list(), ["a"]);
    }

    #[test]
    fn of_too_many_silent_tenants_the_earliest_is_forgotten() {
        let mut silent = Silent::default();
        for n in 0..=MAX_SILENT {
            silent.note(n.to_string(), false);
        }
        let list = silent.list();
        assert_eq!((list.len(), list.first().map(String::as_str)), (MAX_SILENT, Some("1")));
    }
}
