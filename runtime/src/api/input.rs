//! Inputs against the JSON Schema of a deployment. What does not fit is refused before a run begins; what was accepted once
//! stays accepted, whatever a later version says.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::error::{Problem, Result};

/// The largest schema, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Checks a schema that a deployment gives.
pub fn check_schema(schema: &Value) -> Result<()> {
    let size = schema.to_string().len();
    if size > MAX_SCHEMA_BYTES {
        return Err(Problem::validation(format!("policy.input_schema: must be at most {MAX_SCHEMA_BYTES} bytes")));
    }
    compile(schema).map(drop).map_err(|words| Problem::validation(format!("policy.input_schema: {words}")))
}

/// Checks an input, a JSON text. The refusal names the place, never the value: it may be nobody else's business.
pub fn check(schema: &Value, input: &str) -> Result<()> {
    let schema = compile(schema).map_err(Problem::internal)?;
    let input: Value = serde_json::from_str(input).map_err(|e| Problem::validation(format!("input: {e}")))?;
    match schema.iter_errors(&input).next() {
        None => Ok(()),
        Some(error) => {
            let (place, words) = (error.instance_path().to_string(), error.masked().to_string());
            Err(Problem::validation(format!("input{place}: {words}")))
        }
    }
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
        check(&schema, r#"{"amount": 9007199254740993}"#).unwrap();
        assert!(words(check(&schema, "{}")).contains("amount"));
        let refused = words(check(&schema, r#"{"amount": "tip-top secret"}"#));
        assert!(refused.contains("input/amount") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_refused() {
        let elsewhere = json!({ "$ref": "http://127.0.0.1:1/schema.json" });
        let slow = json!({ "pattern": "(?=a)(a+)+$" });
        for wrong in [json!({ "type": "text" }), json!(7), elsewhere, slow, json!({ "title": "x".repeat(70_000) })] {
            assert!(words(check_schema(&wrong)).contains("policy.input_schema"), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_takes_no_long_time() {
        let schema = json!({ "pattern": "^(a+)+$" });
        check_schema(&schema).unwrap();
        assert!(check(&schema, &format!("\"{}b\"", "a".repeat(100_000))).is_err());
    }
}
