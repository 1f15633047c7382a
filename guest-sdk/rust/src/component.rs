//! The component: the host's imports behind [`Host`], and the export that the host calls.
//!
//! The export is defined here, once, and reaches the author's component by being linked, so that an
//! activity needs no line of its own for it. Nothing here may hold state between calls.

use std::rc::Rc;

use crate::bindings::deedbox::activity::{checkpoint, context, files, http, idempotency, messaging, signals};
use crate::bindings::exports::deedbox::activity::activities::{Descriptor, Failure, Guest};
use crate::host::Host;
use crate::{Context, activity};

struct Component;

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, reason = "the names of exports are unsafe attributes")]
mod export {
    use super::Component;

    crate::bindings::export_component!(Component with_types_in crate::bindings);
}

impl Guest for Component {
    fn describe() -> Vec<Descriptor> {
        activity::all().into_iter().map(descriptor).collect()
    }

    fn run(activity: String, input: String) -> Result<String, Failure> {
        #[cfg(target_family = "wasm")]
        crate::logging::begin();
        activity::run(&Context::new(Rc::new(Self)), &activity, &input).map_err(Into::into)
    }
}

fn descriptor(registration: &activity::Registration) -> Descriptor {
    let schemas = (registration.schemas)();
    Descriptor {
        name: registration.name.to_owned(),
        summary: registration.summary.to_owned(),
        input_schema: schemas.input,
        output_schema: schemas.output,
    }
}

impl Host for Component {
    fn idempotency_key(&self) -> String {
        idempotency::idempotency_key()
    }

    fn subkey(&self, name: &str) -> Result<String, idempotency::KeyError> {
        idempotency::subkey(name)
    }

    fn run_info(&self) -> context::RunInfo {
        context::run()
    }

    fn cancelled(&self) -> bool {
        context::cancelled()
    }

    fn send(&self, request: &http::Request, options: &http::Options) -> Result<http::Response, http::Error> {
        http::send(request, options)
    }

    fn publish(
        &self,
        subject: &str,
        payload: &[u8],
        options: &messaging::Options,
    ) -> Result<messaging::Published, messaging::Error> {
        messaging::publish(subject, payload, options)
    }

    fn write(&self, path: &str, bytes: &[u8], identity: &http::Identity) -> Result<files::Written, files::Error> {
        files::write(path, bytes, identity)
    }

    fn append(&self, path: &str, bytes: &[u8]) -> Result<(), files::Error> {
        files::append(path, bytes)
    }

    fn poll_signal(&self, name: &str) -> Result<Option<signals::Signal>, signals::SignalError> {
        signals::poll(name)
    }

    fn wait_signal(
        &self,
        name: &str,
        timeout_ms: Option<u64>,
    ) -> Result<Option<signals::Signal>, signals::SignalError> {
        signals::wait(name, timeout_ms)
    }

    fn save(&self, state: &[u8]) -> Result<(), checkpoint::CheckpointError> {
        checkpoint::save(state)
    }

    fn load(&self) -> Option<Vec<u8>> {
        checkpoint::load()
    }
}
