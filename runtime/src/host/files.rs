//! `deedbox:activity/files`.

use bytes::Bytes;

use super::bindings::deedbox::activity::{files as wit, http};
use super::guest::Guest;
use super::http::{identity_in, source_out};
use crate::gateway::{Error, Refusal, Response};

const NO_APPEND: &str = "an append that is made twice writes twice, and nothing can tell: write a file of its own for \
                         each run instead, for example one named by `idempotency-key`";

impl wit::Host for Guest {
    async fn write(
        &mut self,
        path: String,
        bytes: Vec<u8>,
        identity: http::Identity,
    ) -> wasmtime::Result<Result<wit::Written, wit::Error>> {
        let attempt = self.attempt("write")?;
        match attempt.write_file(&path, Bytes::from(bytes), identity_in(identity)).await {
            Ok(response) => Ok(Ok(written_out(&response))),
            Err(Error::Refused(refusal)) => Ok(Err(refusal_out(refusal))),
            Err(Error::Stopped(stop)) => Err(stop.into()),
        }
    }

    async fn append(&mut self, _path: String, _bytes: Vec<u8>) -> wasmtime::Result<Result<(), wit::Error>> {
        Ok(Err(wit::Error::Denied(NO_APPEND.to_owned())))
    }
}

fn written_out(response: &Response) -> wit::Written {
    wit::Written {
        source: source_out(response.source),
        effect_id: response.effect_id.map(|id| id.to_string()).unwrap_or_default(),
    }
}

fn refusal_out(refusal: Refusal) -> wit::Error {
    match refusal {
        Refusal::Denied(why) => wit::Error::Denied(why),
        Refusal::EffectMismatch(why) => wit::Error::EffectMismatch(why),
        Refusal::InFlight => wit::Error::InFlight,
        Refusal::InvalidRequest(why) => wit::Error::InvalidRequest(why),
        Refusal::Unreachable(why) => wit::Error::Failed(why),
        // A write may be made again at any time, so that the guest need not know more than that it should.
        open @ (Refusal::OutcomeUnknown(_)
        | Refusal::TimedOut
        | Refusal::ConnectionLost(_)
        | Refusal::ResponseTooLarge(_)) => {
            wit::Error::Failed(format!("{open}; the next identical write puts the file in place"))
        }
    }
}
