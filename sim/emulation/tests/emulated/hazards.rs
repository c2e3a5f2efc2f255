//! Tests of faults of wires and nodes, with the real driver at emulated ports:
//! each fault is reported with an error message or tolerated,
//! and no node leaves a barrier that another node has not entered.
//!
//! All nodes start as a job does: they open the ports, compare the idle levels,
//! test the wires and pass some barriers.

use crate::rigs::{board, free_base, usual};
use barrier_board::live::{Board, Wires};
use barrier_driver::ports::{self, BoxedIn, BoxedOut};
use barrier_driver::{ReturningBarrier, SelfTest, ToggleBarrier, same_level, self_test};
use barrier_emulation::cable::Cable;
use barrier_emulation::parallel::{ParallelPort, Plug};
use barrier_emulation::trap::{self, Plugged, Rights};
use embedded_hal::digital::{OutputPin, PinState};
use std::convert::Infallible;
use std::mem::forget;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const NODES: usize = 4;
/// The number of the node with the fault.
const BAD: usize = 2;
const BARRIERS: u32 = 10;

/// Time limit of waits that succeed; only a broken driver reaches it.
const LONG: Duration = Duration::from_secs(30);
/// Time limit of waits that must fail; it is not used for a wait that should succeed, which a busy
/// machine could delay beyond this limit.
const SHORT: Duration = Duration::from_millis(100);

/// The ports of all nodes, on one board.
struct Machine {
    board: Board<'static>,
    bases: Vec<u16>,
    plugged: Vec<Option<Plugged>>,
}

impl Machine {
    /// Connects node `n` with `plug(n)` to the board's wires `wires(n)`, and `latch(n)` in its data
    /// register.
    fn new(
        plug: impl Fn(usize) -> Plug,
        wires: impl Fn(usize) -> usize,
        latch: impl Fn(usize) -> u8,
    ) -> Self {
        trap::install(Rights::Granted).expect("seccomp filters are allowed");
        let board = board(NODES);
        let (bases, plugged) = (0..NODES)
            .map(|node| {
                let Wires { out, input, .. } =
                    board.wires(wires(node), |_| ()).expect("free wires");
                let base = free_base();
                let port = ParallelPort::new(plug(node), latch(node), (out, input));
                (base, Some(trap::plug(base, port)))
            })
            .unzip();
        Self {
            board,
            bases,
            plugged,
        }
    }

    /// Creates faultless wires, except for one fault at node `BAD`.
    fn with_fault(fault: impl Fn(&mut Plug)) -> Self {
        let plug = |node| {
            let mut plug = usual();
            if node == BAD {
                fault(&mut plug);
            }
            plug
        };
        Self::new(plug, |node| node, |_| 0)
    }

    fn good() -> Self {
        Self::with_fault(|_| ())
    }

    fn pins(&self, node: usize) -> (BoxedOut, BoxedIn) {
        let text = format!("parport:{:#x},out=D0,in=nACK", self.bases[node]);
        let wires = ports::open(&text).expect("an emulated port");
        (wires.out, wires.input)
    }

    fn open(&self, node: usize) -> ToggleBarrier<BoxedOut, BoxedIn> {
        let (out, input) = self.pins(node);
        ToggleBarrier::open(out, input, || Ok::<_, Infallible>(())).expect("an idle barrier")
    }

    /// Starts a job in which the nodes in `late` enter late, one after the other in this order.
    /// Returns each node's result, and fails if a node leaves a barrier early.
    fn start(&self, late: &[usize], limit: Duration) -> Vec<Result<(), String>> {
        let job = Job {
            meet: Barrier::new(NODES),
            refused: AtomicBool::new(false),
            levels: Mutex::new([None; NODES]),
            entered: Default::default(),
        };
        thread::scope(|scope| {
            let nodes: Vec<_> = (0..NODES)
                .map(|node| {
                    let job = &job;
                    scope.spawn(move || {
                        // Each thread calls `install`,
                        // because a thread does not inherit the result of `ioperm`.
                        trap::install(Rights::Granted).expect("seccomp filters are allowed");
                        let (out, input) = self.pins(node);
                        job.node(node, out, input, late, limit)
                    })
                })
                .collect();
            let joined = nodes.into_iter().map(|node| node.join());
            joined.map(|said| said.expect("no panic")).collect()
        })
    }
}

/// The state that the nodes of a job share besides the barrier's wires: fence, agreement, counters.
struct Job {
    meet: Barrier,
    refused: AtomicBool,
    levels: Mutex<[Option<PinState>; NODES]>,
    entered: [AtomicU32; NODES],
}

impl Job {
    fn node(
        &self,
        me: usize,
        out: BoxedOut,
        input: BoxedIn,
        late: &[usize],
        limit: Duration,
    ) -> Result<(), String> {
        let fence = || {
            self.meet.wait();
            Ok::<_, Infallible>(())
        };
        let opened = ToggleBarrier::open(out, input, fence).map_err(|e| e.to_string());
        let mut barrier = self.agreed(opened)?;
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)[me] = Some(barrier.level());
        self.meet.wait();
        let levels = *self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let levels: Vec<_> = levels.into_iter().flatten().collect();
        self.agreed(same_level(&levels).map_err(|e| e.to_string()))?;
        let test = SelfTest {
            me,
            hold: Duration::from_millis(1),
            limit,
        };
        let late = late.iter().copied();
        let tested = self_test(&mut barrier, test, late, fence, thread::yield_now);
        self.agreed(tested.map_err(|e| e.to_string()))?;
        for round in 1..=BARRIERS {
            self.entered[me].store(round, Ordering::SeqCst);
            barrier.enter().map_err(|e| e.to_string())?;
            let left = barrier.wait(thread::yield_now, LONG);
            left.map_err(|e| e.to_string())?;
            for (node, entered) in self.entered.iter().enumerate() {
                let entered = entered.load(Ordering::SeqCst);
                assert!(
                    entered >= round,
                    "node {me} left barrier {round} before node {node} had entered it"
                );
            }
        }
        barrier.close().map_err(|e| e.to_string())
    }

    /// Returns `mine` if all nodes have succeeded. Otherwise all nodes fail;
    /// a node that had succeeded reports that another node has failed.
    fn agreed<T>(&self, mine: Result<T, String>) -> Result<T, String> {
        self.refused.fetch_or(mine.is_err(), Ordering::SeqCst);
        self.meet.wait();
        let refused = self.refused.load(Ordering::SeqCst);
        self.meet.wait();
        match mine {
            Ok(_) if refused => Err("another node refuses".into()),
            mine => mine,
        }
    }
}

/// Checks that every node reports an error, and that at least one message contains `words`.
fn refused(said: &[Result<(), String>], words: &str) {
    let all: Vec<_> = said.iter().filter_map(|said| said.as_ref().err()).collect();
    assert_eq!(all.len(), NODES, "a node went on: {said:?}");
    assert!(all.iter().any(|said| said.contains(words)), "{said:#?}");
}

const OTHER_LEVEL: &str = "no node is in the barrier, node 2 reads high and 3 others read low: \
                           a wire from the barrier floats, is cut or is inverted";
const WITHOUT_NODE_2: &str = "the barrier followed this node's wire going high before node 2 had entered: \
                              an input floats or is inverted, or the wire of node 2 is not its own";
const STUCK: &str = "all nodes have entered, node 0 last, and the barrier has not followed this node's wire going high";

#[test]
fn good_wires_start() {
    let machine = Machine::good();
    assert_eq!(machine.start(&[0, 1, 2, 3], LONG), vec![Ok(()); NODES]);
}

#[test]
fn outputs_left_high_by_a_dead_job_are_no_arrivals() {
    // All nodes except one have a leftover level, so the first node that enters would be released.
    let machine = Machine::new(
        |_| usual(),
        |node| node,
        |node| u8::from(node != BAD) * 0xff,
    );
    assert_eq!(machine.board.snapshot().inputs, 0b1011);
    assert_eq!(machine.start(&[BAD], LONG), vec![Ok(()); NODES]);
}

#[test]
fn a_job_that_died_in_the_barrier_is_followed_by_a_good_one() {
    let machine = Machine::good();
    for node in 0..NODES {
        let (mut out, _input) = machine.pins(node);
        // The node was killed: its wire keeps the level, and its port is free.
        if node != BAD {
            out.set_high().expect("a write");
        }
    }
    assert_eq!(machine.start(&[0, BAD], LONG), vec![Ok(()); NODES]);
}

#[test]
fn a_floating_input_is_refused_by_the_name_of_its_node() {
    let machine = Machine::with_fault(|plug| plug.in_cable = Cable::Open(PinState::High));
    refused(&machine.start(&[0], SHORT), OTHER_LEVEL);
}

#[test]
fn an_input_held_low_is_refused() {
    // The input is stuck at the idle level, so only the self-test detects it:
    // the node never reads a release.
    let machine = Machine::with_fault(|plug| plug.in_cable = Cable::Open(PinState::Low));
    let said = machine.start(&[0], SHORT);
    refused(&said, STUCK);
    let of_bad = said[BAD].as_ref().err();
    assert!(of_bad.is_some_and(|said| said.contains(STUCK)), "{said:#?}");
}

#[test]
fn an_inverted_input_is_refused_by_the_name_of_its_node() {
    let machine = Machine::with_fault(|plug| plug.in_cable = Cable::Inverted);
    refused(&machine.start(&[0], SHORT), OTHER_LEVEL);
}

#[test]
fn an_inverted_output_is_refused_and_named_if_its_node_is_late() {
    for late in 0..NODES {
        let machine = Machine::with_fault(|plug| plug.out_cable = Cable::Inverted);
        let words = if late == BAD {
            WITHOUT_NODE_2
        } else {
            "all nodes have entered"
        };
        refused(&machine.start(&[late], SHORT), words);
    }
}

#[test]
fn a_cut_output_that_is_pulled_high_is_refused_by_the_name_of_its_node() {
    let machine = Machine::with_fault(|plug| plug.out_cable = Cable::Open(PinState::High));
    refused(&machine.start(&[BAD], SHORT), WITHOUT_NODE_2);
}

#[test]
fn a_cut_output_that_is_pulled_low_is_refused() {
    let machine = Machine::with_fault(|plug| plug.out_cable = Cable::Open(PinState::Low));
    refused(&machine.start(&[0], SHORT), STUCK);
}

#[test]
fn a_wire_at_the_wrong_pin_of_the_connector_is_refused() {
    let machine =
        Machine::with_fault(|plug| plug.out = barrier_driver::ports::parallel::OUTPUTS[1]);
    refused(&machine.start(&[0], SHORT), STUCK);
}

#[test]
fn swapped_cables_make_no_difference() {
    // Each node is connected to another node's pin at the board, which has no effect:
    // all pins are equivalent.
    let machine = Machine::new(|_| usual(), |node| NODES - 1 - node, |_| 0);
    assert_eq!(machine.start(&[0, 1, 2, 3], LONG), vec![Ok(()); NODES]);
}

/// Reboots a node: its program ends without closing the barrier,
/// and its port is in its power-on state.
fn reboot<B>(machine: &mut Machine, node: usize, program: B) {
    forget(program);
    machine.plugged[node] = None;
    let Wires { out, input, .. } = machine.board.wires(node, |_| ()).expect("free wires");
    let port = ParallelPort::new(usual(), 0, (out, input));
    // In this process the claim of the dead program persists, because its memory persists.
    // After a real reboot it would not exist.
    machine.bases[node] = free_base();
    machine.plugged[node] = Some(trap::plug(machine.bases[node], port));
}

fn times_out<E: std::fmt::Display>(said: Result<(), E>) {
    let said = said.map_err(|e| e.to_string());
    let said = said.expect_err("no node leaves without the node that has rebooted");
    assert!(said.contains("not all nodes have entered"), "{said}");
}

#[test]
fn a_reboot_in_the_barrier_on_the_way_up_holds_everyone() {
    let mut machine = Machine::good();
    let mut nodes: Vec<_> = (0..NODES).map(|node| machine.open(node)).collect();
    for node in &mut nodes[1..] {
        node.enter().expect("out");
    }
    assert_eq!(machine.board.snapshot().arrived(), 0b1110);
    reboot(&mut machine, BAD, nodes.remove(BAD));
    assert_eq!(machine.board.snapshot().arrived(), 0b1010);
    nodes[0].enter().expect("out");
    for node in &mut nodes {
        times_out(node.wait(thread::yield_now, SHORT));
    }
}

/// A reboot would release the plain toggle barrier when the wires fall, as
/// `barrier-driver/tests/reboot.rs` shows.
#[test]
fn a_reboot_on_the_way_down_releases_no_node_from_a_returning_barrier() {
    let mut machine = Machine::good();
    let returning = |node| {
        let over = ReturningBarrier::over(machine.open(node), PinState::Low, || (), LONG);
        over.expect("the barrier is at rest")
    };
    let mut nodes: Vec<_> = (0..NODES).map(returning).collect();
    for node in &mut nodes {
        node.enter().expect("out");
    }
    // All nodes except `BAD` leave and so lower their wires; the reboot lowers the wire of `BAD`.
    for (node, barrier) in nodes.iter_mut().enumerate() {
        if node != BAD {
            let left = barrier.wait(thread::yield_now, LONG);
            left.expect("all have entered");
        }
    }
    assert_eq!(machine.board.snapshot().inputs, 1 << BAD);
    reboot(&mut machine, BAD, nodes.remove(BAD));
    let before = machine.board.releases();
    for node in &mut nodes {
        node.enter().expect("out");
    }
    for node in &mut nodes {
        times_out(node.wait(thread::yield_now, SHORT));
    }
    let after = machine.board.snapshot();
    assert_eq!(after.arrived(), 0b1011, "the others wait for the dead node");
    assert_eq!(after.outputs, 0, "the barrier has not left rest");
    assert!(after.releases - before <= 1, "only the way back");
}

/// The other nodes report an error and close. Then a new job, which includes the rebooted node,
/// starts normally.
#[test]
fn a_node_that_has_rebooted_joins_the_next_job() {
    for rounds in [0, 1] {
        let mut machine = Machine::good();
        let mut nodes: Vec<_> = (0..NODES).map(|node| machine.open(node)).collect();
        // After an even number of barriers the next arrival is a rising edge,
        // after an odd number it is a falling edge.
        for _ in 0..rounds {
            for node in &mut nodes {
                node.enter().expect("out");
            }
            for node in &mut nodes {
                node.wait(thread::yield_now, LONG)
                    .expect("all have entered");
            }
        }
        nodes[0].enter().expect("out");
        reboot(&mut machine, BAD, nodes.remove(BAD));
        times_out(nodes[0].wait(thread::yield_now, SHORT));
        for node in nodes {
            node.close().expect("a wire that is still");
        }
        assert_eq!(machine.start(&[BAD, 0], LONG), vec![Ok(()); NODES]);
    }
}

#[test]
fn a_node_that_has_rebooted_joins_the_next_job_after_returning_barriers() {
    let mut machine = Machine::good();
    let returning = |node| {
        let over = ReturningBarrier::over(machine.open(node), PinState::Low, || (), LONG);
        over.expect("the barrier is at rest")
    };
    let mut nodes: Vec<_> = (0..NODES).map(returning).collect();
    for node in &mut nodes {
        node.enter().expect("out");
    }
    for node in &mut nodes {
        let left = node.wait(thread::yield_now, LONG);
        left.expect("all have entered");
    }
    nodes[0].enter().expect("out");
    reboot(&mut machine, BAD, nodes.remove(BAD));
    times_out(nodes[0].wait(thread::yield_now, SHORT));
    for node in nodes {
        node.close().expect("a wire that is still");
    }
    assert_eq!(machine.start(&[BAD, 0], LONG), vec![Ok(()); NODES]);
}
