//! The main program of a barrier node on any microcontroller: synchronises with the other nodes, tests the wires, passes barriers.
//!
//! The chip provides a pair of pins, a clock and a serial line to the next node ([`Chip`]).
//! The program uses no interrupts and no allocation, and waits by polling; every wait has a limit.

#![no_std]
#![forbid(unsafe_code)]

pub mod environment;

use barrier_driver::{
    CloseError, EnterError, OpenError, RingFence, SelfTest, SelfTestError, ToggleBarrier,
    WaitError, self_test_by,
};
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin};

/// Interval between two transmissions of the node's ring byte.
const SAY_AGAIN: Duration = Duration::from_millis(5);
/// Duration for which the self-test checks that an incomplete barrier does not release.
const HOLD: Duration = Duration::from_millis(2);

/// What the program needs in addition to the two pins: a clock and the serial ring.
pub trait Chip {
    /// Returns the time since any fixed instant; it never decreases.
    fn now(&mut self) -> Duration;
    /// Sends a byte to the next node of the ring; it may be lost if the buffer is full.
    fn say(&mut self, byte: u8);
    /// Returns the oldest unread byte from the previous node; `None` if there is none.
    fn receive(&mut self) -> Option<u8>;
}

/// The parameters of a node; only `me` differs between nodes.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// The number of this node, counted from 0.
    pub me: u8,
    /// The number of nodes.
    pub nodes: u8,
    /// The number of barriers to pass after the self-test; `None` if the node passes barriers until it is switched off.
    pub barriers: Option<u32>,
    /// Time limit for the other nodes to reach a fence or a barrier.
    pub limit: Duration,
}

/// The reason why a node has stopped.
#[derive(Debug)]
pub enum Stopped<E> {
    /// The number of nodes is 0, or larger than a [`RingFence`] supports.
    Nodes(u8),
    /// The barrier could not be opened.
    Open(OpenError<E, Late>),
    /// The self-test has detected a fault of the wires.
    SelfTest(SelfTestError<E, Late>),
    /// This node could not enter: it was in a barrier already, or its pin failed.
    Enter(EnterError<E>),
    /// A barrier was not released in time, or a pin failed.
    Wait(WaitError<E>),
    /// The wire could not be brought to the barrier's level.
    Close(CloseError<E>),
}

/// Error of the fence: not all nodes reached the fence within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late;

/// Runs a job from opening to closing the barrier; calls `passed` after every barrier.
pub fn run<O: OutputPin, I: InputPin<Error = O::Error>>(
    (out, input): (O, I),
    chip: &mut impl Chip,
    job: Job,
    mut passed: impl FnMut(&mut ToggleBarrier<O, I>),
) -> Result<(), Stopped<O::Error>> {
    let chip = core::cell::RefCell::new(chip);
    let now = || chip.borrow_mut().now();
    let mut ring = RingFence::new(job.nodes).ok_or(Stopped::Nodes(job.nodes))?;
    let mut fence = || meet(&mut ring, &mut **chip.borrow_mut(), job.limit);

    let mut barrier = ToggleBarrier::open(out, input, &mut fence).map_err(Stopped::Open)?;
    let test = SelfTest {
        me: usize::from(job.me),
        hold: HOLD,
        limit: job.limit,
    };
    let each = 0..usize::from(job.nodes);
    self_test_by(now, &mut barrier, test, each, &mut fence, || ()).map_err(Stopped::SelfTest)?;

    let mut done = 0;
    while job.barriers != Some(done) {
        barrier.enter().map_err(Stopped::Enter)?;
        barrier
            .wait_by(now, || (), job.limit)
            .map_err(Stopped::Wait)?;
        passed(&mut barrier);
        done = done.wrapping_add(1);
    }
    barrier.close().map_err(Stopped::Close)
}

/// Passes one fence of the ring.
fn meet(ring: &mut RingFence, chip: &mut impl Chip, limit: Duration) -> Result<(), Late> {
    let start = chip.now();
    let mut say_at = start;
    while !ring.is_complete() {
        let now = chip.now();
        if now.saturating_sub(start) > limit {
            return Err(Late);
        }
        if now >= say_at {
            chip.say(ring.byte());
            say_at = now + SAY_AGAIN;
        }
        while let Some(byte) = chip.receive() {
            ring.receive(byte);
        }
    }
    chip.say(ring.byte());
    ring.next();
    Ok(())
}
