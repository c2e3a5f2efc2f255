//! Receives that wait for a message.

use super::{FORMS, Key, Queues};

/// Posted receives of one context, `R` being what names a receive.
pub struct Posted<R> {
    /// The only posted receive, while there is only one.
    single: Option<Entry<R>>,
    queues: Queues<Entry<R>>,
    /// How many entries of each form the queues hold, so that a form nobody uses is never looked up.
    forms: [usize; FORMS],
    next_order: u64,
    len: usize,
}

struct Entry<R> {
    key: Key,
    order: u64,
    receive: R,
}

impl<R> Default for Posted<R> {
    fn default() -> Self {
        Posted {
            single: None,
            queues: Queues::default(),
            forms: [0; FORMS],
            next_order: 0,
            len: 0,
        }
    }
}

impl<R: PartialEq> Posted<R> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Posts a receive behind all others.
    #[inline]
    pub fn post(&mut self, key: Key, receive: R) {
        let entry = Entry {
            key,
            order: self.next_order,
            receive,
        };
        self.next_order += 1;
        self.len += 1;
        if self.len == 1 {
            self.single = Some(entry);
        } else {
            if let Some(first) = self.single.take() {
                self.queue(first);
            }
            self.queue(entry);
        }
    }

    fn queue(&mut self, entry: Entry<R>) {
        self.forms[entry.key.form()] += 1;
        self.queues.push(entry.key, entry);
    }

    /// Takes the earliest receive that accepts a message.
    #[inline]
    pub fn take(&mut self, message: Key) -> Option<R> {
        if let Some(entry) = self.single.take() {
            if entry.key.accepts(message) {
                self.len = 0;
                return Some(entry.receive);
            }
            self.single = Some(entry);
            return None;
        }
        if self.len == 0 {
            return None;
        }
        let form = (0..FORMS)
            .filter(|form| self.forms[*form] > 0)
            .filter_map(|form| Some((self.queues.front(message.widened(form))?.order, form)))
            .min()?
            .1;
        let entry = self.queues.pop(message.widened(form))?;
        self.forms[form] -= 1;
        self.len -= 1;
        Some(entry.receive)
    }

    /// Removes a receive that is being cancelled; false when a message has taken it already.
    pub fn remove(&mut self, key: Key, receive: &R) -> bool {
        let removed = if self.single.as_ref().is_some_and(|e| e.receive == *receive) {
            self.single = None;
            true
        } else if self.queues.remove(key, |e| e.receive == *receive).is_some() {
            self.forms[key.form()] -= 1;
            true
        } else {
            false
        };
        self.len -= usize::from(removed);
        removed
    }
}
