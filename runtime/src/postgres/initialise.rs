//! Makes the data directory, once. It is made under another name and moved when it is whole, so that a start that was killed
//! half way leaves nothing that looks like data. It must never touch a data directory that exists.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::USER;
use super::account::Account;
use super::error::Error;
use super::find::Binaries;
use super::layout::Layout;
use super::log;

/// Makes `pgdata` if there is none; blocking, about a second.
pub(super) fn run(layout: &Layout, account: &Account, binaries: &Binaries) -> Result<(), Error> {
    if layout.pgdata().exists() {
        return Ok(());
    }
    let unfinished = layout.unfinished();
    prepare(&unfinished, account)?;
    tracing::info!(postgres.version = binaries.major, "making a private PostgreSQL data directory");
    let output = account
        .command(&binaries.initdb(), layout)
        .args(["--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync", "-U", USER, "-D"])
        .arg(&unfinished)
        .output()
        .map_err(|error| Error::io("running initdb", error))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        remove(&unfinished)?;
        return Err(failure(layout, &said));
    }
    std::fs::rename(&unfinished, layout.pgdata())
        .map_err(|error| Error::io("moving the new data directory to its name", error))
}

fn prepare(unfinished: &Path, account: &Account) -> Result<(), Error> {
    remove(unfinished)?;
    DirBuilder::new()
        .mode(0o700)
        .create(unfinished)
        .map_err(|error| Error::io(format!("creating {}", unfinished.display()), error))?;
    account.own(unfinished)
}

fn failure(layout: &Layout, said: &str) -> Error {
    let last = log::last_lines(said);
    if log::speaks_of_a_full_disk(said) {
        return Error::DiskFull { dir: layout.root().to_owned(), log: last };
    }
    Error::Initdb { output: last }
}

fn remove(unfinished: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("removing {}", unfinished.display()), error))
        }
        _ => Ok(()),
    }
}
