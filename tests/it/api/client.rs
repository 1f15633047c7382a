//! The tests' own HTTP client. It tells what was answered; the only thing that it judges is the form of refusals.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::http;

/// A caller of one server with one token, or with none.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    origin: String,
    token: Option<String>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Client {
    pub fn new(origin: &str, token: Option<String>) -> Self {
        Self::with_http(http::client(), origin, token)
    }

    /// The same over a client of another making.
    pub fn with_http(http: reqwest::Client, origin: &str, token: Option<String>) -> Self {
        Self { http, origin: origin.to_owned(), token }
    }

    /// The same server, asked with another token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Another server, asked with the same token.
    pub fn at(&self, origin: &str) -> Self {
        Self { origin: origin.to_owned(), ..self.clone() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::PUT, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Sends these very bytes as a body.
    pub async fn raw(&self, method: Method, path: &str, content_type: Option<&str>, body: Vec<u8>) -> Answer {
        let request = self.request(method, path).body(body);
        self.send(match content_type {
            Some(kind) => request.header("content-type", kind),
            None => request,
        })
        .await
    }

    pub async fn upload(&self, component: Vec<u8>) -> Answer {
        self.raw(Method::POST, "/v1/modules", Some("application/wasm"), component).await
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.origin));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap() }
    }
}

impl Answer {
    /// The JSON of an answer that must have this status; null when it has no body.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// The envelope of a refusal, which must have this status, this code, and the form of all refusals.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["error"], code, "{self:?}");
        assert!(!body["message"].as_str().unwrap().is_empty(), "{self:?}");
        let known = ["error", "message", "details"];
        assert!(body.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{self:?}");
        assert_eq!(self.header("content-type"), "application/json");
        assert_eq!(self.header("cache-control"), "no-store");
        Uuid::parse_str(self.header("x-request-id")).unwrap();
        body
    }

    /// The message of such a refusal.
    #[track_caller]
    pub fn message(&self, status: u16, code: &str) -> String {
        self.refused(status, code)["message"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// A header's value; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// The names of an object's members.
#[track_caller]
pub fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Asserts that an object has these members and no others.
#[track_caller]
pub fn assert_members(value: &Value, expected: &[&str]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    let mut there = members(value);
    there.sort_unstable();
    assert_eq!(there, expected, "{value}");
}

/// The items of a list that has just one page.
#[track_caller]
pub fn whole_list(answer: &Answer) -> Vec<Value> {
    let list = answer.expect(200);
    assert_members(&list, &["items", "after"]);
    assert_eq!(list["after"], json!(null), "{list}");
    list["items"].as_array().unwrap().clone()
}
