//! Hooks as tenants describe them, and deliveries to them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::hook(data));
