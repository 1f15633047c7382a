//! `deedbox new`: writes a project with a first activity, and the SDK of its language, both from what this program carries. So a
//! project needs no registry of ours, and fits the host that it was made with. It never changes a directory that is in use.

mod carried;
mod rust;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::failure::Failure;
use super::output::Output;

#[derive(Debug, Args)]
pub(super) struct New {
    /// The language to write the activity in.
    #[arg(long, value_name = "LANGUAGE", value_parser = PossibleValuesParser::new(names()))]
    lang: String,
    /// Where the project goes: a directory that is empty or not there yet.
    dir: PathBuf,
    /// The project's name, instead of the directory's.
    #[arg(long)]
    name: Option<String>,
}

/// A language in which a project can be begun.
struct Language {
    name: &'static str,
    /// The folder of its SDK in `guest-sdk/`.
    sdk: &'static str,
    /// The folder of the template in that.
    template: &'static str,
    /// What to do once before the first build, besides having the language's own tools.
    prepare: &'static [&'static str],
}

/// Those whose template this program does not carry are not offered.
const LANGUAGES: &[Language] = &[
    Language { name: "rust", sdk: "rust", template: "template", prepare: &["rustup target add wasm32-wasip2"] },
    Language {
        name: "python",
        sdk: "python",
        template: "template",
        prepare: &["python3 -m venv .venv", ".venv/bin/pip install componentize-py==0.25.1"],
    },
    Language { name: "js", sdk: "js", template: "template", prepare: &["npm install"] },
    Language { name: "ts", sdk: "js", template: "template-ts", prepare: &["npm install"] },
    Language { name: "go", sdk: "go", template: "template", prepare: &[] },
    Language { name: "c", sdk: "c", template: "template", prepare: &[] },
];

/// Where the SDK goes in a project.
const SDK: &str = "deedbox-sdk";
/// What stands for the project's name in the texts of a template.
const NAME: &str = "{{name}}";

fn offered() -> impl Iterator<Item = &'static Language> {
    LANGUAGES.iter().filter(|language| carried::below(language.sdk, language.template).next().is_some())
}

fn names() -> Vec<&'static str> {
    offered().map(|language| language.name).collect()
}

impl New {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let language = offered().find(|language| language.name == self.lang);
        let language = language.context("this program does not carry that language")?;
        let dir = std::path::absolute(&self.dir)?;
        let name = match &self.name {
            Some(name) => checked(name)?.to_owned(),
            None => name_of(&dir),
        };
        make_empty(&dir)?;
        let files = language.files(&name)?;
        for (path, bytes) in &files {
            write(&dir.join(path), bytes)?;
        }
        let made =
            json!({ "path": dir.display().to_string(), "name": name, "language": language.name, "files": files.len() });
        output.show(&made, |_| next(language, &self.dir))
    }
}

impl Language {
    /// All files of a project of that name, by their paths in it.
    fn files(&self, name: &str) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let filled = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => text.replace(NAME, name).into_bytes(),
            Err(_) => bytes.to_vec(),
        };
        let template = carried::below(self.sdk, self.template).map(|(path, bytes)| (path.to_owned(), filled(bytes)));
        let sdk = carried::sdk(self.sdk).map(|(path, bytes)| (format!("{SDK}/{path}"), bytes.to_vec()));
        let mut files: Vec<_> = template.chain(sdk).collect();
        if self.name == "rust" {
            rust::complete(&mut files)?;
        }
        Ok(files)
    }
}

/// Makes the directory, or sees that it is empty.
fn make_empty(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made a directory", dir.display()))?;
    let used = std::fs::read_dir(dir).with_context(|| format!("{} cannot be read", dir.display()))?.next().is_some();
    let refused = || Failure::Usage(format!("{} is not empty: choose another directory", dir.display()));
    if used { Err(refused().into()) } else { Ok(()) }
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().context("a file without a folder")?;
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, bytes));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A name that the package managers of all languages take.
fn checked(name: &str) -> Result<&str, Failure> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed) {
        return Ok(name);
    }
    Err(Failure::Usage(format!(
        "--name {}: it must begin with a letter and have at most 64 of a-z, 0-9 and `-`",
        name.escape_debug()
    )))
}

/// The directory's name, made one that [`checked`] takes.
fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let kept: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(64).collect();
    let kept = kept.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('-');
    if kept.is_empty() { "activity".to_owned() } else { kept.to_owned() }
}

fn next(language: &Language, dir: &Path) -> String {
    let mut lines = vec![format!("{} is a project now. What to do next, as its README.md says:", dir.display())];
    lines.push(format!("  cd {}", dir.display()));
    lines.extend(language.prepare.iter().map(|line| format!("  {line}")));
    lines.push("  deedbox build".to_owned());
    lines.push("  deedbox up                  # in another terminal; prints DEEDBOX_URL and DEEDBOX_TOKEN".to_owned());
    lines.push("  deedbox deploy activity.wasm --policy policy.toml".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(dir: &Path) -> New {
        New { lang: "rust".to_owned(), dir: dir.to_owned(), name: None }
    }

    #[tokio::test]
    async fn a_project_has_the_template_with_its_name_and_the_sdk() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("My Shop 2");
        new(&project).run(&Output::new(true)).await.unwrap();
        let read = |path: &str| std::fs::read_to_string(project.join(path)).unwrap();
        assert!(read("Cargo.toml").contains("name = \"my-shop-2\""));
        assert!(read("src/lib.rs").contains("#[activity]"));
        assert!(read("deedbox-sdk/src/lib.rs").contains("Write Deedbox activities in Rust"));
        assert!(project.join("deedbox-sdk/macros/src/lib.rs").is_file());
        assert!(!project.join("deedbox-sdk/template").exists());
    }

    #[tokio::test]
    async fn a_directory_that_is_in_use_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("mine"), "").unwrap();
        let error = new(dir.path()).run(&Output::new(true)).await.unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn every_project_has_what_the_others_have() {
        assert!(names().contains(&"rust"));
        for language in offered() {
            let files = language.files("shop").unwrap();
            for path in ["README.md", "policy.toml", ".gitignore"] {
                assert!(files.iter().any(|(it, _)| it == path), "{}: no {path}", language.name);
            }
            let texts: Vec<_> = files.iter().filter(|(path, _)| !path.starts_with(SDK)).collect();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(texts.iter().all(|(_, bytes)| !text(bytes).contains(NAME)), "{}", language.name);
            assert!(texts.iter().any(|(_, bytes)| text(bytes).contains("shop")), "{}", language.name);
            assert!(files.iter().any(|(path, _)| path == "deedbox-sdk/README.md"), "{}", language.name);
        }
    }

    #[test]
    fn names_are_those_that_every_package_manager_takes() {
        for (dir, name) in [("shop", "shop"), ("/a/My Shop", "my-shop"), ("/", "activity"), ("42 things-", "things")] {
            assert_eq!(name_of(Path::new(dir)), name, "{dir}");
            assert!(checked(name).is_ok());
        }
        for name in ["", "Shop", "1shop", "a b", "-a", "ä", "../x", &"a".repeat(65)] {
            assert!(checked(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_to_do_next_ends_with_the_deployment() {
        let language = offered().find(|language| language.name == "rust").unwrap();
        let text = next(language, Path::new("shop"));
        assert!(text.contains("  cd shop\n  rustup target add wasm32-wasip2\n  deedbox build\n"), "{text}");
        assert!(text.ends_with("deedbox deploy activity.wasm --policy policy.toml"), "{text}");
    }
}
