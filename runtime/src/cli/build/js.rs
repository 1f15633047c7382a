//! Projects in JavaScript and TypeScript. The SDK brings the recipe, a script for Node.js: it bundles the modules and puts them
//! into an engine. Here it is only found and run.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Failure, Project, tools};

const MANIFEST: &str = "package.json";
const PACKAGE: &str = "@deedbox/guest";
const SCRIPT: &str = "build/build.mjs";

const NODE: &str = "Node.js 20 or newer (`node`)";
const INSTALL_NODE: &str = "sudo apt-get install nodejs npm   # or as nodejs.org says for your system";
const INSTALL_PACKAGES: &str = "npm install   # in the project's directory";

pub fn is_here(dir: &Path) -> bool {
    dir.join(MANIFEST).is_file()
}

/// Runs the SDK's script, which writes the component.
pub fn build(project: &Project) -> Result<PathBuf, Failure> {
    let Some(node) = tools::find(project, "node") else {
        return Err(tools::missing(NODE, INSTALL_NODE));
    };
    let script = sdk(&project.dir)?.join(SCRIPT);
    let mut command = Command::new(node);
    command.arg(script).arg("--project").arg(&project.dir).arg("--out").arg(&project.out);
    tools::run(command.current_dir(&project.dir))?;
    Ok(project.out.clone())
}

/// The folder of the SDK: where npm has put it, or where the project says that it lies.
fn sdk(dir: &Path) -> Result<PathBuf, Failure> {
    let installed = dir.join("node_modules").join(PACKAGE);
    if installed.join(SCRIPT).is_file() {
        return Ok(installed);
    }
    let manifest = dir.join(MANIFEST);
    let text = tools::read(&manifest)?;
    let said: Value = serde_json::from_slice(&text)
        .map_err(|error| Failure::Other(format!("{} is not JSON: {error}", manifest.display())))?;
    match said["dependencies"][PACKAGE].as_str() {
        None => Err(Failure::Other(format!(
            "{} does not name {PACKAGE} among its dependencies\nBegin a project with: deedbox new --lang js DIR",
            manifest.display()
        ))),
        Some(place) => {
            let beside = place.strip_prefix("file:").map(|place| dir.join(place));
            beside.filter(|sdk| sdk.join(SCRIPT).is_file()).ok_or_else(|| tools::missing(PACKAGE, INSTALL_PACKAGES))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn project(manifest: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(MANIFEST), manifest).unwrap();
        dir
    }

    fn put_script(sdk: &Path) {
        fs::create_dir_all(sdk.join("build")).unwrap();
        fs::write(sdk.join(SCRIPT), "").unwrap();
    }

    #[test]
    fn the_sdk_is_where_npm_has_put_it_or_where_the_project_says() {
        let dir = project(r#"{ "dependencies": { "@deedbox/guest": "file:deedbox-sdk" } }"#);
        put_script(&dir.path().join("deedbox-sdk"));
        assert_eq!(sdk(dir.path()).unwrap(), dir.path().join("deedbox-sdk"));
        let installed = dir.path().join("node_modules/@deedbox/guest");
        put_script(&installed);
        assert_eq!(sdk(dir.path()).unwrap(), installed);
    }

    #[test]
    fn a_project_without_the_sdk_is_told_what_to_do() {
        let dir = project(r#"{ "dependencies": { "@deedbox/guest": "^0.1.0" } }"#);
        let error = sdk(dir.path()).unwrap_err().to_string();
        assert!(error.contains("@deedbox/guest is missing") && error.contains("npm install"), "{error}");
        let error = sdk(project("{}").path()).unwrap_err().to_string();
        assert!(error.contains("deedbox new --lang js"), "{error}");
        let error = sdk(project("{").path()).unwrap_err().to_string();
        assert!(error.contains("package.json is not JSON"), "{error}");
    }
}
