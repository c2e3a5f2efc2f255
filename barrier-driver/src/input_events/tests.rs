//! Tests of sleeping, with a simulated board in the same thread: the release comes before each step in turn, and no sleep may miss it.

use super::*;
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use embedded_hal::digital::ErrorType;
use fpga_model::ToggleMachine;
use std::rc::Rc;

/// The accesses of node 0's process to its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Read,
    Arm,
    Sleep,
}

/// A board of two nodes; node 1 enters before the access of node 0 that the test selects.
struct Board {
    machine: Cell<ToggleMachine>,
    wires: Cell<u64>,
    /// The number of accesses of node 0 until node 1 enters; `None` after its entry, or if it never enters.
    until_entry: Cell<Option<usize>>,
    /// True if the level has changed since node 0 called `arm`.
    rung: Cell<bool>,
    wakes: bool,
    steps: RefCell<Vec<Step>>,
    /// True if node 0 slept without a pending change although its input already had the awaited level: a lost wake-up.
    lost: Cell<bool>,
}

impl Board {
    fn output(&self) -> bool {
        self.machine.get().outputs() != 0
    }

    fn step(&self, step: Step) {
        match self.until_entry.get() {
            Some(0) => {
                self.until_entry.set(None);
                self.drive(1, !self.output());
            }
            Some(more) => self.until_entry.set(Some(more - 1)),
            None => {}
        }
        self.steps.borrow_mut().push(step);
    }

    fn drive(&self, node: usize, high: bool) {
        let before = self.output();
        let others = self.wires.get() & !(1 << node);
        self.wires.set(others | u64::from(high) << node);
        let mut machine = self.machine.get();
        machine.fast_forward(self.wires.get(), 5);
        self.machine.set(machine);
        self.rung.set(self.rung.get() || self.output() != before);
    }
}

#[derive(Clone)]
struct Pin(Rc<Board>);

impl ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.drive(0, false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.drive(0, true);
        Ok(())
    }
}

impl InputPin for Pin {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        self.0.step(Step::Read);
        Ok(self.0.output())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}

impl InputEvents for Pin {
    fn wakes_sleepers(&mut self) -> bool {
        self.0.wakes
    }

    fn arm(&mut self) -> Result<(), Infallible> {
        self.0.step(Step::Arm);
        self.0.rung.set(false);
        Ok(())
    }

    fn sleep_until_edge(&mut self, awaited: PinState, _: Duration) -> Result<(), Infallible> {
        let board = &self.0;
        board.step(Step::Sleep);
        let there = PinState::from(board.output()) == awaited;
        board
            .lost
            .set(board.lost.get() || there && !board.rung.get());
        Ok(())
    }
}

/// Returns node 0 in a barrier whose release changes the wire to level `to`; node 1 enters before access number `entry`.
fn entered(
    to: PinState,
    entry: Option<usize>,
    wakes: bool,
) -> (Rc<Board>, ToggleBarrier<Pin, Pin>) {
    let board = Rc::new(Board {
        machine: Cell::new(ToggleMachine::new(2).expect("a legal node count")),
        wires: Cell::new(0),
        until_entry: Cell::new(None),
        rung: Cell::new(false),
        wakes,
        steps: RefCell::default(),
        lost: Cell::new(false),
    });
    if to == PinState::Low {
        board.drive(0, true);
        board.drive(1, true);
    }
    let pin = Pin(board.clone());
    let mut barrier = ToggleBarrier::open(pin.clone(), pin, || Ok::<_, Infallible>(()))
        .expect("an idle barrier can be opened");
    barrier.enter().expect("an idle node can enter");
    board.steps.borrow_mut().clear();
    board.until_entry.set(entry);
    (board, barrier)
}

#[test]
fn a_release_before_any_step_ends_the_sleep_or_is_read() {
    for to in [PinState::High, PinState::Low] {
        // `entry` counts the accesses read, arm, read, sleep and read.
        for entry in 0..5 {
            let (board, mut barrier) = entered(to, Some(entry), true);
            let released = barrier.poll_asleep(Duration::MAX).expect("no pin fails");
            let steps = board.steps.borrow();
            assert!(
                !board.lost.get(),
                "the release before step {entry} is slept over: {steps:?}"
            );
            assert!(released.is_ready(), "{entry}: {steps:?}");
        }
    }
}

#[test]
fn without_a_release_one_sleep_is_between_two_polls() {
    let (board, mut barrier) = entered(PinState::High, None, true);
    let released = barrier.poll_asleep(Duration::MAX).expect("no pin fails");
    assert!(released.is_pending() && barrier.is_entered());
    let steps = board.steps.borrow();
    let expected = [Step::Read, Step::Arm, Step::Read, Step::Sleep, Step::Read];
    assert_eq!(*steps, expected);
}

#[test]
fn a_port_that_wakes_no_sleeper_is_only_read() {
    let (board, mut barrier) = entered(PinState::High, None, false);
    assert!(!barrier.wakes_sleepers());
    let released = barrier.poll_asleep(Duration::MAX).expect("no pin fails");
    assert!(released.is_pending());
    assert_eq!(*board.steps.borrow(), [Step::Read]);
}

#[test]
fn a_sleeping_wait_has_a_limit_and_can_be_resumed() {
    for wakes in [true, false] {
        let (board, mut barrier) = entered(PinState::High, None, wakes);
        let mut progressed = 0;
        let waited = barrier.wait_asleep(
            || progressed += 1,
            Duration::from_millis(1),
            Duration::from_millis(2),
        );
        assert!(
            matches!(waited, Err(WaitError::TimedOut { .. })),
            "{waited:?}"
        );
        assert!(progressed > 0, "progress was never called");
        board.until_entry.set(Some(0));
        let resumed = barrier.wait_asleep(|| (), Duration::MAX, Duration::from_secs(30));
        resumed.expect("node 1 has entered");
    }
}
