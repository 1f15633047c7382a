//! Small bad sources that each rule must find, and good ones beside them that it must let be.

use super::confined::{Finding, findings};
use super::source::Source;
use super::{line, names, prose, size, statements};

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
        ("cli", "verify", true),
        ("verify", "node", true),
        ("node", "verify", false),
        ("gateway", "verify", false),
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

/// Each reaches rows of another tenant than `$1`.
const CROSSING: [(&str, &str); 25] = [
    ("no condition", "select state from runs where run_id = $2"),
    ("another parameter", "select state from runs where tenant = $2"),
    ("another comparison", "select state from runs where tenant >= $1"),
    ("a list", "select state from runs where tenant in ($1, $2)"),
    ("an or that opens it", "select state from runs where tenant = $1 or run_id = $2"),
    ("an or within an and", "select state from runs where (tenant = $1 or $2) and run_id = $3"),
    ("a not", "select state from runs where not (tenant = $1)"),
    (
        "a join that is not held",
        "select s.send from sends s join effects e on e.effect_id = s.effect_id where s.tenant = $1",
    ),
    ("a comma for a join", "select s.send from sends s, effects e where s.tenant = $1 and e.effect_id = s.effect_id"),
    ("held to itself", "select s.send from sends s, effects e where s.tenant = e.tenant"),
    ("an outer join", "select s.send from sends s left join effects e on e.tenant = s.tenant and s.tenant = $1"),
    (
        "a query in a condition",
        "select 1 from runs r where tenant = $1 and exists (select from sends s where s.run_id = r.run_id)",
    ),
    ("a query among columns", "select (select max(send) from sends) from runs where tenant = $1"),
    ("a query for a limit", "select 1 from runs where tenant = $1 limit (select count(*) from runs)"),
    (
        "a query within a query",
        "select 1 from runs where tenant = $1 and run_id in (select run_id from (select run_id from sends) s)",
    ),
    ("a condition of the query around", "select 1 from (select run_id from runs) r, effects where tenant = $1"),
    ("one half of a union", "select state from runs where tenant = $1 union all select state from effects"),
    ("a part", "with old as (select tenant, run_id from runs) select 1 from old where tenant = $1"),
    ("a part that changes", "with gone as (delete from runs where run_id = $2 returning 1) select count(*) from gone"),
    (
        "held to a part that is open",
        "with l as (select * from unnest($2::text[]) as l (tenant)) update runs r set state = $1 from l where r.tenant = l.tenant",
    ),
    ("an update", "update runs set state = $2 where run_id = $1"),
    ("a row that moves", "update runs set tenant = $2 where tenant = $1"),
    ("a deletion by another table", "delete from runs r using sends s where s.tenant = $1 and s.run_id = r.run_id"),
    (
        "an insert of any tenant",
        "insert into runs (tenant, run_id) select s.name, $1 from signals s where s.tenant = $1",
    ),
    ("a function that reads", "select deedbox_room(a.activity, null, 3) from activities a where a.tenant = $1"),
];

#[test]
fn a_statement_that_crosses_tenants_is_found() {
    for (what, sql) in CROSSING {
        let found = findings(sql).unwrap_or_else(|why| panic!("{what}: {why}"));
        assert!(found.iter().any(|it| matches!(it, Finding::Open(_))), "{what}: {found:?}");
    }
}

#[test]
fn a_statement_that_keeps_to_its_tenant_is_let_be() {
    for sql in [
        "select state from runs where tenant = $1 and (state = $2 or state = $3)",
        "select state from runs r where $1::text = r.tenant",
        "select s.send from sends s join effects e on e.tenant = s.tenant where s.tenant = $1",
        "select s.send from sends s left join effects e on e.tenant = s.tenant where s.tenant = $1",
        "with a as (select tenant, run_id from runs where tenant = $1) update sends s set send = 1 from a where s.tenant = a.tenant",
        "select 1 from runs r where tenant = $1 and exists (select from sends s where s.tenant = r.tenant)",
        "insert into tenants (tenant) values ($1) on conflict do nothing",
        "insert into rates as r (tenant, meter) values ($1, $2) on conflict (tenant, meter) do update set meter = r.meter",
        "with r as (insert into runs (tenant) values ($1) returning *) insert into sends (send, tenant) select 1, tenant from r",
        "select deedbox_room(a.tenant, null, 3) from activities a where a.tenant = $1",
        "select pg_notify('x', $1)",
        "select 1 from pg_database where datname = $1",
    ] {
        assert_eq!(findings(sql).map(Vec::from_iter), Ok(vec![]), "{sql}");
    }
}

#[test]
fn a_statement_that_is_not_understood_is_found() {
    for sql in [
        "select 1 from runs full join effects using (tenant)",
        "select 1 from runs r (a, tenant) where tenant = $1",
        "insert into runs (tenant) values ($1) on conflict on constraint runs_pkey do update set state = $2",
        "truncate runs",
        "merge into runs r using sends s on r.tenant = s.tenant when matched then delete",
    ] {
        let found = findings(sql).unwrap_or_else(|why| panic!("{sql}: {why}"));
        assert!(found.iter().any(|it| matches!(it, Finding::Unknown(_))), "{sql}: {found:?}");
    }
    assert!(findings("select from where").is_err());
}

#[test]
fn statements_are_found_with_their_functions_and_hidden_ones_are_breaches() {
    let text =
        "fn f() { let a = sqlx::query!(\n\"select 1\", x); }\nfn g() { sqlx::query_as!(Row, r#\"select \"a\"\"#); }";
    let found = statements::statements(&Source::new("runtime/src/store/run.rs", text));
    let found: Vec<_> = found.iter().map(|it| (it.function.as_str(), it.line, it.sql.as_deref())).collect();
    assert_eq!(found, [("f", 1, Some("select 1")), ("g", 3, Some("select \"a\""))]);
    let of_store = |text: &str| {
        let breaches = statements::breaches(&[&Source::new("runtime/src/store/run.rs", text)]).0;
        breaches.into_iter().filter(|it| it.0.starts_with("runtime/")).count()
    };
    for text in [
        "use sqlx::{query};",
        "fn f() { query(\"select 1\"); }",
        "fn f() { pool.execute(\"delete from runs\"); }",
        "fn f() { sqlx::query(&made); }",
        "fn f() { sqlx::query!(\"delete from runs\"); }",
        "fn f() { sqlx::query!(\"delete from\"); }",
        "fn f() { sqlx::query_scalar!(\"select '\\x00'\"); }",
        "fn f() { sqlx::query!(\"delete from runs where tenant = $1\", name, tenant); }",
    ] {
        assert_eq!(of_store(text), 1, "{text}");
    }
    assert_eq!(of_store("fn f() { sqlx::query!(\"delete from runs where tenant = $1\", run.tenant, id); }"), 0);
}

#[test]
fn a_listed_function_that_crosses_no_tenants_or_is_gone_is_a_breach() {
    let listed = |text: &str| {
        let breaches = statements::breaches(&[&Source::new("runtime/src/store/tenant.rs", text)]).0;
        breaches.iter().any(|it| it.0.contains("`tenant::list` need not be listed"))
    };
    assert!(!listed("fn list() { sqlx::query!(\"select tenant from tenants\"); }"));
    assert!(listed("fn list() { sqlx::query!(\"select tenant from tenants where tenant = $1\"); }"));
    assert!(listed("fn other() { sqlx::query!(\"select tenant from tenants\"); }"));
}

#[test]
fn the_opening_of_the_store_tells_the_same_list() {
    let differs = |text: &str| {
        let breaches = statements::breaches(&[&Source::new("runtime/src/store/mod.rs", text)]).0;
        breaches.iter().any(|it| it.0.contains("the opening and the list differ"))
    };
    let all = statements::CROSSING.map(|(file, function)| format!("//! `{file}::{function}`\n")).concat();
    assert!(!differs(&all));
    assert!(differs(&all.replacen("//! `duty::end`\n", "", 1)));
    assert!(differs(&format!("{all}//! `run::find`\n")));
}
