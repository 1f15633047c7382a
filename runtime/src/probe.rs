//! Named points in the life of an attempt at which a test may stop, kill or freeze it. In production nothing listens.

use std::fmt::Debug;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

/// Where a crash leaves a state of its own behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    BeforeClaim,
    AfterClaim,
    /// A file is whole under its temporary name.
    BeforeRename,
    AfterResponse,
    AfterSettle,
    AfterReturn,
    BeforeFinish,
    /// The receiver of a callback has answered, and that is not recorded.
    AfterCallback,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "before-claim" => Self::BeforeClaim,
            "after-claim" => Self::AfterClaim,
            "before-rename" => Self::BeforeRename,
            "after-response" => Self::AfterResponse,
            "after-settle" => Self::AfterSettle,
            "after-return" => Self::AfterReturn,
            "before-finish" => Self::BeforeFinish,
            "after-callback" => Self::AfterCallback,
            other => return Err(format!("`{other}` is no probe point")),
        })
    }
}

/// Hears that a point is reached; the attempt goes on when the future is done.
pub trait Probe: Debug + Send + Sync {
    fn reach(&self, point: Point) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The probe of production.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn reach(&self, _: Point) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

pub fn none() -> Arc<dyn Probe> {
    Arc::new(NoProbe)
}
