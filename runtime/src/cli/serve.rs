//! `deedbox serve`: the API of a fleet.

use clap::Args;
use serde_json::json;

use super::os_signals;
use super::output::Output;
use super::settings::{self, Fleet, LISTEN};
use crate::node::Node;

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Where to listen; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", env = "DEEDBOX_LISTEN", default_value = LISTEN)]
    listen: String,
    #[command(flatten)]
    fleet: Fleet,
}

impl Serve {
    /// Prints `listening on http://ADDRESS` once it answers, and ends well on a signal.
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let stop = os_signals::stop()?;
        let listener = settings::listen(&self.listen).await?;
        let address = listener.local_addr()?;
        let node = Node::open(self.fleet.node()?)?;
        node.store().check_schema().await?;
        output
            .show(&json!({ "address": format!("http://{address}") }), |_| format!("listening on http://{address}"))?;
        let served = node.serve(listener, stop).await;
        node.close().await;
        Ok(served?)
    }
}
