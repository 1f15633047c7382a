//! `deedbox:activity/checkpoint`.

use super::bindings::deedbox::activity::checkpoint::{CheckpointError, Host};
use super::guest::Guest;

impl Host for Guest {
    async fn save(&mut self, state: Vec<u8>) -> wasmtime::Result<Result<(), CheckpointError>> {
        if state.len() > self.max_checkpoint_bytes {
            return Ok(Err(CheckpointError::TooLarge));
        }
        self.attempt("save")?.save_checkpoint(&state).await?;
        Ok(Ok(()))
    }

    async fn load(&mut self) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self.attempt("load")?.load_checkpoint().await?)
    }
}
