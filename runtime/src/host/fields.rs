//! The headers that a guest puts together over `wasi:http`. Where the implementation of WASI ends the guest because they
//! are too large, the guest is told instead. Nothing else about headers is decided here.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::HeaderResult;
use wasmtime_wasi_http::p2::bindings::http::types::{HeaderError, HostFields as _};
use wasmtime_wasi_http::{FieldMap, FieldMapError, WasiHttpView};

use super::guest::Guest;
use super::link;

/// What the guest's log says: the error code has no text.
const TOO_LARGE: &str = "wasi:http: these headers are larger than host.max_field_bytes: set fewer or shorter ones";

type Told<T> = wasmtime::Result<(Result<T, HeaderError>,)>;

/// Puts functions that tell in the place of the three by which headers grow.
pub fn refuse_large(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    link::replace(linker, link::HTTP_TYPES, "[static]fields.from-list", from_list)?;
    link::replace(linker, link::HTTP_TYPES, "[method]fields.set", set)?;
    link::replace(linker, link::HTTP_TYPES, "[method]fields.append", append)
}

fn from_list(mut store: StoreContextMut<'_, Guest>, (entries,): (Vec<(String, Vec<u8>)>,)) -> Told<Resource<FieldMap>> {
    let guest = store.data_mut();
    let made = guest.http().from_list(entries);
    told(guest, made)
}

fn set(
    mut store: StoreContextMut<'_, Guest>,
    (fields, name, values): (Resource<FieldMap>, String, Vec<Vec<u8>>),
) -> Told<()> {
    let guest = store.data_mut();
    let made = guest.http().set(fields, name, values);
    told(guest, made)
}

fn append(
    mut store: StoreContextMut<'_, Guest>,
    (fields, name, value): (Resource<FieldMap>, String, Vec<u8>),
) -> Told<()> {
    let guest = store.data_mut();
    let made = guest.http().append(fields, name, value);
    told(guest, made)
}

fn told<T>(guest: &mut Guest, made: HeaderResult<T>) -> Told<T> {
    let error = match made {
        Ok(made) => return Ok((Ok(made),)),
        Err(error) => error.downcast(),
    };
    match error {
        Ok(code) => Ok((Err(code),)),
        Err(trap) if trap.is::<FieldMapError>() => {
            guest.stderr.say(TOO_LARGE);
            Ok((Err(HeaderError::Forbidden),))
        }
        Err(trap) => Err(trap),
    }
}
