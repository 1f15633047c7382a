//! Keys in a GraphQL request, which is a JSON object with `query`, `variables` and `operationName`.
//!
//! The query's text is edited where it stands inside the JSON string, so that neither layout nor escapes change. A key
//! belongs to one effect: only a mutation with exactly one root field takes one.

use std::ops::Range;

use apollo_parser::cst::{self, CstNode};
use apollo_parser::{Parser, SyntaxElement, SyntaxKind};
use serde::Deserialize;

use super::json;

/// What kind of operation a GraphQL request runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphqlKind {
    Query,
    Mutation,
    Subscription,
}

/// The kind of the operation that a request runs; `None` when it is no GraphQL request, or when it does not tell which
/// of several operations it runs.
pub fn graphql_kind(body: &[u8]) -> Option<GraphqlKind> {
    Request::parse(body).ok().map(|request| kind_of(&request.operation))
}

pub fn check_name(name: &str) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    if name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit()) {
        return Ok(());
    }
    Err(format!("`{name}` is not a GraphQL name: letters, digits and `_`, without `@` or `$`"))
}

pub fn read_directive(body: &[u8], directive: &str, argument: &str) -> Option<String> {
    let request = Request::parse(body).ok()?;
    let found = request.directive(directive).ok()??;
    match argument_of(&found, argument).ok()??.value()? {
        cst::Value::Variable(variable) => json::read(body, &way_to(&name_of(variable.name())?)),
        cst::Value::NullValue(_) => None,
        value => {
            let text = &request.query[span(&value)];
            Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()))
        }
    }
}

pub fn set_directive(body: &[u8], directive: &str, argument: &str, value: &str) -> Result<Vec<u8>, String> {
    let request = Request::parse(body)?;
    let argument_text = format!("{argument}: {}", json::quoted(value));
    let Some(found) = request.directive(directive)? else {
        let at = request.end_of_root_field()?;
        return request.edited(at..at, &format!(" @{directive}({argument_text})"));
    };
    let Some(first) = found.arguments().and_then(|all| all.arguments().next()) else {
        let at = span(&found).end;
        return request.edited(at..at, &format!("({argument_text})"));
    };
    match argument_of(&found, argument)?.map(|it| it.value()) {
        None => {
            let at = span(&first).start;
            request.edited(at..at, &format!("{argument_text}, "))
        }
        Some(Some(cst::Value::Variable(variable))) => {
            json::set(body, &way_to(&name_of(variable.name()).ok_or(NOT_GRAPHQL)?), value)
        }
        Some(Some(old)) => request.edited(span(&old), &json::quoted(value)),
        Some(None) => Err(NOT_GRAPHQL.to_owned()),
    }
}

/// Takes the argument out, and with the last one the directive; of a variable, its value.
pub fn unset_directive(body: &[u8], directive: &str, argument: &str) -> Result<Vec<u8>, String> {
    let request = Request::parse(body)?;
    let Some(found) = request.directive(directive)? else { return Ok(body.to_vec()) };
    let whole = span(&found);
    let with_gap = request.query[..whole.start].trim_end_matches([' ', '\t']).len()..whole.end;
    let all: Vec<_> = found.arguments().iter().flat_map(|all| all.arguments()).collect();
    let Some(ours) = argument_of(&found, argument)? else {
        return if all.is_empty() { request.edited(with_gap, "") } else { Ok(body.to_vec()) };
    };
    if let Some(cst::Value::Variable(variable)) = ours.value() {
        return json::unset(body, &way_to(&name_of(variable.name()).ok_or(NOT_GRAPHQL)?));
    }
    let at = all.iter().position(|it| *it == ours).unwrap_or(0);
    match (at.checked_sub(1).and_then(|before| all.get(before)), all.get(at + 1)) {
        (None, None) => request.edited(with_gap, ""),
        (None, Some(after)) => request.edited(span(&ours).start..span(after).start, ""),
        (Some(before), _) => request.edited(span(before).end..span(&ours).end, ""),
    }
}

pub fn read_variable(body: &[u8], name: &str) -> Option<String> {
    json::read(body, &way_to(name))
}

pub fn set_variable(body: &[u8], name: &str, value: &str) -> Result<Vec<u8>, String> {
    Request::parse(body)?.check_declared(name)?;
    json::set(body, &way_to(name), value)
}

pub fn unset_variable(body: &[u8], name: &str) -> Result<Vec<u8>, String> {
    json::unset(body, &way_to(name))
}

fn way_to(variable: &str) -> [String; 2] {
    ["variables".to_owned(), variable.to_owned()]
}

const NOT_GRAPHQL: &str = "the body's `query` cannot be read as GraphQL";
const NOT_A_REQUEST: &str = "the body is not a GraphQL request: a JSON object with one text `query`";

/// A request whose text was read.
struct Request<'a> {
    body: &'a str,
    /// The JSON string of the query in the body, with its quotes.
    raw: Range<usize>,
    /// What that string says.
    query: String,
    /// The operation that is run.
    operation: cst::OperationDefinition,
}

impl<'a> Request<'a> {
    fn parse(body: &'a [u8]) -> Result<Self, String> {
        let body = json::text_of(body)?;
        let members = json::members(body).ok_or(json::NOT_AN_OBJECT)?;
        let one = |name: &str| {
            let mut found = members.iter().filter(|member| member.name == name);
            let first = found.next().map(|member| member.value.clone());
            if found.next().is_some() { Err(format!("the body has two members `{name}`: send one")) } else { Ok(first) }
        };
        let raw = one("query")?.ok_or(NOT_A_REQUEST)?;
        let query: String = serde_json::from_str(&body[raw.clone()]).map_err(|_| NOT_A_REQUEST)?;
        let name: Option<String> = match one("operationName")? {
            Some(name) => serde_json::from_str(&body[name]).map_err(|_| "the body's `operationName` is not a text")?,
            None => None,
        };
        let operation = operation_in(&query, name.filter(|name| !name.is_empty()).as_deref())?;
        Ok(Self { body, raw, query, operation })
    }

    /// The one field that the mutation changes something through.
    fn root_field(&self) -> Result<cst::Field, String> {
        if kind_of(&self.operation) != GraphqlKind::Mutation {
            return Err("a key belongs to a mutation, and this GraphQL request runs none".into());
        }
        let mut selections = self.operation.selection_set().into_iter().flat_map(|set| set.selections());
        match (selections.next(), selections.next()) {
            (Some(cst::Selection::Field(field)), None) => Ok(field),
            _ => Err("the mutation must have exactly one root field, so that its key means one effect".into()),
        }
    }

    fn directive(&self, name: &str) -> Result<Option<cst::Directive>, String> {
        let directives = self.root_field()?.directives().into_iter().flat_map(|all| all.directives());
        let mut found = directives.filter(|it| name_of(it.name()).as_deref() == Some(name));
        let first = found.next();
        if found.next().is_some() {
            return Err(format!("the mutation's field has two directives `@{name}`: send one"));
        }
        Ok(first)
    }

    /// Where a first directive of the root field belongs: behind its name and its arguments.
    fn end_of_root_field(&self) -> Result<usize, String> {
        let field = self.root_field()?;
        let arguments = field.arguments().map(|arguments| span(&arguments));
        let end = arguments.or_else(|| field.name().map(|name| span(&name)));
        end.map(|range| range.end).ok_or_else(|| NOT_GRAPHQL.to_owned())
    }

    /// A value for a variable that is not declared would be ignored, and the key with it.
    fn check_declared(&self, variable: &str) -> Result<(), String> {
        self.root_field()?;
        let declared = self.operation.variable_definitions().into_iter().flat_map(|all| all.variable_definitions());
        let mut names = declared.filter_map(|it| name_of(it.variable()?.name()));
        if names.any(|name| name == variable) {
            return Ok(());
        }
        Err(format!("the mutation does not declare the variable `${variable}`, which the provider takes the key in"))
    }

    /// The body with a part of the query's text replaced.
    fn edited(&self, range: Range<usize>, new: &str) -> Result<Vec<u8>, String> {
        let string = &self.body[self.raw.clone()];
        let place = |offset| Some(self.raw.start + offset_in_string(string, offset)?);
        let places = place(range.start).zip(place(range.end)).ok_or(NOT_GRAPHQL)?;
        let escaped = json::quoted(new);
        let escaped = escaped[1..escaped.len() - 1].to_owned();
        Ok(json::spliced(self.body, vec![(places.0..places.1, escaped)]).into_bytes())
    }
}

fn operation_in(query: &str, name: Option<&str>) -> Result<cst::OperationDefinition, String> {
    let tree = Parser::new(query).parse();
    let document = tree.document();
    // The edits rely on the tree's offsets being those of the text.
    if tree.errors().len() > 0 || usize::from(document.syntax().text_range().len()) != query.len() {
        return Err(NOT_GRAPHQL.to_owned());
    }
    let operations = document.definitions().filter_map(|definition| match definition {
        cst::Definition::OperationDefinition(operation) => Some(operation),
        _ => None,
    });
    let mut meant = operations.filter(|it| name.is_none() || name_of(it.name()).as_deref() == name);
    match (meant.next(), meant.next()) {
        (Some(operation), None) => Ok(operation),
        _ => Err("which operation the GraphQL request runs is not clear: name one in `operationName`".into()),
    }
}

fn kind_of(operation: &cst::OperationDefinition) -> GraphqlKind {
    match operation.operation_type() {
        Some(it) if it.mutation_token().is_some() => GraphqlKind::Mutation,
        Some(it) if it.subscription_token().is_some() => GraphqlKind::Subscription,
        _ => GraphqlKind::Query,
    }
}

fn name_of(name: Option<cst::Name>) -> Option<String> {
    name.map(|name| name.text().to_string())
}

fn argument_of(directive: &cst::Directive, name: &str) -> Result<Option<cst::Argument>, String> {
    let arguments = directive.arguments().into_iter().flat_map(|all| all.arguments());
    let mut found = arguments.filter(|it| name_of(it.name()).as_deref() == Some(name));
    let first = found.next();
    if found.next().is_some() {
        return Err(format!("the directive has two arguments `{name}`: send one"));
    }
    Ok(first)
}

/// Where a node's own text stands, without the blanks and comments around it.
fn span(node: &impl CstNode) -> Range<usize> {
    let ignored = [SyntaxKind::WHITESPACE, SyntaxKind::COMMENT, SyntaxKind::COMMA];
    let tokens = node.syntax().descendants_with_tokens().filter_map(SyntaxElement::into_token);
    let mut own = tokens.filter(|token| !ignored.contains(&token.kind())).map(|token| token.text_range());
    let whole = node.syntax().text_range();
    let first = own.next().unwrap_or(whole);
    let last = own.last().unwrap_or(first);
    usize::from(first.start())..usize::from(last.end())
}

/// Where in a JSON string, as it is written, the byte `offset` of its content begins.
fn offset_in_string(string: &str, offset: usize) -> Option<usize> {
    let bytes = string.as_bytes();
    let (mut at, mut decoded) = (1, 0);
    while decoded < offset {
        let (written, meant) = match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'\\', Some(b'u')) => {
                let unit = u32::from_str_radix(string.get(at + 2..at + 6)?, 16).ok()?;
                // A character outside the basic plane is written as two units: twelve characters for four bytes.
                char::from_u32(unit).map_or((12, 4), |char| (6, char.len_utf8()))
            }
            (b'\\', _) => (2, 1),
            _ => (1, 1),
        };
        at += written;
        decoded += meant;
    }
    (decoded == offset).then_some(at)
}
