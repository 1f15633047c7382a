//! Each kind of carrier on small requests, byte for byte.

use bytes::Bytes;
use http::header::HeaderValue;
use http::{HeaderMap, HeaderName};
use url::Url;

use super::{Carrier, GraphqlKind, Parts, graphql_kind};

#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Sent {
    pub fn new(url: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        Self { url: Url::parse(url).unwrap(), headers: map, body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    pub fn with(&self, carrier: &Carrier, key: &str) -> Result<Self, String> {
        self.edited(|parts| carrier.inject(parts, key))
    }

    pub fn stripped(&self, carrier: &Carrier) -> Result<Self, String> {
        self.edited(|parts| carrier.strip(parts))
    }

    pub fn read(&self, carrier: &Carrier) -> Option<String> {
        carrier.read(&self.url, &self.headers, &self.body)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn edited(&self, edit: impl FnOnce(Parts<'_>) -> Result<(), String>) -> Result<Self, String> {
        let mut next = self.clone();
        edit(Parts { url: &mut next.url, headers: &mut next.headers, body: &mut next.body })?;
        Ok(next)
    }
}

fn body(text: &str) -> Sent {
    Sent::new("https://api.example/v1/things", &[], text)
}

fn at(url: &str) -> Sent {
    Sent::new(url, &[], "")
}

fn json(pointer: &str) -> Carrier {
    Carrier::Json(pointer.into())
}

fn form() -> Carrier {
    Carrier::Form("Key".into())
}

fn idempotent() -> Carrier {
    Carrier::GraphqlDirective { directive: "idempotent".into(), argument: "key".into() }
}

/// The body of a GraphQL request, its query written as a JSON string by hand.
fn graphql(query: &str) -> Sent {
    body(&format!(r#"{{"query": "{query}"}}"#))
}

#[test]
fn a_carrier_is_written_as_in_the_profiles() {
    for (text, carrier) in [
        (r#"{"header":"Idempotency-Key"}"#, Carrier::Header("Idempotency-Key".into())),
        (r#"{"query":"requestId"}"#, Carrier::Query("requestId".into())),
        (r#"{"json":"/a/b"}"#, json("/a/b")),
        (r#"{"form":"Key"}"#, form()),
        (r#"{"graphql-directive":{"directive":"idempotent","argument":"key"}}"#, idempotent()),
        (r#"{"graphql-variable":"key"}"#, Carrier::GraphqlVariable("key".into())),
        (r#"{"path":2}"#, Carrier::Path(2)),
    ] {
        assert_eq!(serde_json::from_str::<Carrier>(text).unwrap(), carrier);
        assert_eq!(serde_json::to_string(&carrier).unwrap(), text);
        assert_eq!(carrier.check(), Ok(()));
    }
    let more = r#"{"graphql-directive":{"directive":"a","argument":"b","c":"d"}}"#;
    assert!(serde_json::from_str::<Carrier>(more).is_err());
}

#[test]
fn a_malformed_carrier_is_refused() {
    let directive = |directive: &str, argument: &str| Carrier::GraphqlDirective {
        directive: directive.into(),
        argument: argument.into(),
    };
    for carrier in [
        Carrier::Header("Idempotency Key".into()),
        Carrier::Header(String::new()),
        Carrier::Query(String::new()),
        Carrier::Form(String::new()),
        json(""),
        json("key"),
        json("/a~2b"),
        json("/a~"),
        directive("@idempotent", "key"),
        directive("idempotent", ""),
        Carrier::GraphqlVariable("$key".into()),
        Carrier::GraphqlVariable("1key".into()),
    ] {
        assert!(carrier.check().is_err(), "{carrier:?}");
    }
}

#[test]
fn a_header_is_replaced_and_the_others_stay() {
    let carrier = Carrier::Header("Idempotency-Key".into());
    let request =
        Sent::new("https://a.example/", &[("idempotency-key", "x"), ("idempotency-key", "y"), ("b", "c")], "");
    let sent = request.with(&carrier, "k").unwrap();
    assert_eq!(sent, Sent::new("https://a.example/", &[("idempotency-key", "k"), ("b", "c")], ""));
    assert_eq!(request.stripped(&carrier).unwrap(), Sent::new("https://a.example/", &[("b", "c")], ""));
    assert!(request.with(&carrier, "a\nb").is_err());
}

#[test]
fn a_quoted_header_counts_as_its_content() {
    let carrier = Carrier::Header("key".into());
    for (value, content) in [
        ("\"abc\"", "abc"),
        (" \"abc\" ", "abc"),
        (r#""a\"b\\c""#, r#"a"b\c"#),
        ("abc", "abc"),
        ("\"abc", "\"abc"),
        ("\"a\", \"b\"", "\"a\", \"b\""),
        ("", ""),
    ] {
        let request = Sent::new("https://a.example/", &[("key", value)], "");
        assert_eq!(request.read(&carrier).as_deref(), Some(content), "{value}");
    }
    let twice = Sent::new("https://a.example/", &[("key", "a"), ("key", "b")], "");
    assert_eq!(twice.read(&carrier).as_deref(), Some("a, b"));
    assert_eq!(at("https://a.example/").read(&carrier), None);
}

#[test]
fn a_query_parameter_is_replaced_in_its_place() {
    let carrier = Carrier::Query("requestId".into());
    for (before, with, without) in [
        ("", "?requestId=k%2F1", ""),
        ("?", "?requestId=k%2F1", ""),
        ("?a=%7e&b", "?a=%7e&b&requestId=k%2F1", "?a=%7e&b"),
        ("?a=1&&c=+", "?a=1&&c=+&requestId=k%2F1", "?a=1&&c=+"),
        ("?a=1&request%49d=x&b=2&requestId=y", "?a=1&requestId=k%2F1&b=2", "?a=1&b=2"),
        ("?requestId", "?requestId=k%2F1", ""),
    ] {
        let request = at(&format!("https://a.example/p{before}"));
        let sent = request.with(&carrier, "k/1").unwrap();
        assert_eq!(sent.url.as_str(), format!("https://a.example/p{with}"));
        assert_eq!(sent.read(&carrier).as_deref(), Some("k/1"));
        for either in [request, sent] {
            assert_eq!(either.stripped(&carrier).unwrap().url.as_str(), format!("https://a.example/p{without}"));
        }
    }
}

#[test]
fn a_form_field_is_replaced_in_its_place() {
    for (before, with, without) in [
        ("", "Key=k+1", ""),
        ("To=%2b1&Body=a+b", "To=%2b1&Body=a+b&Key=k+1", "To=%2b1&Body=a+b"),
        ("K%65y=x&To=1&Key=y", "Key=k+1&To=1", "To=1"),
    ] {
        let sent = body(before).with(&form(), "k 1").unwrap();
        assert_eq!(sent.text(), with);
        assert_eq!(sent.read(&form()).as_deref(), Some("k 1"));
        assert_eq!(sent.stripped(&form()).unwrap().text(), without);
        assert_eq!(body(before).stripped(&form()).unwrap().text(), without);
    }
    assert_eq!(body("a=b").read(&form()), None);
    assert_eq!(body("Key").read(&form()).as_deref(), Some(""));
}

#[test]
fn a_json_member_is_put_in_and_all_else_stays_as_written() {
    for (pointer, before, with, without) in [
        ("/k", "{}", r#"{"k":"v"}"#, "{}"),
        ("/k", " { } ", r#" {"k":"v" } "#, " { } "),
        (
            "/k",
            r#"{"n": 1.0e+2, "m":9007199254740993 }"#,
            r#"{"n": 1.0e+2, "m":9007199254740993,"k":"v" }"#,
            r#"{"n": 1.0e+2, "m":9007199254740993 }"#,
        ),
        ("/k", r#"{ "k" : null , "a":1}"#, r#"{ "k" : "v" , "a":1}"#, r#"{ "a":1}"#),
        ("/k", r#"{"a":1, "\u006b":{"x":[1]}, "b":2}"#, r#"{"a":1, "\u006b":"v", "b":2}"#, r#"{"a":1, "b":2}"#),
        ("/k", r#"{"k":1, "k":2, "a":3, "k":4, "b":5}"#, r#"{"k":"v", "a":3, "b":5}"#, r#"{"a":3, "b":5}"#),
        ("/k", r#"{ "k":1, "k":2 }"#, r#"{ "k":"v" }"#, "{  }"),
        ("/a/b", r#"{"x":"y"}"#, r#"{"x":"y","a":{"b":"v"}}"#, r#"{"x":"y"}"#),
        ("/a/b", r#"{"a":null,"x":"y"}"#, r#"{"a":{"b":"v"},"x":"y"}"#, r#"{"x":"y"}"#),
        (
            "/a/b",
            r#"{"a":{ "c" : [ 1 ] },"x":"y"}"#,
            r#"{"a":{ "c" : [ 1 ],"b":"v" },"x":"y"}"#,
            r#"{"a":{ "c" : [ 1 ] },"x":"y"}"#,
        ),
        ("/a~1b/~0", r#"{"a/b":{"~":""}}"#, r#"{"a/b":{"~":"v"}}"#, "{}"),
    ] {
        let sent = body(before).with(&json(pointer), "v").unwrap();
        assert_eq!(sent.text(), with);
        assert_eq!(sent.read(&json(pointer)).as_deref(), Some("v"));
        assert_eq!(sent.stripped(&json(pointer)).unwrap().text(), without);
        assert_eq!(body(before).stripped(&json(pointer)).unwrap().text(), without);
    }
}

#[test]
fn a_json_value_is_escaped_and_read_back() {
    let sent = body("{}").with(&json("/k"), "a\"b\\c\u{1}é").unwrap();
    assert_eq!(sent.text(), "{\"k\":\"a\\\"b\\\\c\\u0001é\"}");
    assert_eq!(sent.read(&json("/k")).as_deref(), Some("a\"b\\c\u{1}é"));
}

#[test]
fn whatever_stands_in_the_json_member_is_read() {
    for (text, value) in [
        (r#"{"k":"a"}"#, Some("a")),
        (r#"{"k":12345678901234567890}"#, Some("12345678901234567890")),
        (r#"{"k":{"a": 1}}"#, Some(r#"{"a": 1}"#)),
        (r#"{"k":"a","k":"b"}"#, Some("b")),
        (r#"{"k":null}"#, None),
        (r#"{"j":"a"}"#, None),
        ("[]", None),
        ("", None),
    ] {
        assert_eq!(body(text).read(&json("/k")).as_deref(), value, "{text}");
    }
}

#[test]
fn a_body_that_is_no_json_object_takes_no_json_key() {
    for text in ["", "[]", "1", "\"a\"", "null", "{", "{\"a\":1}x", "a=b"] {
        let error = body(text).with(&json("/k"), "v").unwrap_err();
        assert!(error.contains("not a JSON object"), "{error}");
        assert!(body(text).stripped(&json("/k")).is_err(), "{text}");
    }
    let not_utf8 = Sent { body: Bytes::from_static(b"{\"a\":\"\xff\"}"), ..body("") };
    assert!(not_utf8.with(&json("/k"), "v").is_err());
    for text in [r#"{"a":[]}"#, r#"{"a":1}"#, r#"{"a":{},"a":{}}"#] {
        assert!(body(text).with(&json("/a/b"), "v").is_err(), "{text}");
        assert!(body(text).stripped(&json("/a/b")).is_err(), "{text}");
    }
}

#[test]
fn a_segment_of_the_path_is_replaced() {
    let request = at("https://a.example/v1/things/old%20one/x%2Fy?q=1");
    let sent = request.with(&Carrier::Path(2), "k/1 ü").unwrap();
    assert_eq!(sent.url.as_str(), "https://a.example/v1/things/k%2F1%20%C3%BC/x%2Fy?q=1");
    assert_eq!(sent.read(&Carrier::Path(2)).as_deref(), Some("k/1 ü"));
    assert_eq!(sent.stripped(&Carrier::Path(2)), request.stripped(&Carrier::Path(2)));
    assert_eq!(request.read(&Carrier::Path(2)).as_deref(), Some("old one"));
    assert_eq!(request.read(&Carrier::Path(4)), None);
    assert_eq!(at("https://a.example/v1/").with(&Carrier::Path(1), "k").unwrap().url.path(), "/v1/k");
    assert!(at("https://a.example/v1").with(&Carrier::Path(1), "k").unwrap_err().contains("number 1"));
    for value in [".", ".."] {
        assert!(request.with(&Carrier::Path(2), value).is_err());
    }
}

#[test]
fn a_directive_is_put_behind_the_root_field() {
    for (query, with, without) in [
        ("mutation { a { id } }", r#"mutation { a @idempotent(key: \"v\") { id } }"#, "mutation { a { id } }"),
        (
            r"mutation M($x: I!) {\n  b: a(x: $x)\n  {id}\n}",
            r#"mutation M($x: I!) {\n  b: a(x: $x) @idempotent(key: \"v\")\n  {id}\n}"#,
            r"mutation M($x: I!) {\n  b: a(x: $x)\n  {id}\n}",
        ),
        (r"mutation{a @x(y:1)}", r#"mutation{a @idempotent(key: \"v\") @x(y:1)}"#, "mutation{a @x(y:1)}"),
        (r#"mutation{a @idempotent(key:\"old\"){id}}"#, r#"mutation{a @idempotent(key:\"v\"){id}}"#, "mutation{a{id}}"),
        (
            r#"mutation{a @idempotent(key: \"\"\"o\"\"\" , b:2)}"#,
            r#"mutation{a @idempotent(key: \"v\" , b:2)}"#,
            "mutation{a @idempotent(b:2)}",
        ),
        (
            "mutation{a @idempotent(b:2 key:null)}",
            r#"mutation{a @idempotent(b:2 key:\"v\")}"#,
            "mutation{a @idempotent(b:2)}",
        ),
        ("mutation{a @idempotent(b:2)}", r#"mutation{a @idempotent(key: \"v\", b:2)}"#, "mutation{a @idempotent(b:2)}"),
        ("mutation{a@idempotent}", r#"mutation{a@idempotent(key: \"v\")}"#, "mutation{a}"),
        (
            r#"mutation { a(x: \"\u00e9\ud83d\ude00é\\\"\") # ü\n { id } }"#,
            r#"mutation { a(x: \"\u00e9\ud83d\ude00é\\\"\") @idempotent(key: \"v\") # ü\n { id } }"#,
            r#"mutation { a(x: \"\u00e9\ud83d\ude00é\\\"\") # ü\n { id } }"#,
        ),
        (
            r"\ufeff# c\nmutation { a }\nfragment F on T { b }",
            r#"\ufeff# c\nmutation { a @idempotent(key: \"v\") }\nfragment F on T { b }"#,
            r"\ufeff# c\nmutation { a }\nfragment F on T { b }",
        ),
    ] {
        let sent = graphql(query).with(&idempotent(), "v").unwrap();
        assert_eq!(sent, graphql(with));
        assert_eq!(sent.read(&idempotent()).as_deref(), Some("v"));
        assert_eq!(sent.stripped(&idempotent()).unwrap(), graphql(without));
        assert_eq!(graphql(query).stripped(&idempotent()).unwrap(), graphql(without));
    }
}

#[test]
fn a_directive_with_a_variable_gets_the_variable_set() {
    let query = r#""query":"mutation($k: String!){a @idempotent(key:$k)}""#;
    for (variables, with, without) in [
        ("", r#","variables":{"k":"v"}"#, ""),
        (r#","variables": null"#, r#","variables": {"k":"v"}"#, ""),
        (r#","variables":{"a": 1.0,"k":"x"}"#, r#","variables":{"a": 1.0,"k":"v"}"#, r#","variables":{"a": 1.0}"#),
    ] {
        let with_variables = |variables: &str| body(&format!("{{{query}{variables}}}"));
        let sent = with_variables(variables).with(&idempotent(), "v").unwrap();
        assert_eq!(sent, with_variables(with));
        assert_eq!(sent.read(&idempotent()).as_deref(), Some("v"));
        assert_eq!(sent.stripped(&idempotent()).unwrap(), with_variables(without));
        assert_eq!(with_variables(variables).stripped(&idempotent()).unwrap(), with_variables(without));
    }
}

#[test]
fn a_graphql_key_is_read_from_wherever_it_stands() {
    for (query, value) in [
        (r#"mutation{a @idempotent(key:\"a\\nb\")}"#, Some("a\nb")),
        ("mutation{a @idempotent(key:12)}", Some("12")),
        ("mutation{a @idempotent(key:null)}", None),
        ("mutation{a @idempotent}", None),
        ("mutation{a @other(key:1)}", None),
        ("mutation($k:I){a @idempotent(key:$k)}", None),
        (r#"query{a @idempotent(key:\"a\")}"#, None),
        (r#"mutation{a @idempotent(key:\"\\ud83d\")}"#, None),
    ] {
        assert_eq!(graphql(query).read(&idempotent()).as_deref(), value, "{query}");
    }
}

#[test]
fn a_graphql_request_that_is_not_one_mutation_of_one_field_takes_no_key() {
    for query in [
        "{ a }",
        "query { a }",
        "subscription { a }",
        "mutation { a b }",
        "mutation { ...F } fragment F on M { a }",
        "mutation { ... on M { a } }",
        "mutation A { a } mutation B { a }",
        "fragment F on T { a }",
        "mutation { a",
        "mutation { a @idempotent() }",
        "mutation { a @idempotent(key:1) @idempotent(key:2) }",
        "mutation { a @idempotent(key:1, key:2) }",
        "",
    ] {
        let request = graphql(query);
        assert!(request.with(&idempotent(), "v").is_err(), "{query}");
        assert!(request.stripped(&idempotent()).is_err(), "{query}");
        assert!(request.with(&Carrier::GraphqlVariable("k".into()), "v").is_err(), "{query}");
    }
    for text in ["[]", "{}", r#"{"query":1}"#, r#"{"query":"mutation{a}","query":"mutation{b}"}"#, "a"] {
        assert!(body(text).with(&idempotent(), "v").is_err(), "{text}");
    }
}

#[test]
fn the_operation_name_chooses_the_mutation() {
    let text = |name: &str| format!(r#"{{"operationName":{name},"query":"mutation A {{ a }} query B {{ b }}"}}"#);
    let sent = body(&text("\"A\"")).with(&idempotent(), "v").unwrap();
    assert_eq!(sent.text(), text("\"A\"").replace("{ a }", r#"{ a @idempotent(key: \"v\") }"#));
    for name in ["\"B\"", "\"C\"", "null", "\"\"", "1"] {
        assert!(body(&text(name)).with(&idempotent(), "v").is_err(), "{name}");
    }
    let kinds = ["\"A\"", "\"B\"", "null"].map(|name| graphql_kind(text(name).as_bytes()));
    assert_eq!(kinds, [Some(GraphqlKind::Mutation), Some(GraphqlKind::Query), None]);
}

#[test]
fn the_kind_of_a_graphql_request_is_known() {
    for (query, kind) in [
        ("{ a }", Some(GraphqlKind::Query)),
        ("query Q { a }", Some(GraphqlKind::Query)),
        ("mutation { a b }", Some(GraphqlKind::Mutation)),
        ("subscription { a }", Some(GraphqlKind::Subscription)),
        ("mutation {", None),
        ("type T { a: I }", None),
    ] {
        assert_eq!(graphql_kind(graphql(query).text().as_bytes()), kind, "{query}");
    }
    for text in ["", "[]", "{}", r#"{"query":"{a}"} x"#] {
        assert_eq!(graphql_kind(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_graphql_variable_is_set_only_where_it_is_declared() {
    let carrier = Carrier::GraphqlVariable("k".into());
    let declared = graphql("mutation M($k: ID!) { a(key: $k) }");
    let sent = declared.with(&carrier, "v").unwrap();
    assert_eq!(sent.text(), r#"{"query": "mutation M($k: ID!) { a(key: $k) }","variables":{"k":"v"}}"#);
    assert_eq!(sent.read(&carrier).as_deref(), Some("v"));
    assert_eq!(sent.stripped(&carrier).unwrap(), declared);
    assert!(graphql("mutation M($j: ID!) { a(key: $j) }").with(&carrier, "v").unwrap_err().contains("`$k`"));
}

#[test]
fn a_deep_or_wide_body_is_handled() {
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(body(&deep).with(&json("/k"), "v").unwrap().read(&json("/k")).as_deref(), Some("v"));
    let wide = format!(r#"{{{}"b":1}}"#, r#""k":1,"#.repeat(200_000));
    assert_eq!(body(&wide).with(&json("/k"), "v").unwrap().text(), r#"{"k":"v","b":1}"#);
    let nested = format!("mutation {{ {} x {} }}", "a {".repeat(100_000), "}".repeat(100_000));
    assert!(graphql(&nested).with(&idempotent(), "v").is_err());
}
