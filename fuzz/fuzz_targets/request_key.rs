//! Headers that carry a request's key.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::request_key(data));
