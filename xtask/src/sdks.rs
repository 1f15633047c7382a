//! The SDKs: for each language its tools, the tests of its SDK, and the components that the conformance list runs. All of them are
//! made by the program `deedbox` itself, so that each recipe exists once. Nothing is built in the folders of the sources.
//!
//! A language whose tools cannot be had on this machine is named in a line and left out.

mod tree;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::report;
use crate::settings::Settings;
use crate::setup::{self, Compiler};
use crate::shell;
use crate::workspace::Workspace;

/// One language: a row of the table.
struct Language {
    /// The folder in `guest-sdk` and in `examples/samples`, and the ending of its components' names.
    name: &'static str,
    /// What the machine needs, found or made.
    setup: fn(&Machine<'_>) -> Result<Tools>,
    /// Runs the tests of the SDK in a copy of its folder; empty where `cargo test` runs them.
    tests: &'static [&'static str],
    /// Runs the tests of a new project.
    template_tests: &'static [&'static str],
    /// The file of a new project in whose place the first example of the SDK's README is built.
    main: Option<&'static str>,
    /// Whether the stage `guests` has built the samples already.
    has_samples: bool,
    /// Samples that need a project of their own: folders below those of the others.
    more_samples: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language {
        name: "rust",
        setup: rust,
        tests: &[],
        template_tests: &["cargo", "test", "--quiet"],
        main: Some("src/lib.rs"),
        has_samples: true,
        more_samples: &[],
    },
    Language {
        name: "python",
        setup: |machine| folder(setup::componentize_py_only(machine.settings, machine.workspace)),
        tests: &["python3", "-m", "unittest", "discover", "-t", ".", "-s", "tests"],
        template_tests: &["python3", "-m", "unittest"],
        main: Some("activities.py"),
        has_samples: false,
        more_samples: &[],
    },
    Language {
        name: "js",
        setup: |machine| folder(setup::node_only(machine.settings, machine.workspace)),
        tests: &["npm", "run", "test:all"],
        template_tests: &["sh", "-c", "npm ci --no-audit --no-fund && npm test"],
        main: Some("src/index.js"),
        has_samples: false,
        more_samples: &["fetch"],
    },
    Language {
        name: "go",
        setup: |machine| folder(setup::go_only(machine.settings, machine.workspace)),
        tests: &["go", "test", "./..."],
        template_tests: &["go", "test", "./..."],
        main: Some("activity.go"),
        has_samples: false,
        more_samples: &[],
    },
    Language {
        name: "c",
        setup: |machine| folder(setup::c_only(machine.settings, machine.workspace)),
        tests: &["make", "-s", "test"],
        template_tests: &["make", "-s", "test"],
        main: Some("src/activity.c"),
        has_samples: false,
        more_samples: &[],
    },
];

/// What the languages' set-ups may use.
pub struct Machine<'a> {
    pub settings: &'a Settings,
    pub workspace: &'a Workspace,
    pub compiler: &'a Compiler,
}

/// How a language's tools are found.
#[derive(Debug, Default)]
pub struct Tools {
    /// For `DEEDBOX_TOOLS`, and before the PATH of the tests.
    pub folders: Vec<PathBuf>,
    /// Set for `deedbox build`.
    pub variables: Vec<(&'static str, OsString)>,
}

fn rust(machine: &Machine<'_>) -> Result<Tools> {
    let rustc = machine.compiler.rustc().map(|rustc| ("RUSTC", rustc.into()));
    // Emptied with the other guests when another standard library comes.
    let target = ("CARGO_TARGET_DIR", machine.workspace.target.join("guests/template").into());
    Ok(Tools { folders: Vec::new(), variables: rustc.into_iter().chain([target]).collect() })
}

fn folder(tools: Result<PathBuf>) -> Result<Tools> {
    Ok(Tools { folders: vec![tools?], variables: Vec::new() })
}

/// Builds what is not built yet, and gives the languages whose components are there. `every`: fails when one cannot be had.
pub fn build(machine: &Machine<'_>, components: &Path, every: bool) -> Result<Vec<&'static str>> {
    let mut built = Vec::new();
    for language in LANGUAGES {
        match (language.setup)(machine) {
            Ok(tools) => {
                let work = Work { machine, language, tools, components };
                work.done().with_context(|| format!("the SDK of {}", language.name))?;
                built.push(language.name);
            }
            Err(error) if every => bail!("the tools of {} cannot be had: {error:#}", language.name),
            Err(error) => println!("sdks: {} … skipped, its tools cannot be had here: {error:#}", language.name),
        }
    }
    Ok(built)
}

struct Work<'a> {
    machine: &'a Machine<'a>,
    language: &'a Language,
    tools: Tools,
    components: &'a Path,
}

impl Work<'_> {
    fn done(&self) -> Result<()> {
        let name = self.language.name;
        let note = self.components.join(format!("sdk_{name}.note"));
        let wanted = self.identity()?;
        if fs::read_to_string(&note).is_ok_and(|written| written == wanted) && self.products().all(|it| it.exists()) {
            println!("sdks: {name} … already there");
            return Ok(());
        }
        let start = Instant::now();
        let sources = self.sources();
        let tree = self.folder("tree");
        tree::mirror(&self.machine.workspace.root, &tree, &sources)?;
        self.test(self.language.tests, &tree.join("guest-sdk").join(name))?;
        let samples = tree.join("examples/samples").join(name);
        if !self.language.has_samples {
            self.component(&samples, "samples")?;
        }
        for more in self.language.more_samples {
            self.component(&samples.join(more), more)?;
        }
        self.template()?;
        fs::write(note, wanted)?;
        println!("sdks: {name} … built in {}", report::in_words(start.elapsed()));
        Ok(())
    }

    /// A new project, tested and built; and once more with the first example of the SDK's README.
    fn template(&self) -> Result<()> {
        let project = self.folder("project");
        if project.exists() {
            fs::remove_dir_all(&project)?;
        }
        shell::quiet(self.deedbox().args(["new", "--lang", self.language.name]).arg(&project))?;
        self.test(self.language.template_tests, &project)?;
        self.component(&project, "template")?;
        let Some(main) = self.language.main else {
            return Ok(());
        };
        let readme = self.machine.workspace.root.join("guest-sdk").join(self.language.name).join("README.md");
        let readme = fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
        fs::write(project.join(main), first_example(&readme).context("the README has no example")?)?;
        self.component(&project, "readme")
    }

    fn component(&self, project: &Path, kind: &str) -> Result<()> {
        let draft = self.folder("draft").join(format!("{kind}.wasm"));
        shell::run(self.deedbox().arg("build").arg(project).arg("--out").arg(&draft))?;
        let component = self.product(kind);
        fs::copy(&draft, &component).with_context(|| format!("{} was not written", draft.display()))?;
        println!("sdks: {} ({} kB)", component.display(), component.metadata()?.len() / 1000);
        Ok(())
    }

    fn test(&self, words: &[&str], folder: &Path) -> Result<()> {
        let [program, arguments @ ..] = words else {
            return Ok(());
        };
        let path = std::env::join_paths(self.tools.folders.iter().chain(&self.machine.settings.search_path))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env("PATH", path);
        command.env("CARGO_TARGET_DIR", self.folder("tests")).env("PYTHONDONTWRITEBYTECODE", "1");
        shell::run(&mut command)
    }

    fn deedbox(&self) -> Command {
        let mut command = Command::new(self.machine.workspace.program("deedbox"));
        if let Ok(folders) = std::env::join_paths(&self.tools.folders) {
            command.env("DEEDBOX_TOOLS", folders);
        }
        command.envs(self.tools.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What was built from other sources, by other tools or in another way, is built again.
    fn identity(&self) -> Result<String> {
        let recipe = ["runtime/src/cli/build", "runtime/src/cli/new", "runtime/src/cli/new.rs", "Cargo.lock"];
        let paths: Vec<PathBuf> = self.sources().into_iter().chain(recipe.map(PathBuf::from)).collect();
        let digest = tree::digest(&self.machine.workspace.root, &paths)?;
        Ok(format!("{digest:016x} {:?} {}", self.tools, self.machine.compiler.identity()?))
    }

    /// From the root of the repository.
    fn sources(&self) -> Vec<PathBuf> {
        let name = self.language.name;
        let own = [format!("guest-sdk/{name}"), format!("examples/samples/{name}")];
        let shared = ["guest-sdk/key-vectors.json", "wit"].map(PathBuf::from);
        own.into_iter().map(PathBuf::from).chain(shared).collect()
    }

    fn products(&self) -> impl Iterator<Item = PathBuf> {
        ["samples", "template", "readme"]
            .into_iter()
            .chain(self.language.more_samples.iter().copied())
            .filter(move |kind| *kind != "readme" || self.language.main.is_some())
            .map(move |kind| self.product(kind))
    }

    fn product(&self, kind: &str) -> PathBuf {
        self.components.join(format!("{kind}_{}.wasm", self.language.name))
    }

    fn folder(&self, below: &str) -> PathBuf {
        self.machine.workspace.target.join("sdks").join(self.language.name).join(below)
    }
}

/// The first code block of a README.
fn first_example(readme: &str) -> Option<&str> {
    let (_, rest) = readme.split_once("\n```")?;
    let (_, code) = rest.split_once('\n')?;
    let (code, _) = code.split_once("\n```")?;
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_example_is_the_first_code_block() {
        let readme = "# A\n\ntext\n\n```rust\nfn a() {}\n\nfn b() {}\n```\n\n```sh\nls\n```\n";
        assert_eq!(first_example(readme), Some("fn a() {}\n\nfn b() {}"));
        assert_eq!(first_example("# A\n"), None);
    }

    #[test]
    fn every_sdk_has_a_readme_that_begins_with_an_example() {
        for language in LANGUAGES {
            let readme = format!("{}/../guest-sdk/{}/README.md", env!("CARGO_MANIFEST_DIR"), language.name);
            let readme = fs::read_to_string(readme).unwrap();
            assert!(first_example(&readme).unwrap().contains("charge"), "{}", language.name);
        }
    }
}
