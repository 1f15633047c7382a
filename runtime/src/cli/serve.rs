//! `deedbox serve`: the API of a fleet.

use clap::Args;
use serde_json::json;

use super::os_signals;
use super::output::Output;
use super::settings::{self, Certificate, Fleet, LISTEN};
use crate::api;
use crate::node::Node;

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Where to listen; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", env = "DEEDBOX_LISTEN", default_value = LISTEN)]
    listen: String,
    #[command(flatten)]
    fleet: Fleet,
    #[command(flatten)]
    certificate: Certificate,
}

impl Serve {
    /// Prints `listening on http://ADDRESS`, or https, once it answers, and ends well on a signal.
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let stop = os_signals::stop()?;
        let mut settings = self.fleet.node().await?;
        self.certificate.put_into(&mut settings.config);
        let scheme = api::scheme(&settings.config.api)?;
        let listener = settings::listen(&self.listen).await?;
        let address = format!("{scheme}://{}", listener.local_addr()?);
        let node = Node::open(settings).await?;
        output.show(&json!({ "address": address }), |_| format!("listening on {address}"))?;
        let served = node.serve(listener, stop).await;
        node.close().await;
        Ok(served?)
    }
}
