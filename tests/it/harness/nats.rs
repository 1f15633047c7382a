//! A NATS server of a test's own: a real one, with JetStream, on a free port of this machine. It ends with its test, and
//! with the process of the tests however that ends.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, stream};
use async_nats::{Client, Subscriber};
use serde_json::Value;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the server, and kills it when there is nobody left who holds the other end of the standard input.
const SCRIPT: &str =
    r#""$0" "$@" >/dev/null 2>&1 & server=$!; cat >/dev/null; kill -9 $server; wait $server 2>/dev/null"#;

/// A running server.
#[derive(Debug)]
pub struct Nats {
    guard: Option<Child>,
    dir: TempDir,
    more: Vec<String>,
    port: Option<u16>,
}

/// A message as a stream keeps it.
#[derive(Debug)]
pub struct Kept {
    pub subject: String,
    pub id: Option<String>,
    pub payload: String,
}

impl Nats {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With more arguments.
    pub async fn start_with(more: &[&str]) -> Self {
        let more = more.iter().map(|argument| (*argument).to_owned()).collect();
        let mut server = Self { guard: None, dir: tempfile::tempdir().unwrap(), more, port: None };
        server.start_again().await;
        server
    }

    /// Starts it on the port and with the streams that it had.
    pub async fn start_again(&mut self) {
        let ports = tempfile::tempdir_in(self.dir.path()).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(SCRIPT).arg(program()).args(["-a", "127.0.0.1", "-js", "-sd"]).arg(self.dir.path());
        command.arg("-p").arg(self.port.map_or("-1".to_owned(), |port| port.to_string()));
        command.arg("--ports_file_dir").arg(ports.path()).args(&self.more);
        self.guard = Some(command.stdin(Stdio::piped()).spawn().unwrap());
        self.port = Some(port(ports.path()).await);
    }

    /// Kills it. Its streams stay on the disk.
    pub fn stop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            guard.wait().unwrap();
        }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.unwrap())
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    pub async fn client(&self) -> Client {
        async_nats::connect(self.url()).await.unwrap()
    }

    /// Makes a stream that takes `NAME.>` in lower case and remembers ids for so long.
    pub async fn stream(&self, name: &str, remembers: Duration) {
        let config = stream::Config { duplicate_window: remembers, ..stream_config(name) };
        jetstream::new(self.client().await).create_stream(config).await.unwrap();
    }

    /// Every message that a stream keeps, in order.
    pub async fn kept(&self, name: &str) -> Vec<Kept> {
        let mut stream = jetstream::new(self.client().await).get_stream(name).await.unwrap();
        let state = stream.info().await.unwrap().state.clone();
        let mut kept = Vec::new();
        if state.messages > 0 {
            for sequence in state.first_sequence..=state.last_sequence {
                let message = stream.get_raw_message(sequence).await.unwrap();
                kept.push(Kept {
                    subject: message.subject.to_string(),
                    id: message.headers.get("Nats-Msg-Id").map(ToString::to_string),
                    payload: String::from_utf8(message.payload.to_vec()).unwrap(),
                });
            }
        }
        kept
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sees each message that is published, also one that a stream drops as a duplicate.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    arriving: Subscriber,
}

impl Watch {
    pub async fn start(server: &Nats, subject: &str) -> Self {
        let client = server.client().await;
        let arriving = client.subscribe(subject.to_owned()).await.unwrap();
        client.flush().await.unwrap();
        Self { client, arriving }
    }

    /// The ids of all messages that were published so far.
    pub async fn ids(&mut self) -> Vec<String> {
        use futures_util::StreamExt;
        // What was published before this mark has arrived before it.
        let mark = self.client.new_inbox();
        let mut marked = self.client.subscribe(mark.clone()).await.unwrap();
        self.client.publish(mark, "".into()).await.unwrap();
        tokio::time::timeout(PATIENCE, marked.next()).await.unwrap().unwrap();
        let mut ids = Vec::new();
        while let Some(Some(message)) = futures_util::FutureExt::now_or_never(self.arriving.next()) {
            let id = message.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id"));
            ids.push(id.map(ToString::to_string).unwrap_or_default());
        }
        ids
    }
}

/// A stream that takes every subject below its name.
pub fn stream_config(name: &str) -> stream::Config {
    let subjects = vec![format!("{}.>", name.to_lowercase())];
    stream::Config { name: name.to_owned(), subjects, ..stream::Config::default() }
}

/// The one that is given, the one on the search path, or the one that a distribution has put beside it.
fn program() -> PathBuf {
    let given = super::given("DEEDBOX_NATS_SERVER").map(PathBuf::from);
    let usual = ["nats-server", "/usr/sbin/nats-server"].map(PathBuf::from);
    let runs = |program: &PathBuf| Command::new(program).arg("--version").output().is_ok();
    let found = given.into_iter().chain(usual).find(runs);
    found.expect("nats-server is missing: `cargo xtask test` installs it or says how")
}

/// The server writes it down once it listens.
async fn port(dir: &Path) -> u16 {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let entries = std::fs::read_dir(dir).unwrap().flatten();
        let written = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).next();
        let ports = written.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let url = ports.and_then(|ports| ports["nats"][0].as_str().map(str::to_owned));
        if let Some(port) = url.and_then(|url| url.rsplit(':').next()?.parse().ok()) {
            return port;
        }
        assert!(Instant::now() < give_up, "nats-server does not start");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
