//! How many streams are open: of the node, and of each tenant. A stream holds a seat for as long as it lives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api::error::{Problem, Result};
use crate::config::ApiConfig;

#[derive(Debug, Default)]
pub struct Seats(Mutex<HashMap<String, usize>>);

/// Free again when it is dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    tenant: String,
}

impl Seats {
    /// A seat for one more stream of the tenant; refused at a limit.
    pub fn take(self: &Arc<Self>, tenant: &str, config: &ApiConfig) -> Result<Seat> {
        let mut taken = self.taken();
        if taken.values().sum::<usize>() >= config.max_streams {
            return Err(Problem::rate_limited(format!(
                "this server has {} open streams of events, which is the limit",
                config.max_streams
            )));
        }
        let own = taken.get(tenant).copied().unwrap_or(0);
        if own >= config.max_tenant_streams {
            return Err(Problem::rate_limited(format!("{own} streams of events are open, which is the limit")));
        }
        taken.insert(tenant.to_owned(), own + 1);
        Ok(Seat { seats: self.clone(), tenant: tenant.to_owned() })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        let Some(own) = taken.get_mut(&self.tenant) else { return };
        *own -= 1;
        if *own == 0 {
            taken.remove(&self.tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_free_again_when_its_stream_is_gone() {
        let seats = Arc::new(Seats::default());
        let config = ApiConfig { max_streams: 3, max_tenant_streams: 2, ..ApiConfig::default() };
        let (first, _second) = (seats.take("a", &config).unwrap(), seats.take("a", &config).unwrap());
        assert!(seats.take("a", &config).is_err(), "its own limit");
        let other = seats.take("b", &config).unwrap();
        assert!(seats.take("c", &config).is_err(), "the limit of all");
        drop(other);
        assert_eq!(seats.taken().len(), 1, "nothing is left behind");
        drop(first);
        assert!(seats.take("a", &config).is_ok());
    }
}
