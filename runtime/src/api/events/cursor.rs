//! The ids of events, which are where to go on: opaque to callers. Their lengths tell those of a run from those of a tenant.

use data_encoding::BASE64URL_NOPAD;

use crate::api::error::{Problem, Result};
use crate::store::event::{Place, Position};

pub fn of_run(position: Position) -> String {
    let place = position.place.unwrap_or(Place::START);
    encode([position.sequence, place.turn, place.event_id])
}

pub fn of_tenant(place: Place) -> String {
    encode([place.turn, place.event_id])
}

/// The position within a run that an id names.
pub fn position(id: &str) -> Result<Position> {
    let [sequence, turn, event_id] = decode(id)?;
    let place = checked(Place { turn, event_id })?;
    if sequence < 0 {
        return Err(unknown());
    }
    // Nothing was read, and so nothing has a place.
    Ok(Position { sequence, place: (sequence > 0).then_some(place) })
}

/// The place among the events of a tenant that an id names.
pub fn place(id: &str) -> Result<Place> {
    let [turn, event_id] = decode(id)?;
    checked(Place { turn, event_id })
}

/// The turn before the first event is -1; nothing else is below zero.
fn checked(place: Place) -> Result<Place> {
    if place.turn >= -1 && place.event_id >= 0 { Ok(place) } else { Err(unknown()) }
}

pub fn unknown() -> Problem {
    Problem::validation("the id of the last event must be one that this stream has given: begin without one")
}

fn encode<const N: usize>(numbers: [i64; N]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    BASE64URL_NOPAD.encode(&bytes)
}

fn decode<const N: usize>(id: &str) -> Result<[i64; N]> {
    read(id).ok_or_else(unknown)
}

fn read<const N: usize>(id: &str) -> Option<[i64; N]> {
    let bytes = BASE64URL_NOPAD.decode(id.as_bytes()).ok()?;
    let (numbers, []) = bytes.as_chunks::<8>() else { return None };
    let numbers: Vec<i64> = numbers.iter().map(|number| i64::from_be_bytes(*number)).collect();
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_back_to_its_place() {
        let (there, unread) = (Place { turn: 7, event_id: i64::MAX }, Position::behind(0));
        let read = Position { sequence: 3, place: Some(there) };
        assert_eq!(position(&of_run(read)).unwrap(), read);
        assert_eq!(position(&of_run(unread)).unwrap(), unread);
        assert_eq!(place(&of_tenant(there)).unwrap(), there);
        assert_eq!(place(&of_tenant(Place::START)).unwrap(), Place::START);
    }

    #[test]
    fn what_no_stream_has_given_is_refused() {
        let (run, tenant) = (of_run(Position::behind(0)), of_tenant(Place::START));
        assert!(place(&run).is_err() && position(&tenant).is_err());
        for wrong in ["", "x", "AAAA", &tenant[1..], &format!("{tenant}="), &encode([-2, 0]), &encode([0, -1])] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
        for wrong in [[-1, 0, 0], [1, -2, 0], [0, -1, -1]] {
            assert!(position(&encode(wrong)).is_err(), "{wrong:?}");
        }
    }
}
