//! The operations that the server describes in `/openapi.json`, so that a test can try each of them, also those that
//! are not there yet.

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::client::Client;
use super::{Api, no_hash, no_run};

/// An administrator's routes.
const ADMINISTRATION: &str = "/v1/tenants";

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Operation {
    pub method: Method,
    /// As it is described, with names in braces.
    pub template: String,
    /// The media type of its body; none: it has no body.
    pub takes: Option<String>,
    /// Its answer has no end.
    pub streams: bool,
}

impl Operation {
    /// All that the server describes.
    pub async fn all(api: &Api) -> Vec<Self> {
        let described = api.acme.get("/openapi.json").await.expect(200);
        let mut all = Vec::new();
        for (template, item) in described["paths"].as_object().unwrap() {
            for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                let operation = &item[method.as_str().to_lowercase()];
                if operation.is_object() {
                    all.push(Self::read(method, template, operation));
                }
            }
        }
        assert!(all.len() > 40, "hardly anything is described: {all:?}");
        all
    }

    fn read(method: Method, template: &str, operation: &Value) -> Self {
        let kinds = |content: &Value| content.as_object().map(|kinds| kinds.keys().cloned().collect::<Vec<_>>());
        let takes = kinds(&operation["requestBody"]["content"]).and_then(|kinds| kinds.into_iter().next());
        let gives = kinds(&operation["responses"]["200"]["content"]).unwrap_or_default();
        let streams = template.ends_with("/events") || gives.iter().any(|kind| kind.starts_with("text/event-stream"));
        Self { method, template: template.to_owned(), takes, streams }
    }

    /// `METHOD /path/{}`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.filled(|_| "{}".to_owned()))
    }

    /// Its path, with ids that are well-formed and nobody's; `acme` is a tenant and `noop` may be an activity.
    pub fn path(&self) -> String {
        let host = self.template.starts_with("/runs");
        self.filled(|name| match name {
            _ if name.starts_with("run") && host => format!("acme~2F{}", no_run()),
            _ if name.contains("tenant") => "acme".to_owned(),
            _ if name.contains("digest") || name.contains("effect") || name.contains("module") => no_hash(),
            _ if name.starts_with("run") || name.contains("token") || name.to_lowercase().ends_with("id") => no_run(),
            _ => "noop".to_owned(),
        })
    }

    /// Its path for a run of `acme`, if a run is all that it names.
    pub fn path_of_run(&self, run: &str) -> Option<String> {
        let host = self.template.starts_with("/runs");
        let mut others = false;
        let path = self.filled(|name| {
            others |= !name.starts_with("run");
            if host { format!("acme~2F{run}") } else { run.to_owned() }
        });
        (path != self.template && !others).then_some(path)
    }

    /// Its path with this text wherever a name stands; none where none does.
    pub fn path_with(&self, text: &str) -> Option<String> {
        Some(self.filled(|_| text.to_owned())).filter(|path| *path != self.template)
    }

    fn filled(&self, mut value: impl FnMut(&str) -> String) -> String {
        let mut parts = self.template.split('{');
        let mut path = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap();
            path.push_str(&value(name));
            path.push_str(rest);
        }
        path
    }

    /// Whose token opens it.
    pub fn caller<'a>(&self, tenant: &'a Client, admin: &'a Client) -> &'a Client {
        if self.template.starts_with(ADMINISTRATION) { admin } else { tenant }
    }

    /// A request of it with the smallest body of its kind.
    pub fn request(&self, caller: &Client, path: &str) -> RequestBuilder {
        let request = caller.request(self.method.clone(), path);
        match self.takes.as_deref() {
            None => request,
            Some("application/json") => request.header("content-type", "application/json").body("{}"),
            Some(kind) => request.header("content-type", kind).body("x"),
        }
    }
}
