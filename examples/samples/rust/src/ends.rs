//! The ways in which an attempt can end badly, on demand.

use std::hint::black_box;
use std::time::Duration;

use deedbox_guest::prelude::*;

const MIB: usize = 1 << 20;
const PAGE: usize = 4096;

#[data]
struct Fail {
    code: String,
    message: String,
    kind: Kind,
    retry_after_ms: Option<u64>,
    details: Option<Value>,
}

#[data]
#[serde(rename_all = "lowercase")]
enum Kind {
    Retryable,
    Permanent,
}

/// Fails as it is told.
#[activity]
fn fail(_ctx: &Context, input: Fail) -> Result<Value, Failure> {
    let mut failure = match input.kind {
        Kind::Retryable => Failure::retryable(input.code, input.message),
        Kind::Permanent => Failure::permanent(input.code, input.message),
    };
    if let Some(delay) = input.retry_after_ms {
        failure = failure.retry_after(Duration::from_millis(delay));
    }
    if let Some(details) = input.details {
        failure = failure.details(&details);
    }
    Err(failure)
}

#[data]
struct Words {
    words: String,
}

/// Panics with these words.
#[activity]
fn panic(_ctx: &Context, input: Words) -> Result<Value, Failure> {
    panic!("{}", input.words)
}

#[data]
struct Spend {
    kind: What,
}

#[data]
#[serde(rename_all = "lowercase")]
enum What {
    Loop,
    Memory,
    Stack,
}

/// Takes time, memory or stack without end.
#[activity]
fn spend(_ctx: &Context, input: Spend) -> Result<u64, Failure> {
    match input.kind {
        What::Loop => loop {
            std::hint::spin_loop();
        },
        What::Memory => {
            let mut taken = Vec::new();
            loop {
                taken.push(black_box(touched()));
            }
        }
        What::Stack => Ok(deeper(0)),
    }
}

fn touched() -> Vec<u8> {
    let mut memory = vec![0; MIB];
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    memory
}

#[allow(unconditional_recursion, reason = "the stack is to overflow")]
fn deeper(depth: u64) -> u64 {
    black_box(deeper(black_box(depth) + 1)) + 1
}

#[cfg(test)]
mod tests {
    use deedbox_guest::FailureKind;
    use deedbox_guest::testing::FakeContext;

    #[test]
    fn a_failure_is_as_it_was_told() {
        let ctx = FakeContext::for_run("0190b1c2-0000-7000-8000-000000000001").unwrap();
        let input = r#"{ "code": "c", "message": "m", "kind": "permanent", "details": { "n": 1 } }"#;
        let failure = ctx.run_named("fail", input).unwrap_err();
        assert_eq!((failure.code(), failure.message(), failure.kind()), ("c", "m", FailureKind::Permanent));
        assert_eq!(failure.details_json(), Some(r#"{"n":1}"#));
    }
}
