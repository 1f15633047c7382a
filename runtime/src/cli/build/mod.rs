//! `deedbox build`: finds the language of a project, lets that language's toolchain make a component, and says what came out. It
//! never installs anything: what is missing is named with the command that installs it.

mod c;
mod componentize;
mod go;
mod js;
mod python;
mod report;
mod rust;
mod tools;

use std::path::{Path, PathBuf};

use clap::Args;

use super::failure;
use super::output::Output;

#[derive(Debug, Args)]
pub(super) struct Build {
    /// The project's directory.
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Where to write the component, instead of activity.wasm in the project's directory.
    #[arg(long, value_name = "FILE.wasm")]
    out: Option<PathBuf>,
}

/// A project that is to be built.
#[derive(Debug)]
pub struct Project {
    /// Absolute.
    pub dir: PathBuf,
    /// Where its component is to be written; absolute, in a folder that is there.
    pub out: PathBuf,
}

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A tool that is not there, and the one command that installs it.
    #[error("{what} is missing. Install it with:\n  {install}")]
    Missing { what: String, install: String },
    /// A tool that did not end well. What it said is on the terminal already.
    #[error("`{command}` ended with {how}")]
    Ended { command: String, how: String },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// In words, with what to do.
    #[error("{0}")]
    Other(String),
}

/// How the projects of one language are known and built.
struct Language {
    name: &'static str,
    /// The file by which its projects are known, for people.
    known_by: &'static str,
    is_here: fn(&Path) -> bool,
    /// Writes the component to `out`, and gives its path.
    build: fn(&Project) -> Result<PathBuf, Failure>,
}

/// In the order in which they are asked.
const LANGUAGES: &[Language] = &[
    Language { name: "rust", known_by: "Cargo.toml", is_here: rust::is_here, build: rust::build },
    Language { name: "python", known_by: "activities.py", is_here: python::is_here, build: python::build },
    Language { name: "js", known_by: "package.json", is_here: js::is_here, build: js::build },
    Language { name: "go", known_by: "go.mod", is_here: go::is_here, build: go::build },
    Language { name: "c", known_by: "compile_flags.txt", is_here: c::is_here, build: c::build },
];

const COMPONENT: &str = "activity.wasm";

impl Build {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let (project, language) = self.project()?;
        output.note(&format!("building {} ({})", project.dir.display(), language.name));
        let (language_name, build) = (language.name, language.build);
        let built = tokio::task::spawn_blocking(move || build(&project)).await??;
        report::show(&built, language_name, output).await
    }

    /// The project, with absolute paths, and its language.
    fn project(&self) -> anyhow::Result<(Project, &'static Language)> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| Failure::File { path, source }
        };
        let dir = self.dir.canonicalize().map_err(at(&self.dir))?;
        let language = LANGUAGES.iter().find(|language| (language.is_here)(&dir)).ok_or_else(|| unknown(&dir))?;
        let out = match &self.out {
            Some(out) => std::path::absolute(out).map_err(at(out))?,
            None => dir.join(COMPONENT),
        };
        let folder = out.parent().unwrap_or(&dir);
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        Ok((Project { dir, out }, language))
    }
}

fn unknown(dir: &Path) -> failure::Failure {
    let known: Vec<String> =
        LANGUAGES.iter().map(|language| format!("{} ({})", language.known_by, language.name)).collect();
    failure::Failure::Usage(format!(
        "{} is no project of a language that is known here: it has none of {}\nBegin one with: deedbox new --lang LANGUAGE DIR",
        dir.display(),
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(dir: &Path, out: Option<&Path>) -> Build {
        Build { dir: dir.to_owned(), out: out.map(Path::to_owned) }
    }

    #[test]
    fn a_project_is_known_by_its_files_and_an_unknown_one_is_told_what_is_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        let error = at(dir.path(), None).project().map(drop).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml (rust)") && error.contains("deedbox new"), "{error}");
        std::fs::write(dir.path().join("Cargo.toml"), "").unwrap();
        let (project, language) = at(dir.path(), None).project().unwrap();
        assert_eq!((language.name, project.out.file_name()), ("rust", Some(COMPONENT.as_ref())));
    }

    #[test]
    fn the_folder_of_the_component_is_made() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("Cargo.toml"), "").unwrap();
        let out = dir.path().join("made/here/a.wasm");
        assert_eq!(at(dir.path(), Some(&out)).project().unwrap().0.out, out);
        assert!(out.parent().unwrap().is_dir());
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = at(Path::new("not-there"), None).project().map(drop).unwrap_err().to_string();
        assert!(error.starts_with("not-there: "), "{error}");
    }
}
