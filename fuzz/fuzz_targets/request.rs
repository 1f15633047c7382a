//! HTTP requests of guests, with reserved headers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::request(data));
