//! As much of GraphQL's grammar as it takes to find an argument of a directive, the first field of a mutation, and whether a
//! document changes anything. Strings and comments are skipped as such, so that nothing in them is taken for a directive.
//! It must never accept or refuse a document.

use serde_json::Value;

/// What stands behind an argument's colon.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Literal(String),
    /// The variable's name, without the dollar sign.
    Variable(String),
}

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Name(&'a str),
    Variable(&'a str),
    Text(String),
    Mark(char),
}

/// The document within a request's JSON body.
pub(crate) fn query_of(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    Some(body.get("query")?.as_str()?.to_owned())
}

/// The first `@directive(argument: ..)` of the document.
pub(crate) fn argument(query: &str, directive: &str, argument: &str) -> Option<Argument> {
    let tokens = tokens(query);
    let opening = [Token::Mark('@'), Token::Name(directive), Token::Mark('(')];
    let at = tokens.windows(3).position(|part| part == opening)?;
    let inside: Vec<&Token> = tokens[at + 3..].iter().take_while(|token| **token != Token::Mark(')')).collect();
    let named = inside.windows(3).find(|part| *part[0] == Token::Name(argument) && *part[1] == Token::Mark(':'))?;
    match named[2] {
        Token::Text(text) => Some(Argument::Literal(text.clone())),
        Token::Variable(name) => Some(Argument::Variable((*name).to_owned())),
        _ => None,
    }
}

/// Under which name the first mutation's result is answered: its alias, or else its own name.
pub(crate) fn first_field(query: &str) -> Option<String> {
    let tokens = tokens(query);
    let mutation = at_top(&tokens).find(|(_, token)| **token == Token::Name("mutation"))?.0;
    let braces = at_top(&tokens).find(|(at, token)| *at > mutation && **token == Token::Mark('{'))?.0;
    match tokens.get(braces + 1)? {
        Token::Name(name) => Some((*name).to_owned()),
        _ => None,
    }
}

pub(crate) fn is_mutation(query: &str) -> bool {
    at_top(&tokens(query)).any(|(_, token)| *token == Token::Name("mutation"))
}

/// The tokens that no parenthesis or brace encloses, with the enclosing ones themselves.
fn at_top<'a, 'b>(tokens: &'b [Token<'a>]) -> impl Iterator<Item = (usize, &'b Token<'a>)> {
    let mut depth = 0_i32;
    tokens.iter().enumerate().filter(move |(_, token)| {
        let before = depth;
        match token {
            Token::Mark('(' | '{') => depth += 1,
            Token::Mark(')' | '}') => depth -= 1,
            _ => {}
        }
        before == 0
    })
}

fn tokens(query: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '#' => rest.split_once('\n').map_or("", |(_, after)| after),
            '"' => {
                let (text, after) = text(rest);
                tokens.push(Token::Text(text));
                after
            }
            '$' => {
                let (name, after) = name(&rest[1..]);
                tokens.push(Token::Variable(name));
                after
            }
            _ if is_name(first) => {
                let (name, after) = name(rest);
                tokens.push(Token::Name(name));
                after
            }
            _ => {
                if !first.is_whitespace() && first != ',' {
                    tokens.push(Token::Mark(first));
                }
                &rest[first.len_utf8()..]
            }
        };
    }
    tokens
}

fn name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter| !is_name(letter)).unwrap_or(text.len()))
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The string at the beginning and what follows it; an unclosed one goes to the end.
fn text(rest: &str) -> (String, &str) {
    if let Some(block) = rest.strip_prefix("\"\"\"") {
        let (text, after) = block.split_once("\"\"\"").unwrap_or((block, ""));
        return (text.trim().to_owned(), after);
    }
    let mut escaped = false;
    let end = rest[1..].find(|letter| {
        let closes = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        closes
    });
    let (quoted, after) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
    // The escapes are those of JSON.
    (serde_json::from_str(quoted).unwrap_or_default(), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_is_found_as_a_literal_and_as_a_variable() {
        for (query, found) in [
            (r#"mutation { a(x: ")") @idempotent(key: "k-\"1") { id } }"#, Some(Argument::Literal("k-\"1".into()))),
            (r#"mutation { a @idempotent(other: 1, key: """ k """) }"#, Some(Argument::Literal("k".into()))),
            ("mutation M($k: String!) { a @idempotent(key: $k) }", Some(Argument::Variable("k".into()))),
            (r#"mutation { a(note: "@idempotent(key: 1)") }"#, None),
            ("mutation { a # @idempotent(key: \"k\")\n }", None),
            (r#"mutation { a @idempotent(key: "unclosed"#, Some(Argument::Literal(String::new()))),
            (r#"mutation { a @other(key: "k") }"#, None),
        ] {
            assert_eq!(argument(query, "idempotent", "key"), found, "{query}");
        }
    }

    #[test]
    fn a_mutation_is_told_from_a_query_and_its_first_field_is_named() {
        let mutation = "mutation M($in: I = {a: 1}) @d(x: 2) { made: create(input: $in) { id } }";
        assert_eq!((is_mutation(mutation), first_field(mutation)), (true, Some("made".into())));
        for query in ["{ mutation { id } }", "query Q { a(mutation: 1) }", "# mutation\nquery { a }"] {
            assert_eq!((is_mutation(query), first_field(query)), (false, None), "{query}");
        }
    }
}
