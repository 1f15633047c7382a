//! `deedbox:activity/idempotency`.

use super::bindings::deedbox::activity::idempotency::{Host, KeyError};
use super::guest::Guest;

impl Host for Guest {
    async fn idempotency_key(&mut self) -> wasmtime::Result<String> {
        Ok(self.attempt("idempotency-key")?.idempotency_key())
    }

    async fn subkey(&mut self, name: String) -> wasmtime::Result<Result<String, KeyError>> {
        Ok(self.attempt("subkey")?.subkey(&name).map_err(|_| KeyError::InvalidName))
    }
}
