//! Starting the programs, asking them to stop, and finding what they left behind.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::harness::ps;

pub use crate::harness::process::program;

const SAID_WITHIN: Duration = Duration::from_secs(60);
const ENDED_WITHIN: Duration = Duration::from_secs(120);
/// How soon a run gets somewhere.
const SOON: Duration = Duration::from_secs(30);
/// What would change the programs' settings if it came from the tests' own surroundings.
const OWN: [&str; 20] = [
    "DATABASE_URL",
    "DEEDBOX_URL",
    "DEEDBOX_TOKEN",
    "DEEDBOX_DATA_DIR",
    "DEEDBOX_LISTEN",
    "DEEDBOX_CONFIG",
    "DEEDBOX_LOG",
    "DEEDBOX_LOG_FORMAT",
    "DEEDBOX_NAME",
    "DEEDBOX_MASTER_KEY",
    "DEEDBOX_MASTER_KEY_FILE",
    "DEEDBOX_MASTER_KEY_COMMAND",
    "DEEDBOX_OTHER_MASTER_KEYS",
    "DEEDBOX_OTHER_MASTER_KEY_FILES",
    "DEEDBOX_OTHER_MASTER_KEY_COMMANDS",
    "DEEDBOX_CORE_DUMPS",
    "DEEDBOX_CACHE_DIR",
    "DEEDBOX_CA_CERT",
    "DEEDBOX_TLS_CERT",
    "DEEDBOX_TLS_KEY",
];

/// The program `deedbox` in settings of a test's own.
pub fn deedbox(arguments: &[&str]) -> Command {
    let mut command = Command::new(program("deedbox"));
    for name in OWN {
        command.env_remove(name);
    }
    command.args(arguments).kill_on_drop(true).stdin(Stdio::null());
    command
}

/// A directory that PostgreSQL's own user can reach, with a short name.
pub fn place() -> TempDir {
    let dir = tempfile::Builder::new().prefix("deedbox-it-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// The output of a program that must have ended well.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// The same, as JSON.
    #[track_caller]
    pub fn json(self) -> Value {
        let out = self.well();
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
    }

    /// What a program that must have failed with this code said: plain words, no traces of its making.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in ["panicked", "backtrace", "Os {", "Error(", ".rs:"] {
            assert!(!self.err.contains(word), "{word}: {}", self.err);
        }
        self.err
    }
}

/// Runs a program to its end.
pub async fn finish(command: Command) -> Ended {
    finish_within(command, ENDED_WITHIN).await
}

/// The same for a program that has much to do.
pub async fn finish_within(mut command: Command, limit: Duration) -> Ended {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::time::timeout(limit, command.output()).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The same, with something on its standard input.
pub async fn finish_with(mut command: Command, input: &str) -> Ended {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = tokio::time::timeout(ENDED_WITHIN, child.wait_with_output()).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A program that goes on. Its standard error goes to a file.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
}

impl Running {
    pub fn start(mut command: Command, log: PathBuf) -> Self {
        command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, log }
    }

    /// The next line of its output.
    pub async fn line(&mut self) -> String {
        let line = tokio::time::timeout(SAID_WITHIN, self.lines.next_line()).await.unwrap().unwrap();
        line.unwrap_or_else(|| panic!("it ended early: {}", std::fs::read_to_string(&self.log).unwrap()))
    }

    pub fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal such as `TERM`.
    pub async fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().await.unwrap().success());
    }

    /// Waits for its end; the output is what was not read yet.
    pub async fn end(mut self) -> Ended {
        let rest = async {
            let mut out = String::new();
            while let Some(line) = self.lines.next_line().await.unwrap() {
                out.push_str(&line);
                out.push('\n');
            }
            (out, self.child.wait().await.unwrap())
        };
        let (out, status) = tokio::time::timeout(ENDED_WITHIN, rest).await.unwrap();
        Ended { code: status.code(), out, err: std::fs::read_to_string(&self.log).unwrap() }
    }
}

/// A machine of one's own: `deedbox up` and the commands against it.
pub struct Up {
    pub running: Running,
    pub address: String,
    pub token: String,
    pub admin_token: String,
    pub data_dir: PathBuf,
}

impl Up {
    pub async fn start(data_dir: &Path) -> Self {
        Self::start_at(data_dir, "127.0.0.1:0").await
    }

    /// At an address and port of the test's choice.
    pub async fn start_at(data_dir: &Path, listen: &str) -> Self {
        Self::start_with(data_dir, listen, "").await
    }

    /// With settings, a TOML text.
    pub async fn start_with(data_dir: &Path, listen: &str, settings: &str) -> Self {
        let file = data_dir.with_extension("toml");
        std::fs::write(&file, settings).unwrap();
        let mut command = deedbox(&["--json", "up", "--listen", listen, "--data-dir", data_dir.to_str().unwrap()]);
        command.arg("--config").arg(file);
        let mut running = Running::start(command, data_dir.with_extension("log"));
        let said: Value = serde_json::from_str(&running.line().await).unwrap();
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        assert_eq!(said["data_dir"], json!(data_dir));
        let (address, token, admin_token) = (text("address"), text("token"), text("admin_token"));
        Self { running, address, token, admin_token, data_dir: data_dir.to_owned() }
    }

    /// A command against it, as the tenant `default`.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = deedbox(arguments);
        command.env("DEEDBOX_URL", &self.address).env("DEEDBOX_TOKEN", &self.token);
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.command(arguments)).await
    }

    /// The same with `--json`.
    pub async fn ask(&self, arguments: &[&str]) -> Value {
        self.run(&[&["--json"], arguments].concat()).await.json()
    }

    /// Asks until it is so.
    pub async fn until(&self, arguments: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + SOON;
        loop {
            let answer = self.ask(arguments).await;
            if is_so(&answer) {
                return answer;
            }
            assert!(Instant::now() < give_up, "{arguments:?}: {answer}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Asks it to stop, and looks that it did: well, and with nothing left running.
    pub async fn stop(self, signal: &str) -> Ended {
        self.running.signal(signal).await;
        let ended = self.running.end().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(processes_of(&self.data_dir), Vec::<String>::new());
        ended
    }
}

/// The command lines of all processes that name a directory.
pub fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    ps::all().into_iter().filter(|line| line.contains(dir)).collect()
}

/// A provider for as long as the test's runtime lives; gives its origin and its books.
pub async fn provider(dir: &Path) -> (String, deedbox_books::Books) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (dir, options) = (dir.join("books"), deedbox_books::Options { keyless: false, convention: None });
    tokio::spawn(async move { deedbox_books::Provider::serve(listener, dir, options, std::future::pending()).await });
    (format!("http://{address}"), deedbox_books::Books { address })
}

/// The input of `charge-once`.
pub fn order(origin: &str) -> String {
    json!({ "order": "1042", "amount_cents": 4200, "customer": "cus_7", "provider_url": origin }).to_string()
}

/// The path of a built guest component.
pub fn component_file(dir: &Path, name: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, crate::harness::component(name)).unwrap();
    path.to_str().unwrap().to_owned()
}
