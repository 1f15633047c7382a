//! How a simulated provider behaves that stands for a profile: the bookkeeping provider's own account of that provider, never
//! the profile, which is under test as well.

use deedbox_books::{Carrier, Convention, KINDS, LookUp};

/// Providers of these profiles take no key.
const KEYLESS: [&str; 7] = ["anthropic", "braintree", "github", "keyless", "openai", "sendgrid", "unlisted"];

/// Where a profile's name differs from that of the provider's kind by more than a hyphen.
const RENAMED: [(&str, &str); 2] = [("azure-repeatable", "azure"), ("razorpayx", "razorpay")];

/// Whether the provider of a profile takes keys.
pub fn takes_keys(profile: &str) -> bool {
    !matches!(of(profile).carrier, Carrier::None)
}

/// The convention of the provider that a profile describes. One that nobody has written down takes `Idempotency-Key`, or what
/// the profile is known to use.
pub fn of(profile: &str) -> Convention {
    if KEYLESS.contains(&profile) {
        return none();
    }
    if profile == "twilio" {
        // Only its payments take one.
        return Convention { carrier: Carrier::Form("IdempotencyKey".to_owned()), ..Convention::twilio() };
    }
    let renamed = RENAMED.iter().find(|(from, _)| *from == profile).map(|(_, to)| *to);
    let name = renamed.map_or_else(|| profile.replace('-', "_"), str::to_owned);
    if let Some((_, kind)) = KINDS.iter().find(|(kind, _)| *kind == name) {
        return kind();
    }
    match profile {
        "chargebee" => carried(Carrier::Header("chargebee-idempotency-key".to_owned())),
        "wise" => carried(Carrier::Json("/customerTransactionId".to_owned())),
        "secrets-manager" => carried(Carrier::Json("/ClientRequestToken".to_owned())),
        _ => Convention::default(),
    }
}

/// A provider that takes no key and has a list of what it did.
pub fn none() -> Convention {
    Convention { look_ups: vec![LookUp::list()], ..carried(Carrier::None) }
}

fn carried(carrier: Carrier) -> Convention {
    Convention { carrier, ..Convention::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::provider::Profiles;

    #[test]
    fn a_profile_that_relies_on_a_key_meets_a_provider_that_takes_one() {
        for profile in Profiles::load(None).unwrap().all() {
            let keys = profile.operations.iter().filter_map(|operation| operation.key.as_ref());
            let relies = keys.clone().any(|rule| rule.honoured && rule.window().is_some());
            assert!(!relies || takes_keys(&profile.name.0), "{}", profile.name.0);
        }
        assert!(takes_keys("stripe") && takes_keys("azure-repeatable") && !takes_keys("keyless"));
    }
}
