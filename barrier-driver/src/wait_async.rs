//! Asynchronous waits that sleep until the pin's interrupt, for executors on microcontrollers.

use crate::{OpenError, PinFault, ToggleBarrier};
use core::future::Future;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use embedded_hal_async::digital::Wait;

impl<O: OutputPin, I: InputPin<Error = O::Error>> ToggleBarrier<O, I> {
    /// As [`open`](Self::open), with a fence that does not block the other tasks of the executor.
    ///
    /// If the future is dropped before the fence is complete, the wire is left idle.
    pub async fn open_async<F>(
        out: O,
        input: I,
        fence: impl Future<Output = Result<(), F>>,
    ) -> Result<Self, OpenError<O::Error, F>> {
        let barrier = Self::idle(out, input)?;
        fence.await.map_err(OpenError::Fence)?;
        barrier.after_fence()
    }
}

impl<O: OutputPin, I: InputPin<Error = O::Error> + Wait> ToggleBarrier<O, I> {
    /// Waits for the release of this node's barrier, asleep between interrupts; returns immediately if the node is in no barrier.
    ///
    /// The function waits for a level, not for an edge, so it does not miss a release between the poll and the sleep.
    /// It reads the level again after waking, so it does not mistake a pulse that has ended for a release.
    /// The caller implements a time limit by dropping the future: the node stays in the barrier, and may wait again or close.
    pub async fn released(&mut self) -> Result<(), PinFault<O::Error>> {
        while self.poll()?.is_pending() {
            let awaited = !self.level();
            let woken = match awaited {
                PinState::High => self.input().wait_for_high().await,
                PinState::Low => self.input().wait_for_low().await,
            };
            woken.map_err(PinFault::Read)?;
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};
    use core::convert::Infallible;
    use core::future::{pending, poll_fn};
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};
    use embedded_hal::digital::ErrorType;
    use fpga_model::ToggleMachine;
    use std::rc::Rc;

    /// A board of two nodes; the test advances its clock.
    struct Board {
        machine: Cell<ToggleMachine>,
        wires: Cell<u64>,
        /// The number of reads of a pin: a large number shows that a node spins instead of sleeping.
        reads: Cell<usize>,
        sleepers: RefCell<Vec<Waker>>,
    }

    impl Board {
        fn output(&self) -> bool {
            self.machine.get().outputs() != 0
        }

        fn run(&self) {
            let mut machine = self.machine.get();
            machine.fast_forward(self.wires.get(), 3);
            self.machine.set(machine);
        }
    }

    struct Pin(Rc<Board>, usize);

    impl ErrorType for Pin {
        type Error = Infallible;
    }

    impl OutputPin for Pin {
        fn set_low(&mut self) -> Result<(), Infallible> {
            self.0.wires.set(self.0.wires.get() & !(1 << self.1));
            Ok(())
        }

        fn set_high(&mut self) -> Result<(), Infallible> {
            self.0.wires.set(self.0.wires.get() | 1 << self.1);
            Ok(())
        }
    }

    impl InputPin for Pin {
        fn is_high(&mut self) -> Result<bool, Infallible> {
            self.0.reads.set(self.0.reads.get() + 1);
            Ok(self.0.output())
        }

        fn is_low(&mut self) -> Result<bool, Infallible> {
            self.is_high().map(|high| !high)
        }
    }

    impl Pin {
        async fn level(&self, high: bool) -> Result<(), Infallible> {
            poll_fn(|context| {
                if self.0.output() == high {
                    return Poll::Ready(Ok(()));
                }
                self.0.sleepers.borrow_mut().push(context.waker().clone());
                Poll::Pending
            })
            .await
        }
    }

    impl Wait for Pin {
        async fn wait_for_high(&mut self) -> Result<(), Infallible> {
            self.level(true).await
        }

        async fn wait_for_low(&mut self) -> Result<(), Infallible> {
            self.level(false).await
        }

        async fn wait_for_rising_edge(&mut self) -> Result<(), Infallible> {
            unreachable!("an edge could be missed")
        }

        async fn wait_for_falling_edge(&mut self) -> Result<(), Infallible> {
            unreachable!("an edge could be missed")
        }

        async fn wait_for_any_edge(&mut self) -> Result<(), Infallible> {
            unreachable!("an edge could be missed")
        }
    }

    fn two() -> (Rc<Board>, [ToggleBarrier<Pin, Pin>; 2]) {
        let board = Rc::new(Board {
            machine: Cell::new(ToggleMachine::new(2).expect("two nodes")),
            wires: Cell::new(0),
            reads: Cell::new(0),
            sleepers: RefCell::default(),
        });
        let open = |node| {
            let (out, input) = (Pin(board.clone(), node), Pin(board.clone(), node));
            ToggleBarrier::open(out, input, || Ok::<_, Infallible>(())).expect("an idle board")
        };
        let nodes = [open(0), open(1)];
        (board, nodes)
    }

    #[test]
    fn a_node_sleeps_until_the_release_and_reads_twice() {
        let (board, [mut first, mut second]) = two();
        for barrier in 0..4 {
            first.enter().expect("it is out");
            let before = board.reads.get();
            let mut context = Context::from_waker(Waker::noop());
            let mut released = pin!(first.released());
            assert!(released.as_mut().poll(&mut context).is_pending());
            board.run();
            assert!(
                released.as_mut().poll(&mut context).is_pending(),
                "node 1 is missing"
            );
            assert!(!board.sleepers.borrow().is_empty());
            second.enter().expect("it is out");
            board.run();
            let done = released.as_mut().poll(&mut context);
            assert_eq!(done, Poll::Ready(Ok(())), "barrier {barrier}");
            assert_eq!(board.reads.get() - before, 2, "before and after the sleep");
            assert_eq!(second.poll(), Ok(Poll::Ready(())));
        }
    }

    #[test]
    fn an_opening_that_is_given_up_leaves_the_wire_idle() {
        let (board, [mut first, mut second]) = two();
        for node in [&mut first, &mut second] {
            node.enter().expect("it is out");
        }
        board.run();
        for mut node in [first, second] {
            assert_eq!(node.poll(), Ok(Poll::Ready(())));
        }
        // Node 0 has another level than the barrier, as after a dead job.
        board.wires.set(0b10);
        let mut context = Context::from_waker(Waker::noop());
        {
            let (out, input) = (Pin(board.clone(), 0), Pin(board.clone(), 0));
            let fence = pending::<Result<(), Infallible>>();
            let mut opening = pin!(ToggleBarrier::open_async(out, input, fence));
            assert!(opening.as_mut().poll(&mut context).is_pending());
            assert_eq!(board.wires.get(), 0b11, "idle before the fence");
            board.wires.set(0b10);
        }
        assert_eq!(board.wires.get(), 0b11, "idle after the future was dropped");
    }

    #[test]
    fn an_opening_whose_level_moves_in_the_fence_is_refused() {
        let (board, _) = two();
        let (out, input) = (Pin(board.clone(), 0), Pin(board.clone(), 0));
        let fence = async {
            board.wires.set(0b11);
            board.run();
            Ok::<_, Infallible>(())
        };
        let mut context = Context::from_waker(Waker::noop());
        let mut opening = pin!(ToggleBarrier::open_async(out, input, fence));
        let Poll::Ready(opened) = opening.as_mut().poll(&mut context) else {
            panic!("the fence is complete");
        };
        let idle = PinState::Low;
        assert_eq!(opened.map(drop), Err(OpenError::InputMoved { idle }));
    }

    #[test]
    fn a_node_in_no_barrier_does_not_sleep() {
        let (_, [mut first, _]) = two();
        let mut context = Context::from_waker(Waker::noop());
        let done = pin!(first.released()).poll(&mut context);
        assert_eq!(done, Poll::Ready(Ok(())));
    }

    #[test]
    fn a_wait_that_is_given_up_can_be_taken_up_again() {
        let (board, [mut first, mut second]) = two();
        first.enter().expect("it is out");
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(first.released()).poll(&mut context).is_pending());
        assert!(first.is_entered());
        second.enter().expect("it is out");
        board.run();
        assert_eq!(
            pin!(first.released()).poll(&mut context),
            Poll::Ready(Ok(()))
        );
        assert!(!first.is_entered());
    }
}
