//! A worker that stops at a named point of its first attempt, says so on its standard output, and waits there to be
//! killed, or to be woken by the word `go` on its standard input. For tests that need a real process.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use deedbox::clock::SystemClock;
use deedbox::config::Config;
use deedbox::gateway::vault::MasterKey;
use deedbox::node::{Node, NodeSettings};
use deedbox::probe::{Point, Probe};
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    database_url: String,
    #[arg(long)]
    master_key_file: PathBuf,
    #[arg(long)]
    cache_dir: PathBuf,
    #[arg(long)]
    config: Option<PathBuf>,
    #[arg(long)]
    name: String,
    /// The point to hold at; none: never.
    #[arg(long)]
    hold_at: Option<Point>,
}

#[derive(Debug)]
struct HoldOnce {
    at: Option<Point>,
    held: AtomicBool,
}

impl Probe for HoldOnce {
    fn reach(&self, point: Point) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if self.at == Some(point) && !self.held.swap(true, Ordering::SeqCst) {
                // Whoever reads these lines cannot be told anything better than that they are gone.
                let _ = tokio::task::spawn_blocking(hold).await;
            }
        })
    }
}

fn hold() {
    say("held");
    let mut line = String::new();
    while line.trim() != "go" {
        line.clear();
        // Whoever was to wake it is gone: a held worker must not outlive its test.
        if std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read == 0) {
            std::process::exit(1);
        }
    }
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word}").and_then(|()| out.flush()).ok();
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut config = Config::load(arguments.config.as_deref())?;
    // This program is no compiler; the real one is built beside it.
    config.host.compiler = Some(std::env::current_exe()?.with_file_name("deedbox"));
    let settings = NodeSettings {
        database_url: arguments.database_url,
        master_keys: MasterKey::read(&arguments.master_key_file)?.into(),
        cache_dir: arguments.cache_dir,
        config,
        name: arguments.name,
    };
    let probe = HoldOnce { at: arguments.hold_at, held: AtomicBool::new(false) };
    let node = Node::open_with(settings, Arc::new(SystemClock), Arc::new(probe)).await?;
    say("working");
    let shutdown = CancellationToken::new();
    let ended = shutdown.clone();
    tokio::spawn(async move {
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
        if let Some(term) = &mut term {
            term.recv().await;
        }
        ended.cancel();
    });
    node.work(shutdown).await;
    Ok(())
}
