//! The description of the API: that of the server is the one in the repository, and it is one that tools can read.
//!
//! To write it anew: `cargo test -p deedbox-tests --test it -- --ignored write_openapi`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use super::Api;
use super::routes::{blank, routes};

/// Operations that need no token.
const OPEN: [&str; 5] = ["deliver_webhook", "is_live", "is_ready", "openwop_discover", "show_openapi"];

const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];

/// One operation of the document.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    content: &'a Value,
}

impl<'a> Operation<'a> {
    fn all(document: &'a Value) -> Vec<Self> {
        let paths = document["paths"].as_object().unwrap();
        let of = |(path, item): (&'a String, &'a Value)| {
            let methods = item.as_object().unwrap().iter();
            let methods: Vec<_> = methods.filter(|(method, _)| METHODS.contains(&method.as_str())).collect();
            methods.into_iter().map(move |(method, content)| Self { method, path, content })
        };
        paths.iter().flat_map(of).collect()
    }

    fn id(&self) -> &'a str {
        self.content["operationId"].as_str().unwrap()
    }

    /// Place and name of each parameter.
    fn parameters(&self, document: &'a Value) -> BTreeSet<(&'a str, &'a str)> {
        let all = self.content["parameters"].as_array().into_iter().flatten();
        all.map(|one| resolved(document, one)).map(|one| (text(&one["in"]), text(&one["name"]))).collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// What a reference stands for.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(place) = value.get("$ref") else { return value };
    let pointer = text(place).strip_prefix('#').unwrap_or_else(|| panic!("{place} leads out of the document"));
    document.pointer(pointer).unwrap_or_else(|| panic!("{place} leads nowhere"))
}

async fn served() -> Value {
    let api = Api::idle().await;
    let answer = api.nobody().get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    answer.expect(200)
}

fn file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_in_the_repository_is_that_of_the_server() {
    let kept: Value = serde_json::from_slice(&std::fs::read(file()).unwrap_or_default()).unwrap_or_default();
    let served = served().await;
    let odd: Vec<_> = ["openapi", "info", "servers", "tags", "paths", "components"]
        .into_iter()
        .filter(|part| kept[part] != served[part])
        .collect();
    let words = "docs/openapi.json is not what the server says: write it anew and commit it";
    assert!(kept == served, "{words}; it differs in {odd:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes the description of the API"]
async fn write_openapi() {
    let text = serde_json::to_string_pretty(&served().await).unwrap();
    std::fs::write(file(), text + "\n").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reference_leads_to_something_and_nothing_is_described_in_vain() {
    let document = served().await;
    assert!(text(&document["openapi"]).starts_with("3.1."));
    let mut named = BTreeSet::new();
    walk(&document, &mut |value| {
        resolved(&document, value);
        named.extend(value.get("$ref").map(|place| text(place).to_owned()));
    });
    for kind in ["responses", "headers", "parameters"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let place = format!("#/components/{kind}/{name}");
            assert!(named.contains(&place), "nothing refers to {place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_schema_is_a_json_schema() {
    let document = served().await;
    let mut checked = 0;
    let mut check = |schema: &Value| {
        jsonschema::meta::validate(schema).unwrap_or_else(|e| panic!("{e}: {schema}"));
        checked += 1;
    };
    document["components"]["schemas"].as_object().unwrap().values().for_each(&mut check);
    walk(&document, &mut |value| {
        if let Some(schema) = value.get("schema").filter(|schema| schema.is_object()) {
            check(schema);
        }
    });
    assert!(checked > 100, "hardly any schema: {checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_a_name_of_its_own_and_says_what_its_path_asks_for() {
    let document = served().await;
    let mut ids = BTreeSet::new();
    for one in Operation::all(&document) {
        let place = format!("{} {}", one.method, one.path);
        assert!(ids.insert(one.id()), "{place}: there is another {}", one.id());
        assert!(!text(&one.content["summary"]).is_empty(), "{place}");
        assert_eq!(one.content["tags"].as_array().unwrap().len(), 1, "{place}");
        let parameters = one.parameters(&document);
        let declared: BTreeSet<_> = parameters.iter().filter(|(at, _)| *at == "path").map(|(_, name)| *name).collect();
        let in_path: BTreeSet<_> = one.path.split('{').skip(1).map(|rest| rest.split_once('}').unwrap().0).collect();
        assert_eq!(declared, in_path, "{place}");
        for (status, answer) in one.content["responses"].as_object().unwrap() {
            let answer = resolved(&document, answer);
            assert!(!text(&answer["description"]).is_empty(), "{place} {status}");
            assert!(answer["headers"].get("x-request-id").is_some(), "{place} {status}");
        }
    }
}

/// R-K03.
#[tokio::test(flavor = "multi_thread")]
async fn every_change_can_have_a_request_key_but_for_deliveries() {
    let document = served().await;
    let mut without = Vec::new();
    for one in Operation::all(&document) {
        let keyed = one.parameters(&document).contains(&("header", "Idempotency-Key"));
        if one.method == "get" {
            assert!(!keyed, "{}", one.id());
        } else if !keyed {
            without.push(one.id());
        }
    }
    assert_eq!(without, ["deliver_webhook"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scope_that_is_described_is_the_one_that_opens() {
    let document = served().await;
    let scope = |one: &Operation<'_>| one.content["security"][0]["bearer"][0].as_str().map(str::to_owned);
    let all = Operation::all(&document);
    let open: BTreeSet<_> = all.iter().filter(|one| scope(one).is_none()).map(Operation::id).collect();
    assert_eq!(open, BTreeSet::from(OPEN));
    for route in routes() {
        let (method, path) = route.template();
        let same = |one: &&Operation<'_>| one.method.eq_ignore_ascii_case(&method) && blank(one.path) == path;
        let one = all.iter().find(same).unwrap_or_else(|| panic!("{method} {path} is not described"));
        assert_eq!(scope(one).as_deref(), Some(route.scope.name()), "{method} {path}");
    }
}

fn walk<'a>(value: &'a Value, look: &mut impl FnMut(&'a Value)) {
    look(value);
    match value {
        Value::Array(all) => all.iter().for_each(|one| walk(one, look)),
        Value::Object(members) => members.values().for_each(|one| walk(one, look)),
        _ => {}
    }
}
