//! The pauses between the tries of one message: each three times as long as the one before it, cut off at the longest, and
//! then any time up to it, so that the messages of an outage do not all come back at once.

use std::time::Duration;

use crate::config::{WebhooksConfig, ms};

const FACTOR: u64 = 3;

/// The pause after that many tries, at least one. `chance`: 0 to 1.
pub fn after(tries: i32, chance: f64, config: &WebhooksConfig) -> Duration {
    let power = FACTOR.saturating_pow(tries.saturating_sub(1).max(0).unsigned_abs());
    let full = config.first_pause_ms.saturating_mul(power).min(config.max_pause_ms);
    ms(full).mul_f64(chance.clamp(0.0, 1.0))
}

pub fn millis(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_threefold_up_to_half_a_day() {
        let config = WebhooksConfig::default();
        let seconds: Vec<u64> = (1..=11).map(|tries| after(tries, 1.0, &config).as_secs()).collect();
        assert_eq!(seconds, [5, 15, 45, 135, 405, 1_215, 3_645, 10_935, 32_805, 43_200, 43_200]);
        assert_eq!(after(i32::MAX, 1.0, &config).as_secs(), 43_200);
    }

    #[test]
    fn a_pause_is_any_time_up_to_the_full_one() {
        let config = WebhooksConfig::default();
        assert_eq!(after(3, 0.0, &config), Duration::ZERO);
        assert_eq!(after(3, 0.5, &config), Duration::from_millis(22_500));
    }
}
