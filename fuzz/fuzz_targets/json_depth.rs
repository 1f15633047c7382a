//! How deep a JSON text is nested.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::json_depth(data));
