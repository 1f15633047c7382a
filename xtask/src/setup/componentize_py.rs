//! The program that makes components of Python, for `deedbox build`: a folder to put into `DEEDBOX_TOOLS`.
//!
//! The script that pip writes names the folder in which the environment was made. It was moved since, so a script that
//! stands anywhere takes its place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::python;
use crate::report::Done;
use crate::settings::Settings;

pub const STEP: &str = python::COMPONENTIZE_PY.step;

const SCRIPT: &str = r#"#!/bin/sh
exec "$(dirname "$0")/python3" -c 'import sys; from componentize_py import script; sys.argv[0] = "componentize-py"; sys.exit(script())' "$@"
"#;

/// The folder that has the program, and the Python with which it runs.
pub fn ensure(settings: &Settings, root: &Path) -> Result<(PathBuf, Done)> {
    let (python, done) = python::ensure(settings, &python::COMPONENTIZE_PY, root)?;
    let folder = python.parent().context("a program without a folder")?.to_owned();
    put_script(&folder.join("componentize-py"))?;
    Ok((folder, done))
}

fn put_script(path: &Path) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == SCRIPT.as_bytes()) {
        return Ok(());
    }
    let folder = path.parent().context("a program without a folder")?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut draft, SCRIPT.as_bytes())?;
    draft.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
    draft.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::shell;

    #[test]
    fn the_script_runs_the_python_beside_it_wherever_that_is() {
        let place = tempfile::tempdir().unwrap();
        let python = place.path().join("python3");
        fs::write(&python, "#!/bin/sh\necho \"$1 $3 $4\"\n").unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let script = place.path().join("componentize-py");
        fs::write(&script, "#!/gone/python3\n").unwrap();
        put_script(&script).unwrap();
        assert_eq!(shell::capture(Command::new(&script).args(["--help", "a b"])).unwrap(), "-c --help a b\n");
    }
}
