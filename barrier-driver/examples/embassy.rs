//! A node of the barrier as an asynchronous task, for embassy and for any other executor.
//!
//! [`node`] is the function to copy into a program for a microcontroller.
//! It accepts any pins with embedded-hal-async's `Wait`, such as those of
//! embassy's packages for chips, and sleeps until the interrupt of the wire from the barrier:
//!
//! ```text
//! #[embassy_executor::task]
//! async fn barriers(out: Output<'static>, input: Input<'static>) {
//!     node(out, input, fence(), &mut embassy_time::Delay, BARRIERS).await
//! }
//! ```
//!
//! [`pass`] runs three nodes on one thread with a model of the hardware, so the example runs without hardware:
//! `cargo run -p barrier-driver --features async --example embassy`.

use barrier_driver::{CloseError, EnterError, OpenError, PinFault, ToggleBarrier};
use embassy_futures::block_on;
use embassy_futures::join::join3;
use embassy_futures::select::{Either, select};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::digital::Wait;
use fpga_model::ToggleMachine;
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Time limit for the arrival of the other nodes, in ms.
const LIMIT_MS: u32 = 1000;
const NODES: usize = 3;

/// The reason why [`node`] ended early.
#[derive(Debug, PartialEq)]
pub enum Stopped<E, F> {
    /// The barrier could not be opened.
    Open(OpenError<E, F>),
    /// This node could not enter: it was in a barrier already, or its pin failed.
    Enter(EnterError<E>),
    /// The wire from the barrier could not be read.
    Wait(PinFault<E>),
    /// Another node has not arrived within the limit.
    Late,
    /// The wire could not be brought to the barrier's level.
    Close(CloseError<E>),
}

/// Opens the barrier, passes `barriers` barriers, and brings this node's wire to the barrier's level.
///
/// `fence` must complete only after every node has started its own fence; on a microcontroller use `RingFence` over a serial line.
/// After an error, too, the wire has the barrier's level, so the other nodes see no false arrival of this node.
pub async fn node<O, I, F>(
    out: O,
    input: I,
    fence: impl Future<Output = Result<(), F>>,
    delay: &mut impl DelayNs,
    barriers: u32,
) -> Result<(), Stopped<O::Error, F>>
where
    O: OutputPin,
    I: InputPin<Error = O::Error> + Wait,
{
    let mut barrier = ToggleBarrier::open_async(out, input, fence)
        .await
        .map_err(Stopped::Open)?;
    for _ in 0..barriers {
        barrier.enter().map_err(Stopped::Enter)?;
        match select(barrier.released(), delay.delay_ms(LIMIT_MS)).await {
            Either::First(released) => released.map_err(Stopped::Wait)?,
            Either::Second(()) => return Err(Stopped::Late),
        }
    }
    barrier.close().map_err(Stopped::Close)
}

/// The simulated hardware: a barrier, clocked for 3 edges after each write, and the tasks that its interrupt wakes.
struct Board {
    machine: ToggleMachine,
    wires: u64,
    releases: u32,
    sleepers: Vec<Waker>,
    /// The number of nodes that have reached the fence.
    opened: usize,
}

/// A node's handle to the board. It is both of the node's pins, and runs the node's fence.
#[derive(Clone)]
struct Pin {
    board: Rc<RefCell<Board>>,
    node: usize,
}

impl Pin {
    fn drive(&self, high: bool) {
        let board = &mut *self.board.borrow_mut();
        let bit = 1 << self.node;
        board.wires = if high {
            board.wires | bit
        } else {
            board.wires & !bit
        };
        let before = board.machine.outputs();
        board.machine.fast_forward(board.wires, 3);
        if board.machine.outputs() != before {
            board.releases += 1;
            board.sleepers.drain(..).for_each(Waker::wake);
        }
    }

    fn level(&self) -> bool {
        self.board.borrow().machine.outputs() != 0
    }

    /// Waits until the board satisfies `holds`; each release and each arrival at the fence wakes the task.
    async fn until(&self, holds: impl Fn(&Board) -> bool) {
        poll_fn(|context| {
            let mut board = self.board.borrow_mut();
            if holds(&board) {
                return Poll::Ready(());
            }
            board.sleepers.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    async fn fence(&self) -> Result<(), Infallible> {
        {
            let mut board = self.board.borrow_mut();
            board.opened += 1;
            board.sleepers.drain(..).for_each(Waker::wake);
        }
        self.until(|board| board.opened == NODES).await;
        Ok(())
    }
}

impl ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.drive(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.drive(true);
        Ok(())
    }
}

impl InputPin for Pin {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.level())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.level())
    }
}

impl Wait for Pin {
    async fn wait_for_high(&mut self) -> Result<(), Infallible> {
        self.until(|board| board.machine.outputs() != 0).await;
        Ok(())
    }

    async fn wait_for_low(&mut self) -> Result<(), Infallible> {
        self.until(|board| board.machine.outputs() == 0).await;
        Ok(())
    }

    async fn wait_for_rising_edge(&mut self) -> Result<(), Infallible> {
        self.wait_for_low().await?;
        self.wait_for_high().await
    }

    async fn wait_for_falling_edge(&mut self) -> Result<(), Infallible> {
        self.wait_for_high().await?;
        self.wait_for_low().await
    }

    async fn wait_for_any_edge(&mut self) -> Result<(), Infallible> {
        let high = self.level();
        self.until(|board| (board.machine.outputs() != 0) != high)
            .await;
        Ok(())
    }
}

/// A delay that ends immediately if `expires` is true, and otherwise never.
struct Clock {
    expires: bool,
}

impl DelayNs for Clock {
    async fn delay_ns(&mut self, _: u32) {
        if !self.expires {
            pending().await
        }
    }
}

type Result3 = [Result<(), Stopped<Infallible, Infallible>>; NODES];

/// Runs three nodes on one executor: two pass `barriers` barriers, the third `last`.
/// Returns the nodes' results and the number of releases.
pub fn pass(barriers: u32, last: u32) -> (Result3, u32) {
    let Ok(machine) = ToggleMachine::new(NODES) else {
        return ([const { Err(Stopped::Late) }; NODES], 0);
    };
    let board = Rc::new(RefCell::new(Board {
        machine,
        wires: 0,
        releases: 0,
        sleepers: Vec::new(),
        opened: 0,
    }));
    let run = async |number, barriers| {
        let pin = Pin {
            board: board.clone(),
            node: number,
        };
        let mut clock = Clock {
            expires: barriers > last,
        };
        node(pin.clone(), pin.clone(), pin.fence(), &mut clock, barriers).await
    };
    let (first, second, third) = block_on(join3(run(0, barriers), run(1, barriers), run(2, last)));
    let releases = board.borrow().releases;
    ([first, second, third], releases)
}

fn main() {
    let (ends, releases) = pass(1000, 1000);
    for (node, end) in ends.iter().enumerate() {
        println!("node {node}: {end:?}");
    }
    println!("{releases} releases");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_tasks_pass_each_barrier_together() {
        assert_eq!(pass(1000, 1000), ([Ok(()), Ok(()), Ok(())], 1000));
    }

    #[test]
    fn a_task_that_does_not_arrive_ends_the_others_at_their_limit() {
        let (ends, releases) = pass(1, 0);
        assert_eq!(ends, [Err(Stopped::Late), Err(Stopped::Late), Ok(())]);
        assert_eq!(releases, 0);
    }
}
