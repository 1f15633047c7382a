//! The pace of sends: a profile's rate, the pause that a provider asks for with Retry-After, and the tenant's own limit for
//! everything that it sends. All hold for all runs of a tenant at once. A short wait is spent here; a longer one gives the run back until then, and spends no attempt.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header;

use super::attempt::{Attempt, lock};
use super::provider::{Profile, UNLISTED};
use super::request::{Error, Stop};
use super::transport::Sent;
use crate::config::ms;
use crate::policy::Origin;
use crate::store::rate::{self, Admitted, Pace};

/// The longest time over which runs come back after a pause.
const MAX_SPREAD_MS: u64 = 30_000;

/// The meter of a tenant's limit. No profile has a name with a space, and no origin looks like it.
const EVERY_SEND: &str = "every send";

/// What a provider's pace is counted by.
#[derive(Clone, Debug)]
pub struct Meter {
    pub name: String,
    pub pace: Option<Pace>,
    /// The send leaves the machine.
    outbound: bool,
}

impl Meter {
    /// Hosts that nobody described share a profile, and nothing else.
    pub fn of(profile: &Profile, origin: &Origin) -> Self {
        let name = if profile.name.0 == UNLISTED { format!("{UNLISTED} {origin}") } else { profile.name.0.clone() };
        Self { name, pace: profile.rate.as_ref().map(|rate| rate.pace()), outbound: true }
    }

    pub fn unpaced(name: &str) -> Self {
        Self { name: name.to_owned(), pace: None, outbound: true }
    }

    /// For what stays on the machine.
    pub fn local(name: &str) -> Self {
        Self { outbound: false, ..Self::unpaced(name) }
    }
}

/// Waits for the next place at the tenant's rate, and then at the profile's. The effect is claimed by then, so that an answer
/// from the record takes no place.
pub async fn admit(attempt: &Arc<Attempt>, meter: &Meter, account: &str) -> Result<(), Error> {
    if meter.outbound
        && let Some(per_second) = attempt.gateway.limits_of(attempt.tenant()).await?.sends_per_second
    {
        // A second's worth at once; a float that is too large is cut by the conversion.
        let burst = per_second.ceil().max(1.0) as u32;
        take(attempt, EVERY_SEND, "", Pace { per_second, burst }).await?;
    }
    match meter.pace {
        Some(pace) => take(attempt, &meter.name, account, pace).await,
        None => Ok(()),
    }
}

/// Takes the next place of a meter and waits for it.
async fn take(attempt: &Arc<Attempt>, meter: &str, account: &str, pace: Pace) -> Result<(), Error> {
    let gateway = &attempt.gateway;
    let patience = gateway.config.pace_wait_ms;
    match rate::admit(&gateway.store, attempt.tenant(), meter, account, pace, patience).await? {
        Admitted::After { ms } => sleep(attempt, ms).await,
        Admitted::TooEarly { ms: wait } => Err(Stop::Deferred { after: ms(wait) }.into()),
    }
}

/// The same for a read, which no claim has asked whether the provider wants a pause.
pub async fn admit_read(attempt: &Arc<Attempt>, meter: &Meter, account: &str) -> Result<(), Error> {
    if meter.pace.is_none()
        && let Some(ms) = rate::blocked(&attempt.gateway.store, attempt.tenant(), &meter.name, account).await?
    {
        rest(attempt, ms).await?;
    }
    admit(attempt, meter, account).await
}

/// Waits out the rest of a pause, if it is short.
pub async fn rest(attempt: &Arc<Attempt>, ms: u64) -> Result<(), Error> {
    if ms > attempt.gateway.config.pace_wait_ms { Err(deferred(ms)) } else { sleep(attempt, ms).await }
}

/// Takes note of an answer that asks for a pause. What is not noted now is said again by the next answer.
pub async fn heed(attempt: &Arc<Attempt>, meter: &Meter, account: &str, sent: &Sent) {
    let Sent::Answer { status: 429 | 503, headers, .. } = sent else { return };
    let gateway = &attempt.gateway;
    let value = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let Some(wait) = value.and_then(|value| retry_after(value, gateway.clock.now())) else { return };
    let wait = wait.min(ms(gateway.config.max_retry_after_ms));
    *lock(&attempt.demand) = Some(gateway.clock.elapsed() + wait);
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    if let Err(error) = rate::block(&gateway.store, attempt.tenant(), &meter.name, account, wait_ms).await {
        tracing::warn!(provider.name = meter.name, error = %error, "a provider's pause is not noted");
    }
}

/// The time that a Retry-After header names: seconds, or a date (RFC 9110, section 10.2.3). None for what it does not allow,
/// and for a time that is over.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        httpdate::parse_http_date(value).ok()?.duration_since(now).ok()?
    };
    (!wait.is_zero()).then_some(wait)
}

async fn sleep(attempt: &Arc<Attempt>, wait_ms: u64) -> Result<(), Error> {
    if wait_ms == 0 {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(ms(wait_ms)) => Ok(()),
        () = attempt.stopped() => Err(Stop::LeaseOver.into()),
        () = attempt.closing.cancelled() => Err(Stop::LeaseOver.into()),
    }
}

/// Runs that wait for the same pause do not all come back in the same moment.
fn deferred(wait_ms: u64) -> Error {
    let spread = (wait_ms / 10).clamp(1, MAX_SPREAD_MS);
    Stop::Deferred { after: ms(wait_ms.saturating_add(rand::random_range(0..=spread))) }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-C13.
    #[test]
    fn retry_after_is_read_as_the_standard_allows() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let seconds = |value: &str| retry_after(value, now).map(|wait| wait.as_secs());
        for (value, expected) in [
            ("3", Some(3)),
            (" 120 ", Some(120)),
            ("0", None),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("3junk", None),
            ("", None),
            ("soon", None),
            ("9223372036854775807", Some(9_223_372_036_854_775_807)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", None),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
        ] {
            assert_eq!(seconds(value), expected, "{value}");
        }
    }
}
