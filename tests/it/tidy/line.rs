//! The straight line of the runtime's modules: each uses only those to its right.

use super::source::{Breach, Source};

/// Modules of one place do not use each other.
const LINE: [&[&str]; 10] = [
    &["main"],
    &["cli"],
    &["verify"],
    &["node"],
    &["api", "dashboard", "worker"],
    &["registry"],
    &["host"],
    &["gateway"],
    &["wakes"],
    &["store"],
];

/// The pure modules, at the line's end. Each uses only those to its right.
const PURE: [&str; 10] =
    ["webhook", "token", "signature", "policy", "config", "effect", "key", "threads", "probe", "clock"];

/// Beside the line: the database server of `up`, which only these use, and which uses nothing.
const POSTGRES: &str = "postgres";
const POSTGRES_USERS: [&str; 2] = ["cli", "postgres"];

const ROOT: &str = "runtime/src/";

/// Whether a module may use another.
pub fn may_use(user: &str, used: &str) -> Result<bool, String> {
    if user == used {
        return Ok(true);
    }
    if used == POSTGRES {
        return Ok(POSTGRES_USERS.contains(&user));
    }
    let (from, to) = (place(user)?, place(used)?);
    Ok(user != POSTGRES && from < to)
}

pub fn breaches(source: &Source) -> Vec<Breach> {
    let Some(user) = module_of(&source.path) else { return Vec::new() };
    let check = |(used, line): (String, usize)| match may_use(&user, &used) {
        Ok(true) => None,
        Ok(false) => Some(source.breach(line, &format!("`{user}` must not use `{used}`: it is not to its right"))),
        Err(stranger) => Some(source.breach(line, &format!("`{stranger}` has no place in the line of modules"))),
    };
    used_modules(source).into_iter().filter_map(check).collect()
}

/// The modules of the crate that a file names, with the lines.
pub fn used_modules(source: &Source) -> Vec<(String, usize)> {
    let tokens = &source.tokens;
    let mut used = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let names_root = match token.text.as_str() {
            "crate" => true,
            // The binary sees the library as a crate of its own.
            "deedbox" => source.path == "runtime/src/main.rs",
            "super" => is_climb_to_root(source, at),
            _ => false,
        };
        if names_root && source.follows(at, &[":", ":"]) {
            used.extend(first_names(source, at + 3));
        }
    }
    used
}

/// Whether the `super` at `at` is the last of as many as lead out of the file's module.
fn is_climb_to_root(source: &Source, at: usize) -> bool {
    let mut climbed = 1;
    let mut before = at;
    while before >= 3 && source.tokens[before - 3].text == "super" && source.follows(before - 3, &[":", ":"]) {
        climbed += 1;
        before -= 3;
    }
    climbed == depth_of(&source.path) + source.tokens[at].depth
}

/// `crate::a::b` names `a`; `crate::{a, b::c}` names `a` and `b`.
fn first_names(source: &Source, at: usize) -> Vec<(String, usize)> {
    let tokens = &source.tokens;
    let Some(first) = tokens.get(at) else { return Vec::new() };
    if first.text != "{" {
        return vec![(first.text.clone(), first.line)];
    }
    let mut names = Vec::new();
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ if depth == 1 && token.is_ident && ["{", ","].contains(&tokens[i - 1].text.as_str()) => {
                names.push((token.text.clone(), token.line));
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn place(module: &str) -> Result<usize, String> {
    if module == POSTGRES {
        return Ok(LINE.len());
    }
    let in_line = LINE.iter().position(|place| place.contains(&module));
    let pure = || PURE.iter().position(|it| *it == module).map(|i| LINE.len() + i);
    in_line.or_else(pure).ok_or_else(|| module.to_owned())
}

/// The top module that a file belongs to. None for files that are not the runtime's, for the list of modules, and for the laws
/// of readers, which are no part of the program.
fn module_of(path: &str) -> Option<String> {
    let inner = path.strip_prefix(ROOT)?;
    let top = inner.split('/').next()?.trim_end_matches(".rs");
    (!["lib", "fuzzing"].contains(&top)).then(|| top.to_owned())
}

/// How many modules deep a file is below the crate's root.
fn depth_of(path: &str) -> usize {
    let inner = path.strip_prefix(ROOT).unwrap_or(path);
    let parts = inner.trim_end_matches(".rs").split('/');
    parts.filter(|part| !["mod", "lib", "main"].contains(part)).count()
}
