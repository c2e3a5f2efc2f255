//! Reordering of ranks: a mapping of topology vertices to processes
//! that places neighbours near each other (MPI 5.0, section 8.2).
//!
//! A machine is a tree of units: nodes, packages, memory nodes, cores, hardware threads.
//! The distance of two processes is given by the level of the largest unit that they do not share.
//! The cost of a layout is the sum over the topology's edges of weight times distance.
//! The cheapest of three layouts is used:
//! * the current order, which is kept unless another is cheaper;
//! * for a grid on units of equal size, a box of the grid for each unit, recursively (`blocks`);
//! * for any graph, a subgraph grown for each unit of the machine (`grow`).
//!
//! The two computed layouts are improved by exchanges (`exchange`).
//! The result depends only on the arguments, so processes with the same
//! arguments compute the same layout without communication.
//!
//! Sources: W. Gropp, "Using node and socket information to implement MPI Cartesian topologies",
//! Parallel Computing 85 (2019), for the boxes;
//! B. Kernighan and S. Lin, "An efficient heuristic procedure for partitioning graphs", Bell System
//! Technical Journal 49 (1970), for the exchanges.

mod blocks;
mod exchange;
mod grow;
#[cfg(test)]
mod tests;
mod wires;

use super::Cart;
pub use wires::Wires;

/// Number of levels of the machine, from the largest unit to the smallest:
/// node, package, memory node, core, hardware thread.
pub const LEVELS: usize = 5;

/// The location of a process in the machine:
/// for each level, the number of the unit that contains the process.
/// The numbers are unique among the units of a level.
///
/// Processes that are not bound to one unit of a level share a number that identifies no unit.
pub type Place = [u64; LEVELS];

/// The distance of two processes, by the level of the largest unit that they do not share.
const FAR: [u64; LEVELS] = [10_000, 1_000, 100, 10, 1];

/// Returns the level of the largest unit that two locations do not share; `None` if they are equal.
fn apart(a: &Place, b: &Place) -> Option<usize> {
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// Returns the distance of two locations.
fn distance(a: &Place, b: &Place) -> u64 {
    apart(a, b).map_or(0, |level| FAR[level])
}

/// Returns the process of each topology vertex. Only the first processes are used, one per vertex.
///
/// `grid` is the topology if it is Cartesian.
/// The current order is kept unless a computed layout is cheaper.
pub fn reorder(wires: &Wires, grid: Option<&Cart>, places: &[Place]) -> Vec<u32> {
    let as_they_are: Vec<u32> = (0..wires.vertices() as u32).collect();
    // The caller has checked that the topology fits its communicator.
    let Some(places) = places.get(..wires.vertices()) else {
        return as_they_are;
    };
    if places.iter().all(|place| place == &places[0]) {
        return as_they_are;
    }
    // `by_place` and `slots` are sorted by location, so the processes of a unit are consecutive.
    let mut by_place = as_they_are.clone();
    by_place.sort_by_key(|process| places[*process as usize]);
    let slots: Vec<Place> = by_place.iter().map(|p| places[*p as usize]).collect();
    let boxes = grid.and_then(|grid| blocks::order(grid, &slots));
    let found = [boxes, Some(grow::order(wires, &slots))];
    let mut best = (wires.cost(&as_they_are, places), as_they_are);
    for order in found.into_iter().flatten() {
        // `order` has the vertex of each location; `layout` has the process of each vertex.
        let mut layout = vec![0; order.len()];
        for (vertex, process) in order.iter().zip(&by_place) {
            layout[*vertex as usize] = *process;
        }
        exchange::improve(&mut layout, &by_place, wires, places);
        let cost = wires.cost(&layout, places);
        if cost < best.0 {
            best = (cost, layout);
        }
    }
    best.1
}
