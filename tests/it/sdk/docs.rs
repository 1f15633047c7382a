//! What the documents show does on the wire what they say. F-J08.
//!
//! Two components for each language: the project that `deedbox new` writes, and, where it was built, the first example of the SDK's
//! README as it stands. An example that names its provider in its text gets the one of the test in its place.

use deedbox::host::Descriptor;
use serde_json::{Map, Value, json};

use crate::harness::cell::work_until_settled;
use crate::harness::{TENANT, World, deploy_version, sdk_component};

/// Where the examples send. As long as the address of a provider of the tests.
const EXAMPLE: &[u8] = b"https://api.example.com";

/// Charges an order with the template, and with the README's example.
pub async fn first_examples(language: &str) {
    for kind in ["template", "readme"] {
        if let Some(component) = sdk_component(kind, language) {
            charges_once(&format!("{kind}_{language}"), component).await;
        }
    }
}

async fn charges_once(name: &str, component: Vec<u8>) {
    let world = World::keyed().await;
    let (component, replaced) = sent_to(component, &world.origin());
    let uploaded = world.node.registry().upload(TENANT, component.into()).await.unwrap();
    let module = deedbox::store::module::find(world.node.store(), TENANT, &uploaded.digest).await.unwrap().unwrap();
    let activities: Vec<Descriptor> = serde_json::from_str(&module.activities).unwrap();
    let activity = activities.iter().find(|activity| activity.name == "charge-once");
    let activity = activity.unwrap_or_else(|| panic!("{name}: {activities:?}"));
    let policy = json!({ "egress": { "allow": [world.origin()] }, "providers": { world.origin(): "stripe" } });
    let policy = deedbox::policy::Policy::parse(&policy.to_string()).unwrap();
    let policy = serde_json::to_string(&policy).unwrap();
    deploy_version(world.node.store(), TENANT, "charge-once", &uploaded.digest, "charge-once", &policy).await.unwrap();

    let mut order = json!({ "order": "42", "amount_cents": 1999 });
    if !replaced {
        order["provider_url"] = json!(world.origin());
    }
    let run = world.start("charge-once", fitting(activity, order)).await;
    work_until_settled(&world, &world.node, run).await;
    assert_eq!(world.output(run).await, json!({ "id": "ch_1" }), "{name}");
    let [arrival] = <[_; 1]>::try_from(world.books.arrivals().await.unwrap()).unwrap();
    let path = arrival.path_and_query.trim_start_matches('/');
    assert_eq!((arrival.method.as_str(), path), ("POST", "v1/charges"), "{name}");
    let body: Value = serde_json::from_str(&arrival.body).unwrap();
    assert_eq!((&body["order"], &body["amount_cents"]), (&json!("42"), &json!(1999)), "{name}: {body}");
    let sends = world.sends(run).await;
    assert_eq!((sends.len(), sends[0].state.as_str()), (1, "completed"), "{name}");
    assert!(arrival.key.is_some(), "{name}: the key that the documents promise");
    assert_eq!(arrival.key, sends[0].wire_key, "{name}");
}

/// The component with the address of the examples replaced, and whether there was one.
fn sent_to(mut component: Vec<u8>, origin: &str) -> (Vec<u8>, bool) {
    let places: Vec<usize> = (0..component.len()).filter(|at| component[*at..].starts_with(EXAMPLE)).collect();
    // The path begins with more slashes than one, which is the same to this provider.
    let address = format!("{origin:/<width$}", width = EXAMPLE.len());
    assert_eq!(address.len(), EXAMPLE.len(), "{address}");
    for at in &places {
        component[*at..*at + EXAMPLE.len()].copy_from_slice(address.as_bytes());
    }
    (component, !places.is_empty())
}

/// The members that the activity takes, where it says which.
fn fitting(activity: &Descriptor, order: Value) -> Value {
    let schema: Option<Value> = activity.input_schema.as_deref().map(|text| serde_json::from_str(text).unwrap());
    let known = schema.and_then(|schema| schema["properties"].as_object().cloned());
    let Some(known) = known else { return order };
    let members = order.as_object().unwrap().clone().into_iter().filter(|(name, _)| known.contains_key(name));
    members.collect::<Map<String, Value>>().into()
}
