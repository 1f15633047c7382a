//! Cursors of lists, and ids of events.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::cursor(data));
