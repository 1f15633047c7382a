//! URLs and addresses that a policy judges.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::egress_url(data));
