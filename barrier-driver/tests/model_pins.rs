//! Tests of the driver against the cycle-accurate model: the port suite, the remembered level, and faulty wires.

use barrier_driver::{
    CloseError, EnterError, OpenError, SelfTest, SelfTestError, ToggleBarrier, WaitError, self_test,
};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin, PinState};
use fpga_model::ToggleMachine;
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// A model whose clock advances by a few edges per access to a wire.
struct Board {
    machine: ToggleMachine,
    inputs: u64,
    edges_per_access: u64,
}

impl Board {
    fn clock(&mut self, edges: u64) {
        self.machine.fast_forward(self.inputs, edges);
    }
}

#[derive(Clone)]
struct Wire {
    board: Arc<Mutex<Board>>,
    node: usize,
    /// True if the pin inverts the level, as BUSY of a parallel port does.
    inverted: bool,
}

impl Wire {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ErrorType for Wire {
    type Error = Infallible;
}

impl OutputPin for Wire {
    fn set_low(&mut self) -> Result<(), Infallible> {
        let mut board = self.board();
        board.inputs &= !(1 << self.node);
        let edges = board.edges_per_access;
        board.clock(edges);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        let mut board = self.board();
        board.inputs |= 1 << self.node;
        let edges = board.edges_per_access;
        board.clock(edges);
        Ok(())
    }
}

impl InputPin for Wire {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let mut board = self.board();
        let edges = board.edges_per_access;
        board.clock(edges);
        Ok((board.machine.outputs() >> self.node & 1 == 1) != self.inverted)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}

struct Model(Arc<Mutex<Board>>);

impl Model {
    fn new(nodes: usize, edges_per_access: u64) -> Self {
        let machine = ToggleMachine::new(nodes).expect("a legal node count");
        Self(Arc::new(Mutex::new(Board {
            machine,
            inputs: 0,
            edges_per_access,
        })))
    }

    fn wire(&self, node: usize) -> Wire {
        Wire {
            board: self.0.clone(),
            node,
            inverted: false,
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, node: usize) -> ToggleBarrier<Wire, Wire> {
        ToggleBarrier::open(self.wire(node), self.wire(node), || Ok::<_, Infallible>(()))
            .expect("idle")
    }
}

impl barrier_driver::suite::Rig for Model {
    type Error = Infallible;
    type Out = Wire;
    type In = Wire;

    fn build(nodes: usize) -> Self {
        Self::new(nodes, 1)
    }

    fn wires(&self, node: usize) -> (Wire, Wire) {
        (self.wire(node), self.wire(node))
    }

    fn releases(&self) -> u64 {
        self.board().machine.releases()
    }
}

barrier_driver::port_suite!(Model);

#[test]
fn open_refuses_an_input_that_moves_during_the_fence() {
    let model = Model::new(2, 1);
    // An aborted job left both wires high, so the barrier is about to release.
    model.board().inputs = 0b11;
    let refused = ToggleBarrier::open(model.wire(0), model.wire(0), || {
        model.board().clock(10);
        Ok::<_, Infallible>(())
    });
    assert_eq!(
        refused.err(),
        Some(OpenError::InputMoved {
            idle: PinState::Low
        })
    );
    // After the error the wire is idle at the new level, so the next try succeeds.
    assert_eq!(model.open(0).level(), PinState::High);
}

#[test]
fn a_failed_fence_refuses_and_leaves_the_wire_idle() {
    let model = Model::new(2, 1);
    model.board().inputs = 0b01;
    let refused = ToggleBarrier::open(model.wire(0), model.wire(0), || Err("node 1 is not there"));
    let message = refused.err().map(|e| e.to_string());
    assert_eq!(
        message.as_deref(),
        Some("the software fence before the first barrier failed: node 1 is not there")
    );
    assert_eq!(model.board().inputs, 0);
}

#[test]
fn a_node_cannot_enter_twice() {
    let model = Model::new(2, 1);
    let mut node = model.open(0);
    assert_eq!(node.enter(), Ok(()));
    assert_eq!(node.enter(), Err(EnterError::AlreadyEntered));
}

#[test]
fn time_limits_are_counted_by_the_callers_clock() {
    let model = Model::new(2, 1);
    let mut node = model.open(0);
    node.enter().expect("idle");
    // A clock of the caller that advances by an hour per reading, so the limit expires without waiting.
    let mut hours = 0;
    let now = || {
        hours += 1;
        Duration::from_secs(3600 * hours)
    };
    let mut polls = 0;
    let waited = node.wait_by(now, || polls += 1, Duration::from_secs(3 * 3600));
    assert_eq!(
        waited,
        Err(WaitError::TimedOut {
            waited: Duration::from_secs(3 * 3600),
            driven: PinState::High
        })
    );
    assert_eq!(polls, 3);
}

#[test]
fn closing_during_a_release_follows_to_the_new_idle_level() {
    let model = Model::new(2, 1);
    let (mut a, mut b) = (model.open(0), model.open(1));
    a.enter().expect("idle");
    b.enter().expect("idle");
    // The release is still in the synchronisers: `a` reads the old level, and the barrier toggles while `a` closes.
    assert_eq!(a.close(), Ok(()));
    let board = model.board();
    assert_eq!(board.inputs & 1, board.machine.outputs() & 1);
    drop(board);
}

/// A wire that counts how often it is dropped.
struct Counted(Wire, std::rc::Rc<std::cell::Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.set(self.1.get() + 1);
    }
}

impl ErrorType for Counted {
    type Error = Infallible;
}

impl OutputPin for Counted {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.set_low()
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.set_high()
    }
}

impl InputPin for Counted {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        self.0.is_high()
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.0.is_low()
    }
}

#[test]
fn freed_pins_are_idle_are_dropped_once_and_serve_another_barrier() {
    let model = Model::new(2, 1);
    let (dropped, mut other) = (std::rc::Rc::default(), model.open(1));
    let counted = || Counted(model.wire(0), std::rc::Rc::clone(&dropped));
    let open = |out, input| {
        let fence = || Ok::<(), Infallible>(());
        ToggleBarrier::open(out, input, fence).expect("an idle barrier")
    };
    let mut barrier = open(counted(), counted());
    barrier.enter().expect("idle");
    // The arrival is withdrawn, so the other node is not released.
    let (out, input, closed) = barrier.free();
    assert_eq!(closed, Ok(()));
    assert_eq!(dropped.get(), 0);
    other.enter().expect("idle");
    assert_eq!(other.poll(), Ok(Poll::Pending));
    let mut again = open(out, input);
    again.enter().expect("idle");
    for _ in 0..8 {
        let _ = (again.poll(), other.poll());
    }
    assert!(!again.is_entered() && !other.is_entered());
    drop(again);
    assert_eq!(dropped.get(), 2);
}

#[test]
fn an_input_that_never_stays_still_cannot_be_closed() {
    /// A disconnected input that picks up noise: each read returns the other level.
    struct Floating(bool);
    impl ErrorType for Floating {
        type Error = Infallible;
    }
    impl InputPin for Floating {
        fn is_high(&mut self) -> Result<bool, Infallible> {
            self.0 = !self.0;
            Ok(self.0)
        }
        fn is_low(&mut self) -> Result<bool, Infallible> {
            self.is_high().map(|high| !high)
        }
    }
    let model = Model::new(2, 1);
    let mut fence = Floating(false);
    let opened = ToggleBarrier::open(model.wire(0), &mut fence, || Ok::<_, Infallible>(()));
    assert_eq!(
        opened.err(),
        Some(OpenError::InputMoved {
            idle: PinState::High
        })
    );

    struct StillThenFloating(u32);
    impl ErrorType for StillThenFloating {
        type Error = Infallible;
    }
    impl InputPin for StillThenFloating {
        fn is_high(&mut self) -> Result<bool, Infallible> {
            self.0 += 1;
            Ok(self.0 > 2 && self.0 % 2 == 1)
        }
        fn is_low(&mut self) -> Result<bool, Infallible> {
            self.is_high().map(|high| !high)
        }
    }
    let pin = StillThenFloating(0);
    let node = ToggleBarrier::open(model.wire(0), pin, || Ok::<_, Infallible>(())).expect("still");
    assert_eq!(node.close(), Err(CloseError::NeverStill { tries: 3 }));
}

/// Runs the self-test on `nodes` threads, with the input of node `bad` inverted.
fn self_test_with_inverted_input(
    nodes: usize,
    bad: usize,
) -> Vec<Result<(), SelfTestError<Infallible, Infallible>>> {
    let model = Model::new(nodes, 1);
    let fence = Barrier::new(nodes);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..nodes)
            .map(|me| {
                let (model, fence) = (&model, &fence);
                scope.spawn(move || {
                    let meet = || {
                        fence.wait();
                        Ok(())
                    };
                    let mut input = model.wire(me);
                    input.inverted = me == bad;
                    // An inverted input looks idle to `open`; only the self-test detects it.
                    let mut node = ToggleBarrier::open(model.wire(me), input, meet).expect("idle");
                    let hold = Duration::from_micros(50);
                    let test = SelfTest {
                        me,
                        hold,
                        limit: Duration::from_millis(20),
                    };
                    let verdict = self_test(&mut node, test, 0..nodes, meet, thread::yield_now);
                    // A node that closed earlier could complete a barrier in which another node still waits.
                    fence.wait();
                    verdict
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|h| h.join().expect("no panic"))
            .collect()
    })
}

#[test]
fn the_self_test_finds_an_inverted_input_and_nobody_hangs() {
    for bad in 0..3 {
        let verdicts = self_test_with_inverted_input(3, bad);
        assert!(
            verdicts.iter().all(Result::is_err),
            "bad node {bad}: {verdicts:?}"
        );
    }
    // In the first test the inverted node is the late one: its idle wire already counts as an arrival.
    let verdicts = self_test_with_inverted_input(3, 0);
    assert_eq!(
        verdicts[1],
        Err(SelfTestError::LeftEarly {
            late: 0,
            driven: PinState::High
        })
    );
    assert_eq!(
        verdicts[2],
        Err(SelfTestError::LeftEarly {
            late: 0,
            driven: PinState::High
        })
    );
}

proptest! {
    /// Nodes act and the clock advances in an arbitrary order; the invariant of the crate documentation holds, and no node leaves early.
    #[test]
    fn the_remembered_level_is_what_a_read_would_give(
        nodes in 1..=8usize,
        left_over in any::<u64>(),
        schedule in prop::collection::vec((0..8usize, 0..5u64), 0..400),
    ) {
        // An access takes no clock edges here: the clock advances only at the steps of the schedule that say so.
        let model = Model::new(nodes, 0);
        model.board().inputs = left_over;
        model.board().clock(10);
        let mut barriers: Vec<_> = (0..nodes).map(|node| model.open(node)).collect();
        let start = model.board().machine.releases();
        let (mut entered, mut left) = (vec![0u64; nodes], vec![0u64; nodes]);
        // After the schedule, nodes act in rotation until all have passed the same number of barriers.
        let rest = (0..8 * nodes).map(|turn| (turn % nodes, 3));
        let scheduled = schedule.len();
        for (turn, (node, edges)) in schedule.into_iter().chain(rest).enumerate() {
            let node = node % nodes;
            model.board().clock(edges);
            let read = PinState::from(model.wire(node).is_high().expect("infallible"));
            if barriers[node].is_entered() {
                if barriers[node].poll().expect("infallible").is_ready() {
                    left[node] += 1;
                    let slowest = entered.iter().min().copied();
                    prop_assert!(Some(left[node]) <= slowest, "node {} left early", node);
                }
            } else {
                prop_assert_eq!(barriers[node].level(), read, "node {} at entry", node);
                let behind = entered.iter().any(|&e| e > entered[node]);
                if turn < scheduled || behind {
                    barriers[node].enter().expect("out of the barrier");
                    entered[node] += 1;
                }
            }
        }
        model.board().clock(10);
        for (node, barrier) in barriers.iter_mut().enumerate() {
            if barrier.is_entered() && barrier.poll().expect("infallible").is_ready() {
                left[node] += 1;
            }
        }
        prop_assert_eq!(&entered, &left, "when all have entered, all leave");
        prop_assert_eq!(model.board().machine.releases() - start, left[0]);
    }
}
