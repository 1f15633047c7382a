//! Inputs against the JSON Schema of a deployment. What does not fit is refused before a run begins; what was accepted once
//! stays accepted, whatever a later version says.

pub(crate) mod weight;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::error::{Problem, Result};

/// The largest schema, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// The most parts that a schema may have once its references are written out.
pub(crate) const MAX_PARTS: u64 = 10_000;

/// The most work that checking one input may be: parts of the schema times bytes of the input.
const MAX_WORK: u64 = 200_000_000;

/// Checks a schema that a deployment gives.
pub fn check_schema(schema: &Value) -> Result<()> {
    let size = schema.to_string().len();
    if size > MAX_SCHEMA_BYTES {
        return Err(Problem::validation(format!("policy.input_schema: must be at most {MAX_SCHEMA_BYTES} bytes")));
    }
    let checked = weight::parts(schema, MAX_PARTS).map(drop).and_then(|()| compile(schema).map(drop));
    checked.map_err(|words| Problem::validation(format!("policy.input_schema: {words}")))
}

/// Checks an input, a JSON text. The refusal names the place, never the value: it may be nobody else's business.
pub async fn check(schema: &Value, input: &str) -> Result<()> {
    let (schema, input) = (schema.clone(), input.to_owned());
    // It computes and does not wait: others are served meanwhile.
    let checking = tokio::task::spawn_blocking(move || check_now(&schema, &input));
    checking.await.map_err(|e| Problem::internal(format!("an input could not be checked: {e}")))?
}

pub(crate) fn check_now(schema: &Value, input: &str) -> Result<()> {
    let parts = weight::parts(schema, MAX_PARTS).map_err(Problem::internal)?;
    if parts.saturating_mul(input.len() as u64) > MAX_WORK {
        let most = MAX_WORK / parts.max(1);
        return Err(Problem::validation(format!(
            "input: must be at most {most} bytes under the activity's input_schema"
        )));
    }
    let schema = compile(schema).map_err(Problem::internal)?;
    let input: Value = serde_json::from_str(input).map_err(|e| Problem::validation(format!("input: {e}")))?;
    schema.validate(&input).map_err(|error| {
        let (place, words) = (error.instance_path().to_string(), error.masked().to_string());
        Problem::validation(format!("input{place}: {words}"))
    })
}

/// No reference leads out of the schema, and no pattern can take long: the schema is a tenant's.
fn compile(schema: &Value) -> std::result::Result<Validator, String> {
    jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(result: Result<()>) -> String {
        format!("{:?}", result.unwrap_err())
    }

    #[test]
    fn an_input_that_does_not_fit_is_refused_by_its_place_and_without_its_value() {
        let schema =
            json!({ "type": "object", "required": ["amount"], "properties": { "amount": { "type": "integer" } } });
        check_schema(&schema).unwrap();
        check_now(&schema, r#"{"amount": 9007199254740993}"#).unwrap();
        assert!(words(check_now(&schema, "{}")).contains("amount"));
        let refused = words(check_now(&schema, r#"{"amount": "tip-top secret"}"#));
        assert!(refused.contains("input/amount") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_refused() {
        let elsewhere = json!({ "$ref": "http://127.0.0.1:1/schema.json" });
        let slow = json!({ "pattern": "(?=a)(a+)+$" });
        let itself = json!({ "$defs": { "t": { "items": { "$ref": "#/$defs/t" } } }, "$ref": "#/$defs/t" });
        assert!(words(check_schema(&itself)).contains("refers to itself"));
        for wrong in [json!({ "type": "text" }), json!(7), elsewhere, slow, json!({ "title": "x".repeat(70_000) })] {
            assert!(words(check_schema(&wrong)).contains("policy.input_schema"), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_takes_no_long_time() {
        let schema = json!({ "pattern": "^(a+)+$" });
        check_schema(&schema).unwrap();
        assert!(check_now(&schema, &format!("\"{}b\"", "a".repeat(100_000))).is_err());
    }

    /// What would keep a node busy, or take all its memory, is refused before it is tried.
    #[test]
    fn a_schema_or_an_input_that_means_endless_work_is_refused() {
        let doubling = (1..40).map(|n| {
            let to = format!("#/$defs/d{}", n - 1);
            (format!("d{n}"), json!({ "allOf": [{ "$ref": to }, { "$ref": to }] }))
        });
        let mut parts: serde_json::Map<String, Value> = doubling.collect();
        parts.insert("d0".to_owned(), json!({ "type": "string" }));
        let bomb = json!({ "$defs": parts, "$ref": "#/$defs/d39" });
        assert!(words(check_schema(&bomb)).contains("10000 parts"));

        let many: Vec<Value> = (0..300).map(|n| json!({ "items": { "type": "string", "minLength": n } })).collect();
        let wide = json!({ "allOf": many });
        check_schema(&wide).unwrap();
        let input = serde_json::to_string(&vec![1; 400_000]).unwrap();
        assert!(words(check_now(&wide, &input)).contains("must be at most"));
        assert!(words(check_now(&wide, "[1, 2, 3]")).contains("input/0"));
    }
}
