//! What a deployment asks for, against what an administrator lets its tenant have at most.

use super::error::{Problem, Result};
use crate::gateway::TenantLimits;
use crate::policy::Policy;

/// Checks a policy. `given` is the JSON text that it was read from: what it leaves out is cut to the limits when it is used,
/// and is no mistake.
pub fn check(policy: &Policy, given: &str, limits: &TenantLimits) -> Result<()> {
    if let (Some(most), Some(asked)) = (limits.memory_bytes, policy.limits.memory_bytes)
        && asked > most
    {
        return Err(above("policy.limits.memory_bytes", "max_memory_bytes", &most.to_string()));
    }
    let asked = policy.timeouts.start_to_close.0;
    if let Some(most) = limits.attempt.filter(|most| asked > *most)
        && says_start_to_close(given)
    {
        return Err(above("policy.timeouts.start_to_close", "max_attempt_ms", &format!("{}ms", most.as_millis())));
    }
    let Some(ceiling) = &limits.egress else { return Ok(()) };
    if let Some(rule) = policy.egress.allow.iter().find(|rule| !ceiling.holds_all(rule)) {
        return Err(out_of_reach("policy.egress.allow", &rule.to_string(), &rule.hosts.to_string()));
    }
    let server = policy.messaging.as_ref().map(|messaging| &messaging.server.0);
    let above = server.filter(|origin| !ceiling.holds(origin));
    above
        .map_or(Ok(()), |origin| Err(out_of_reach("policy.messaging.server", &origin.to_string(), &origin.to_string())))
}

fn says_start_to_close(given: &str) -> bool {
    let given = serde_json::from_str::<serde_json::Value>(given).unwrap_or_default();
    given.pointer("/timeouts/start_to_close").is_some()
}

fn above(field: &str, limit: &str, most: &str) -> Problem {
    Problem::validation(format!(
        "{field}: must be at most {most}, the tenant's limit `{limit}`; an administrator can raise it"
    ))
}

fn out_of_reach(field: &str, place: &str, wanted: &str) -> Problem {
    Problem::validation(format!(
        "{field}: the tenant's limit `egress` does not name {place}; an administrator can add {wanted} to it"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limits() -> TenantLimits {
        TenantLimits {
            memory_bytes: Some(1 << 20),
            attempt: Some(Duration::from_secs(10)),
            sends_per_second: None,
            egress: Some(serde_json::from_str(r#"["*.example.com"]"#).unwrap()),
        }
    }

    fn refusal(json: &str) -> Option<String> {
        let checked = check(&Policy::parse(json).unwrap(), json, &limits());
        checked.err().map(|problem| format!("{problem:?}"))
    }

    #[test]
    fn a_policy_may_ask_for_what_its_tenant_may_have() {
        for within in [
            "{}",
            r#"{"limits": {"memory_bytes": 1048576}, "timeouts": {"start_to_close": "10s"}}"#,
            r#"{"timeouts": {"schedule_to_close": "1h"}, "egress": {"allow": ["https://api.example.com"]}}"#,
            r#"{"egress": {"allow": ["https://*.example.com", "http://*.eu.example.com:8080"]}}"#,
            r#"{"egress": {"allow": [{"host": "api.example.com", "port": 8443, "methods": ["GET"]}]}}"#,
        ] {
            assert_eq!(refusal(within), None, "{within}");
        }
    }

    #[test]
    fn what_is_above_a_limit_is_refused_by_the_name_of_the_limit() {
        for (above, limit) in [
            (r#"{"limits": {"memory_bytes": 1048577}}"#, "max_memory_bytes"),
            (r#"{"timeouts": {"start_to_close": "10001ms"}}"#, "max_attempt_ms"),
            (r#"{"egress": {"allow": ["https://api.example.com", "https://example.com"]}}"#, "egress"),
            (r#"{"egress": {"allow": [{"host": "example.com", "path_prefix": "/v1"}]}}"#, "egress"),
            (r#"{"egress": {"allow": ["https://*.com"]}}"#, "egress"),
            (r#"{"egress": {"allow": [{"host": "*.net", "methods": ["GET"]}]}}"#, "egress"),
            (r#"{"messaging": {"server": "nats://queue.test"}}"#, "egress"),
        ] {
            assert!(refusal(above).is_some_and(|words| words.contains(&format!("`{limit}`"))), "{above}");
        }
    }

    #[test]
    fn without_limits_everything_is_within_them() {
        let json = r#"{"egress": {"allow": ["https://a.test"]}, "timeouts": {"start_to_close": "20days"}}"#;
        assert!(check(&Policy::parse(json).unwrap(), json, &TenantLimits::default()).is_ok());
    }
}
