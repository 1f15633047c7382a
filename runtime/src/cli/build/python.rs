//! Projects in Python: componentize-py makes one component of CPython, the SDK and the module `activities`. It reads the
//! project and runs its module once, which leaves Python's `__pycache__` there; it never writes anything else into the project.

use std::path::{Path, PathBuf};
use std::process::Command;

use toml::Table;

use super::super::settings;
use super::{Failure, Project, tools};

const TOOL: &str = "componentize-py";
const INSTALL: &str = "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1";
const MANIFEST: &str = "pyproject.toml";
/// Where `deedbox new` puts the SDK.
const SDK: &str = "deedbox-sdk";
/// Below the SDK: the world that the component has.
const WIT: &str = "deedbox/wit";
/// The module of the SDK that imports `activities`.
const ENTRY: &str = "deedbox.component";

pub fn is_here(dir: &Path) -> bool {
    dir.join("activities.py").is_file() || dir.join("activities/__init__.py").is_file()
}

/// Makes a component of the project's module `activities`.
pub fn build(project: &Project) -> Result<PathBuf, Failure> {
    let tool = tools::need(project, TOOL, INSTALL)?;
    let sdk = sdk(project)?;
    let mut command = Command::new(tool);
    command.arg("-d").arg(sdk.join(WIT)).args(["-w", "python", "componentize", "-p"]).arg(&project.dir);
    command.arg("-p").arg(&sdk).arg("-o").arg(&project.out).arg(ENTRY);
    // What the module imports beyond the SDK is in the project's own environment, or in the one that is active.
    let empty = empty_environment()?;
    let active = environment(project).or_else(|| settings::program("VIRTUAL_ENV"));
    command.env("VIRTUAL_ENV", active.as_deref().unwrap_or(empty.path()));
    // An error in the module is told by Python's traceback; the tool's own would bury it.
    command.env("RUST_BACKTRACE", "0");
    tools::run(&mut command)?;
    Ok(project.out.clone())
}

/// Without one, the tool would take in whatever this machine's Python has, and each machine made another component.
fn empty_environment() -> Result<tempfile::TempDir, Failure> {
    let folder = tempfile::tempdir().map_err(|source| Failure::File { path: std::env::temp_dir(), source })?;
    let path = folder.path().join("lib/python3/site-packages");
    std::fs::create_dir_all(&path).map_err(|source| Failure::File { path, source })?;
    Ok(folder)
}

/// The folder that has the SDK's package: what the manifest names, `deedbox-sdk`, or where pip has put it.
fn sdk(project: &Project) -> Result<PathBuf, Failure> {
    let named = named_sdk(project)?;
    let expected = project.dir.join(named.as_deref().unwrap_or(Path::new(SDK)));
    let installed = environment(project).into_iter().flat_map(|own| packages(&own));
    let found = std::iter::once(expected.clone()).chain(installed).find(|folder| folder.join(WIT).is_dir());
    found.ok_or_else(|| {
        Failure::Other(format!(
            "the SDK is not in {}: take the folder {SDK} of a new project (deedbox new --lang python DIR), or say in {MANIFEST} \
             where it is\n  [tool.deedbox]\n  sdk = \"PATH\"",
            expected.display()
        ))
    })
}

/// `[tool.deedbox] sdk` of the manifest.
fn named_sdk(project: &Project) -> Result<Option<PathBuf>, Failure> {
    let path = project.dir.join(MANIFEST);
    if !path.is_file() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&tools::read(&path)?).into_owned();
    let manifest: Table = text.parse().map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    let own = manifest.get("tool").and_then(|tool| tool.get("deedbox"));
    Ok(own.and_then(|own| own.get("sdk")?.as_str()).map(PathBuf::from))
}

fn environment(project: &Project) -> Option<PathBuf> {
    [".venv", "venv"].map(|name| project.dir.join(name)).into_iter().find(|own| own.join("pyvenv.cfg").is_file())
}

/// The folders of packages of an environment: one for each version of Python in it.
fn packages(environment: &Path) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("site-packages")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(dir: &Path) -> Project {
        Project { dir: dir.to_owned(), out: dir.join("activity.wasm") }
    }

    fn put_sdk(folder: &Path) {
        std::fs::create_dir_all(folder.join(WIT)).unwrap();
    }

    #[test]
    fn a_project_is_known_by_its_module() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MANIFEST), "").unwrap();
        assert!(!is_here(dir.path()));
        std::fs::create_dir(dir.path().join("activities")).unwrap();
        std::fs::write(dir.path().join("activities/__init__.py"), "").unwrap();
        assert!(is_here(dir.path()));
        std::fs::remove_dir_all(dir.path().join("activities")).unwrap();
        std::fs::write(dir.path().join("activities.py"), "").unwrap();
        assert!(is_here(dir.path()));
    }

    #[test]
    fn the_sdk_is_where_the_manifest_says_in_its_folder_or_installed() {
        let dir = tempfile::tempdir().unwrap();
        let project = project(dir.path());
        let error = sdk(&project).unwrap_err().to_string();
        assert!(error.contains("deedbox-sdk") && error.contains("[tool.deedbox]"), "{error}");

        let installed = dir.path().join(".venv/lib/python3.11/site-packages");
        put_sdk(&installed);
        std::fs::write(dir.path().join(".venv/pyvenv.cfg"), "").unwrap();
        assert_eq!(sdk(&project).unwrap(), installed);
        put_sdk(&dir.path().join(SDK));
        assert_eq!(sdk(&project).unwrap(), dir.path().join(SDK));
        put_sdk(&dir.path().join("other"));
        std::fs::write(dir.path().join(MANIFEST), "[tool.deedbox]\nsdk = \"other\"").unwrap();
        assert_eq!(sdk(&project).unwrap(), dir.path().join("other"));
    }

    /// What is installed on the machine is not in the component.
    #[test]
    fn a_project_without_an_environment_is_built_with_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(environment(&project(dir.path())), None);
        let empty = empty_environment().unwrap();
        let [folder] = <[_; 1]>::try_from(packages(empty.path())).unwrap();
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }

    #[test]
    fn a_manifest_that_is_no_toml_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MANIFEST), "[tool").unwrap();
        assert!(sdk(&project(dir.path())).unwrap_err().to_string().contains(MANIFEST));
    }
}
