//! The sequence of one peer's ordered messages.
//!
//! Present versions of the libraries deliver the active messages of one endpoint in order,
//! but their documentation does not guarantee this.
//! So each ordered message has a sequence number, and a message that arrives early is stored
//! until all earlier messages have arrived.

use std::collections::HashMap;

/// Maximum distance of an early message from the next expected sequence number.
const MOST: u16 = 4096;

/// The action for an ordered message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Deliver the message, then call [`Order::advance`].
    Now,
    /// Store the message until all earlier messages have arrived.
    Later,
    /// The message is a duplicate, or too many earlier messages are missing: the connection must be closed.
    Broken,
}

/// The next expected sequence number, and the messages that have arrived early.
pub struct Order<T> {
    next: u16,
    early: HashMap<u16, T>,
}

impl<T> Default for Order<T> {
    fn default() -> Order<T> {
        Order {
            next: 0,
            early: HashMap::new(),
        }
    }
}

impl<T> Order<T> {
    #[inline]
    pub fn turn(&self, number: u16) -> Turn {
        match number.wrapping_sub(self.next) {
            0 => Turn::Now,
            ahead if ahead < MOST && !self.early.contains_key(&number) => Turn::Later,
            _ => Turn::Broken,
        }
    }

    /// Stores a message that arrived early.
    pub fn keep(&mut self, number: u16, message: T) {
        self.early.insert(number, message);
    }

    /// Advances the expected sequence number by one. Returns the next message if it has already arrived.
    #[inline]
    pub fn advance(&mut self) -> Option<T> {
        self.next = self.next.wrapping_add(1);
        if self.early.is_empty() {
            return None;
        }
        self.early.remove(&self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Messages that arrive in any order within the window
        /// are delivered in the order of their sequence numbers, also when the numbers wrap around.
        #[test]
        fn messages_in_any_order_are_delivered_in_theirs(keys in prop::collection::vec(0u32..2000, 100..3000), first in any::<u16>()) {
            let mut arrivals: Vec<(u32, u16)> = keys.iter().enumerate()
                .map(|(at, key)| (at as u32 + key, at as u16))
                .collect();
            arrivals.sort_unstable();
            let mut order = Order { next: first, early: HashMap::new() };
            let mut delivered = Vec::new();
            for (_, at) in arrivals {
                let number = first.wrapping_add(at);
                match order.turn(number) {
                    Turn::Now => {
                        delivered.push(at);
                        while let Some(next) = order.advance() {
                            delivered.push(next);
                        }
                    }
                    Turn::Later => order.keep(number, at),
                    Turn::Broken => prop_assert!(false, "{number} is refused"),
                }
            }
            prop_assert!(delivered.into_iter().eq(0..keys.len() as u16));
        }
    }

    #[test]
    fn a_repeated_message_or_one_far_ahead_breaks_the_connection() {
        let mut order = Order::default();
        assert_eq!(order.turn(0), Turn::Now);
        assert_eq!(order.advance(), None);
        assert_eq!(order.turn(0), Turn::Broken);
        assert_eq!(order.turn(2), Turn::Later);
        order.keep(2, ());
        assert_eq!(order.turn(2), Turn::Broken);
        assert_eq!(order.turn(1 + MOST), Turn::Broken);
    }
}
