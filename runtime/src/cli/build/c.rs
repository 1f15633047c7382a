//! Projects in C: Zig's C compiler, which carries the C library of WASI, makes one module of the project's sources and the SDK's.
//! Nothing is written into the project but the component.
//!
//! The flags are those of `compile_flags.txt`, one a line, which editors read as well. The SDK is where `deedbox.h` is found by them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Failure, Project, componentize, tools};

const FLAGS: &str = "compile_flags.txt";
const SOURCES: &str = "src";
const HEADER: &str = "deedbox.h";
/// The compiler by itself, and as the package `ziglang` of Python installs it.
const COMPILERS: [&str; 2] = ["zig", "python-zig"];
const INSTALL: &str = "python3 -m venv .venv && .venv/bin/pip install ziglang==0.17.1";
/// Zig puts the stack below all data, so one that overflows traps. Its own size for it is 16 MiB in every instance.
const TARGET: [&str; 7] =
    ["cc", "-target", "wasm32-wasi", "-mexec-model=reactor", "-Os", "-s", "-Wl,-z,stack-size=1048576"];

pub fn is_here(dir: &Path) -> bool {
    dir.join(FLAGS).is_file()
}

/// Compiles everything below `src` with the SDK.
pub fn build(project: &Project) -> Result<PathBuf, Failure> {
    let compiler = COMPILERS.iter().find_map(|name| tools::find(project, name));
    let compiler = compiler.ok_or_else(|| tools::missing("Zig, the C compiler for components,", INSTALL))?;
    let flags = flags(&String::from_utf8_lossy(&tools::read(&project.dir.join(FLAGS))?));
    let mut sources = sources_below(&project.dir.join(SOURCES))?;
    if sources.is_empty() {
        return Err(Failure::Other(format!("{} has no file that ends with .c", project.dir.join(SOURCES).display())));
    }
    sources.extend(sources_below(&sdk(&project.dir, &flags)?.join(SOURCES))?);
    let core = project.out.with_extension("core.wasm");
    let mut compile = Command::new(compiler);
    compile.args(TARGET).args(&flags).args(&sources).arg("-o").arg(&core).current_dir(&project.dir);
    let compiled = tools::run(&mut compile);
    let component = compiled.and_then(|()| component(&core));
    // When there is none, that was told already.
    let _ = std::fs::remove_file(&core);
    tools::write(&project.out, &component?)?;
    Ok(project.out.clone())
}

fn component(core: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = tools::read(core)?;
    componentize::component(&bytes, Some("activity"), true).map_err(|why| {
        Failure::Other(format!(
            "what was compiled is no activity: {why}\nOne of its sources must name its activities with DEEDBOX_ACTIVITIES."
        ))
    })
}

/// One a line; a line that begins with `#` is a remark.
fn flags(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// The SDK's folder: the one above the folder of its header.
fn sdk(dir: &Path, flags: &[String]) -> Result<PathBuf, Failure> {
    let included = flags.iter().enumerate().filter_map(|(i, flag)| match flag.strip_prefix("-I")? {
        "" => flags.get(i + 1).map(String::as_str),
        folder => Some(folder.trim()),
    });
    let found = included.map(|folder| dir.join(folder)).find(|folder| folder.join(HEADER).is_file());
    let sdk = found.as_deref().and_then(Path::parent).map(Path::to_owned);
    sdk.ok_or_else(|| {
        Failure::Other(format!(
            "no folder of {} has {HEADER}: add the line\n  -Ideedbox-sdk/include\nand take the folder deedbox-sdk of a new project \
             (deedbox new --lang c DIR)",
            dir.join(FLAGS).display()
        ))
    })
}

/// In an order that is the same everywhere.
fn sources_below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |source| Failure::File { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            found.extend(sources_below(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "c") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn flags_are_the_lines_but_for_remarks() {
        assert_eq!(flags("-std=c11\n\n# more\n -Wall \r\n"), ["-std=c11", "-Wall"]);
    }

    #[test]
    fn the_sdk_is_where_its_header_is() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "sdk/include/deedbox.h", "");
        for text in ["-Iother\n-Isdk/include", "-I\nsdk/include"] {
            assert_eq!(sdk(dir.path(), &flags(text)).unwrap(), dir.path().join("sdk"));
        }
        let error = sdk(dir.path(), &flags("-Iother\n-I")).unwrap_err().to_string();
        assert!(error.contains("-Ideedbox-sdk/include"), "{error}");
    }

    #[test]
    fn sources_are_found_in_folders_of_folders_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["b.c", "a/z.c", "a.h", "c.c.txt"] {
            put(dir.path(), path, "");
        }
        assert_eq!(sources_below(dir.path()).unwrap(), [dir.path().join("a/z.c"), dir.path().join("b.c")]);
        assert!(sources_below(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
    }

    #[test]
    fn a_project_is_known_by_its_flags() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_here(dir.path()));
        put(dir.path(), FLAGS, "");
        assert!(is_here(dir.path()));
    }
}
