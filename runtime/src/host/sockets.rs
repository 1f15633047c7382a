//! `wasi:sockets`, which default builds of some languages import without using it: linked, and denied. No socket can be
//! made and no name be looked up, so that what needs a socket can never be called.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::{Network, TcpSocket, UdpSocket};

use super::guest::Guest;
use super::link;

/// What the guest's log says at the first denied call.
const DENIED: &str = "sockets are denied: use wasi:http or deedbox:activity/http";

/// What an upload is told whose component imports them.
const WARNING: &str =
    "imports wasi:sockets: every socket call fails in Deedbox; HTTP goes through wasi:http or deedbox:activity/http";

/// The warnings about a component with these imports.
pub fn warnings<'a>(mut imports: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    imports.find(|import| import.starts_with("wasi:sockets/")).map(|_| WARNING).into_iter().collect()
}

/// Puts the denial in the place of the three calls by which a guest could come by a socket or an address.
pub fn deny(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    link::replace(linker, "wasi:sockets/tcp-create-socket@0.2.12", "create-tcp-socket", create_tcp)?;
    link::replace(linker, "wasi:sockets/udp-create-socket@0.2.12", "create-udp-socket", create_udp)?;
    link::replace(linker, "wasi:sockets/ip-name-lookup@0.2.12", "resolve-addresses", look_up)
}

type Denied<T> = wasmtime::Result<(Result<Resource<T>, ErrorCode>,)>;

fn create_tcp(store: StoreContextMut<'_, Guest>, (_,): (IpAddressFamily,)) -> Denied<TcpSocket> {
    deny_call(store)
}

fn create_udp(store: StoreContextMut<'_, Guest>, (_,): (IpAddressFamily,)) -> Denied<UdpSocket> {
    deny_call(store)
}

fn look_up(store: StoreContextMut<'_, Guest>, (_, _): (Resource<Network>, String)) -> Denied<ResolveAddressStream> {
    deny_call(store)
}

fn deny_call<T>(mut store: StoreContextMut<'_, Guest>) -> Denied<T> {
    let guest = store.data_mut();
    guest.meter.call();
    if !std::mem::replace(&mut guest.sockets_denied, true) {
        guest.stderr.say(DENIED);
    }
    Ok((Err(ErrorCode::AccessDenied),))
}
