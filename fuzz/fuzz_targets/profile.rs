//! Profiles of providers, and what they make of a request.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::profile(data));
