//! Whether two JSON texts mean the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::canonical_json(data));
