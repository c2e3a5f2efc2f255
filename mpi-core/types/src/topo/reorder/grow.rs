//! Graph growing: for each unit of the machine, grows a connected part of the graph.
//! The part begins with the first free vertex.
//! The next vertex is always the one with the heaviest edges to the part.

use super::{LEVELS, Place, Wires};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Returns the vertices in the order of `slots`, the sorted locations of the processes.
pub fn order(wires: &Wires, slots: &[Place]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..slots.len() as u32).collect();
    let mut field = Field {
        wires,
        inside: vec![false; slots.len()],
        far: vec![u32::MAX; slots.len()],
    };
    field.share_out(&mut order, slots, 0);
    order
}

struct Field<'a> {
    wires: &'a Wires,
    /// True for a vertex of the unit being divided that is not yet assigned to a smaller unit.
    inside: Vec<bool>,
    /// The length of the shortest path to each vertex, in edges,
    /// from the first vertex of the growing part.
    far: Vec<u32>,
}

impl Field<'_> {
    /// Distributes the vertices over the units of a level,
    /// then recursively over their smaller units.
    fn share_out(&mut self, vertices: &mut [u32], slots: &[Place], level: usize) {
        if level == LEVELS {
            return;
        }
        let parts: Vec<usize> = slots
            .chunk_by(|a, b| a[level] == b[level])
            .map(<[_]>::len)
            .collect();
        if parts.len() > 1 {
            self.grow_all(vertices, &parts);
        }
        let mut from = 0;
        for part in parts {
            let part = from..from + part;
            from = part.end;
            self.share_out(&mut vertices[part.clone()], &slots[part], level + 1);
        }
    }

    /// Orders the vertices so that the vertices of each unit are consecutive.
    /// `parts` contains the number of vertices of each unit.
    fn grow_all(&mut self, vertices: &mut [u32], parts: &[usize]) {
        let mut order = Vec::with_capacity(vertices.len());
        for vertex in vertices.iter() {
            self.inside[*vertex as usize] = true;
        }
        for part in parts {
            let end = order.len() + part;
            let mut free = vertices.iter().copied();
            while order.len() < end {
                // If the graph is not connected, a part may need several first vertices.
                let Some(start) = free.find(|v| self.inside[*v as usize]) else {
                    break;
                };
                self.grow(start, end, &mut order);
            }
            // The vertices of a part are sorted, so that a rank keeps its process if possible.
            order[end - part..].sort_unstable();
        }
        vertices.copy_from_slice(&order);
    }

    /// Assigns vertices, beginning with `start`, until `order` has `end`
    /// of them or no free vertex is connected to the part.
    fn grow(&mut self, start: u32, end: usize, order: &mut Vec<u32>) {
        self.measure(start);
        let mut pull = vec![0; self.far.len()];
        // Order: the heaviest edges, then nearest to `start`, then the lowest vertex number.
        let mut next = BinaryHeap::from([(0, Reverse(0), Reverse(start))]);
        while order.len() < end {
            let Some((weight, _, Reverse(vertex))) = next.pop() else {
                return;
            };
            let at = vertex as usize;
            // An outdated entry: the vertex has been assigned,
            // or the weight of its edges has grown.
            if !self.inside[at] || weight != pull[at] {
                continue;
            }
            self.inside[at] = false;
            order.push(vertex);
            for &(to, weight) in self.wires.of(vertex) {
                if self.inside[to as usize] {
                    let pull = &mut pull[to as usize];
                    *pull += weight;
                    next.push((*pull, Reverse(self.far[to as usize]), Reverse(to)));
                }
            }
        }
    }

    /// Computes for each free vertex the number of edges of the shortest path from `start`.
    fn measure(&mut self, start: u32) {
        self.far.fill(u32::MAX);
        self.far[start as usize] = 0;
        let mut next = VecDeque::from([start]);
        while let Some(vertex) = next.pop_front() {
            let further = self.far[vertex as usize] + 1;
            for &(to, _) in self.wires.of(vertex) {
                let far = &mut self.far[to as usize];
                if self.inside[to as usize] && *far == u32::MAX {
                    *far = further;
                    next.push_back(to);
                }
            }
        }
    }
}
