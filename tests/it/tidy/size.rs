//! What can be read at one sight: short functions, short files, and a word on what each file is for.

use super::source::{Breach, Source};

pub const MAX_FUNCTION_LINES: usize = 70;
pub const MAX_FILE_LINES: usize = 500;

pub fn breaches(source: &Source) -> Vec<Breach> {
    let mut found = Vec::new();
    let lines = source.text.lines().count();
    if lines > MAX_FILE_LINES {
        found.push(source.breach(lines, &format!("a file of {lines} lines: at most {MAX_FILE_LINES}")));
    }
    if !source.text.starts_with("//! ") {
        found.push(source.breach(1, "a file opens with `//!` and what it is for"));
    }
    for (name, line, length) in functions(source) {
        if length > MAX_FUNCTION_LINES {
            found.push(source.breach(line, &format!("`{name}` has {length} lines: at most {MAX_FUNCTION_LINES}")));
        }
    }
    found
}

/// Name, first line and number of lines of each function with a body, from `fn` to its closing brace.
pub fn functions(source: &Source) -> Vec<(String, usize, usize)> {
    let tokens = &source.tokens;
    let named = (0..tokens.len().saturating_sub(1)).filter(|at| tokens[*at].text == "fn" && tokens[at + 1].is_ident);
    let measured = named.filter_map(|at| {
        let end = end_of_body(source, at)?;
        Some((tokens[at + 1].text.clone(), tokens[at].line, end - tokens[at].line + 1))
    });
    measured.collect()
}

/// The line of the brace that closes the first block at the function's own level; none when a `;` comes first.
fn end_of_body(source: &Source, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_body = false;
    for token in &source.tokens[from..] {
        match token.text.as_str() {
            ";" if depth == 0 => return None,
            "{" if depth == 0 => {
                in_body = true;
                depth += 1;
            }
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && in_body {
                    return Some(token.line);
                }
            }
            _ => {}
        }
    }
    None
}
