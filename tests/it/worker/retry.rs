//! The delays between attempts.

use std::time::Duration;

use deedbox::policy::{Jitter, Policy, Retry, Span};
use proptest::prelude::*;

const EPSILON: f64 = 1e-6;

fn any_retry() -> impl Strategy<Value = Retry> {
    let jitter = prop_oneof![Just(Jitter::None), Just(Jitter::Full), Just(Jitter::Equal), Just(Jitter::Decorrelated)];
    let span = || prop_oneof![1..1_000u64, 1..30 * 24 * 3_600_000u64].prop_map(|ms| Span(Duration::from_millis(ms)));
    (jitter, span(), span(), 1.0..=100.0f64).prop_map(
        |(jitter, initial_interval, max_interval, backoff_coefficient)| Retry {
            max_attempts: 1000,
            initial_interval,
            backoff_coefficient,
            max_interval,
            jitter,
            ..Retry::default()
        },
    )
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

proptest! {
    /// F-C11, F-C12. Never nothing, never above the cap, whatever the jitter and however many attempts.
    #[test]
    fn every_delay_is_positive_and_within_the_cap(retry in any_retry(), spent in 1..=1000u32, chance in 0.0..=1.0f64) {
        retry.check().unwrap();
        let delay = retry.delay(spent, chance);
        prop_assert!(delay >= Duration::from_millis(1));
        prop_assert!(delay <= retry.max_interval.0);
    }

    /// F-C11.
    #[test]
    fn without_jitter_delays_grow_by_the_factor_up_to_the_cap(retry in any_retry(), spent in 1..1000u32) {
        let retry = Retry { jitter: Jitter::None, ..retry };
        let (this, next) = (retry.delay(spent, 0.3), retry.delay(spent + 1, 0.7));
        prop_assert!(this <= next);
        prop_assert!(seconds(next) <= seconds(this) * retry.backoff_coefficient + EPSILON);
        prop_assert_eq!(retry.delay(1, 0.5), retry.initial_interval.0.min(retry.max_interval.0));
    }

    /// F-C12. Jitter spreads the delay of this attempt; it never adds up over attempts.
    #[test]
    fn jitter_stays_in_its_range(retry in any_retry(), spent in 1..=1000u32, chance in 0.0..=1.0f64) {
        let whole = seconds(Retry { jitter: Jitter::None, ..retry.clone() }.delay(spent, 0.0));
        let before = seconds(Retry { jitter: Jitter::None, ..retry.clone() }.delay(spent.saturating_sub(1).max(1), 0.0));
        let delay = seconds(retry.delay(spent, chance));
        let cap = seconds(retry.max_interval.0);
        let (least, most) = match retry.jitter {
            Jitter::None => (whole, whole),
            Jitter::Full => (0.001, whole),
            Jitter::Equal => (whole / 2.0, whole),
            Jitter::Decorrelated => (seconds(retry.initial_interval.0).min(cap), (before * 3.0).min(cap)),
        };
        prop_assert!(delay >= least - EPSILON && delay <= most.max(0.001) + EPSILON, "{delay} not in {least}..={most}");
    }

    /// F-C12. More chance is more delay, and the ends of the range are reached.
    #[test]
    fn jitter_uses_its_whole_range(retry in any_retry(), spent in 1..=1000u32, a in 0.0..=1.0f64, b in 0.0..=1.0f64) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(retry.delay(spent, low) <= retry.delay(spent, high));
        let whole = Retry { jitter: Jitter::None, ..retry.clone() }.delay(spent, 0.0);
        match retry.jitter {
            Jitter::Full => prop_assert_eq!(retry.delay(spent, 0.0), Duration::from_millis(1)),
            Jitter::Equal => prop_assert!(seconds(retry.delay(spent, 0.0)) <= seconds(whole) / 2.0 + 0.001),
            Jitter::None | Jitter::Decorrelated => {}
        }
        if retry.jitter != Jitter::Decorrelated {
            prop_assert!((seconds(retry.delay(spent, 1.0)) - seconds(whole)).abs() < EPSILON);
        }
    }
}

/// F-C11.
#[test]
fn eighty_attempts_of_a_steep_policy_stay_at_the_cap() {
    let text = r#"{ "retry": { "max_attempts": 80, "initial_interval": "1s", "backoff_coefficient": 10,
                               "max_interval": "60s", "jitter": "none" } }"#;
    let retry = Policy::parse(text).unwrap().retry;
    let delays: Vec<u64> = (1..=80).map(|spent| retry.delay(spent, 0.5).as_secs()).collect();
    assert_eq!(delays[..3], [1, 10, 60]);
    assert!(delays[2..].iter().all(|delay| *delay == 60), "{delays:?}");
}

/// F-C11.
#[test]
fn an_absurd_policy_is_refused_with_the_name_of_the_field() {
    let cases = [
        (r#""backoff_coefficient": 1e308"#, "backoff_coefficient"),
        (r#""backoff_coefficient": 0.5"#, "backoff_coefficient"),
        (r#""backoff_coefficient": -1"#, "backoff_coefficient"),
        (r#""max_attempts": 0"#, "max_attempts"),
        (r#""max_attempts": 1001"#, "max_attempts"),
        (r#""max_attempts": 18446744073709551615"#, "u32"),
        (r#""initial_interval": "0s""#, "initial_interval"),
        (r#""initial_interval": "18446744073709551615s""#, "initial_interval"),
        (r#""max_interval": "31days""#, "max_interval"),
        (r#""max_interval": "-5s""#, "-5s"),
        (r#""max_interval": 5"#, "5"),
        (r#""jitter": "some""#, "jitter"),
        (r#""tries": 3"#, "tries"),
    ];
    for (field, named) in cases {
        let refused = Policy::parse(&format!("{{ \"retry\": {{ {field} }} }}"));
        let why = refused.expect_err(field);
        assert!(why.contains(named) || named == "jitter" && why.contains("some"), "{field}: {why}");
    }
}
