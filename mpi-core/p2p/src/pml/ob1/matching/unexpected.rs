//! The queues of unexpected messages.

use super::key::{FORMS, Key};
use super::queues::Queues;

/// The unexpected messages of one context.
pub struct Unexpected<M> {
    slots: Vec<Option<Slot<M>>>,
    free: Vec<u32>,
    exact: Queues<Mark>,
    /// The indexes for any source, any tag, and both wildcards; created at the first receive with a wildcard.
    wild: Option<Box<[Queues<Mark>; FORMS - 1]>>,
    /// The number of stale marks: marks in the wildcard indexes whose message has been removed.
    pub(super) stale: usize,
    next_order: u64,
    len: usize,
}

struct Slot<M> {
    key: Key,
    order: u64,
    message: M,
}

/// An index entry: refers to a slot, and is valid while the slot holds the message with the arrival number `order`.
#[derive(Clone, Copy)]
struct Mark {
    slot: u32,
    order: u64,
}

/// The wildcard indexes are dropped when the number of stale marks exceeds this limit
/// plus four times the number of unexpected messages.
const STALE_LIMIT: usize = 1024;

impl<M> Default for Unexpected<M> {
    fn default() -> Self {
        Unexpected {
            slots: Vec::new(),
            free: Vec::new(),
            exact: Queues::default(),
            wild: None,
            stale: 0,
            next_order: 0,
            len: 0,
        }
    }
}

impl<M> Unexpected<M> {
    /// Returns the number of unexpected messages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no unexpected message. This is the usual state when a receive is posted; no search is then needed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if a message has ever been added.
    pub fn is_used(&self) -> bool {
        self.next_order > 0
    }

    /// Adds a message that matched no receive.
    pub fn push(&mut self, key: Key, message: M) {
        let order = self.next_order;
        self.next_order += 1;
        self.len += 1;
        let slot = Some(Slot {
            key,
            order,
            message,
        });
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        let mark = Mark { slot: at, order };
        self.exact.push(key, mark);
        if let Some(wild) = &mut self.wild {
            for form in 1..FORMS {
                wild[form - 1].push(key.widened(form), mark);
            }
        }
    }

    /// Returns the earliest message that a receive with this key accepts, without removing it.
    pub fn peek(&mut self, receive: Key) -> Option<(Key, &M)> {
        let mark = self.find(receive)?;
        self.slots[mark.slot as usize]
            .as_ref()
            .map(|s| (s.key, &s.message))
    }

    /// Removes and returns the earliest message that a receive with this key accepts.
    #[inline]
    pub fn take(&mut self, receive: Key) -> Option<(Key, M)> {
        if self.len == 0 {
            return None;
        }
        let mark = self.find(receive)?;
        self.remove(mark)
    }

    /// Removes and returns the earliest message that has exactly this key and satisfies `is`.
    pub fn take_one(&mut self, key: Key, is: impl Fn(&M) -> bool) -> Option<(Key, M)> {
        let slots = &self.slots;
        let named = |mark: &Mark| {
            let slot = slots[mark.slot as usize].as_ref();
            slot.is_some_and(|slot| is(&slot.message))
        };
        let mark = self.exact.find(key, named).copied()?;
        self.remove(mark)
    }

    #[inline]
    fn remove(&mut self, mark: Mark) -> Option<(Key, M)> {
        let slot = self.slots[mark.slot as usize].take()?;
        self.free.push(mark.slot);
        self.len -= 1;
        // The exact index is updated immediately; the wildcard indexes are updated when they are searched next.
        self.exact.remove(slot.key, |m| m.order == mark.order);
        if self.wild.is_some() {
            self.stale += FORMS - 1;
            if self.stale > STALE_LIMIT + 4 * self.len {
                self.wild = None;
                self.stale = 0;
            }
        }
        Some((slot.key, slot.message))
    }

    /// Returns the keys of the unexpected messages, in order of arrival.
    pub fn keys(&self) -> Vec<Key> {
        let waiting = self.slots.iter().flatten();
        let mut all: Vec<(u64, Key)> = waiting.map(|slot| (slot.order, slot.key)).collect();
        all.sort_unstable_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, key)| key).collect()
    }

    /// Returns the unexpected messages with their keys, in no particular order.
    pub fn messages(&self) -> impl Iterator<Item = (Key, &M)> {
        let waiting = self.slots.iter().flatten();
        waiting.map(|slot| (slot.key, &slot.message))
    }

    /// Returns the remaining messages in no particular order.
    pub fn into_messages(self) -> impl Iterator<Item = M> {
        self.slots.into_iter().flatten().map(|slot| slot.message)
    }

    fn find(&mut self, receive: Key) -> Option<Mark> {
        if self.len == 0 {
            return None;
        }
        let form = receive.form();
        if form == 0 {
            return self.exact.front(receive).copied();
        }
        let slots = &self.slots;
        let wild = self.wild.get_or_insert_with(|| Self::index(slots));
        let queues = &mut wild[form - 1];
        loop {
            let mark = *queues.front(receive)?;
            if slots[mark.slot as usize]
                .as_ref()
                .is_some_and(|s| s.order == mark.order)
            {
                return Some(mark);
            }
            queues.pop(receive);
            self.stale = self.stale.saturating_sub(1);
        }
    }

    /// Builds the wildcard indexes of the unexpected messages, in order of arrival.
    fn index(slots: &[Option<Slot<M>>]) -> Box<[Queues<Mark>; FORMS - 1]> {
        let mut marks: Vec<(Mark, Key)> = slots
            .iter()
            .enumerate()
            .filter_map(|(at, s)| {
                s.as_ref().map(|s| {
                    (
                        Mark {
                            slot: at as u32,
                            order: s.order,
                        },
                        s.key,
                    )
                })
            })
            .collect();
        marks.sort_unstable_by_key(|(m, _)| m.order);
        let mut wild: Box<[Queues<Mark>; FORMS - 1]> = Box::default();
        for (mark, key) in marks {
            for form in 1..FORMS {
                wild[form - 1].push(key.widened(form), mark);
            }
        }
        wild
    }
}
