//! JSON Schemas of deployments, and inputs of runs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::input_schema(data));
