//! What a deployment asks for, against what an administrator lets its tenant have at most.

use super::error::{Problem, Result};
use crate::config::Config;
use crate::gateway::TenantLimits;
use crate::policy::{Limits, Policy};

/// Checks a policy. `given` is the JSON text that it was read from: what it leaves out is cut to the limits when it is used,
/// and is no mistake.
pub fn check(policy: &Policy, given: &str, limits: &TenantLimits) -> Result<()> {
    if let (Some(most), Some(asked)) = (limits.memory_bytes, policy.limits.memory_bytes)
        && asked > most
    {
        return Err(above("policy.limits.memory_bytes", "max_memory_bytes", &most.to_string()));
    }
    for ((name, asked), most) in policy.limits.of_an_attempt().into_iter().zip(limits.of_an_attempt()) {
        if let (Some(asked), Some(most)) = (asked, most)
            && asked > most
        {
            return Err(above(&format!("policy.limits.{name}"), &format!("max_{name}"), &most.to_string()));
        }
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

/// Checks what bounds an attempt against the host's own ceilings.
pub fn check_host(limits: &Limits, config: &Config) -> Result<()> {
    let host = &config.host;
    let bytes = |most: usize| most as u64;
    let ceilings = [
        host.max_cpu_ms,
        host.max_host_calls,
        host.max_host_calls_per_s,
        bytes(host.max_log_bytes),
        bytes(host.max_output_bytes),
        bytes(config.gateway.max_open_sends),
    ];
    let asked = limits.of_an_attempt().into_iter().zip(ceilings);
    let memory = (("memory_bytes", limits.memory_bytes), host.max_memory_bytes);
    let wrong = |asked: Option<u64>, most: u64| asked.is_some_and(|asked| asked == 0 || asked > most);
    match [memory].into_iter().chain(asked).find(|((_, asked), most)| wrong(*asked, *most)) {
        Some(((name, _), most)) => {
            Err(Problem::validation(format!("policy.limits.{name}: must be 1 to {most} on this host")))
        }
        None => Ok(()),
    }
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
            cpu_ms: Some(1_000),
            host_calls: Some(1_000),
            egress: Some(serde_json::from_str(r#"["*.example.com"]"#).unwrap()),
            ..TenantLimits::default()
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
            r#"{"limits": {"cpu_ms": 1000, "host_calls": 1000, "host_calls_per_s": 5000}}"#,
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
            (r#"{"limits": {"cpu_ms": 1001}}"#, "max_cpu_ms"),
            (r#"{"limits": {"host_calls": 1001}}"#, "max_host_calls"),
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

    #[test]
    fn what_is_above_a_ceiling_of_the_host_is_refused_by_its_name() {
        let config = Config::default();
        let refusal = |json: &str| {
            let limits = serde_json::from_str(json).unwrap();
            check_host(&limits, &config).err().map(|problem| format!("{problem:?}"))
        };
        assert_eq!(refusal(r#"{"cpu_ms": 3600000, "open_sends": 16, "memory_bytes": 536870912}"#), None);
        for (json, name) in [
            (r#"{"cpu_ms": 3600001}"#, "cpu_ms"),
            (r#"{"open_sends": 17}"#, "open_sends"),
            (r#"{"log_bytes": 262145}"#, "log_bytes"),
            (r#"{"memory_bytes": 0}"#, "memory_bytes"),
        ] {
            assert!(refusal(json).is_some_and(|words| words.contains(&format!("policy.limits.{name}"))), "{json}");
        }
    }
}
