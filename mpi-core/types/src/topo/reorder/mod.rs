//! Reordering: which process takes which place of a topology, so that neighbours are near each other (MPI 5.0, section 8.2).
//!
//! A machine is a tree: nodes, packages, memory nodes, cores, hardware threads; two processes are as far from each other as the largest part that they do not share.
//! A layout of ranks costs, for each edge of the topology, its weight times that distance. Three are made and the cheapest is taken:
//! * the order that the ranks have, which is kept unless another is cheaper;
//! * for a grid on parts of equal size, a box of it for each part, and so on within it ([`blocks`]);
//! * for any graph, a part of it grown for each part of the machine ([`grow`]).
//!
//! What is grown is improved by exchanges ([`exchange`]).
//! The result follows from the arguments alone, so processes that know the same come to the same layout without a word.
//!
//! After W. Gropp, "Using node and socket information to implement MPI Cartesian topologies", Parallel Computing 85 (2019), for the boxes, and
//! B. Kernighan and S. Lin, "An efficient heuristic procedure for partitioning graphs", Bell System Technical Journal 49 (1970), for the exchanges.

mod blocks;
mod exchange;
mod grow;
#[cfg(test)]
mod tests;
mod wires;

use super::Cart;
pub use wires::Wires;

/// Kinds of parts, from the largest to the smallest: node, package, memory node, core, hardware thread.
pub const LEVELS: usize = 5;

/// Where a process is: of each kind the part that it is in, by a number that no other part of the kind has.
///
/// Processes that may leave a part are together in one of their own.
pub type Place = [u64; LEVELS];

/// How far processes are from each other that share no part from this level on.
const FAR: [u64; LEVELS] = [10_000, 1_000, 100, 10, 1];

/// The largest kind of part that two places do not share, if there is one.
fn apart(a: &Place, b: &Place) -> Option<usize> {
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// How far it is from one place to another.
fn distance(a: &Place, b: &Place) -> u64 {
    apart(a, b).map_or(0, |level| FAR[level])
}

/// By vertex of the topology, the process that takes it: one of the first as many as there are vertices.
///
/// `grid` is the topology if it is Cartesian; the order stays where it is as good as any that was found.
pub fn reorder(wires: &Wires, grid: Option<&Cart>, places: &[Place]) -> Vec<u32> {
    let as_they_are: Vec<u32> = (0..wires.vertices() as u32).collect();
    // The caller has fitted the topology into its communicator.
    let Some(places) = places.get(..wires.vertices()) else {
        return as_they_are;
    };
    if places.iter().all(|place| place == &places[0]) {
        return as_they_are;
    }
    // From here on processes are in the order of the machine, those of one part together.
    let mut by_place = as_they_are.clone();
    by_place.sort_by_key(|process| places[*process as usize]);
    let seats: Vec<Place> = by_place.iter().map(|p| places[*p as usize]).collect();
    let boxes = grid.and_then(|grid| blocks::order(grid, &seats));
    let found = [boxes, Some(grow::order(wires, &seats))];
    let mut best = (wires.cost(&as_they_are, places), as_they_are);
    for order in found.into_iter().flatten() {
        // An order names the vertex of each seat; a layout the process of each vertex.
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
