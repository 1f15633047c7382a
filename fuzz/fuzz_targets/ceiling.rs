//! Ceilings of tenants, and the origins that they hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::ceiling(data));
