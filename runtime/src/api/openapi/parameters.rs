//! Parameters that many operations have: the ids and names in paths, and the headers of request keys.

use serde_json::{Map, Value, json};

const NAME: &str = "^[A-Za-z0-9._-]{1,128}$";
const HASH: &str = "^[0-9a-f]{64}$";

/// What stands in a path: the component's name, what comes before it, the parameter's own name, its grammar, and what it is.
const IN_PATHS: [(&str, &str, &str, &str, &str); 12] = [
    ("Module", "modules", "digest", HASH, "The module's digest."),
    ("Activity", "activities", "name", NAME, "The activity's name."),
    ("Run", "runs", "run", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "The run's id."),
    ("Signal", "signals", "name", NAME, "The signal's name."),
    ("Effect", "effects", "effect", HASH, "The effect's id."),
    ("Secret", "secrets", "name", NAME, "The secret's name."),
    ("Provider", "providers", "name", NAME, "The profile's name."),
    ("Hook", "hooks", "name", "^[A-Za-z0-9_-]{1,64}$", "The hook's name."),
    (
        "Tenant",
        "tenants",
        "tenant",
        "^([a-z0-9][a-z0-9-]{0,62}|_admin)$",
        "The tenant's name; `_admin` owns the administrators' tokens.",
    ),
    ("Signer", "signers", "signer", NAME, "The key's name."),
    ("Token", "tokens", "token", "^[0-9a-f-]{32,36}$", "The token's id."),
    (
        "OpenwopRun",
        "",
        "run",
        "^[a-z0-9-]+~2F[0-9a-f-]{36}$",
        "The run's id, `TENANT/ID`, as one segment: `TENANT~2FID`.",
    ),
];

/// Whom a delivery is for stands where the tenant's own routes have the hook's plain name.
const ADDRESS: (&str, &str) = ("^[a-z0-9-]+\\.[A-Za-z0-9_-]{1,64}$", "`TENANT.HOOK`");

/// The components for the parameters of a path.
pub fn of_path(path: &str, method: &str) -> Vec<&'static str> {
    let segments: Vec<&str> = path.split('/').collect();
    let mut all = Vec::new();
    for pair in segments.windows(2) {
        let Some((name, _)) = pair[1].strip_prefix('{').and_then(|rest| rest.split_once('}')) else { continue };
        let known = IN_PATHS.iter().find(|(_, before, own, ..)| *before == pair[0] && *own == name);
        all.extend(match (known, pair[0]) {
            (_, "hooks") if method == "post" => Some("HookAddress"),
            (_, "runs") if path.starts_with("/runs") => Some("OpenwopRun"),
            (known, _) => known.map(|known| known.0),
        });
    }
    all
}

pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

pub fn all() -> Value {
    let mut all = Map::new();
    for (component, _, name, pattern, words) in IN_PATHS {
        all.insert(component.to_owned(), in_path(name, pattern, words));
    }
    all.insert("HookAddress".to_owned(), in_path("name", ADDRESS.0, ADDRESS.1));
    let header = |name: &str, schema: Value, words: &str| json!({ "name": name, "in": "header", "required": false, "description": words, "schema": schema });
    let key = "The request's own key: the same request under the same key is done once, and answered again as it was. With \
               `Prefer: handling=lenient`, where that is offered, it may be any 1 to 255 visible characters.";
    let pattern = json!({ "type": "string", "pattern": "^[A-Za-z0-9._~-]{22,128}$" });
    all.insert("IdempotencyKey".to_owned(), header("Idempotency-Key", pattern, key));
    let prefer = "`handling=lenient`: a known key is answered with what it did, whatever this request says.";
    all.insert("Prefer".to_owned(), header("Prefer", json!({ "type": "string" }), prefer));
    let version = "The version that the caller speaks; only its major number counts.";
    let pattern = json!({ "type": "string", "pattern": "^2(\\.[0-9]+)?$" });
    all.insert("OpenwopVersion".to_owned(), header("OpenWOP-Version", pattern, version));
    Value::Object(all)
}

fn in_path(name: &str, pattern: &str, words: &str) -> Value {
    let schema = json!({ "type": "string", "pattern": pattern });
    json!({ "name": name, "in": "path", "required": true, "description": words, "schema": schema })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_of_a_path_is_known_by_what_stands_before_it() {
        let table = [
            ("/v1/runs", "get", &[][..]),
            ("/v1/runs/{run}/signals/{name}", "post", &["Run", "Signal"]),
            ("/v1/hooks/{name}", "put", &["Hook"]),
            ("/v1/hooks/{name}", "post", &["HookAddress"]),
            ("/runs/{run}:pause", "post", &["OpenwopRun"]),
            ("/v1/tenants/{tenant}/tokens/{token}", "delete", &["Tenant", "Token"]),
        ];
        for (path, method, expected) in table {
            assert_eq!(of_path(path, method), expected, "{method} {path}");
        }
    }
}
