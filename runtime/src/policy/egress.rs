//! Where a deployment may send.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::origin::{NatsServer, Origin};

/// Where a deployment may send. Nothing is allowed by default.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Egress {
    /// Origins: scheme, host and port, for example `https://api.stripe.com`.
    pub allow: Vec<Origin>,
    /// Addresses inside private, loopback or link-local ranges that an allowed host may have. An allowed origin that is
    /// written with such an address allows that address.
    #[schema(value_type = Vec<String>)]
    pub private_addresses: Vec<IpAddr>,
    /// Certificates of authorities in PEM, one or more, that this deployment's HTTP calls, look-ups and callbacks trust beside
    /// those of the host. At most 32 of them, in 65536 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// Where messages go: a NATS server with JetStream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Messaging {
    /// `nats://host:4222`, or `tls://host:4222` to insist on TLS. What is written here is allowed; the rules for private
    /// addresses are those of `egress`.
    pub server: NatsServer,
    /// The name of the secret: a token, or the password of `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The account that the credential belongs to. It is part of an effect's identity.
    #[serde(default)]
    pub account: String,
}
