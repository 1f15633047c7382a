//! Small bad sources that each rule must find, and good ones beside them that it must let be.

use super::source::Source;
use super::{line, names, prose, size};

#[test]
fn a_use_to_the_left_is_found_however_it_is_written() {
    for text in [
        "use crate::worker::Worker;",
        "use crate::{clock::Clock, worker::{self, Worker}};",
        "fn f() { crate::api::serve(); }",
        "fn f() { call(crate::node::x()); }",
        "macro_rules! m { () => { crate::host::Engine } }",
        "pub(in crate::cli) struct S;",
        "use super::super::gateway::Gateway;",
        "mod tests { use super::super::super::gateway::Gateway; }",
        "use crate::postgres::Server;",
        "use crate::new_module::X;",
    ] {
        assert_eq!(line::breaches(&Source::new("runtime/src/store/effect.rs", text)).len(), 1, "{text}");
    }
}

#[test]
fn a_use_to_the_right_or_at_home_is_let_be() {
    for text in [
        "use crate::effect::State;",
        "use crate::{effect::State, key};",
        "use super::{Error, Store};",
        "mod tests { use super::super::Store; }",
        "pub(crate) fn f() {}",
        "// use crate::worker::Worker;\n/* crate::api::x */",
        "/// See crate::worker::Worker.\nfn f() { g(\"crate::worker::Worker\", r#\"use crate::api::x;\"#); }",
        "fn f<'a>(x: &'a str) -> char { '\"' }",
        "use crate::store::lease::Lease;",
    ] {
        assert_eq!(line::breaches(&Source::new("runtime/src/store/effect.rs", text)), [], "{text}");
    }
    assert_eq!(line::breaches(&Source::new("runtime/src/lib.rs", "pub mod worker;")), []);
}

#[test]
fn the_line_is_the_agreed_one() {
    for (user, used, allowed) in [
        ("main", "cli", true),
        ("cli", "node", true),
        ("node", "api", true),
        ("node", "worker", true),
        ("api", "worker", false),
        ("worker", "api", false),
        ("worker", "registry", true),
        ("registry", "host", true),
        ("host", "registry", false),
        ("host", "gateway", true),
        ("gateway", "host", false),
        ("gateway", "store", true),
        ("store", "gateway", false),
        ("store", "effect", true),
        ("effect", "store", false),
        ("key", "clock", true),
        ("cli", "postgres", true),
        ("node", "postgres", false),
        ("postgres", "store", false),
    ] {
        assert_eq!(line::may_use(user, used), Ok(allowed), "{user} uses {used}");
    }
    let main = Source::new("runtime/src/main.rs", "fn main() { deedbox::cli::main() }");
    assert_eq!(line::used_modules(&main), [("cli".to_owned(), 1)]);
}

#[test]
fn a_technology_away_from_home_is_found() {
    for (path, text) in [
        ("runtime/src/worker/mod.rs", "use sqlx::PgPool;"),
        ("runtime/src/api/runs.rs", "fn f() { ::sqlx::query!(\"select 1\"); }"),
        ("runtime/src/worker/mod.rs", "use wasmtime::Engine;"),
        ("runtime/src/store/run.rs", "use http::StatusCode;"),
        ("runtime/src/host/http.rs", "use hyper::client::conn::http1;"),
        ("runtime/src/worker/mod.rs", "fn f() { tokio::net::TcpStream::connect(a); }"),
        ("runtime/src/api/mod.rs", "fn f() { reqwest::get(u); }"),
        ("runtime/src/worker/mod.rs", "use tokio::net::TcpListener;"),
        ("runtime/src/registry/mod.rs", "fn f() { std::fs::read(p); }"),
        ("runtime/src/gateway/vault.rs", "use cap_std::fs::Dir;"),
        ("runtime/src/worker/mod.rs", "fn f() { std::env::var(\"X\"); }"),
        ("runtime/src/cli/up.rs", "fn f() { std::env::var_os(\"X\"); }"),
        ("books/src/main.rs", "struct A { #[arg(long, env = \"X\")] x: String }"),
        ("runtime/src/host/engine.rs", "fn f() { unsafe { g() } }"),
        ("tests/it/harness/mod.rs", "unsafe fn f() {}"),
    ] {
        assert_eq!(names::breaches(&Source::new(path, text)).0.len(), 1, "{path}: {text}");
    }
}

#[test]
fn a_technology_at_home_or_in_prose_is_let_be() {
    for (path, text) in [
        ("runtime/src/store/run.rs", "use sqlx::PgPool;"),
        ("runtime/src/registry/compile.rs", "use wasmtime::component::Component;"),
        ("runtime/src/worker/mod.rs", "//! Never names sqlx or axum; unsafe is not for here.\nfn f() { g(\"sqlx\"); }"),
        ("runtime/src/cli/up.rs", "struct A { #[arg(long, env = \"X\")] x: String }"),
        ("runtime/src/config.rs", "fn f() { std::env::var(\"X\"); }"),
        ("runtime/src/worker/mod.rs", "const DIR: &str = env!(\"CARGO_MANIFEST_DIR\");"),
        ("runtime/src/postgres/layout.rs", "fn f() { std::env::temp_dir(); }"),
        ("runtime/src/registry/artefact.rs", "fn f() { unsafe { g() } }"),
    ] {
        assert_eq!(names::breaches(&Source::new(path, text)).0, [], "{path}: {text}");
    }
    let excepted = Source::new("runtime/src/registry/artefact.rs", "fn f() { unsafe { g() } }");
    assert_eq!(names::breaches(&excepted).1.len(), 1, "an exception that is used is reported as needed");
}

#[test]
fn a_secret_in_the_host_is_found() {
    for text in ["use crate::gateway::vault::Vault;", "// the SECRET", "fn open_secret() {}"] {
        assert_eq!(names::secret_words(&Source::new("runtime/src/host/http.rs", text)).len(), 1, "{text}");
        assert_eq!(names::secret_words(&Source::new("runtime/src/gateway/flow.rs", text)), []);
    }
}

#[test]
fn a_long_function_is_found_and_measured() {
    let of_lines = |lines: usize| format!("//! x\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
    let found = |lines| size::breaches(&Source::new("a.rs", &of_lines(lines))).len();
    assert_eq!((found(size::MAX_FUNCTION_LINES), found(size::MAX_FUNCTION_LINES + 1)), (0, 1));
    let text = "trait T { fn a(&self) -> [u8; 4]; fn b(f: fn(u8) -> u8) -> u8 {\n let c = |x| { x };\n struct D { e: u8 }\n f(1) } }";
    assert_eq!(size::functions(&Source::new("a.rs", text)), [("b".to_owned(), 1, 4)]);
    let nested = "fn a() {\n  fn b() {\n  }\n}";
    assert_eq!(size::functions(&Source::new("a.rs", nested)), [("a".to_owned(), 1, 4), ("b".to_owned(), 2, 2)]);
}

#[test]
fn a_long_file_and_one_without_an_opening_are_found() {
    let file = |lines: usize| format!("//! x\n{}", "\n".repeat(lines - 1));
    let found = |text: &str| size::breaches(&Source::new("a.rs", text)).len();
    assert_eq!((found(&file(size::MAX_FILE_LINES)), found(&file(size::MAX_FILE_LINES + 1))), (0, 1));
    assert_eq!((found("fn f() {}"), found("/// x\nfn f() {}"), found("//!\nfn f() {}")), (1, 1, 1));
}

#[test]
fn a_registry_or_a_place_on_a_disk_is_found() {
    for text in [
        concat!("see https://crates", ".io/x"),
        concat!("index = \"https://pypi", ".org/simple\""),
        concat!("cd /wo", "rk/main"),
        concat!("HOME=/ro", "ot"),
        concat!("(`/tmp", "/w/x`)"),
    ] {
        assert_eq!(prose::breaches("docs/a.md", text).len(), 1, "{text}");
    }
    for text in ["/worker/1", "a/root/usr", "root:x:0:0:root:/root:/bin/sh", "GET /workers", "/tmp/work"] {
        assert_eq!(prose::breaches("docs/a.md", text), [], "{text}");
    }
}
