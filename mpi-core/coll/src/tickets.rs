//! Turns: the calls on one communicator go on in the order in which they were made, however long each takes to be ready.
//!
//! For components that do something before a call goes further, to another component or another communicator:
//! the component that serves it there may count calls, so all members have to begin them in one order.
//! A call draws its number when it is made, waits for its turn, and passes the turn on once the calls behind it may begin.
//! It may pass before its turn has come; then those behind it wait for those before it.

use crate::engine::Engine;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// One communicator's calls.
#[derive(Clone, Default)]
pub struct TicketOrder(Rc<State>);

#[derive(Default)]
struct State {
    drawn: Cell<u64>,
    /// The number whose turn it is.
    passed: Cell<u64>,
    /// Higher numbers that have passed before their turn.
    early: RefCell<BTreeSet<u64>>,
}

/// A call's place in the order; dropping it passes the turn on.
pub struct Ticket {
    turns: TicketOrder,
    number: u64,
}

impl TicketOrder {
    pub fn draw(&self) -> Ticket {
        let number = self.0.drawn.get();
        self.0.drawn.set(number + 1);
        Ticket {
            turns: self.clone(),
            number,
        }
    }
}

impl Ticket {
    /// Whether all calls before this one have passed.
    pub fn has_come(&self) -> bool {
        self.turns.0.passed.get() >= self.number
    }

    /// Waits for the turn.
    pub async fn come(&self, engine: &Engine) {
        if self.has_come() {
            return;
        }
        // No message comes when a turn has come.
        let _restless = engine.poll_always();
        poll_fn(|_| match self.has_come() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Lets the next call begin, when all before this one have done so too.
    pub fn pass(&self) {
        let State { passed, early, .. } = &*self.turns.0;
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
        let turns = TicketOrder::default();
        let (first, second, third) = (turns.draw(), turns.draw(), turns.draw());
        assert!(first.has_come() && !second.has_come());
        first.pass();
        assert!(second.has_come() && !third.has_come());
        drop(first);
        assert!(!third.has_come());
        drop(second);
        assert!(third.has_come());
    }

    #[test]
    fn who_passes_early_does_not_let_anybody_overtake() {
        let turns = TicketOrder::default();
        let [first, second, third, fourth] = std::array::from_fn(|_| turns.draw());
        second.pass();
        drop(third);
        assert!(!fourth.has_come());
        drop(second);
        assert!(first.has_come() && !fourth.has_come());
        first.pass();
        assert!(fourth.has_come());
    }
}
