//! Which events a stream tells: the run's own steps, everything, or both, each under the name of what let it through.

use crate::api::error::{Problem, Result};
use crate::api::openwop::log::Event;

const UPDATES: &str = "updates";
const DEBUG: &str = "debug";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    Updates,
    Debug,
    Both,
}

impl Modes {
    /// The modes that a stream was asked for; updates alone if none.
    pub fn read(text: Option<&str>) -> Result<Self> {
        let parts: Vec<&str> = text.unwrap_or(UPDATES).split(',').collect();
        if !parts.iter().all(|part| [UPDATES, DEBUG].contains(part)) {
            return Err(Problem::stream_mode(&[UPDATES, DEBUG]));
        }
        Ok(match (parts.contains(&UPDATES), parts.contains(&DEBUG)) {
            (true, true) => Self::Both,
            (_, true) => Self::Debug,
            _ => Self::Updates,
        })
    }

    /// The name under which the stream tells an event; none: it does not.
    pub fn name(self, event: &Event) -> Option<&str> {
        match self {
            Self::Updates => event.is_update().then_some(event.kind.as_str()),
            Self::Debug => Some(&event.kind),
            Self::Both if event.is_update() => Some(UPDATES),
            Self::Both => Some(DEBUG),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_alone_or_together() {
        assert_eq!(Modes::read(None).unwrap(), Modes::Updates);
        assert_eq!(Modes::read(Some("debug")).unwrap(), Modes::Debug);
        assert_eq!(Modes::read(Some("debug,updates")).unwrap(), Modes::Both);
        for other in ["", "values", "messages", "updates,", "updates,values", "Debug", "updates debug"] {
            assert!(Modes::read(Some(other)).is_err(), "{other}");
        }
    }
}
