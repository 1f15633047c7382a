//! What the world is: rows, sums, messages, documents, and what else a provider made. Not under which key or number
//! something was made, nor how often the same was written to one place: those are not the world.

use deedbox_books::{Books, Entry};
use serde_json::{Map, Value, json};

const PLACES: [&str; 4] = ["/tables/", "/counters/", "/topics/", "/objects/"];

/// `{"tables": {table: [row]}, "counters": {counter: sum}, "topics": {topic: [body]}, "objects": {name: text},`
/// `"made": [{"path", "body"}]}`.
pub async fn of(books: &Books) -> Value {
    let world = books.world().await.unwrap();
    let applied = books.applied().await.unwrap();
    json!({
        "tables": each(&world["tables"], |rows| all(rows, "values")),
        "counters": each(&world["counters"], |counter| counter["value"].clone()),
        "topics": each(&world["topics"], |messages| all(messages, "body")),
        "objects": each(&world["objects"], |object| object["body"].clone()),
        "made": applied.iter().filter(|entry| is_elsewhere(entry)).map(made).collect::<Vec<_>>(),
    })
}

/// The same world, if all that happened in it had happened once more.
pub fn doubled(world: &Value) -> Value {
    let twice = |list: &Value| {
        let list = list.as_array().unwrap();
        Value::from([&list[..], list].concat())
    };
    json!({
        "tables": each(&world["tables"], twice),
        "counters": each(&world["counters"], |sum| json!(2 * sum.as_i64().unwrap())),
        "topics": each(&world["topics"], twice),
        "objects": each(&world["objects"], |text| json!(text.as_str().unwrap().repeat(2))),
        "made": twice(&world["made"]),
    })
}

fn is_elsewhere(entry: &Entry) -> bool {
    !PLACES.iter().any(|place| entry.path.starts_with(place))
}

fn made(entry: &Entry) -> Value {
    json!({ "path": entry.path, "body": entry.json() })
}

fn all(list: &Value, member: &str) -> Value {
    list.as_array().unwrap().iter().map(|one| one[member].clone()).collect()
}

fn each(things: &Value, show: impl Fn(&Value) -> Value) -> Value {
    let things = things.as_object().unwrap();
    Value::Object(things.iter().map(|(name, thing)| (name.clone(), show(thing))).collect::<Map<_, _>>())
}
