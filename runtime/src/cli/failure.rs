//! How a command fails: the exit code, and the words on standard error. An error's causes are told once each, and the ones that
//! everybody meets get their way out.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::output::Output;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 3;

/// Failures with a meaning of their own; every other error is exit code 1.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Unreachable(String),
    /// What was asked for was done, and told: something is wrong with what was looked at.
    #[error("")]
    Verdict,
    /// The server's error envelope.
    #[error("{message}{}", advice(code))]
    Refused { code: String, message: String, details: Value },
}

/// Prints the error to standard error, as the envelope when JSON is wanted, and gives the exit code.
pub(super) fn report(error: &anyhow::Error, output: &Output) -> ExitCode {
    // The reader of our output is gone, as with `| head`: nobody is left to tell.
    if error.chain().any(|cause| is_io(cause, ErrorKind::BrokenPipe)) {
        return ExitCode::SUCCESS;
    }
    if let Some(Failure::Verdict) = error.downcast_ref::<Failure>() {
        return ExitCode::from(FAILED);
    }
    let (code, name, details) = match error.downcast_ref::<Failure>() {
        Some(Failure::Usage(_)) => (USAGE, "usage", &Value::Null),
        Some(Failure::Unreachable(_)) => (UNREACHABLE, "unreachable", &Value::Null),
        Some(Failure::Refused { code, details, .. }) => (FAILED, code.as_str(), details),
        Some(Failure::Verdict) | None => (FAILED, "failed", &Value::Null),
    };
    let text = if output.is_json() {
        envelope(name, &words(error), details).to_string()
    } else if details.is_null() {
        format!("deedbox: {}", words(error))
    } else {
        format!("deedbox: {}\n  {details}", words(error))
    };
    // There is no place left to say that standard error cannot be written.
    let _ = writeln!(std::io::stderr(), "{text}");
    ExitCode::from(code)
}

fn envelope(name: &str, message: &str, details: &Value) -> Value {
    if details.is_null() {
        json!({ "error": name, "message": message })
    } else {
        json!({ "error": name, "message": message, "details": details })
    }
}

/// The error and its causes, leaving out what was said already.
fn words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(|cause| cause.to_string()) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let full =
        error.chain().any(|cause| is_io(cause, ErrorKind::StorageFull)) || text.contains("No space left on device");
    if full && !text.contains("free some space") {
        text.push_str("\nThe disk is full: free some space, or pass a --data-dir on another disk.");
    }
    text
}

fn is_io(cause: &(dyn std::error::Error + 'static), kind: ErrorKind) -> bool {
    cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == kind)
}

fn advice(code: &str) -> &'static str {
    match code {
        "unauthenticated" => "\nGive a token with --token or DEEDBOX_TOKEN; `deedbox up` prints one.",
        "forbidden" => {
            "\nThis needs another token: the admin token is in the file `admin-token` of the data directory."
        }
        "runner_unavailable" => "\nThe server runs but cannot reach its database: see its log.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let inner = std::io::Error::other("the cable is loose");
        let error = anyhow::Error::new(inner).context("cannot write: the cable is loose").context("starting");
        assert_eq!(words(&error), "starting: cannot write: the cable is loose");
    }

    #[test]
    fn a_full_disk_is_named() {
        let error = anyhow::Error::new(std::io::Error::from(ErrorKind::StorageFull)).context("writing the token");
        assert!(words(&error).contains("free some space"), "{}", words(&error));
    }
}
