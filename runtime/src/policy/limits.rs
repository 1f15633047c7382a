//! What bounds one attempt of a deployment, and how many run.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Linear memory of one instance, within the host's ceiling.
    pub memory_bytes: Option<u64>,
    /// Runs of the activity at once, on all nodes together; more stay queued. The newest version's counts for all. None: no
    /// limit. 0: none run.
    pub max_running: Option<u32>,
}
