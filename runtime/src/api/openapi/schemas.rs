//! Schemas that the types alone do not give: texts with a grammar of their own, and one plain object where a type is put
//! together of several.

use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::policy::{Ceiling, NatsServer, Rule, RuleForm, Span};

/// Where schemas are.
const PLACE: &str = "#/components/schemas/";

/// How the utoipa crate names the pages of a list.
const PAGE: &str = "Page_";

/// Why a run or an attempt failed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is stored as a JSON text")]
pub struct Failure {
    code: String,
    message: String,
    /// `retryable` or `permanent`, where the guest has said it.
    #[schema(required = false)]
    kind: Option<String>,
    #[schema(required = false)]
    details: Option<Value>,
}

macro_rules! texts {
    ($($type:ty, $name:literal, $words:literal, $example:literal;)*) => {
        $(
            impl PartialSchema for $type {
                fn schema() -> RefOr<Schema> {
                    let object = ObjectBuilder::new().schema_type(Type::String).description(Some($words));
                    object.examples([json!($example)]).into()
                }
            }

            impl ToSchema for $type {
                fn name() -> std::borrow::Cow<'static, str> {
                    $name.into()
                }
            }
        )*
    };
}

texts! {
    Span, "Duration", "A number and its unit, one or several times: `500ms`, `30s`, `1h 30m`.", "30s";
    NatsServer, "NatsServer", "A server of messages.", "nats://nats.example.com:4222";
}

impl PartialSchema for Ceiling {
    fn schema() -> RefOr<Schema> {
        let place = ObjectBuilder::new().schema_type(Type::String).examples([json!("*.example.com")]);
        ArrayBuilder::new().items(place).description(Some("Hosts, `*.DOMAIN`, and origins.")).into()
    }
}

impl ToSchema for Ceiling {
    fn name() -> std::borrow::Cow<'static, str> {
        "Ceiling".into()
    }
}

impl PartialSchema for Rule {
    fn schema() -> RefOr<Schema> {
        let words = "Scheme, host and port: all methods and paths there.";
        let examples = [json!("https://api.example.com"), json!("https://*.example.com:8443")];
        let origin = ObjectBuilder::new().schema_type(Type::String).description(Some(words)).examples(examples);
        let words = "A place that a deployment may send to, and what it may send there.";
        OneOfBuilder::new().item(origin).item(RuleForm::schema()).description(Some(words)).into()
    }
}

impl ToSchema for Rule {
    fn name() -> std::borrow::Cow<'static, str> {
        "EgressRule".into()
    }
}

/// Adds the envelope of refusals, and makes one object of each schema that consists of several.
pub fn complete(schemas: &mut Value) {
    let Some(all) = schemas.as_object_mut() else { return };
    let whole = all.clone();
    for schema in all.values_mut() {
        if let Some(parts) = schema["allOf"].as_array() {
            *schema = merged(parts, schema["description"].clone(), &whole);
        }
    }
    all.insert("Problem".to_owned(), problem());
}

/// An answer may have any of the members, so that it is not closed even where a part is.
fn merged(parts: &[Value], description: Value, all: &Map<String, Value>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        let name = part["$ref"].as_str().and_then(|place| place.strip_prefix(PLACE));
        let part = name.and_then(|name| all.get(name)).unwrap_or(part);
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    let mut object = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        object["required"] = Value::Array(required);
    }
    if !description.is_null() {
        object["description"] = description;
    }
    object
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "What every refusal says.",
        "required": ["error", "message"],
        "properties": {
            "error": { "type": "string", "description": "The code." },
            "message": { "type": "string", "description": "What to do about it." },
            "details": { "type": "object" },
        },
        "additionalProperties": false,
    })
}

/// Names the pages of a list after what is in them, `RunSummaryPage`, and lets them refer to it.
pub fn name_pages(document: &mut Value) {
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        for (name, mut schema) in std::mem::take(schemas) {
            let of = name.strip_prefix(PAGE);
            if let (Some(of), Some(items)) = (of, schema.pointer_mut("/properties/items/items")) {
                let item = std::mem::replace(items, json!({ "$ref": format!("{PLACE}{of}") }));
                schemas.entry(of).or_insert(item);
            }
            schemas.insert(page(&name), schema);
        }
    }
    rename(document);
}

fn page(name: &str) -> String {
    name.strip_prefix(PAGE).map_or_else(|| name.to_owned(), |of| format!("{of}Page"))
}

fn rename(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(rename),
        Value::Object(members) => {
            if let Some(Value::String(place)) = members.get_mut("$ref")
                && let Some(name) = place.strip_prefix(PLACE)
            {
                *place = format!("{PLACE}{}", page(name));
            }
            members.values_mut().for_each(rename);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_of_several_is_one_object() {
        let closed = json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false });
        let parts = json!([{ "$ref": "#/components/schemas/A" }, { "properties": { "b": {} }, "required": ["b"] }]);
        let mut all = json!({ "A": closed, "B": { "allOf": parts, "description": "both" } });
        complete(&mut all);
        let both = json!({ "a": {}, "b": {} });
        let expected = json!({ "type": "object", "properties": both, "required": ["b"], "description": "both" });
        assert_eq!(all["B"], expected);
        assert_eq!(all["A"], closed);
    }

    #[test]
    fn a_page_is_named_after_what_is_in_it() {
        let items = json!({ "items": { "type": "array", "items": { "type": "object" } } });
        let schemas = json!({ "Page_Run": { "properties": items } });
        let mut document =
            json!({ "components": { "schemas": schemas }, "x": [{ "$ref": "#/components/schemas/Page_Run" }] });
        name_pages(&mut document);
        assert_eq!(document["x"][0]["$ref"], "#/components/schemas/RunPage");
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["RunPage"]["properties"]["items"]["items"]["$ref"], "#/components/schemas/Run");
        assert_eq!(schemas["Run"], json!({ "type": "object" }));
    }
}
