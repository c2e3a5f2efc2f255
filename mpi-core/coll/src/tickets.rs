//! Ticket order: the calls on one communicator pass a point of their execution in the order in which they were made.
//!
//! Components use it if they communicate before they pass a call
//! to another component or communicator:
//! the component that gets the call there may count calls, so all members must pass them in the same order.
//! A call draws a ticket when it is made, waits until all earlier tickets have passed, and passes when later calls may begin.
//! A call may pass early; later calls then still wait for the earlier ones.

use crate::engine::Engine;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// The order of one communicator's calls.
#[derive(Clone, Default)]
pub struct TicketOrder(Rc<State>);

#[derive(Default)]
struct State {
    drawn: Cell<u64>,
    /// The number of the ticket that is next; all earlier tickets have passed.
    passed: Cell<u64>,
    /// The numbers of tickets that have passed although an earlier ticket has not passed.
    early: RefCell<BTreeSet<u64>>,
}

/// A call's position in the order; dropping the ticket passes it.
pub struct Ticket {
    tickets: TicketOrder,
    number: u64,
}

impl TicketOrder {
    pub fn draw(&self) -> Ticket {
        let number = self.0.drawn.get();
        self.0.drawn.set(number + 1);
        Ticket {
            tickets: self.clone(),
            number,
        }
    }
}

impl Ticket {
    /// Returns true if all earlier tickets have passed.
    pub fn has_come(&self) -> bool {
        self.tickets.0.passed.get() >= self.number
    }

    /// Waits until all earlier tickets have passed.
    pub async fn come(&self, engine: &Engine) {
        if self.has_come() {
            return;
        }
        // No message announces that the earlier tickets have passed, so the engine must keep polling.
        let _polled = engine.operations().poll_always();
        poll_fn(|_| match self.has_come() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Passes the ticket: the next call may begin if all earlier tickets have passed too.
    pub fn pass(&self) {
        let State { passed, early, .. } = &*self.tickets.0;
        if self.number > passed.get() {
            early.borrow_mut().insert(self.number);
        } else if self.number == passed.get() {
            let mut early = early.borrow_mut();
            let mut next = self.number + 1;
            while early.remove(&next) {
                next += 1;
            }
            passed.set(next);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.pass();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_in_which_they_were_drawn() {
        let tickets = TicketOrder::default();
        let (first, second, third) = (tickets.draw(), tickets.draw(), tickets.draw());
        assert!(first.has_come() && !second.has_come());
        first.pass();
        assert!(second.has_come() && !third.has_come());
        drop(first);
        assert!(!third.has_come());
        drop(second);
        assert!(third.has_come());
    }

    #[test]
    fn an_early_pass_lets_no_call_overtake() {
        let tickets = TicketOrder::default();
        let [first, second, third, fourth] = std::array::from_fn(|_| tickets.draw());
        second.pass();
        drop(third);
        assert!(!fourth.has_come());
        drop(second);
        assert!(first.has_come() && !fourth.has_come());
        first.pass();
        assert!(fourth.has_come());
    }
}
