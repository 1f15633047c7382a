//! A component whose activities use an ordinary HTTP client over wasi:http and the raw sockets of WASI, for the tests of
//! the host. No call here knows anything of Deedbox but the names of its reserved headers, which come from the test.
#![cfg(target_os = "wasi")]

mod fetch;
mod raw;
mod sockets;
mod surroundings;
