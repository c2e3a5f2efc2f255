//! Tests of a node that reboots during a barrier: it can release the plain toggle barrier early, but not the returning barrier.
//!
//! The board is the cycle-accurate model. A rebooting node loses its program state, and its wire falls low.

use barrier_driver::{ReturningBarrier, ToggleBarrier};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin, PinState};
use fpga_model::ToggleMachine;
use proptest::prelude::*;
use std::cell::RefCell;
use std::convert::Infallible;
use std::mem::forget;
use std::rc::Rc;
use std::time::Duration;

const NODES: usize = 4;
/// A limit that is never reached, because all waits of the test succeed quickly.
const LIMIT: Duration = Duration::from_secs(30);

struct Board {
    machine: ToggleMachine,
    inputs: u64,
}

#[derive(Clone)]
struct Wire {
    board: Rc<RefCell<Board>>,
    node: usize,
}

impl Wire {
    fn set(&self, high: bool) {
        let bit = 1 << self.node;
        let inputs = &mut self.board.borrow_mut().inputs;
        *inputs = if high { *inputs | bit } else { *inputs & !bit };
    }
}

impl ErrorType for Wire {
    type Error = Infallible;
}

impl OutputPin for Wire {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.set(true);
        Ok(())
    }
}

impl InputPin for Wire {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.board.borrow().machine.outputs() != 0)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}

fn wires() -> Vec<Wire> {
    let machine = ToggleMachine::new(NODES).expect("a legal node count");
    let board = Rc::new(RefCell::new(Board { machine, inputs: 0 }));
    let wire = |node| Wire {
        board: board.clone(),
        node,
    };
    (0..NODES).map(wire).collect()
}

fn clock(wire: &Wire, edges: u64) {
    let mut board = wire.board.borrow_mut();
    let inputs = board.inputs;
    board.machine.fast_forward(inputs, edges);
}

fn open(wire: &Wire) -> ToggleBarrier<Wire, Wire> {
    ToggleBarrier::open(wire.clone(), wire.clone(), || Ok::<_, Infallible>(())).expect("idle")
}

fn returning(wire: &Wire) -> ReturningBarrier<Wire, Wire> {
    ReturningBarrier::over(open(wire), PinState::Low, || (), LIMIT).expect("the board is at rest")
}

/// The hazard for which the returning barrier exists; this test would fail if the plain toggle barrier no longer had it.
#[test]
fn a_reboot_on_the_way_down_releases_the_plain_toggle_early() {
    let wires = wires();
    let mut nodes: Vec<_> = wires.iter().map(open).collect();
    nodes.iter_mut().for_each(|node| node.enter().expect("out"));
    clock(&wires[0], 10);
    for node in &mut nodes {
        assert!(node.poll().expect("a poll").is_ready());
    }
    // The second barrier: all nodes but the last enter, and the last one reboots.
    let last = nodes.pop().expect("a node");
    nodes.iter_mut().for_each(|node| node.enter().expect("out"));
    forget(last);
    wires[NODES - 1].set(false);
    clock(&wires[0], 10);
    assert!(
        nodes[0].poll().expect("a poll").is_ready(),
        "released by the reboot"
    );
}

#[test]
fn a_returning_barrier_passes_and_can_be_entered_again_at_once() {
    let wires = wires();
    let mut nodes: Vec<_> = wires.iter().map(returning).collect();
    for _ in 0..50 {
        nodes.iter_mut().for_each(|node| node.enter().expect("out"));
        // The first poll drives the wire away from rest, the second finds the release; the clock runs in between.
        for _ in 0..2 {
            clock(&wires[0], 10);
            nodes.iter_mut().for_each(|node| {
                let _ = node.poll().expect("a poll");
            });
        }
        assert!(nodes.iter().all(|node| !node.is_entered()));
    }
}

#[test]
fn a_board_that_idles_at_the_other_level_is_brought_to_rest_first() {
    let wires = wires();
    // Initial state: a barrier has been passed before, so all wires are high.
    wires.iter().for_each(|wire| wire.set(true));
    clock(&wires[0], 10);
    let opened: Vec<_> = wires.iter().map(open).collect();
    assert!(opened.iter().all(|node| node.level() == PinState::High));
    // All nodes lower their wires; in this test the last node does so after all others.
    opened.into_iter().for_each(forget);
    wires[..NODES - 1].iter().for_each(|wire| wire.set(false));
    let last = open(&wires[NODES - 1]);
    let over = ReturningBarrier::over(last, PinState::Low, || clock(&wires[0], 1), LIMIT);
    over.expect("all wires are low").close().expect("still");
    assert_eq!(open(&wires[NODES - 1]).level(), PinState::Low);
}

#[derive(Debug, Clone)]
enum Step {
    Clock(u64),
    /// The node enters if it is in no barrier, and otherwise polls.
    Act(usize),
    Reboot(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..5u64).prop_map(Step::Clock),
        12 => (0..NODES).prop_map(Step::Act),
        1 => (0..NODES).prop_map(Step::Reboot),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_node_is_released_by_a_reboot(steps in prop::collection::vec(step(), 1..300)) {
        let wires = wires();
        let mut nodes: Vec<_> = wires.iter().map(|wire| Some(returning(wire))).collect();
        let (mut entered, mut left) = ([0u32; NODES], [0u32; NODES]);
        for step in steps {
            match step {
                Step::Clock(edges) => clock(&wires[0], edges),
                Step::Act(node) => {
                    let Some(barrier) = &mut nodes[node] else { continue };
                    if !barrier.is_entered() {
                        barrier.enter().expect("out");
                        entered[node] += 1;
                    } else if barrier.poll().expect("a poll").is_ready() {
                        left[node] += 1;
                        let reached = entered.iter().all(|&count| count >= left[node]);
                        prop_assert!(reached, "node {node} left barrier {}, entered: {entered:?}", left[node]);
                    }
                }
                Step::Reboot(node) => {
                    if let Some(program) = nodes[node].take() {
                        forget(program);
                    }
                    wires[node].set(false);
                }
            }
        }
        nodes.into_iter().flatten().for_each(forget);
    }
}
