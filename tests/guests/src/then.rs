//! How a driver activity ends once its calls are made, chosen for each attempt by the test.

use std::time::Duration;

use deedbox_guest::prelude::*;

/// One end for every attempt, or a list by attempt whose last entry goes on.
#[data]
#[serde(untagged)]
pub enum Then {
    Always(End),
    ByAttempt(Vec<End>),
}

#[data]
#[derive(Copy, Default)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    #[default]
    Return,
    Trap,
    /// A retryable failure with the code `asked-to-fail`, due again at once.
    Fail,
    Spin,
    /// Returns once the attempt was asked to stop.
    WaitCancelled,
}

impl Default for Then {
    fn default() -> Self {
        Self::Always(End::Return)
    }
}

impl Then {
    /// Ends this attempt, with this output if it is to return.
    pub fn end<T>(&self, ctx: &Context, output: T) -> Result<T, Failure> {
        match self.of_attempt(ctx.run().attempt()) {
            End::Return => Ok(output),
            End::Trap => crate::limits::boom(),
            End::Fail => Err(Failure::retryable("asked-to-fail", "as asked").retry_after(Duration::ZERO)),
            End::Spin => crate::limits::spin_on(),
            End::WaitCancelled => {
                crate::context::wait_until_cancelled(ctx);
                Ok(output)
            }
        }
    }

    fn of_attempt(&self, attempt: u32) -> End {
        match self {
            Self::Always(end) => *end,
            Self::ByAttempt(ends) => by_attempt(ends, attempt).copied().unwrap_or_default(),
        }
    }
}

/// The entry for this attempt; the last one for all later attempts. `None` when there are none.
pub fn by_attempt<T>(entries: &[T], attempt: u32) -> Option<&T> {
    let index = usize::try_from(attempt).unwrap_or(usize::MAX).saturating_sub(1);
    entries.get(index).or(entries.last())
}
