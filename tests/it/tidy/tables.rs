//! Every table, key and index begins with the tenant, so that the tables can be spread by it; and `docs/operating.md` spreads
//! all of them, each behind those that it refers to.

use super::source::Breach;

/// Indexes of the duties that work for all tenants at once. The first was dropped when the others came.
const CROSSING: [&str; 8] = [
    "runs_due",
    "runs_leases",
    "runs_timers",
    "runs_deadlines",
    "effects_look_at",
    "runs_ended",
    "request_keys_answered",
    "callbacks_taken",
];

/// The breaches of the migrations, one text in their order, and the tables that they make.
pub fn breaches(migrations: &str, docs: &str) -> (Vec<Breach>, Vec<String>) {
    let (mut found, mut tables) = (Vec::new(), Vec::new());
    let place = |table: &str| docs.find(&format!("create_distributed_table('{table}', 'tenant'"));
    for (table, body) in migrations.split("create table ").skip(1).filter_map(|rest| rest.split_once(" (\n")) {
        let body = body.split_once("\n);").map_or(body, |(body, _)| body);
        if !body.starts_with("  tenant text not null,") || !body.contains("primary key (tenant") {
            found.push(Breach(format!("`{table}` does not begin with its tenant, or its key does not")));
        }
        let referred = body.split(" references ").skip(1).filter_map(|rest| rest.split([' ', ',', '\n']).next());
        let before = referred.filter_map(place).max();
        if place(table).is_none() || place(table) < before {
            found.push(Breach(format!("docs/operating.md spreads `{table}` too early or not at all")));
        }
        tables.push(table.to_owned());
    }
    let made = |line| ["create index ", "create unique index "].iter().find_map(|it| str::strip_prefix(line, it));
    for (index, rest) in migrations.lines().filter_map(made).filter_map(|rest| rest.split_once(" on ")) {
        let columns = rest.split_once('(').map_or("", |(_, columns)| columns);
        if !columns.starts_with("tenant") && !CROSSING.contains(&index) {
            found.push(Breach(format!("the index `{index}` does not begin with the tenant")));
        }
    }
    (found, tables)
}

#[test]
fn a_table_that_cannot_be_spread_is_found() {
    let docs = "create_distributed_table('a', 'tenant') create_distributed_table('b', 'tenant')";
    let table = |name: &str, rest: &str| format!("create table {name} (\n  tenant text not null,\n  {rest}\n);\n");
    let key = "x text,\n  constraint k primary key (tenant, x)";
    let found = |migrations: &str| breaches(migrations, docs).0.len();
    assert_eq!(found(&table("a", key)), 0);
    assert_eq!(found(&table("a", "x text,\n  constraint k primary key (x)")), 1);
    assert_eq!(found("create table a (\n  x text,\n  constraint k primary key (tenant, x)\n);\n"), 1);
    assert_eq!(found(&table("c", key)), 1);
    let refers = |to: &str| format!("{key},\n  constraint f foreign key (tenant) references {to} on delete cascade");
    assert_eq!((found(&table("b", &refers("a"))), found(&table("a", &refers("b")))), (0, 1));
    assert_eq!(found("create unique index i on a (tenant, x);\ncreate index runs_ended on runs (ended_at);"), 0);
    assert_eq!(found("create unique index i on a (x);"), 1);
}
