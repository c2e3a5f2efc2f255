//! Improvement of a layout: exchanges the processes of two vertices
//! (Kernighan and Lin) until no exchange reduces the cost.

use super::{Place, Wires, apart};

/// Maximum number of exchanges that are evaluated. The time of one evaluation is proportional to
/// the number of neighbours of the two vertices.
const LOOKS: usize = 1 << 20;

/// For a vertex with a distant neighbour, tries to exchange the vertex's
/// process with each process near the neighbour's process.
///
/// `by_place` has all processes, sorted by their location in the machine.
pub fn improve(layout: &mut [u32], by_place: &[u32], wires: &Wires, places: &[Place]) {
    let place = |process: u32| &places[process as usize];
    let mut vertex_of = vec![0; layout.len()];
    for (vertex, process) in (0..).zip(layout.iter()) {
        vertex_of[*process as usize] = vertex;
    }
    let mut looks = 0;
    let mut better = true;
    while better {
        better = false;
        for vertex in 0..layout.len() as u32 {
            for &(neighbour, _) in wires.of(vertex) {
                let there = *place(layout[neighbour as usize]);
                let Some(level) = apart(&there, place(layout[vertex as usize])) else {
                    continue;
                };
                // Any process in the neighbour's unit of this level is nearer
                // to the neighbour than the current process.
                let part = |process: u32| &place(process)[..=level];
                let from = by_place.partition_point(|process| *part(*process) < there[..=level]);
                let beside = by_place[from..].iter();
                for process in beside.take_while(|process| *part(**process) == there[..=level]) {
                    if looks == LOOKS {
                        return;
                    }
                    looks += 1;
                    let other = vertex_of[*process as usize];
                    if is_cheaper(vertex, other, layout, wires, places) {
                        layout.swap(vertex as usize, other as usize);
                        for moved in [vertex, other] {
                            vertex_of[layout[moved as usize] as usize] = moved;
                        }
                        better = true;
                        break;
                    }
                }
            }
        }
    }
}

/// Returns true if exchanging the processes of two vertices reduces the cost.
fn is_cheaper(a: u32, b: u32, layout: &[u32], wires: &Wires, places: &[Place]) -> bool {
    let both = |of_a: u32, of_b: u32| {
        let (a, b) = (
            wires.cost_of(a, of_a, layout, places),
            wires.cost_of(b, of_b, layout, places),
        );
        a.saturating_add(b)
    };
    both(b, a) < both(a, b)
}
