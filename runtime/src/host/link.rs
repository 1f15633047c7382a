//! What a component may import, put together. Only additions to the standard implementations stand here.

use wasmtime::component::{ComponentNamedList, HasSelf, Lift, Linker, Lower, Resource};
use wasmtime::{StoreContextMut, bail};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, HostFutureIncomingResponse as _};
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostIncomingResponse};

use super::guest::Guest;
use super::wasi_http::EFFECT_ID;
use super::{bindings, fields, sockets};
use crate::key::EffectId;

/// The version that the implementation defines; a component may name any that is compatible.
pub const HTTP_TYPES: &str = "wasi:http/types@0.2.12";
const GET: &str = "[method]future-incoming-response.get";

/// Everything that the host offers.
pub fn imports(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    bindings::Activity::add_to_linker::<_, HasSelf<Guest>>(linker, called)?;
    replace(linker, HTTP_TYPES, GET, get)?;
    fields::refuse_large(linker)?;
    sockets::deny(linker)
}

/// Every call of the guest to `deedbox:activity` comes by here once.
fn called(guest: &mut Guest) -> &mut Guest {
    guest.meter.call();
    guest
}

/// Puts a function in the place of one that is there.
pub fn replace<P, R, F>(linker: &mut Linker<Guest>, interface: &str, name: &str, function: F) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lift + 'static,
    R: ComponentNamedList + Lower + 'static,
    F: Fn(StoreContextMut<'_, Guest>, P) -> wasmtime::Result<R> + Copy + Send + Sync + 'static,
{
    // What is not there yet can be defined: then the version is another, and the real function would stay in use.
    if linker.instance(interface)?.func_wrap(name, function).is_ok() {
        bail!("{interface} with {name} is not what the implementation of WASI defines");
    }
    linker.allow_shadowing(true);
    let replaced = linker.instance(interface)?.func_wrap(name, function);
    linker.allow_shadowing(false);
    replaced
}

type Got = Option<Result<Result<Resource<HostIncomingResponse>, ErrorCode>, ()>>;

/// Hands an answer to the guest, and tells the attempt so: the next call at its place is another effect.
fn get(
    mut store: StoreContextMut<'_, Guest>,
    (future,): (Resource<HostFutureIncomingResponse>,),
) -> wasmtime::Result<(Got,)> {
    let guest = store.data_mut();
    let mut http = guest.http();
    let got = http.get(future)?;
    if let Some(Ok(Ok(response))) = &got {
        let headers = &http.table.get(response)?.headers;
        let effect: Option<EffectId> = headers.get(EFFECT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
        guest.handed(effect);
    }
    Ok((got,))
}
