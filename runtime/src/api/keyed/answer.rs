//! What a mutating request is answered with, in a form that can be stored and given again byte for byte.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use uuid::Uuid;

use crate::api::Api;
use crate::api::error::{Problem, Result};
use crate::gateway::vault::{ANSWER_PLACE, DataKey};
use crate::store::request_key::{Record, RecordId};

/// Says that an answer was given before.
pub const REPLAY: HeaderName = HeaderName::from_static("openwop-idempotent-replay");

#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    location: Option<String>,
    /// A JSON text.
    body: Option<Vec<u8>>,
    run_id: Option<Uuid>,
    /// What the body is stored under; none: as it is.
    sealer: Option<DataKey>,
    repeated: bool,
}

impl Answer {
    pub fn json(status: StatusCode, body: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_vec(body);
        let text = text.map_err(|e| Problem::internal(format!("an answer cannot be written: {e}")))?;
        Ok(Self { body: Some(text), ..Self::empty(status) })
    }

    pub fn empty(status: StatusCode) -> Self {
        Self { status, location: None, body: None, run_id: None, sealer: None, repeated: false }
    }

    /// 204.
    pub fn nothing() -> Self {
        Self::empty(StatusCode::NO_CONTENT)
    }

    pub fn located(self, path: String) -> Self {
        Self { location: Some(path), ..self }
    }

    /// It is about this run, and is kept for as long as the run is alive.
    pub fn of_run(self, run_id: Uuid) -> Self {
        Self { run_id: Some(run_id), ..self }
    }

    /// Its body is stored sealed with this key of the caller's.
    pub fn sealed_with(self, key: DataKey) -> Self {
        Self { sealer: Some(key), ..self }
    }

    /// It says of itself that it was given before.
    pub fn repeated(self) -> Self {
        Self { repeated: true, ..self }
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn run_id(&self) -> Option<Uuid> {
        self.run_id
    }

    pub fn response(self, replayed: bool) -> Response {
        let mut response = self.status.into_response();
        if let Some(body) = self.body {
            response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        }
        let headers = response.headers_mut();
        if let Some(location) = self.location.and_then(|path| HeaderValue::try_from(path).ok()) {
            headers.insert(header::LOCATION, location);
        }
        if replayed || self.repeated {
            headers.insert(REPLAY, HeaderValue::from_static("true"));
        }
        response
    }

    /// What is stored of it.
    pub(super) fn record(&self, record: RecordId, digest: &[u8; 32]) -> Record {
        let body = match &self.sealer {
            Some(key) => self.body.as_ref().map(|body| key.seal(&record.0, ANSWER_PLACE, body)),
            None => self.body.clone(),
        };
        Record {
            digest: digest.to_vec(),
            // A status has three digits.
            status: self.status.as_u16().cast_signed(),
            location: self.location.clone(),
            body,
            sealed_with: self.sealer.as_ref().map(DataKey::id),
            run_id: self.run_id,
        }
    }

    pub(super) async fn stored(api: &Api, tenant: &str, id: RecordId, record: Record) -> Result<Self> {
        let body = match (record.body, &record.sealed_with) {
            (Some(body), Some(key_id)) => {
                Some(api.gateway.vault().unseal(tenant, &id.0, ANSWER_PLACE, key_id, &body).await?)
            }
            (body, _) => body,
        };
        let status = u16::try_from(record.status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        Ok(Self {
            status: status.ok_or_else(|| Problem::internal("a stored answer has no status"))?,
            location: record.location,
            body,
            run_id: record.run_id,
            sealer: None,
            repeated: false,
        })
    }
}
