//! Rust sources as a flat list of tokens with their lines. Comments are gone and texts are opaque, so that a rule about
//! names cannot be misled by prose.

use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One source file, named by its path from the root of the repository.
pub struct Source {
    pub path: String,
    pub text: String,
    pub tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub text: String,
    pub line: usize,
    pub is_ident: bool,
    /// A literal as it is written; empty for all else. Only a rule that is about literals reads it.
    pub literal: String,
    /// Inline modules around it.
    pub depth: usize,
}

/// A rule that a file breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach(pub String);

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let stream = TokenStream::from_str(text).unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut tokens = Vec::new();
        flatten(stream, 0, &mut tokens);
        Self { path: path.to_owned(), text: text.to_owned(), tokens }
    }

    pub fn read(root: &Path, path: &str) -> Self {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        Self::new(path, &text)
    }

    pub fn breach(&self, line: usize, what: &str) -> Breach {
        Breach(format!("{}:{line}: {what}", self.path))
    }

    pub fn is_under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// The tokens that follow the one at `at`, as text.
    pub fn follows(&self, at: usize, expected: &[&str]) -> bool {
        let texts = self.tokens[at + 1..].iter().map(|token| token.text.as_str());
        self.tokens.len() > at + expected.len() && texts.take(expected.len()).eq(expected.iter().copied())
    }
}

fn flatten(stream: TokenStream, depth: usize, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let plain = |text: String, line, is_ident| Token { text, line, is_ident, literal: String::new(), depth };
        match tree {
            TokenTree::Ident(ident) => tokens.push(plain(ident.to_string(), line, true)),
            TokenTree::Punct(punct) => tokens.push(plain(punct.as_char().to_string(), line, false)),
            TokenTree::Literal(literal) => {
                tokens.push(Token { literal: literal.to_string(), ..plain("\"\"".to_owned(), line, false) });
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let of_module = open == "{" && is_module_head(tokens);
                tokens.push(plain(open.to_owned(), line, false));
                flatten(group.stream(), depth + usize::from(of_module), tokens);
                tokens.push(plain(close.to_owned(), group.span_close().start().line, false));
            }
        }
    }
}

fn is_module_head(tokens: &[Token]) -> bool {
    matches!(tokens, [.., keyword, name] if keyword.text == "mod" && name.is_ident)
}
