//! Graph growing: for each part of the machine, grows a connected part of the graph from its first free vertex, always adding the vertex
//! with the heaviest edges to the part.

use super::{LEVELS, Place, Wires};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Returns the vertices in the order of `slots`, which are in the order of the machine.
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
    /// True for a vertex of the part being divided that is not assigned to a smaller part yet.
    inside: Vec<bool>,
    /// The number of edges from the first vertex of the growing part.
    far: Vec<u32>,
}

impl Field<'_> {
    /// Orders the vertices of these slots by the parts of a level, then recursively by the smaller parts.
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

    /// Orders vertices so that parts of these sizes follow each other.
    fn grow_all(&mut self, vertices: &mut [u32], parts: &[usize]) {
        let mut order = Vec::with_capacity(vertices.len());
        for vertex in vertices.iter() {
            self.inside[*vertex as usize] = true;
        }
        for part in parts {
            let end = order.len() + part;
            let mut free = vertices.iter().copied();
            while order.len() < end {
                // A part needs several starts if the graph is not connected.
                let Some(start) = free.find(|v| self.inside[*v as usize]) else {
                    break;
                };
                self.grow(start, end, &mut order);
            }
            // Inside a part the vertices are sorted, so that a rank keeps its process where possible.
            order[end - part..].sort_unstable();
        }
        vertices.copy_from_slice(&order);
    }

    /// Assigns vertices, from `start` on, until `order` has `end` of them or none is connected.
    fn grow(&mut self, start: u32, end: usize, order: &mut Vec<u32>) {
        self.measure(start);
        let mut pull = vec![0; self.far.len()];
        // Ordered by: heaviest, then nearest to the start, then lowest number.
        let mut next = BinaryHeap::from([(0, Reverse(0), Reverse(start))]);
        while order.len() < end {
            let Some((weight, _, Reverse(vertex))) = next.pop() else {
                return;
            };
            let at = vertex as usize;
            // The entry is outdated: the vertex has been assigned, or its weight has grown.
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

    /// Computes the number of edges from `start` to each unassigned vertex.
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
