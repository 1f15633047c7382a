//! `deedbox worker`: runs the attempts of a fleet.

use clap::Args;
use serde_json::json;

use super::os_signals;
use super::output::Output;
use super::settings::Fleet;
use crate::node::Node;

#[derive(Debug, Args)]
pub(super) struct Worker {
    #[command(flatten)]
    fleet: Fleet,
}

impl Worker {
    /// Prints `working as NAME` before it takes its first run. On a signal it takes no more, drains, and ends well.
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let stop = os_signals::stop()?;
        let settings = self.fleet.node().await?;
        let name = settings.name.clone();
        let node = Node::open(settings).await?;
        output.show(&json!({ "worker": name }), |_| format!("working as {name}"))?;
        node.work(stop).await;
        node.close().await;
        Ok(())
    }
}
