//! `deedbox:activity/context`.

use tokio::time::Instant;

use super::bindings::deedbox::activity::context::{Host, RunInfo};
use super::guest::Guest;

impl Host for Guest {
    async fn run(&mut self) -> wasmtime::Result<RunInfo> {
        let attempt = self.attempt("run")?;
        let info = self.run_info()?;
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        Ok(RunInfo {
            tenant: attempt.tenant().to_owned(),
            run_id: attempt.run_id().to_string(),
            activity: info.activity,
            attempt: info.attempt,
            max_attempts: info.max_attempts,
            remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
        })
    }

    async fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.attempt("cancelled")?.is_stopping())
    }
}
