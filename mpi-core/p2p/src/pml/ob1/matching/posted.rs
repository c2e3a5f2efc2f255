//! The queues of posted receives.

use super::key::{FORMS, Key};
use super::queues::Queues;
use std::collections::VecDeque;

/// The posted receives of one context; a value of type `R` identifies a receive.
///
/// Programs mostly post consecutive receives with the same key. So the receives with one key, the hot key,
/// are in a queue outside the hash table.
pub struct Posted<R> {
    hot_key: Key,
    hot: VecDeque<Entry<R>>,
    /// The receives with all other keys.
    queues: Queues<Entry<R>>,
    /// The number of receives in `queues`, indexed by the form of their key; a form without receives is not looked up.
    forms: [usize; FORMS],
    next_order: u64,
    /// The number of receives in `queues`.
    queued: usize,
}

struct Entry<R> {
    order: u64,
    receive: R,
}

impl<R> Default for Posted<R> {
    fn default() -> Self {
        Posted {
            hot_key: Key::new(0, 0),
            hot: VecDeque::new(),
            queues: Queues::default(),
            forms: [0; FORMS],
            next_order: 0,
            queued: 0,
        }
    }
}

impl<R: PartialEq> Posted<R> {
    /// Returns the number of posted receives.
    #[inline]
    pub fn len(&self) -> usize {
        self.hot.len() + self.queued
    }

    /// Returns true if no receive is posted. This is the usual state when an unexpected message arrives.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if a receive has ever been posted.
    pub fn is_used(&self) -> bool {
        self.next_order > 0
    }

    /// Appends a receive to the posted receives.
    #[inline(always)]
    pub fn post(&mut self, key: Key, receive: R) {
        let order = self.next_order;
        self.next_order += 1;
        let entry = Entry { order, receive };
        if self.hot.is_empty() && self.queued == 0 {
            // No receive is posted, so the new receive's key becomes the hot key:
            // `queues` contains no receive with this key.
            self.hot_key = key;
        }
        if key == self.hot_key {
            self.hot.push_back(entry);
        } else {
            self.queue(key, entry);
        }
    }

    #[cold]
    fn queue(&mut self, key: Key, entry: Entry<R>) {
        self.forms[key.form()] += 1;
        self.queued += 1;
        self.queues.push(key, entry);
    }

    /// Removes and returns the earliest receive that accepts a message.
    #[inline(always)]
    pub fn take(&mut self, message: Key) -> Option<R> {
        if self.queued > 0 {
            return self.take_of_many(message);
        }
        self.take_hot(message)
    }

    /// Implements [`Posted::take`] if all posted receives have the hot key.
    #[inline(always)]
    fn take_hot(&mut self, message: Key) -> Option<R> {
        if !self.hot_key.accepts(message) {
            return None;
        }
        self.hot.pop_front().map(|entry| entry.receive)
    }

    /// Implements [`Posted::take`] if receives with other keys than the hot key are posted.
    #[inline(never)]
    fn take_of_many(&mut self, message: Key) -> Option<R> {
        let hot = match self.hot.front() {
            Some(first) if self.hot_key.accepts(message) => first.order,
            _ => u64::MAX,
        };
        match self.earliest_queued(message) {
            Some((order, form)) if order < hot => {
                let entry = self.queues.pop(message.widened(form))?;
                self.forms[form] -= 1;
                self.queued -= 1;
                Some(entry.receive)
            }
            _ => self.take_hot(message),
        }
    }

    /// Returns the earliest receive that accepts a message, without removing it.
    pub fn peek(&self, message: Key) -> Option<&R> {
        let hot = self.hot.front();
        let hot = hot.filter(|_| self.hot_key.accepts(message));
        let queued = match self.queued {
            0 => None,
            _ => self.earliest_queued(message),
        };
        match (hot, queued) {
            (Some(hot), Some((order, _))) if hot.order < order => Some(&hot.receive),
            (_, Some((_, form))) => {
                let entry = self.queues.front(message.widened(form))?;
                Some(&entry.receive)
            }
            (hot, None) => hot.map(|entry| &entry.receive),
        }
    }

    /// Returns the posting number and the key's form of the earliest receive in `queues` that accepts a message.
    fn earliest_queued(&self, message: Key) -> Option<(u64, usize)> {
        (0..FORMS)
            .filter(|form| self.forms[*form] > 0)
            .filter_map(|form| Some((self.queues.front(message.widened(form))?.order, form)))
            .min()
    }

    /// Removes a receive that is being cancelled. Returns false if a message has already matched the receive.
    pub fn remove(&mut self, key: Key, receive: &R) -> bool {
        if key == self.hot_key {
            let at = self.hot.iter().position(|e| e.receive == *receive);
            return at.and_then(|at| self.hot.remove(at)).is_some();
        }
        let removed = self.queues.remove(key, |e| e.receive == *receive).is_some();
        if removed {
            self.forms[key.form()] -= 1;
            self.queued -= 1;
        }
        removed
    }
}
