//! Whether an SQL statement keeps to one tenant: the `tenant` column of every table that it reads or writes is held to `$1`,
//! by a condition or by an equality with another column that is held. What this reader does not understand is a finding as
//! well: it must never pass over anything in silence.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, ConflictTarget, Cte, Delete, Expr, FromTable, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, Insert, Join, JoinConstraint, JoinOperator, ObjectName, OnConflict,
    OnConflictAction, OnInsert, Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableFactor, TableObject,
    TableWithJoins, Update, UpdateTableFromKind, Value, Visit, Visitor,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// Relations that are no tenant's.
const SHARED: [&str; 2] = ["pg_database", "_sqlx_migrations"];

/// Functions of the schema that read no table. The first argument of any other is the tenant whose rows it reads.
const PURE: [&str; 3] = ["deedbox_now", "deedbox_rank", "deedbox_next_state"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Rows of any tenant are reached.
    Open(String),
    /// Something that this reader does not know.
    Unknown(String),
}

/// What the `tenant` column of a relation may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tenant {
    /// There is no such column.
    None,
    /// Any tenant.
    Open,
    /// The one tenant.
    Held,
}

impl Tenant {
    const fn of(held: bool) -> Self {
        if held { Self::Held } else { Self::Open }
    }
}

#[derive(Clone, Debug)]
struct Relation {
    name: String,
    /// The table behind it; none for what is made in the statement itself.
    table: Option<String>,
    tenant: Tenant,
}

type Scope = Vec<Relation>;
type Ctes = BTreeMap<String, Tenant>;

/// What a query gives: its column `tenant`, and which of its columns hold the one tenant.
#[derive(Clone, Debug)]
struct Output {
    tenant: Tenant,
    held: Vec<bool>,
}

impl Output {
    const NOTHING: Self = Self { tenant: Tenant::None, held: Vec::new() };
}

/// One side of an `and`, and which relation of its scope it may hold; none: any.
#[derive(Clone, Debug)]
struct Condition {
    expr: Expr,
    only: Option<usize>,
}

/// What speaks against the statement. Fails when it cannot be read at all.
pub fn findings(sql: &str) -> Result<BTreeSet<Finding>, String> {
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).map_err(|e| e.to_string())?;
    let mut reader = Reader::default();
    for statement in &statements {
        reader.statement(statement, &[], &Ctes::new());
    }
    Ok(reader.found)
}

#[derive(Default)]
struct Reader {
    found: BTreeSet<Finding>,
}

impl Reader {
    fn statement(&mut self, statement: &Statement, outer: &[Scope], ctes: &Ctes) -> Output {
        match statement {
            Statement::Query(query) => self.query(query, outer, ctes),
            Statement::Insert(insert) => self.insert(insert, outer, ctes),
            Statement::Update(update) => self.update(update, outer, ctes),
            Statement::Delete(delete) => self.delete(delete, outer, ctes),
            other => self.unknown(other),
        }
    }

    fn query(&mut self, query: &Query, outer: &[Scope], ctes: &Ctes) -> Output {
        let mut ctes = ctes.clone();
        let with = query.with.as_ref();
        for Cte { alias, query, .. } in with.iter().flat_map(|with| &with.cte_tables) {
            if with.is_some_and(|with| with.recursive) {
                ctes.insert(name(&alias.name), Tenant::Open);
            }
            let output = self.query(query, outer, &ctes);
            ctes.insert(name(&alias.name), renamed(alias, output.tenant));
        }
        self.inner(&query.order_by, outer, &ctes);
        self.inner(&query.limit_clause, outer, &ctes);
        self.body(&query.body, outer, &ctes)
    }

    fn body(&mut self, body: &SetExpr, outer: &[Scope], ctes: &Ctes) -> Output {
        match body {
            SetExpr::Select(select) => self.select(select, outer, ctes),
            SetExpr::Query(query) => self.query(query, outer, ctes),
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                self.statement(statement, outer, ctes)
            }
            SetExpr::SetOperation { left, right, .. } => {
                let (left, right) = (self.body(left, outer, ctes), self.body(right, outer, ctes));
                let both = [left.tenant, right.tenant].iter().all(|tenant| *tenant == Tenant::Held);
                let tenant = if left.tenant == Tenant::None { Tenant::None } else { Tenant::of(both) };
                Output { tenant, held: left.held.iter().zip(&right.held).map(|(l, r)| *l && *r).collect() }
            }
            SetExpr::Values(values) => {
                self.inner(values, outer, ctes);
                let columns = values.rows.first().map_or(0, |row| row.content.len());
                let held = |at| values.rows.iter().all(|row| row.content.get(at).is_some_and(|e| is_held(e, outer)));
                Output { tenant: Tenant::None, held: (0..columns).map(held).collect() }
            }
            other => self.unknown(other),
        }
    }

    fn select(&mut self, select: &Select, outer: &[Scope], ctes: &Ctes) -> Output {
        let scopes = self.scopes(&select.from, select.selection.as_ref(), outer, ctes);
        self.inner(select, &scopes, ctes);
        output(&select.projection, &scopes)
    }

    fn update(&mut self, update: &Update, outer: &[Scope], ctes: &Ctes) -> Output {
        let mut tables = vec![update.table.clone()];
        match &update.from {
            Some(UpdateTableFromKind::AfterSet(from)) => tables.extend(from.iter().cloned()),
            Some(UpdateTableFromKind::BeforeSet(_)) => drop(self.unknown(update)),
            None => {}
        }
        let scopes = self.scopes(&tables, update.selection.as_ref(), outer, ctes);
        self.assigned(update.assignments.iter().map(|assignment| &assignment.target));
        self.inner(update, &scopes, ctes);
        output(update.returning.as_deref().unwrap_or_default(), &scopes)
    }

    fn delete(&mut self, delete: &Delete, outer: &[Scope], ctes: &Ctes) -> Output {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let tables: Vec<TableWithJoins> = from.iter().chain(delete.using.iter().flatten()).cloned().collect();
        let scopes = self.scopes(&tables, delete.selection.as_ref(), outer, ctes);
        self.inner(delete, &scopes, ctes);
        output(delete.returning.as_deref().unwrap_or_default(), &scopes)
    }

    fn insert(&mut self, insert: &Insert, outer: &[Scope], ctes: &Ctes) -> Output {
        let TableObject::TableName(table) = &insert.table else { return self.unknown(&insert.table) };
        let source = insert.source.as_ref().map_or(Output::NOTHING, |source| self.query(source, outer, ctes));
        let place = insert.columns.iter().position(|column| last(column) == "tenant");
        let held = place.and_then(|place| source.held.get(place)).is_some_and(|held| *held);
        let table = last(table);
        let alias = insert.table_alias.as_ref().map_or_else(|| table.clone(), |alias| name(&alias.alias));
        let relation = |name: &str, table| Relation { name: name.to_owned(), table, tenant: Tenant::of(held) };
        let mut scopes = outer.to_vec();
        scopes.push(vec![relation(&alias, Some(table))]);
        self.note_open(&scopes);
        let returned = output(insert.returning.as_deref().unwrap_or_default(), &scopes);
        match &insert.on {
            Some(OnInsert::OnConflict(conflict)) => {
                scopes.push(vec![relation("excluded", None)]);
                self.conflict(conflict, &scopes, ctes);
            }
            Some(other) => drop(self.unknown(other)),
            None => {}
        }
        self.inner(&insert.returning, &scopes, ctes);
        returned
    }

    /// The row in the way is one of the same tenant when the target that is named holds the tenant.
    fn conflict(&mut self, conflict: &OnConflict, scopes: &[Scope], ctes: &Ctes) {
        let OnConflictAction::DoUpdate(change) = &conflict.action else { return };
        match &conflict.conflict_target {
            Some(ConflictTarget::Columns { columns, .. }) if columns.iter().any(|column| name(column) == "tenant") => {}
            _ => drop(self.unknown(conflict)),
        }
        self.assigned(change.assignments.iter().map(|assignment| &assignment.target));
        self.inner(change, scopes, ctes);
    }

    /// No row ever changes its tenant.
    fn assigned<'a>(&mut self, targets: impl Iterator<Item = &'a AssignmentTarget>) {
        for target in targets {
            let columns = match target {
                AssignmentTarget::ColumnName(column) => std::slice::from_ref(column),
                AssignmentTarget::Tuple(columns) => columns,
            };
            if columns.iter().any(|column| last(column) == "tenant") {
                self.found.insert(Finding::Open("`tenant` is assigned".to_owned()));
            }
        }
    }

    /// The scopes around, and that of these tables, as far as the conditions hold them.
    fn scopes(
        &mut self,
        from: &[TableWithJoins],
        selection: Option<&Expr>,
        outer: &[Scope],
        ctes: &Ctes,
    ) -> Vec<Scope> {
        let mut scopes = outer.to_vec();
        scopes.push(Scope::new());
        let mut conditions = Vec::new();
        if let Some(selection) = selection {
            split(selection, None, &mut conditions);
        }
        for TableWithJoins { relation, joins } in from {
            self.relation(relation, &mut scopes, ctes);
            for Join { relation, join_operator, .. } in joins {
                self.relation(relation, &mut scopes, ctes);
                let right = scopes.last().map_or(0, |scope| scope.len().saturating_sub(1));
                self.joined(join_operator, right, &mut conditions);
                hold(&mut scopes, &conditions);
            }
            hold(&mut scopes, &conditions);
        }
        self.note_open(&scopes);
        scopes
    }

    /// What an outer join asks for holds only the side that it may leave out.
    fn joined(&mut self, operator: &JoinOperator, right: usize, conditions: &mut Vec<Condition>) {
        let (constraint, only) = match operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) | JoinOperator::CrossJoin(constraint) => {
                (constraint, None)
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (constraint, Some(right)),
            other => return drop(self.unknown(&format!("{other:?}"))),
        };
        match constraint {
            JoinConstraint::On(expr) => split(expr, only, conditions),
            JoinConstraint::None => {}
            other => drop(self.unknown(&format!("{other:?}"))),
        }
    }

    /// Adds a relation to the innermost scope.
    fn relation(&mut self, factor: &TableFactor, scopes: &mut [Scope], ctes: &Ctes) {
        let around = scopes.len() - 1;
        let alias = alias(factor);
        let (own_name, table, tenant) = match factor {
            TableFactor::Table { name, args: None, .. } => {
                let made = ctes.get(&last(name)).filter(|_| name.0.len() == 1);
                let shared = SHARED.contains(&last(name).as_str());
                let table = (made.is_none() && !shared).then(|| last(name));
                let tenant = made.copied().unwrap_or(if shared { Tenant::None } else { Tenant::Open });
                (last(name), table, tenant)
            }
            TableFactor::Derived { lateral, subquery, .. } => {
                let seen = if *lateral { &scopes[..] } else { &scopes[..around] };
                (String::new(), None, self.query(subquery, seen, ctes).tenant)
            }
            TableFactor::Table { .. }
            | TableFactor::Function { .. }
            | TableFactor::TableFunction { .. }
            | TableFactor::UNNEST { .. } => (String::new(), None, Tenant::None),
            other => return drop(self.unknown(other)),
        };
        if table.is_some() && alias.is_some_and(|alias| !alias.columns.is_empty()) {
            self.unknown(factor);
        }
        let tenant = alias.map_or(tenant, |alias| renamed(alias, tenant));
        scopes[around].push(Relation { name: alias.map_or(own_name, |alias| name(&alias.name)), table, tenant });
    }

    fn note_open(&mut self, scopes: &[Scope]) {
        let open = scopes.last().into_iter().flatten().filter(|relation| relation.tenant == Tenant::Open);
        let tables = open.filter_map(|relation| relation.table.as_ref());
        self.found.extend(tables.map(|table| Finding::Open(format!("`{table}` is not held to `$1`"))));
    }

    /// The queries within expressions, and the functions that read tables.
    fn inner(&mut self, node: &impl Visit, scopes: &[Scope], ctes: &Ctes) {
        let mut outermost = Outermost::default();
        let _: ControlFlow<()> = node.visit(&mut outermost);
        for query in &outermost.queries {
            self.query(query, scopes, ctes);
        }
        for function in &outermost.functions {
            if !first_argument(function).is_some_and(|tenant| is_held(tenant, scopes)) {
                self.found.insert(Finding::Open(format!("`{}` is not given `$1`", function.name)));
            }
        }
    }

    fn unknown(&mut self, what: &impl ToString) -> Output {
        self.found.insert(Finding::Unknown(what.to_string()));
        Output::NOTHING
    }
}

/// Marks as held what the conditions hold, until nothing is added.
fn hold(scopes: &mut [Scope], conditions: &[Condition]) {
    let Some(own) = scopes.len().checked_sub(1) else { return };
    let next = |scopes: &[Scope]| {
        conditions.iter().find_map(|Condition { expr, only }| {
            let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr else { return None };
            [(left, right), (right, left)].into_iter().find_map(|(column, value)| {
                let at = column_in(column, &scopes[own])?;
                let may = scopes[own][at].tenant == Tenant::Open && only.is_none_or(|only| only == at);
                (may && is_held(value, scopes)).then_some(at)
            })
        })
    };
    while let Some(at) = next(scopes) {
        scopes[own][at].tenant = Tenant::Held;
    }
}

/// True for `$1`, and for a `tenant` column that is held.
fn is_held(expr: &Expr, scopes: &[Scope]) -> bool {
    match expr {
        Expr::Nested(expr) | Expr::Cast { expr, .. } => is_held(expr, scopes),
        Expr::Value(value) => matches!(&value.value, Value::Placeholder(place) if place == "$1"),
        _ => {
            let found = scopes.iter().rev().find_map(|scope| column_in(expr, scope).map(|at| scope[at].tenant));
            found == Some(Tenant::Held)
        }
    }
}

/// The relation whose `tenant` column the expression names. A bare name fits only one.
fn column_in(expr: &Expr, scope: &Scope) -> Option<usize> {
    match expr {
        Expr::Identifier(column) if name(column) == "tenant" => {
            let mut having = (0..scope.len()).filter(|at| scope[*at].tenant != Tenant::None);
            having.next().filter(|_| having.next().is_none())
        }
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [relation, column] if name(column) == "tenant" => {
                scope.iter().position(|it| it.name == name(relation) && it.tenant != Tenant::None)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The parts of an `and`. An `or` stays whole: it holds nothing.
fn split(expr: &Expr, only: Option<usize>, conditions: &mut Vec<Condition>) {
    match expr {
        Expr::Nested(expr) => split(expr, only, conditions),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            split(left, only, conditions);
            split(right, only, conditions);
        }
        other => conditions.push(Condition { expr: other.clone(), only }),
    }
}

fn output(projection: &[SelectItem], scopes: &[Scope]) -> Output {
    let mut output = Output::NOTHING;
    let own = scopes.last().map_or(&[][..], Vec::as_slice);
    for item in projection {
        let (expr, column) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, last_name(expr)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(name(alias))),
            // The columns behind it are not counted.
            _ => {
                let held = own.iter().all(|relation| relation.tenant != Tenant::Open);
                let there = own.iter().any(|relation| relation.tenant != Tenant::None);
                return Output { tenant: if there { Tenant::of(held) } else { Tenant::None }, held: Vec::new() };
            }
        };
        let held = is_held(expr, scopes);
        output.held.push(held);
        if column.as_deref() == Some("tenant") {
            output.tenant = Tenant::of(held);
        }
    }
    output
}

fn last_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(column) => Some(name(column)),
        Expr::CompoundIdentifier(parts) => parts.last().map(name),
        _ => None,
    }
}

/// Columns that are named anew may be any.
fn renamed(alias: &TableAlias, tenant: Tenant) -> Tenant {
    match alias.columns.iter().any(|column| name(&column.name) == "tenant") {
        true => Tenant::Open,
        false if alias.columns.is_empty() => tenant,
        false => Tenant::None,
    }
}

fn alias(factor: &TableFactor) -> Option<&TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

fn first_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

fn last(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(self::name).unwrap_or_default()
}

fn name(ident: &Ident) -> String {
    ident.value.to_lowercase()
}

/// Gathers the queries and functions that are not within another query.
#[derive(Default)]
struct Outermost {
    depth: usize,
    queries: Vec<Query>,
    functions: Vec<Function>,
}

impl Visitor for Outermost {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if self.depth == 0 {
            self.queries.push(query.clone());
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && self.depth == 0
        {
            let called = last(&function.name);
            if called.starts_with("deedbox_") && !PURE.contains(&called.as_str()) {
                self.functions.push(function.clone());
            }
        }
        ControlFlow::Continue(())
    }
}
