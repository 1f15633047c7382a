//! Policies of deployments.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::policy(data));
