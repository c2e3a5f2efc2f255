//! Growing a part of a graph for each part of a machine: from the first free vertex, always what hangs most on what is there.

use super::{LEVELS, Place, Wires};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The vertices in the order of seats, which are in the order of the machine.
pub fn order(wires: &Wires, seats: &[Place]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..seats.len() as u32).collect();
    let mut field = Field {
        wires,
        inside: vec![false; seats.len()],
        far: vec![u32::MAX; seats.len()],
    };
    field.share_out(&mut order, seats, 0);
    order
}

struct Field<'a> {
    wires: &'a Wires,
    /// Which vertices are still to be shared out at this level of this part.
    inside: Vec<bool>,
    /// How many edges each vertex is from the first of the part that grows.
    far: Vec<u32>,
}

impl Field<'_> {
    /// Puts vertices that have these seats in order, by the parts of a level and all smaller ones.
    fn share_out(&mut self, vertices: &mut [u32], seats: &[Place], level: usize) {
        if level == LEVELS {
            return;
        }
        let parts: Vec<usize> = seats
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
            self.share_out(&mut vertices[part.clone()], &seats[part], level + 1);
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
                // More than one start where a part of the graph hangs on nothing else.
                let Some(start) = free.find(|v| self.inside[*v as usize]) else {
                    break;
                };
                self.grow(start, end, &mut order);
            }
            // In a part of its own order the vertices rise again, so that ranks that may stay do.
            order[end - part..].sort_unstable();
        }
        vertices.copy_from_slice(&order);
    }

    /// Takes vertices out of the field, from `start` on, until there are `end` in `order` or nothing hangs on them.
    fn grow(&mut self, start: u32, end: usize, order: &mut Vec<u32>) {
        self.measure(start);
        let mut pull = vec![0; self.far.len()];
        // Heaviest first, then nearest to the start, then first.
        let mut next = BinaryHeap::from([(0, Reverse(0), Reverse(start))]);
        while order.len() < end {
            let Some((weight, _, Reverse(vertex))) = next.pop() else {
                return;
            };
            let at = vertex as usize;
            // What is stored is as old as the vertex's last neighbour but one.
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

    /// How many edges it is from `start` to each vertex of the field.
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
