//! Every SQL statement of the store keeps to one tenant, so that a tenant's rows may lie anywhere. The few that cross tenants
//! are listed here and in the opening of `store/mod.rs`, and one that need not be in the list is a breach as well.

use std::collections::BTreeSet;

use super::confined::{Finding, findings};
use super::size;
use super::source::{Breach, Source};

pub const STORE: &str = "runtime/src/store/";
const OPENING: &str = "runtime/src/store/mod.rs";

/// File and function.
pub const CROSSING: [(&str, &str); 20] = [
    ("callback", "give_up"),
    ("callback", "take_due"),
    ("duty", "end"),
    ("duty", "escape_left"),
    ("duty", "expire"),
    ("duty", "promote"),
    ("duty", "rescue"),
    ("event", "renumber"),
    ("lease", "give_back"),
    ("lease", "lease"),
    ("lease", "renew"),
    ("request_key", "sweep"),
    ("reseal", "direct"),
    ("reseal", "masters_of_secrets"),
    ("resolution", "take_due"),
    ("retention", "sweep"),
    ("sealing_key", "in_use"),
    ("sealing_key", "masters"),
    ("sealing_key", "wrapped_by_others"),
    ("tenant", "list"),
];

/// Functions whose statement is put together when it runs: it names no table.
const WRITTEN_LATER: [(&str, &str); 2] = [("mod", "create_database"), ("mod", "on_server")];

/// How sqlx is told of a statement.
const MAKERS: [&str; 2] = ["raw_sql", "QueryBuilder"];

/// What takes a statement as a bare text.
const TAKERS: [&str; 7] =
    ["execute", "execute_many", "fetch", "fetch_all", "fetch_many", "fetch_one", "fetch_optional"];

/// One statement in a source. `sql` is none when it is not written out there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub function: String,
    pub line: usize,
    pub sql: Option<String>,
    /// The last name in what is given for `$1`.
    pub given: Option<String>,
}

/// The breaches of the store's sources, and the number of statements in them.
pub fn breaches(sources: &[&Source]) -> (Vec<Breach>, usize) {
    let (mut found, mut count) = (Vec::new(), 0);
    let (mut crossed, mut later) = (BTreeSet::new(), BTreeSet::new());
    for source in sources {
        let file = source.path.trim_start_matches(STORE).trim_end_matches(".rs");
        found.extend(unseen(source));
        for written in statements(source) {
            count += 1;
            let listed = |list: &[(&str, &str)]| list.contains(&(file, written.function.as_str()));
            let place = (file.to_owned(), written.function.clone());
            let breach = |what: String| source.breach(written.line, &format!("`{}`: {what}", written.function));
            let Some(sql) = &written.sql else {
                later.insert(place);
                found.extend((!listed(&WRITTEN_LATER)).then(|| breach("write the statement out here".to_owned())));
                continue;
            };
            match findings(sql) {
                Err(why) => found.push(breach(format!("the statement cannot be read: {why}"))),
                Ok(open) if listed(&CROSSING) => {
                    crossed.extend(open.iter().any(|it| matches!(it, Finding::Open(_))).then_some(place));
                }
                Ok(open) => {
                    found.extend(open.into_iter().map(|finding| breach(words(finding))));
                    let is_tenant = !sql.contains("tenant") || written.given.as_deref() == Some("tenant");
                    found.extend((!is_tenant).then(|| breach("give the tenant for `$1`".to_owned())));
                }
            }
        }
    }
    let unneeded = |list: &[(&str, &str)], seen: &BTreeSet<(String, String)>| {
        let rotten =
            list.iter().filter(|(file, function)| !seen.contains(&((*file).to_owned(), (*function).to_owned())));
        rotten.map(|(file, function)| Breach(format!("`{file}::{function}` need not be listed"))).collect::<Vec<_>>()
    };
    found.extend(unneeded(&CROSSING, &crossed));
    found.extend(unneeded(&WRITTEN_LATER, &later));
    found.extend(sources.iter().filter(|source| source.path == OPENING).filter_map(|source| prose_differs(source)));
    (found, count)
}

fn words(finding: Finding) -> String {
    match finding {
        Finding::Open(what) => format!("{what}: hold its tenant, or list the function as one that crosses tenants"),
        Finding::Unknown(what) => format!("this is not understood, so it may reach any tenant: {what}"),
    }
}

/// The statements that a source hands to sqlx by its name.
pub fn statements(source: &Source) -> Vec<Written> {
    let functions = size::functions(source);
    let makers = (0..source.tokens.len()).filter(|at| is_maker(source, *at) && is_named_in_full(source, *at));
    let written = makers.map(|at| {
        let line = source.tokens[at].line;
        let around = functions.iter().filter(|(_, first, length)| (*first..first + length).contains(&line));
        let function = around.max_by_key(|(_, first, _)| *first).map(|(name, ..)| name.clone()).unwrap_or_default();
        let (sql, given) = arguments(source, at);
        Written { function, line, sql, given }
    });
    written.collect()
}

/// The statement without one of its conditions on a tenant, for each of them.
pub fn without_each_condition(sql: &str) -> Vec<String> {
    let equal = sql.match_indices("tenant = ").filter_map(|(at, equal)| {
        let start = sql[..at].rfind(|c: char| !is_of_name(c))? + 1;
        let value = &sql[at + equal.len()..];
        let length = value.find(|c: char| !is_of_name(c) && c != '$').unwrap_or(value.len());
        let is_tenant = value[..length] == *"$1" || value[..length].ends_with(".tenant");
        is_tenant.then(|| format!("{}true{}", &sql[..start], &value[length..]))
    });
    equal.collect()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// Ways to hand over a statement that [`statements`] would not see.
fn unseen(source: &Source) -> Vec<Breach> {
    let hidden = |at: &usize| {
        let bare = is_maker(source, *at) && !is_named_in_full(source, *at);
        let text = TAKERS.contains(&source.tokens[*at].text.as_str()) && source.follows(*at, &["(", "\"\""]);
        bare || text
    };
    let found = (0..source.tokens.len()).filter(hidden);
    found
        .map(|at| source.breach(source.tokens[at].line, "say `sqlx::query…!`, so that the statement is seen"))
        .collect()
}

fn is_maker(source: &Source, at: usize) -> bool {
    let token = &source.tokens[at];
    token.is_ident
        && (token.text == "query" || token.text.starts_with("query_") || MAKERS.contains(&token.text.as_str()))
}

fn is_named_in_full(source: &Source, at: usize) -> bool {
    at >= 3 && source.tokens[at - 3].text == "sqlx" && source.follows(at - 3, &[":", ":"])
}

/// The first text among the arguments, and the last name in the argument behind it.
fn arguments(source: &Source, at: usize) -> (Option<String>, Option<String>) {
    let (mut depth, mut sql, mut given, mut behind) = (0_usize, None, None, 0);
    for token in &source.tokens[at + 1..] {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth <= 1 => break,
            ")" | "]" | "}" => depth -= 1,
            ";" if depth == 0 => break,
            "," if depth == 1 && sql.is_some() && behind == 1 => break,
            "," if depth == 1 && sql.is_some() => behind += 1,
            _ if depth == 1 && sql.is_none() && !token.literal.is_empty() => match text_of(&token.literal) {
                Some(text) => sql = Some(text),
                None => break,
            },
            name if behind == 1 && token.is_ident => given = Some(name.to_owned()),
            _ => {}
        }
    }
    (sql, given)
}

/// What a literal says. None for one that is no text, or has escapes, which no statement needs.
fn text_of(literal: &str) -> Option<String> {
    let raw = literal.strip_prefix('r').map(|rest| rest.trim_matches('#'));
    let quoted = raw.unwrap_or(literal);
    let text = quoted.strip_prefix('"')?.strip_suffix('"')?;
    (raw.is_some() || !text.contains('\\')).then(|| text.to_owned())
}

/// The opening of the store names the same functions.
fn prose_differs(source: &Source) -> Option<Breach> {
    let opening: Vec<&str> = source.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let opening = opening.join(" ");
    let names = opening.split('`').skip(1).step_by(2).filter_map(|name| name.split_once("::"));
    let told: BTreeSet<(&str, &str)> = names.collect();
    let listed: BTreeSet<(&str, &str)> = CROSSING.into_iter().collect();
    let odd: Vec<String> = told.symmetric_difference(&listed).map(|(file, name)| format!("{file}::{name}")).collect();
    (!odd.is_empty()).then(|| source.breach(1, &format!("the opening and the list differ in {}", odd.join(", "))))
}
