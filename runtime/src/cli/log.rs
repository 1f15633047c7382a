//! Where the program's own log goes: standard error, so that standard output stays what the command prints.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::failure::Failure;

#[derive(Debug, Args)]
pub(super) struct Settings {
    /// What is logged: a level (error, warn, info, debug, trace), or directives such as `deedbox::gateway=debug,warn`.
    #[arg(long = "log", value_name = "LEVEL", env = "DEEDBOX_LOG", default_value = USUAL, global = true)]
    level: String,
    #[arg(
        long = "log-format",
        value_name = "FORMAT",
        env = "DEEDBOX_LOG_FORMAT",
        default_value = "text",
        global = true
    )]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

const USUAL: &str = "info";

/// Starts logging. Fails on a level that cannot be understood. `quiet`: where nothing else is asked for, nothing is logged, for
/// a command that makes things fail on purpose.
pub(super) fn start(settings: &Settings, quiet: bool) -> anyhow::Result<()> {
    let directives = if quiet && settings.level == USUAL { "off".to_owned() } else { directives(&settings.level) };
    let filter = EnvFilter::builder()
        .parse(&directives)
        .map_err(|error| Failure::Usage(format!("--log {}: {error}", settings.level)))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start, as in a test, keeps the first log.
    let _ = match settings.format {
        Format::Text => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
        Format::Json => log.json().try_init(),
    };
    Ok(())
}

/// A bare level is meant for this program; the libraries below it only warn. The NATS client does not even that: it takes
/// for an error that a connection is not made a second time, which is how it is used here.
fn directives(level: &str) -> String {
    if level.contains(['=', ',']) { level.to_owned() } else { format!("warn,async_nats=off,deedbox={level}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_is_for_deedbox_alone() {
        assert_eq!(directives("debug"), "warn,async_nats=off,deedbox=debug");
        assert_eq!(directives("sqlx=info,warn"), "sqlx=info,warn");
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        let settings = Settings { level: "loud".to_owned(), format: Format::Text };
        assert!(start(&settings, false).is_err());
    }
}
