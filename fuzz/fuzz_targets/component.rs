//! Uploaded components.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::component(data));
