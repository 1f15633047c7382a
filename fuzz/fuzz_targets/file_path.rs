//! Paths of files, as guests write them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::file_path(data));
