//! The register of activities in this component, and the typed call around each.
//!
//! It turns JSON texts into the author's types and back. It must never panic on what a caller sent:
//! an input that does not fit is a permanent failure that names the place.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Context, Failure};

/// An output as JSON text, or why there is none.
pub type CallResult = Result<String, Failure>;

/// JSON Schema texts of an activity.
pub struct Schemas {
    pub input: Option<String>,
    pub output: Option<String>,
}

/// One activity, as `#[activity]` registers it.
pub struct Registration {
    pub name: &'static str,
    pub summary: &'static str,
    /// Runs it on a JSON text.
    pub call: fn(&Context, &str) -> CallResult,
    pub schemas: fn() -> Schemas,
}

inventory::collect!(Registration);

/// Every activity of this component, by name.
pub fn all() -> Vec<&'static Registration> {
    let mut all: Vec<_> = inventory::iter::<Registration>.into_iter().collect();
    all.sort_by_key(|registration| registration.name);
    all
}

/// Runs the activity of that name. Fails with `unknown-activity` when there is none.
pub fn run(context: &Context, name: &str, input: &str) -> CallResult {
    let found = inventory::iter::<Registration>.into_iter().find(|it| it.name == name);
    match found {
        Some(registration) => (registration.call)(context, input),
        None => Err(unknown(name)),
    }
}

/// Reads the input, calls the function and writes its output. Fails with `invalid-input` or
/// `invalid-output`, both permanent, or with what the function returned.
pub fn call<I, O, E>(context: &Context, input: &str, function: fn(&Context, I) -> Result<O, E>) -> CallResult
where
    I: DeserializeOwned,
    O: Serialize,
    E: Into<Failure>,
{
    let output = function(context, parse(input)?).map_err(Into::into)?;
    serde_json::to_string(&output)
        .map_err(|error| Failure::permanent("invalid-output", format!("the output cannot be written as JSON: {error}")))
}

/// The schemas of a function's input as it is read and of its output as it is written.
pub fn schemas<I: JsonSchema, O: JsonSchema, E>(_function: fn(&Context, I) -> Result<O, E>) -> Schemas {
    let settings = SchemaSettings::draft2020_12();
    let reading = settings.clone().for_deserialize();
    let writing = settings.for_serialize();
    Schemas {
        input: text(&reading.into_generator().into_root_schema_for::<I>()),
        output: text(&writing.into_generator().into_root_schema_for::<O>()),
    }
}

fn text(schema: &Schema) -> Option<String> {
    serde_json::to_string(schema).ok()
}

fn parse<I: DeserializeOwned>(input: &str) -> Result<I, Failure> {
    let mut reader = serde_json::Deserializer::from_str(input);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        let place = if place == "." { "input".to_owned() } else { format!("input.{place}") };
        invalid_input(&place, error.inner())
    })?;
    reader.end().map_err(|error| invalid_input("input", &error))?;
    Ok(value)
}

fn invalid_input(place: &str, error: &serde_json::Error) -> Failure {
    Failure::permanent("invalid-input", format!("{place}: {error}"))
}

fn unknown(name: &str) -> Failure {
    let names: Vec<_> = all().iter().map(|registration| registration.name).collect();
    let message = format!("this module has no activity {name:?}; it has: {}", names.join(", "));
    Failure::permanent("unknown-activity", message)
}
