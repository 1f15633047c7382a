//! `deedbox runs watch`: prints what happens to one run, from its beginning to its end. Stopping to watch never stops the run.

use serde_json::Value;

use crate::cli::client::Client;
use crate::cli::follow::{self, Follower};
use crate::cli::output::Output;
use crate::cli::wait;

/// Tells each event until the run has ended; an error if it did not complete.
pub(super) async fn watch(client: &Client, output: &Output, run_id: &str) -> anyhow::Result<()> {
    let path = ["v1", "runs", run_id, "events"];
    let tell = |event: &Value| output.show(event, follow::line);
    let mut follower = Follower::new();
    loop {
        follower.run(client, output, &path, &[], tell).await?;
        let run = client.get(&["v1", "runs", run_id], &[]).await?;
        // A failed run may have been begun again meanwhile.
        if wait::has_ended(&run) {
            return wait::check_completed(&run);
        }
    }
}
