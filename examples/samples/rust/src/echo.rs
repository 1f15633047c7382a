//! A typed input, given back.

use deedbox_guest::prelude::*;

#[data]
#[serde(deny_unknown_fields)]
struct Echo {
    a: i64,
    b: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nested: Option<Nested>,
}

#[data]
#[serde(deny_unknown_fields)]
struct Nested {
    list: Vec<String>,
}

/// Gives its input back.
#[activity]
fn echo(_ctx: &Context, input: Echo) -> Result<Echo, Failure> {
    Ok(input)
}

#[cfg(test)]
mod tests {
    use deedbox_guest::testing::FakeContext;

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let ctx = FakeContext::for_run("0190b1c2-0000-7000-8000-000000000001").unwrap();
        assert_eq!(ctx.run_named("echo", r#"{ "b": "x", "a": 1, "c": null }"#).unwrap(), r#"{"a":1,"b":"x"}"#);
        for (input, named) in [(r#"{ "a": 1 }"#, "`b`"), (r#"{ "a": 1, "b": "x", "d": 1 }"#, "`d`")] {
            let failure = ctx.run_named("echo", input).unwrap_err();
            assert_eq!(failure.code(), "invalid-input");
            assert!(failure.message().contains(named), "{failure}");
        }
    }
}
