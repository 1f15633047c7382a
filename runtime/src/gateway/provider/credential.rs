//! Where a tenant's credential goes in a request. No error here shows the credential.

use std::collections::BTreeMap;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::parse::HeaderText;
use crate::gateway::vault::Secret;

/// Where the credential goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// `Authorization: Bearer …`
    Bearer,
    /// `Authorization: Basic …`, with the credential as `user:password`.
    Basic,
    Header(HeaderText),
    /// A query parameter of this name.
    Query(String),
    /// Several headers, each with `{secret}`, or with `{user}` and `{password}` of a credential `user:password`.
    Headers(BTreeMap<HeaderText, String>),
    /// AWS Signature Version 4 for this service. The credential is a JSON object with `access_key_id`,
    /// `secret_access_key` and, where needed, `session_token` and `region`.
    AwsSigv4(String),
}

/// A request about to be sent, as far as a credential touches it.
#[derive(Debug)]
pub struct Signing<'a> {
    pub method: &'a Method,
    pub url: &'a mut Url,
    pub headers: &'a mut HeaderMap,
    pub body: &'a Bytes,
    /// The region that the host's name tells.
    pub region: Option<String>,
    pub now: SystemTime,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AwsSecret {
    access_key_id: String,
    secret_access_key: Zeroizing<String>,
    session_token: Option<Zeroizing<String>>,
    region: Option<String>,
}

impl Placement {
    /// Puts the credential into the request.
    pub fn inject(&self, request: Signing<'_>, secret: &Secret) -> Result<(), String> {
        let headers = match self {
            Self::Bearer => vec![(AUTHORIZATION, Zeroizing::new(format!("Bearer {}", secret.expose())))],
            Self::Basic => {
                let encoded = Zeroizing::new(data_encoding::BASE64.encode(secret.expose().as_bytes()));
                vec![(AUTHORIZATION, Zeroizing::new(format!("Basic {}", *encoded)))]
            }
            Self::Header(name) => vec![(name.0.clone(), Zeroizing::new(secret.expose().to_owned()))],
            Self::Query(name) => {
                request.url.query_pairs_mut().append_pair(name, secret.expose());
                return Ok(());
            }
            Self::Headers(all) => filled(all, secret)?,
            Self::AwsSigv4(service) => return sign_aws(service, request, secret),
        };
        for (name, text) in headers {
            let mut value =
                HeaderValue::from_str(&text).map_err(|_| "the secret has characters no header may have".to_owned())?;
            value.set_sensitive(true);
            request.headers.insert(name, value);
        }
        Ok(())
    }
}

fn filled(all: &BTreeMap<HeaderText, String>, secret: &Secret) -> Result<Vec<(HeaderName, Zeroizing<String>)>, String> {
    let pair = secret.expose().split_once(':');
    let fill = |(name, template): (&HeaderText, &String)| {
        let (user, password) = match pair {
            Some(pair) => pair,
            None if template.contains("{user}") || template.contains("{password}") => {
                return Err("the secret must be two parts with `:` between them".to_owned());
            }
            None => ("", ""),
        };
        let text = template.replace("{secret}", secret.expose());
        let text = text.replace("{user}", user).replace("{password}", password);
        Ok((name.0.clone(), Zeroizing::new(text)))
    };
    all.iter().map(fill).collect()
}

fn sign_aws(service: &str, request: Signing<'_>, secret: &Secret) -> Result<(), String> {
    let aws: AwsSecret = serde_json::from_str(secret.expose()).map_err(|_| {
        "the secret must be a JSON object with access_key_id, secret_access_key and, where needed, session_token and region"
            .to_owned()
    })?;
    let region =
        aws.region.or(request.region).ok_or("the host does not tell the region: put `region` into the secret")?;
    let token = aws.session_token.as_ref().map(|token| token.to_string());
    let identity = Credentials::new(aws.access_key_id, aws.secret_access_key.as_str(), token, None, "deedbox").into();
    let failed = |_| "the request cannot be signed".to_owned();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(&region)
        .name(service)
        .time(request.now)
        .settings(settings(service))
        .build()
        .map_err(|_| "the request cannot be signed".to_owned())?;
    let host = host_value(request.url);
    let headers = request.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let headers = headers.chain([("host", host.as_str())]);
    let signable =
        SignableRequest::new(request.method.as_str(), request.url.as_str(), headers, SignableBody::Bytes(request.body))
            .map_err(failed)?;
    let (instructions, _) = sign(signable, &params.into()).map_err(failed)?.into_parts();
    for (name, value) in instructions.headers() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "the request cannot be signed".to_owned())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| "the request cannot be signed".to_owned())?;
        value.set_sensitive(true);
        request.headers.insert(name, value);
    }
    Ok(())
}

/// S3 wants the body's hash as a header of its own, and paths encoded once.
fn settings(service: &str) -> SigningSettings {
    let mut settings = SigningSettings::default();
    if service == "s3" {
        settings.payload_checksum_kind = aws_sigv4::http_request::PayloadChecksumKind::XAmzSha256;
        settings.percent_encoding_mode = aws_sigv4::http_request::PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = aws_sigv4::http_request::UriPathNormalizationMode::Disabled;
    }
    settings
}

fn host_value(url: &Url) -> String {
    match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    }
}
