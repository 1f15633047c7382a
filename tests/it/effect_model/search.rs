//! Ways through the model: all of them, shortest first, up to a bound; or one that is drawn.

use std::collections::HashMap;

use super::ledger::{Fault, Setup};
use super::world::{Move, World};

/// A fault and the shortest way to it.
#[derive(Debug)]
pub struct Found {
    pub fault: Fault,
    #[allow(dead_code, reason = "printed when a test fails")]
    pub path: Vec<Move>,
}

/// All worlds that were seen, in the order of their distance from the start.
pub struct Explored {
    pub worlds: Vec<World>,
    /// Nothing was left out.
    pub complete: bool,
}

/// Visits every world within `max_worlds`, and stops at the first fault.
pub fn explore(setup: &Setup, max_worlds: usize) -> Result<Explored, Found> {
    let mut worlds = vec![World::default()];
    let mut ways: Vec<Option<(usize, Move)>> = vec![None];
    let mut seen = HashMap::from([(World::default(), 0)]);
    let mut at = 0;
    while at < worlds.len() && worlds.len() < max_worlds {
        let world = worlds[at];
        for step in world.moves(setup) {
            let next = world.after(setup, step).map_err(|fault| Found { fault, path: way_to(&ways, at, step) })?;
            if seen.insert(next, worlds.len()).is_none() {
                worlds.push(next);
                ways.push(Some((at, step)));
            }
        }
        at += 1;
    }
    let complete = at == worlds.len();
    Ok(Explored { worlds, complete })
}

/// Takes the steps that `choices` draw from what is possible.
pub fn walk(setup: &Setup, choices: &[u16]) -> Result<World, Found> {
    let mut world = World::default();
    let mut path = Vec::new();
    for choice in choices {
        let moves = world.moves(setup);
        let Some(step) = moves.get(usize::from(*choice) % moves.len().max(1)) else { break };
        path.push(*step);
        world = world.after(setup, *step).map_err(|fault| Found { fault, path: path.clone() })?;
    }
    Ok(world)
}

fn way_to(ways: &[Option<(usize, Move)>], mut at: usize, last: Move) -> Vec<Move> {
    let mut path = vec![last];
    while let Some((before, step)) = ways[at] {
        path.push(step);
        at = before;
    }
    path.reverse();
    path
}
