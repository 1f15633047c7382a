//! `deedbox-books`: the provider as a program. It prints one JSON line with its address once it listens, on loopback only,
//! and stops on SIGTERM or SIGINT. It must never print anything else to its standard output.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use deedbox_books::{Convention, Error, Options, Provider};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// A payment provider that keeps books on disk, for tests and the demo.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Where the books are kept; created if missing, continued if not.
    #[arg(long)]
    dir: PathBuf,
    /// The port on 127.0.0.1; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Ignore `Idempotency-Key`, like a provider without keys.
    #[arg(long)]
    keyless: bool,
    /// What is promised about keys, as JSON; without it, `Idempotency-Key` as Stripe has it.
    #[arg(long, value_name = "FILE.json")]
    convention: Option<PathBuf>,
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "a program says on stderr why it stopped")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("deedbox-books: {error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout, reason = "the address is this program's output")]
async fn run(arguments: Arguments) -> Result<(), Error> {
    let text = arguments.convention.map(std::fs::read_to_string).transpose()?;
    let convention = text.map(|text| Convention::parse(&text)).transpose()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    println!("{}", serde_json::json!({"address": listener.local_addr()?.to_string()}));
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    Provider::serve(listener, arguments.dir, Options { keyless: arguments.keyless, convention }, shutdown).await
}
