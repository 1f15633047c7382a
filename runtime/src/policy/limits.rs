//! What bounds one attempt of a deployment, and how many run. What is not said is the host's default; the tenant's limits and
//! the host's ceilings hold in any case.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Linear memory of one instance, all its memories together.
    pub memory_bytes: Option<u64>,
    /// Runs of the activity at once, on all nodes together; more stay queued. The newest version's counts for all. None: no
    /// limit. 0: none run.
    pub max_running: Option<u32>,
    /// CPU time of one attempt: what the guest computes, and the host in its calls. Beyond it the attempt ends as `out-of-fuel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Calls of one attempt to the host; beyond it the attempt ends as `out-of-calls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_calls: Option<u64>,
    /// Calls to the host in a second; a second's worth may be made at once. A guest that makes more is slowed down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_calls_per_s: Option<u64>,
    /// What is kept of each of stdout and stderr of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// A larger output ends the run as failed with `result-too-large`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Sends that one attempt may have under way at once; more are refused with `invalid-request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_sends: Option<u64>,
}

impl Limits {
    /// Checks what the types alone do not. The error names the field.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.max_running.is_some_and(|most| i32::try_from(most).is_err()) {
            return Err(format!("policy.limits.max_running must be at most {}", i32::MAX));
        }
        let nothing = self.of_an_attempt().into_iter().find(|(_, asked)| *asked == Some(0));
        nothing.map_or(Ok(()), |(name, _)| Err(format!("policy.limits.{name} must be at least 1")))
    }

    /// By name, those of one attempt that came after `memory_bytes`.
    pub fn of_an_attempt(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("cpu_ms", self.cpu_ms),
            ("host_calls", self.host_calls),
            ("host_calls_per_s", self.host_calls_per_s),
            ("log_bytes", self.log_bytes),
            ("output_bytes", self.output_bytes),
            ("open_sends", self.open_sends),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_with_which_nothing_could_run_is_refused_by_its_name() {
        for (name, _) in Limits::default().of_an_attempt() {
            let limits: Limits = serde_json::from_str(&format!("{{\"{name}\": 0}}")).unwrap();
            assert_eq!(limits.check(), Err(format!("policy.limits.{name} must be at least 1")));
            let limits: Limits = serde_json::from_str(&format!("{{\"{name}\": 1}}")).unwrap();
            assert_eq!(limits.check(), Ok(()));
        }
    }

    /// A node of an older version reads a policy that says nothing of what it does not know.
    #[test]
    fn what_is_not_said_is_not_written() {
        assert_eq!(serde_json::to_string(&Limits::default()).unwrap(), r#"{"memory_bytes":null,"max_running":null}"#);
    }
}
