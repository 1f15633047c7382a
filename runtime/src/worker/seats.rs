//! Who has how many of this node's places, and how many more each may have. Places are shared fairly when one becomes
//! free; that helps nobody while one tenant has them all for a minute. So a part of what other tenants leave stays free for
//! whoever comes next. It must never cost a statement: each node counts for itself what it runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::HostConfig;
use crate::store::lease::Rooms;

#[derive(Debug)]
pub struct Seats {
    places: usize,
    reserved_percent: usize,
    /// The tenants that have any.
    taken: Mutex<HashMap<String, usize>>,
}

/// One place of a tenant, until it is dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    tenant: String,
}

impl Seats {
    pub fn new(config: &HostConfig) -> Arc<Self> {
        let (places, reserved_percent) = (config.max_instances as usize, config.reserved_percent as usize);
        Arc::new(Self { places, reserved_percent, taken: Mutex::default() })
    }

    pub fn take(self: &Arc<Self>, tenant: &str) -> Seat {
        *self.lock().entry(tenant.to_owned()).or_default() += 1;
        Seat { seats: self.clone(), tenant: tenant.to_owned() }
    }

    /// How many more places each tenant may have.
    pub fn rooms(&self) -> Rooms {
        let taken = self.lock();
        let all: usize = taken.values().sum();
        let rooms: BTreeMap<_, _> =
            taken.iter().map(|(tenant, own)| (tenant.clone(), self.room(all - own, *own))).collect();
        Rooms { of: rooms, others: self.room(all, 0) }
    }

    /// Whether a tenant may have another place.
    pub fn has_room(&self, tenant: &str) -> bool {
        let taken = self.lock();
        let own = taken.get(tenant).copied().unwrap_or(0);
        self.room(taken.values().sum::<usize>() - own, own) > 0
    }

    fn room(&self, of_others: usize, own: usize) -> usize {
        let left = self.places.saturating_sub(of_others);
        (left - left * self.reserved_percent / 100).saturating_sub(own)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        if let Some(own) = taken.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(max_instances: u32, reserved_percent: u32) -> Arc<Seats> {
        Seats::new(&HostConfig { max_instances, reserved_percent, ..HostConfig::default() })
    }

    /// Takes all that a tenant may have.
    fn fill(seats: &Arc<Seats>, tenant: &str) -> Vec<Seat> {
        let mut taken = Vec::new();
        while seats.has_room(tenant) {
            taken.push(seats.take(tenant));
        }
        taken
    }

    #[test]
    fn whoever_comes_next_finds_a_place() {
        let seats = seats(64, 25);
        let first = fill(&seats, "a");
        let second = fill(&seats, "b");
        let third = fill(&seats, "c");
        assert_eq!([first.len(), second.len(), third.len()], [48, 12, 3]);
        let rooms = seats.rooms();
        assert_eq!((rooms.room("a"), rooms.room("c"), rooms.room("d")), (0, 0, 1));
        drop(first);
        assert_eq!((seats.rooms().room("b"), seats.rooms().others), (34, 37));
    }

    #[test]
    fn few_places_and_a_node_of_ones_own_have_no_reserve() {
        for (places, percent, most) in [(1, 25, 1), (3, 25, 3), (4, 25, 3), (16, 25, 12), (16, 0, 16), (16, 90, 2)] {
            assert_eq!(fill(&seats(places, percent), "a").len(), most, "{places} places, {percent} percent");
        }
    }
}
