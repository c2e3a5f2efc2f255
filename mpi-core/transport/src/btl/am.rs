//! Dispatch of active messages to the layers that have registered handlers.
//!
//! The handler numbers are divided into families of [`FAMILY_SIZE`] numbers.
//! Each layer above the transports owns a family,
//! and numbers its messages within the family ([`Family::am`]). No other layer interprets these messages.
//! The families of ob1 and of the bond have fixed handlers; every other layer registers its handler by [`Registry::register`].
//!
//! Point-to-point messages are recognised by one comparison, before any lookup.
//! A message of a family without a handler is counted and dropped.

use super::{Am, Header, OVERTAKES, ProcId, Sink};
use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::rc::Rc;

/// Number of handler numbers of a family in which the bit [`OVERTAKES`] is clear;
/// the family has the same number of handler numbers in which the bit is set.
pub const FAMILY_SIZE: u8 = 16;
const FAMILIES: usize = (OVERTAKES / FAMILY_SIZE) as usize;

/// The families of active messages, by the layer that owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Family {
    /// Point-to-point messages: `pml::ob1`.
    Ob1 = 0,
    /// One-sided communication: `osc`. It needs two families, because it has more than 16 messages.
    Osc = 1,
    OscMore = 2,
    /// Files: `io`.
    Io = 3,
    /// Ports, which connect processes of different jobs: `dynamic`.
    Ports = 4,
    /// Failures of processes: `fault`.
    Fault = 5,
    /// Messages between bonded transports: `bml::multirail`. They do not reach the registry.
    Multirail = 7,
}

impl Family {
    /// Returns the handler number `index` of this family. A constant index that is out of range fails the build.
    pub const fn am(self, index: u8) -> Am {
        assert!(index < FAMILY_SIZE, "a family has 16 numbers");
        self as u8 * FAMILY_SIZE + index
    }

    /// Returns the family of a handler number, as an index of the handler table.
    const fn place(am: Am) -> usize {
        ((am & !OVERTAKES) / FAMILY_SIZE) as usize
    }
}

/// The handler of the active messages of one family.
pub trait AmHandler: Sink {
    /// Sends messages that wait for space. Returns true if any message was sent.
    /// Called in every poll while the number of [`Registry::ask_for_turns`] calls exceeds that of [`Registry::end_turns`] calls.
    fn turn(&self) -> bool {
        false
    }

    /// Returns true if [`AmHandler::turn`] would make progress without the arrival of a message.
    /// Called immediately before the process sleeps.
    fn pending(&self) -> bool {
        false
    }
}

/// The handlers of one process, indexed by family.
#[derive(Default)]
pub struct Registry {
    handlers: [OnceCell<Rc<dyn AmHandler>>; FAMILIES],
    /// Number of unfinished requests for calls of [`AmHandler::turn`].
    turns: Cell<u32>,
    /// Number of messages that were dropped because their family has no handler.
    strays: Cell<u64>,
}

impl Registry {
    /// Registers the handler of a family.
    /// If the family already has a handler, returns false and changes nothing.
    ///
    /// The handler must not own the transports: their owner owns the handler, so this would be a reference cycle.
    pub fn register(&self, family: Family, handler: Rc<dyn AmHandler>) -> bool {
        debug_assert!(!matches!(family, Family::Ob1 | Family::Multirail));
        self.handlers[family as usize].set(handler).is_ok()
    }

    /// Returns the number of messages that arrived for families without a handler.
    pub fn strays(&self) -> u64 {
        self.strays.get()
    }

    /// Notifies all handlers that a process is unreachable, regardless of the transport that has detected it.
    pub fn lost(&self, peer: ProcId, why: &str) {
        self.all().for_each(|handler| handler.lost(peer, why));
    }

    /// Requests calls of [`AmHandler::turn`] in every poll, because a handler has messages to send.
    pub fn ask_for_turns(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    /// Ends one request made by [`Registry::ask_for_turns`].
    pub fn end_turns(&self) {
        self.turns.set(self.turns.get().saturating_sub(1));
    }

    /// Calls [`AmHandler::turn`] of all handlers if any handler has requested it.
    /// Returns true if any message was sent.
    #[inline]
    pub(crate) fn take_turns(&self) -> bool {
        self.wants_turns() && self.turn_all()
    }

    #[cold]
    fn turn_all(&self) -> bool {
        self.all()
            .fold(false, |moved, handler| handler.turn() | moved)
    }

    /// Returns true if any handler has requested calls of [`AmHandler::turn`].
    #[inline]
    pub(crate) fn wants_turns(&self) -> bool {
        self.turns.get() > 0
    }

    /// Returns true if a call of [`AmHandler::turn`] of any handler would make progress.
    pub(crate) fn pending(&self) -> bool {
        self.wants_turns() && self.all().any(|handler| handler.pending())
    }

    /// Iterates over the handlers. A handler of two consecutive families is returned one time.
    fn all(&self) -> impl Iterator<Item = &Rc<dyn AmHandler>> {
        let set = |place: usize| self.handlers.get(place).and_then(OnceCell::get);
        (0..FAMILIES).filter_map(move |place| {
            let handler = set(place)?;
            let before = place.checked_sub(1).and_then(set);
            before
                .is_none_or(|before| !Rc::ptr_eq(before, handler))
                .then_some(handler)
        })
    }

    #[cold]
    #[inline(never)]
    fn of(&self, am: Am) -> Option<&Rc<dyn AmHandler>> {
        self.handlers.get(Family::place(am))?.get()
    }

    #[cold]
    #[inline(never)]
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        match self.of(am) {
            Some(handler) => handler.deliver(from, am, header, payload),
            None => self.strays.set(self.strays.get() + 1),
        }
    }
}

/// The sink of all transports: dispatches messages to the point-to-point handler and the registry.
pub(crate) struct Dispatch<'a, F> {
    /// The handler of point-to-point messages.
    pub(crate) first: &'a F,
    pub(crate) others: &'a Registry,
}

/// Returns true for point-to-point messages.
#[inline(always)]
const fn is_first(am: Am) -> bool {
    am & !OVERTAKES < FAMILY_SIZE
}

impl<F: Sink> Sink for Dispatch<'_, F> {
    #[inline]
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        match is_first(am) {
            true => self.first.deliver(from, am, header, payload),
            false => self.others.deliver(from, am, header, payload),
        }
    }

    fn begin(&self, from: ProcId, am: Am, header: Header, len: usize, begun: &[u8]) -> bool {
        if is_first(am) {
            return self.first.begin(from, am, header, len, begun);
        }
        let handler = self.others.of(am);
        handler.is_some_and(|handler| handler.begin(from, am, header, len, begun))
    }

    fn land(
        &self,
        from: ProcId,
        am: Am,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        if is_first(am) {
            return self.first.land(from, am, header, range, fill);
        }
        let handler = self.others.of(am);
        handler.is_some_and(|handler| handler.land(from, am, header, range, fill))
    }

    fn landed(&self, from: ProcId, am: Am, header: Header, len: usize) {
        if is_first(am) {
            self.first.landed(from, am, header, len);
        } else if let Some(handler) = self.others.of(am) {
            handler.landed(from, am, header, len);
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.first.lost(peer, why);
        self.others.lost(peer, why);
    }

    fn parted(&self, peer: ProcId) {
        self.others.all().for_each(|handler| handler.parted(peer));
    }

    fn again(&self, to: ProcId, am: Am, header: Header, len: usize, send: &mut dyn FnMut(&[u8])) {
        if is_first(am) {
            self.first.again(to, am, header, len, send);
        } else if let Some(handler) = self.others.of(am) {
            handler.again(to, am, header, len, send);
        }
    }

    fn link_lost(&self, peer: ProcId, what: Option<&str>) {
        self.first.link_lost(peer, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[derive(Default)]
    struct Hears {
        heard: RefCell<Vec<Am>>,
        lost: Cell<u32>,
        turns: Cell<u32>,
    }

    impl Sink for Hears {
        fn deliver(&self, _: ProcId, am: Am, _: Header, _: &[u8]) {
            self.heard.borrow_mut().push(am);
        }
        fn lost(&self, _: ProcId, _: &str) {
            self.lost.set(self.lost.get() + 1);
        }
    }

    impl AmHandler for Hears {
        fn turn(&self) -> bool {
            self.turns.set(self.turns.get() + 1);
            true
        }
    }

    #[test]
    fn each_family_gets_its_own_messages_and_strays_are_counted() {
        let (first, osc, others) = (
            Hears::default(),
            Rc::new(Hears::default()),
            Registry::default(),
        );
        assert!(others.register(Family::Osc, osc.clone()));
        assert!(!others.register(Family::Osc, Rc::new(Hears::default())));
        let sink = Dispatch {
            first: &first,
            others: &others,
        };
        let all = [
            1,
            4 | OVERTAKES,
            Family::Osc.am(0),
            Family::Osc.am(15) | OVERTAKES,
            Family::Io.am(3),
        ];
        all.iter().for_each(|am| sink.deliver(0, *am, [0; 2], &[]));
        assert_eq!(*first.heard.borrow(), all[..2]);
        assert_eq!(*osc.heard.borrow(), all[2..4]);
        assert_eq!(others.strays(), 1);
    }

    #[test]
    fn a_handler_of_two_families_is_notified_once_and_polled_only_while_it_asks() {
        let (first, osc, others) = (
            Hears::default(),
            Rc::new(Hears::default()),
            Registry::default(),
        );
        others.register(Family::Osc, osc.clone());
        others.register(Family::OscMore, osc.clone());
        Dispatch {
            first: &first,
            others: &others,
        }
        .lost(3, "gone");
        assert_eq!((first.lost.get(), osc.lost.get()), (1, 1));
        assert!(!others.take_turns());
        others.ask_for_turns();
        assert!(others.take_turns());
        others.end_turns();
        assert!(!others.take_turns());
        assert_eq!(osc.turns.get(), 1);
    }
}
