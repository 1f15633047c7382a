//! The provider's control routes: scripts it, waits for it, reads its books. The charge itself never goes this way.

use std::time::Duration;

use anyhow::Context;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_rustls::rustls::RootCertStore;

use super::super::trust;

/// What a control route may take beyond the time it is asked to wait.
const MARGIN: Duration = Duration::from_secs(10);

pub(super) struct Books {
    http: reqwest::Client,
    address: String,
}

impl Books {
    /// A provider at an origin such as `http://127.0.0.1:1234`.
    pub(super) fn at(address: String) -> anyhow::Result<Self> {
        Ok(Self { http: trust::client(RootCertStore::empty())?.no_proxy().build()?, address })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The next charge is applied, and its answer is held until `release`.
    pub(super) async fn hold_next_answer(&self) -> anyhow::Result<()> {
        self.post("script", &json!([{ "behaviour": "hold_after_apply" }])).await
    }

    pub(super) async fn release(&self) -> anyhow::Result<()> {
        self.post("release", &json!({})).await
    }

    /// Returns once a charge is in the books.
    pub(super) async fn wait_for_applied(&self, limit: Duration) -> anyhow::Result<()> {
        let route = format!("wait?applied=1&ms={}", limit.as_millis());
        let answer =
            self.http.get(self.route(&route)).timeout(limit + MARGIN).send().await.context("asking the provider")?;
        anyhow::ensure!(answer.status() == StatusCode::OK, "the provider saw no charge within {limit:?}");
        Ok(())
    }

    /// `{"arrivals": [..], "applied": [..]}`, oldest first.
    pub(super) async fn read(&self) -> anyhow::Result<Value> {
        let answer =
            self.http.get(self.route("books")).timeout(MARGIN).send().await.context("reading the provider's books")?;
        Ok(answer.error_for_status()?.json().await?)
    }

    async fn post(&self, route: &str, body: &Value) -> anyhow::Result<()> {
        let request = self.http.post(self.route(route)).json(body).timeout(MARGIN);
        request.send().await.and_then(reqwest::Response::error_for_status).context("scripting the provider")?;
        Ok(())
    }

    fn route(&self, route: &str) -> String {
        format!("{}/_control/{route}", self.address)
    }
}
