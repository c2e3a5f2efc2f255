//! Software barrier algorithms; each defines the operations of one node among `nodes` nodes.
//!
//! Hoefler, Mehlan, Mietke and Rehm, "A Survey of Barrier Algorithms for Coarse Grained Supercomputers"
//! (Chemnitzer Informatik-Berichte CSR-04-03, 2004), describe and compare these algorithms.

use super::schedule::{Act, BadSchedule, Schedule};

/// The algorithm of a software barrier.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// The algorithm's name in tables.
    pub name: &'static str,
    /// The publication that describes the algorithm.
    pub source: &'static str,
    /// Returns a node's operations; the arguments are the node's number and the number of nodes.
    acts: fn(usize, usize) -> Vec<Act>,
}

impl Algorithm {
    /// Returns the schedule for `nodes` nodes.
    pub fn schedule(&self, nodes: usize) -> Result<Schedule, BadSchedule> {
        Schedule::new((0..nodes).map(|node| (self.acts)(node, nodes)).collect())
    }
}

/// All algorithms, those with the fastest growing latency first.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "central counter",
        source: "the root counts messages and answers each",
        acts: central_counter,
    },
    Algorithm {
        name: "binomial tree",
        source: "as the tournament of Hensgen, Finkel and Manber 1988, with static winners",
        acts: binomial_tree,
    },
    Algorithm {
        name: "MCS tree",
        source: "Mellor-Crummey and Scott 1991: four children arrive, two are woken",
        acts: mcs_tree,
    },
    Algorithm {
        name: "butterfly",
        source: "Brooks 1986, with nodes beyond the power of two folded in",
        acts: butterfly,
    },
    Algorithm {
        name: "dissemination",
        source: "Hensgen, Finkel and Manber 1988",
        acts: |node, nodes| dissemination(node, nodes, 1),
    },
    Algorithm {
        name: "3-way dissemination",
        source: "Hoefler, Mehlan, Mietke and Rehm 2006",
        acts: |node, nodes| dissemination(node, nodes, 3),
    },
];

fn central_counter(node: usize, nodes: usize) -> Vec<Act> {
    if node > 0 {
        return vec![Act::Send(0), Act::Receive(vec![0])];
    }
    let mut acts = vec![Act::Receive((1..nodes).collect())];
    acts.extend((1..nodes).map(Act::Send));
    acts
}

/// Returns the operations of a node of a tree barrier:
/// arrivals are sent up one tree, the release is sent down another tree.
fn tree(
    parent: Option<usize>,
    arrive: Vec<usize>,
    waker: Option<usize>,
    wake: Vec<usize>,
) -> Vec<Act> {
    let mut acts = vec![Act::Receive(arrive)];
    acts.extend(parent.map(Act::Send));
    acts.extend(waker.map(|waker| Act::Receive(vec![waker])));
    acts.extend(wake.into_iter().map(Act::Send));
    acts
}

fn binomial_tree(node: usize, nodes: usize) -> Vec<Act> {
    // The parent's number is the node's number with its lowest set bit cleared.
    // A child's number has one additional bit set, below the node's lowest set bit.
    let lowest = if node == 0 {
        nodes.next_power_of_two()
    } else {
        node & node.wrapping_neg()
    };
    let steps = (0..usize::BITS).map(|bit| 1usize << bit);
    let children: Vec<_> = steps
        .take_while(|&step| step < lowest)
        .map(|step| node + step)
        .filter(|&child| child < nodes)
        .collect();
    let parent = (node > 0).then_some(node - (node & node.wrapping_neg()));
    // The child with the largest subtree is woken first, because its path is the longest.
    let wake = children.iter().rev().copied().collect();
    tree(parent, children, parent, wake)
}

fn mcs_tree(node: usize, nodes: usize) -> Vec<Act> {
    let children = |ways: usize| -> Vec<usize> {
        (1..=ways)
            .map(|way| ways * node + way)
            .filter(|&child| child < nodes)
            .collect()
    };
    let parent = |ways: usize| (node > 0).then(|| (node - 1) / ways);
    tree(parent(4), children(4), parent(2), children(2))
}

fn butterfly(node: usize, nodes: usize) -> Vec<Act> {
    let power = 1 << nodes.ilog2();
    if node >= power {
        return vec![Act::Send(node - power), Act::Receive(vec![node - power])];
    }
    let folded = (node + power < nodes).then_some(node + power);
    let mut acts = Vec::new();
    acts.extend(folded.map(|folded| Act::Receive(vec![folded])));
    for round in 0..nodes.ilog2() {
        let partner = node ^ 1 << round;
        acts.extend([Act::Send(partner), Act::Receive(vec![partner])]);
    }
    acts.extend(folded.map(Act::Send));
    acts
}

/// Returns the operations of a node of a dissemination barrier:
/// in each round a node sends to `ways` nodes and receives from `ways` nodes;
/// the distances grow by the factor `ways + 1` per round.
fn dissemination(node: usize, nodes: usize, ways: usize) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut distance = 1;
    while distance < nodes {
        // The last round leaves out distances of `nodes` and more,
        // so that no node is notified twice.
        let distances: Vec<_> = (1..=ways)
            .map(|way| way * distance)
            .filter(|&far| far < nodes)
            .collect();
        acts.extend(distances.iter().map(|far| Act::Send((node + far) % nodes)));
        let from = distances.iter().map(|far| (node + nodes - far) % nodes);
        acts.push(Act::Receive(from.collect()));
        distance *= ways + 1;
    }
    acts
}
