//! Messages for windows that this process has not created yet or has freed.
//!
//! A member may use a window as soon as its own creation call returns.
//! Another member may still be creating the window at that time.
//! Messages for an unknown context id are queued in order of arrival until the window exists here.
//! If this process has freed the window or failed to create it,
//! it refuses accesses with an error text, so that the origin does not wait indefinitely.

use super::Service;
use super::serve::refusal;
use super::wire;
use crate::btl::{Am, Header, ProcId};
use crate::error::{OscClass, OscError};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};

/// The maximum number of bytes of all queued messages, including [`COST`] for each message.
const MOST_BYTES: usize = 16 << 20;

/// The number of bytes that are counted for a queued message in addition to its payload.
const COST: usize = 64;

/// The number of freed windows whose context ids are remembered.
const MOST_GONE: usize = 1024;

/// A received message for a window that does not exist here.
pub(crate) struct Message {
    pub from: ProcId,
    pub am: Am,
    pub header: Header,
    pub payload: Vec<u8>,
}

impl Message {
    fn cost(&self) -> usize {
        COST + self.payload.len()
    }
}

#[derive(Default)]
pub(crate) struct Early {
    waiting: RefCell<HashMap<u64, Vec<Message>>>,
    bytes: Cell<usize>,
    gone: RefCell<VecDeque<u64>>,
}

impl Early {
    /// Queues a message for a window that this process may create later.
    /// Returns false if that window was freed, or if the byte limit is reached.
    fn keep(&self, message: Message) -> bool {
        let (window, bytes) = (message.header[0], self.bytes.get() + message.cost());
        if bytes > MOST_BYTES || self.gone.borrow().contains(&window) {
            return false;
        }
        self.bytes.set(bytes);
        let mut waiting = self.waiting.borrow_mut();
        waiting.entry(window).or_default().push(message);
        true
    }

    /// Removes and returns the queued messages for a window.
    pub fn take(&self, window: u64) -> Vec<Message> {
        let messages = self.waiting.borrow_mut().remove(&window);
        let messages = messages.unwrap_or_default();
        let bytes: usize = messages.iter().map(Message::cost).sum();
        self.bytes.set(self.bytes.get() - bytes);
        messages
    }

    fn add_gone(&self, window: u64) {
        let mut gone = self.gone.borrow_mut();
        gone.push_back(window);
        if gone.len() > MOST_GONE {
            gone.pop_front();
        }
    }
}

impl Service {
    /// Records that this process has freed a window or failed to create it.
    /// All later accesses to the window are refused.
    pub(crate) fn forget_window(&self, window: u64) {
        self.early.add_gone(window);
        for message in self.early.take(window) {
            self.refuse(&message);
        }
    }

    /// Handles a message for an unknown window: queues the message until the window exists here,
    /// or refuses it.
    #[cold]
    pub(crate) fn serve_without_window(
        &self,
        from: ProcId,
        am: Am,
        header: Header,
        payload: &[u8],
    ) {
        let message = || Message {
            from,
            am,
            header,
            payload: payload.to_vec(),
        };
        if !self.early.keep(message()) {
            self.refuse(&message());
        }
    }

    fn refuse(&self, message: &Message) {
        let Message {
            from,
            am,
            header: [window, second],
            ..
        } = *message;
        let token = match am {
            wire::PUT => 0,
            wire::GET | wire::ACCUMULATE | wire::SWAP => second,
            wire::LOCK => wire::LOCK_TOKEN,
            // The refusals of earlier accesses arrive first, since they were sent before this reply.
            wire::FLUSH => return self.reply(from, wire::FLUSHED, [window, second], Vec::new()),
            // No origin waits for a reply to the other messages.
            _ => return self.protocol_error(),
        };
        let me = self.engine.upgrade().map_or(0, |engine| engine.me());
        let sentence = format!(
            "job rank {me} does not have the window that job rank {from} accesses: it has freed it, or could not make it"
        );
        let error = OscError::new(OscClass::Range, sentence);
        let header = [window, error.class as u64];
        self.reply(from, wire::REFUSED, header, refusal(token, &error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(window: u64, bytes: usize) -> Message {
        Message {
            from: 1,
            am: wire::PUT,
            header: [window, 0],
            payload: vec![0; bytes],
        }
    }

    #[test]
    fn what_arrives_before_its_window_is_handed_over_in_order_once() {
        let early = Early::default();
        for bytes in [3, 1, 2] {
            assert!(early.keep(put(7, bytes)));
        }
        assert!(early.keep(put(8, 1)));
        let lens: Vec<usize> = early.take(7).iter().map(|m| m.payload.len()).collect();
        assert_eq!(lens, [3, 1, 2]);
        assert!(early.take(7).is_empty());
        assert_eq!(early.bytes.get(), COST + 1);
    }

    #[test]
    fn what_is_for_a_window_that_has_gone_is_not_kept_and_neither_is_more_than_a_limit() {
        let early = Early::default();
        early.add_gone(7);
        assert!(!early.keep(put(7, 1)));
        assert!(!early.keep(put(8, MOST_BYTES)));
        assert!(early.keep(put(8, MOST_BYTES - COST)));
        assert!(!early.keep(put(9, 0)));
        early.take(8);
        assert!(early.keep(put(9, 0)));
    }
}
