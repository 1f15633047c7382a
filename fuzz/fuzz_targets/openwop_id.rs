//! Ids of OpenWOP clients.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::openwop_id(data));
