//! Where master keys come from: files, environment variables, or commands such as those of a key management service, each for the
//! key that is in use and for others that are still needed. A key must never be an argument, which others on the machine can read.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use zeroize::Zeroizing;

use super::failure::Failure;
use super::settings;
use crate::gateway::vault::{MasterKey, MasterKeys, parse_text};

const KEY: &str = "DEEDBOX_MASTER_KEY";
const OTHER_KEYS: &str = "DEEDBOX_OTHER_MASTER_KEYS";

/// All variables that keys come from or that name where they come from.
pub(super) const VARIABLES: [&str; 6] = [
    KEY,
    OTHER_KEYS,
    "DEEDBOX_MASTER_KEY_FILE",
    "DEEDBOX_MASTER_KEY_COMMAND",
    "DEEDBOX_OTHER_MASTER_KEY_FILES",
    "DEEDBOX_OTHER_MASTER_KEY_COMMANDS",
];

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much a command may print.
const MOST_BYTES: usize = 4096;

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Master keys",
    after_help = "A master key may also come in the variable DEEDBOX_MASTER_KEY, others in DEEDBOX_OTHER_MASTER_KEYS, with commas between."
)]
pub(super) struct Keys {
    /// The file of the key that wraps all others: 64 hexadecimal digits or the base64 of 32 bytes, the same on every node.
    #[arg(long, value_name = "FILE", env = "DEEDBOX_MASTER_KEY_FILE")]
    master_key_file: Option<PathBuf>,
    /// A command that prints that key. Its words are divided at spaces; no shell reads them.
    #[arg(long, value_name = "COMMAND", env = "DEEDBOX_MASTER_KEY_COMMAND")]
    master_key_command: Option<String>,
    /// The file of another key that is still needed to open what it has wrapped, or will be.
    #[arg(long, value_name = "FILE", env = "DEEDBOX_OTHER_MASTER_KEY_FILES", value_delimiter = ',')]
    other_master_key_file: Vec<PathBuf>,
    /// A command that prints such a key; in the variable, one on each line.
    #[arg(long, value_name = "COMMAND", env = "DEEDBOX_OTHER_MASTER_KEY_COMMANDS", value_delimiter = '\n')]
    other_master_key_command: Vec<String>,
}

impl Keys {
    /// The keys. The current one must come from one place.
    pub(super) async fn read(&self) -> anyhow::Result<MasterKeys> {
        let missing = || {
            Failure::Usage(format!(
                "no master key: pass --master-key-file or --master-key-command, or set {KEY}; `openssl rand -hex 32` makes one"
            ))
        };
        let current = self.current().await?.ok_or_else(missing)?;
        Ok(MasterKeys::new(current, self.others().await?))
    }

    /// The keys; where no current one is given, that of the file, which is made if it is not there.
    pub(super) async fn read_or_make(&self, file: &Path) -> anyhow::Result<MasterKeys> {
        let current = match self.current().await? {
            Some(key) => key,
            None => MasterKey::read_or_create(file)?,
        };
        Ok(MasterKeys::new(current, self.others().await?))
    }

    /// The keys, if a current one is given.
    pub(super) async fn read_if_given(&self) -> anyhow::Result<Option<MasterKeys>> {
        match self.current().await? {
            Some(current) => Ok(Some(MasterKeys::new(current, self.others().await?))),
            None => Ok(None),
        }
    }

    async fn current(&self) -> anyhow::Result<Option<MasterKey>> {
        let text = settings::secret(KEY)?;
        match (&self.master_key_file, &self.master_key_command, text) {
            (None, None, None) => Ok(None),
            (Some(file), None, None) => Ok(Some(MasterKey::read(file)?)),
            (None, Some(command), None) => Ok(Some(printed(command).await?)),
            (None, None, Some(text)) => Ok(Some(parsed(&text, KEY)?)),
            _ => Err(Failure::Usage(format!(
                "the master key is given more than once: keep one of --master-key-file, --master-key-command and {KEY}"
            ))
            .into()),
        }
    }

    async fn others(&self) -> anyhow::Result<Vec<MasterKey>> {
        let mut keys = Vec::new();
        for file in &self.other_master_key_file {
            keys.push(MasterKey::read(file)?);
        }
        for command in self.other_master_key_command.iter().filter(|command| !command.trim().is_empty()) {
            keys.push(printed(command).await?);
        }
        if let Some(text) = settings::secret(OTHER_KEYS)? {
            for one in text.split(',') {
                keys.push(parsed(one, OTHER_KEYS)?);
            }
        }
        Ok(keys)
    }
}

fn parsed(text: &str, variable: &str) -> anyhow::Result<MasterKey> {
    let mut bytes = Zeroizing::new(text.as_bytes().to_vec());
    Ok(parse_text(&mut bytes, &format!("in {variable}"))?)
}

/// The key that a command prints. The command's errors go where ours go; what it prints is never shown.
async fn printed(command: &str) -> anyhow::Result<MasterKey> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or_else(|| Failure::Usage("the master key command is empty".to_owned()))?;
    let mut child = Command::new(program);
    child.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    for variable in [KEY, OTHER_KEYS, "DATABASE_URL", "DEEDBOX_TOKEN"] {
        child.env_remove(variable);
    }
    let output = tokio::time::timeout(PATIENCE, run(child))
        .await
        .map_err(|_| anyhow::anyhow!("the master key command `{program}` took longer than {} s", PATIENCE.as_secs()))?;
    let mut output = output.with_context(|| format!("the master key command `{program}`"))?;
    Ok(parse_text(&mut output, &format!("that `{program}` printed"))?)
}

async fn run(mut command: Command) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut child = command.spawn().context("cannot be started")?;
    let stdout = child.stdout.take().context("has no output")?;
    // As large as it may become: a buffer that grows would leave copies behind.
    let mut output = Zeroizing::new(Vec::<u8>::with_capacity(MOST_BYTES + 1));
    stdout.take(MOST_BYTES as u64 + 1).read_to_end(&mut output).await.context("cannot be read")?;
    if output.len() > MOST_BYTES {
        anyhow::bail!("printed more than {MOST_BYTES} bytes: it must print a key and nothing else");
    }
    let status = child.wait().await.context("cannot be waited for")?;
    if !status.success() {
        anyhow::bail!("failed ({status})");
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(file: Option<&Path>, command: Option<&str>) -> Keys {
        Keys {
            master_key_file: file.map(Path::to_owned),
            master_key_command: command.map(str::to_owned),
            other_master_key_file: Vec::new(),
            other_master_key_command: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_command_gives_the_key_that_its_file_has() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let key = MasterKey::read_or_create(&file).unwrap();
        let cat = format!("cat {}", file.display());
        let mut both = keys(None, Some(&cat));
        both.other_master_key_file.push(file.clone());
        let read = both.read().await.unwrap();
        assert_eq!(read.all().map(MasterKey::id).collect::<Vec<_>>(), [key.id(), key.id()]);
    }

    #[tokio::test]
    async fn a_command_that_gives_no_key_says_what_is_wrong_and_not_what_it_printed() {
        for (command, said) in [
            ("echo not-a-key", "64 hexadecimal digits"),
            ("false", "failed"),
            ("deedbox-no-such-program", "cannot be started"),
            ("cat /dev/zero", "more than 4096 bytes"),
            (" ", "empty"),
        ] {
            let error = format!("{:#}", keys(None, Some(command)).read().await.unwrap_err());
            assert!(error.contains(said) && !error.contains("not-a-key"), "{command}: {error}");
        }
    }

    #[tokio::test]
    async fn a_key_comes_from_one_place() {
        let error = keys(Some(Path::new("a")), Some("b")).read().await.unwrap_err().to_string();
        assert!(error.contains("more than once"), "{error}");
        let error = keys(None, None).read().await.unwrap_err().to_string();
        assert!(error.contains("--master-key-file") && error.contains(KEY), "{error}");
    }

    #[tokio::test]
    async fn a_missing_key_is_made_only_where_none_is_given() {
        let dir = tempfile::tempdir().unwrap();
        let (made, given) = (dir.path().join("made"), dir.path().join("given"));
        let first = keys(None, None).read_or_make(&made).await.unwrap();
        let again = keys(None, None).read_or_make(&made).await.unwrap();
        assert_eq!(first.current().id(), again.current().id());
        let key = MasterKey::read_or_create(&given).unwrap();
        let other = keys(Some(&given), None).read_or_make(&dir.path().join("unmade")).await.unwrap();
        assert_eq!(other.current().id(), key.id());
        assert!(!dir.path().join("unmade").exists());
    }
}
