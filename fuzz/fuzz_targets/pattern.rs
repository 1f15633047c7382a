//! Patterns of hosts, paths and texts in profiles.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::pattern(data));
