//! The bodies that mutating requests may have: how large, of which media type, and how each is read. No body is read beyond
//! its limit.

use axum::body::Body;
use axum::http::HeaderMap;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{Problem, Result};
use super::extract;
use crate::config::Config;

/// A kind of body.
pub trait Kind: Send + Sync + 'static {
    /// The caller may ask for lenient handling of its key.
    const LENIENT: bool = false;
    /// A member of the body that can hold the key.
    const MEMBER: Option<&'static str> = None;
    /// It may be left out.
    const OPTIONAL: bool = false;
    const MEDIA_TYPE: &'static str = "application/json";
    /// Nothing may be in it.
    const EMPTY: bool = false;

    fn limit(config: &Config) -> usize {
        config.api.max_body_bytes
    }
}

/// A JSON object.
#[derive(Debug)]
pub struct Json;
/// A JSON object, or no body.
#[derive(Debug)]
pub struct Optional;
/// No body; an empty object is one, because some clients always send one.
#[derive(Debug)]
pub struct Nothing;
/// A WebAssembly component.
#[derive(Debug)]
pub struct Component;
/// A JSON object that starts a run.
#[derive(Debug)]
pub struct Start;
/// A signal's payload: any JSON text, `null` when the body is empty.
#[derive(Debug)]
pub struct Payload;

impl Kind for Json {}

impl Kind for Optional {
    const OPTIONAL: bool = true;
}

impl Kind for Nothing {
    const OPTIONAL: bool = true;
    const EMPTY: bool = true;
}

impl Kind for Component {
    const MEDIA_TYPE: &'static str = "application/wasm";

    fn limit(config: &Config) -> usize {
        config.api.max_component_bytes
    }
}

impl Kind for Start {
    const LENIENT: bool = true;
    const MEMBER: Option<&'static str> = Some("idempotency_key");
}

impl Kind for Payload {
    const LENIENT: bool = true;
    const OPTIONAL: bool = true;

    fn limit(config: &Config) -> usize {
        config.signals.max_payload_bytes
    }
}

/// A body that was read and not yet understood.
#[derive(Debug)]
pub struct Read {
    pub bytes: Bytes,
    media_type: Option<String>,
}

impl Read {
    pub async fn read<B: Kind>(headers: &HeaderMap, body: Body, config: &Config) -> Result<Self> {
        let empty = Self { bytes: Bytes::new(), media_type: extract::media_type(headers) };
        // Where a known key is answered whatever the body is, or where there may be none, it is judged later.
        if !B::LENIENT && !B::OPTIONAL && !empty.is_of_kind::<B>() {
            return Err(Problem::media_type(B::MEDIA_TYPE));
        }
        Ok(Self { bytes: extract::read(body, B::limit(config), &config.api).await?, ..empty })
    }

    fn is_of_kind<B: Kind>(&self) -> bool {
        let kind = self.media_type.as_deref();
        match B::MEDIA_TYPE {
            "application/json" => kind.is_some_and(extract::is_json),
            other => kind == Some(other),
        }
    }

    /// The bytes, if the sender says that they are what the route takes.
    pub fn checked<B: Kind>(&self) -> Result<&Bytes> {
        match self.is_of_kind::<B>() || (B::OPTIONAL && self.bytes.is_empty()) {
            true => Ok(&self.bytes),
            false => Err(Problem::media_type(B::MEDIA_TYPE)),
        }
    }

    /// The value of the member that can hold the key. A body that cannot be read has none.
    pub fn member<B: Kind>(&self) -> Option<String> {
        let name = B::MEMBER?;
        self.checked::<B>().ok()?;
        let members: std::collections::BTreeMap<String, &RawValue> = serde_json::from_slice(&self.bytes).ok()?;
        String::deserialize(*members.get(name)?).ok()
    }
}
