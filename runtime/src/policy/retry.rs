//! When a failed attempt is followed by another, and after how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::span::{LONGEST, Span, within};

/// When a failed attempt is followed by another.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// The first attempt included: 1 means no retry. At most 1000.
    pub max_attempts: u32,
    pub initial_interval: Span,
    /// 1 to 100.
    pub backoff_coefficient: f64,
    pub max_interval: Span,
    pub jitter: Jitter,
    /// Failure codes after which no further attempt is made.
    pub non_retryable: Vec<String>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_interval: Span(Duration::from_secs(1)),
            backoff_coefficient: 2.0,
            max_interval: Span(Duration::from_secs(300)),
            jitter: Jitter::Full,
            non_retryable: Vec::new(),
        }
    }
}

/// How the delay between attempts is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Jitter {
    /// The delay itself.
    None,
    /// Between nothing and the delay.
    Full,
    /// Between half the delay and the delay.
    Equal,
    /// Between the initial interval and three times the previous delay.
    Decorrelated,
}

/// Codes that a policy may name, and the length of each.
const MAX_CODES: usize = 100;
const MAX_CODE_BYTES: usize = 128;

impl Retry {
    /// Reads a stored policy.
    pub fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|e| format!("retry: {e}"))
    }

    pub fn check(&self) -> Result<(), String> {
        if !(1..=1000).contains(&self.max_attempts) {
            return Err(format!("policy.retry.max_attempts is {}; it must be 1 to 1000", self.max_attempts));
        }
        if !(1.0..=100.0).contains(&self.backoff_coefficient) {
            return Err(format!(
                "policy.retry.backoff_coefficient is {}; it must be 1 to 100",
                self.backoff_coefficient
            ));
        }
        within("policy.retry.initial_interval", self.initial_interval)?;
        within("policy.retry.max_interval", self.max_interval)?;
        let code = |code: &String| (1..=MAX_CODE_BYTES).contains(&code.len());
        if self.non_retryable.len() > MAX_CODES || !self.non_retryable.iter().all(code) {
            return Err(format!(
                "policy.retry.non_retryable must be at most {MAX_CODES} codes of 1 to {MAX_CODE_BYTES} bytes"
            ));
        }
        Ok(())
    }

    /// The delay before the next attempt. `spent`: attempts that count so far, at least 1. `chance`: 0 to 1.
    pub fn delay(&self, spent: u32, chance: f64) -> Duration {
        let full = self.nominal(spent);
        let seconds = match self.jitter {
            Jitter::None => full,
            Jitter::Full => full * chance,
            Jitter::Equal => full / 2.0 + full / 2.0 * chance,
            Jitter::Decorrelated => {
                let least = self.initial_interval.0.as_secs_f64();
                let most = (self.nominal(spent.saturating_sub(1).max(1)) * 3.0).min(self.max_interval.0.as_secs_f64());
                least.min(most) + (most - least).max(0.0) * chance
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.001, LONGEST.0.as_secs_f64()))
    }

    /// Seconds, capped. An overflow of the power is infinite, and so is cut to the cap.
    fn nominal(&self, spent: u32) -> f64 {
        let power = self.backoff_coefficient.powf(f64::from(spent.saturating_sub(1)));
        (self.initial_interval.0.as_secs_f64() * power).min(self.max_interval.0.as_secs_f64())
    }
}
