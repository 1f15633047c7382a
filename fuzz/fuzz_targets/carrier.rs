//! Keys in requests: headers, queries, paths, JSON, forms, GraphQL.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| deedbox::fuzzing::carrier(data));
