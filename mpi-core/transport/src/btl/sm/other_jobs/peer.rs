//! The state of a process of another job on this node: the segments shared with it.
//!
//! A process sends through one segment, its *outlet*,
//! until it sends its disconnect message in this segment.
//! A process reads all segments. The next outlet is a segment of which the peer reads
//! only after it has read all earlier outlets. So messages keep their order.

use super::link::Link;
use super::meeting::End;
use crate::btl::peers::Place;
use crate::btl::{Btl, Connections, ProcId, Sink};
use elsa::FrozenVec;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use std::cell::{Cell, RefCell};

/// A place for a segment; empty ones are reused.
type Slot = RefCell<Option<Link>>;

pub(super) struct Peer {
    proc: Cell<ProcId>,
    /// The segments that the two processes share; usually one.
    slots: FrozenVec<Box<Slot>>,
    /// Index of the outlet, the segment through which this process sends.
    outlet: Cell<Option<usize>>,
    lost: Cell<bool>,
}

/// The results of polling the sockets of one peer.
#[derive(Default)]
pub(super) struct Ended {
    pub delivered: usize,
    /// The number of segments that were closed.
    pub closed: usize,
    /// True if the other process's disconnect message has arrived in the outlet while this process still uses the connection.
    pub has_parted: bool,
    /// True if the other end of a segment was closed without a disconnect message.
    pub is_death: bool,
}

impl Place for Peer {
    fn of(proc: ProcId) -> Peer {
        Peer {
            proc: Cell::new(proc),
            slots: FrozenVec::new(),
            outlet: Cell::new(None),
            lost: Cell::new(false),
        }
    }

    fn become_another(&self, proc: ProcId) {
        self.outlet.set(None);
        self.slots().for_each(|slot| drop(slot.take()));
        self.lost.set(false);
        self.proc.set(proc);
    }

    fn proc(&self) -> ProcId {
        self.proc.get()
    }
}

impl Peer {
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        (0..self.slots.len()).filter_map(|at| self.slots.get(at))
    }

    /// Calls `what` for each open segment; returns the results.
    fn each<R>(&self, what: impl Fn(&Link) -> R) -> impl Iterator<Item = R> {
        self.slots()
            .filter_map(move |slot| slot.borrow().as_ref().map(&what))
    }

    /// Stores a segment in a free slot or a new one. Returns the slot's index.
    fn keep(&self, link: Link) -> usize {
        let is_free = |slot: &Slot| slot.try_borrow().is_ok_and(|slot| slot.is_none());
        match self.slots().position(is_free) {
            Some(at) => {
                self.slots[at].replace(Some(link));
                at
            }
            None => {
                self.slots.push(Box::new(RefCell::new(Some(link))));
                self.slots.len() - 1
            }
        }
    }

    /// Stores a segment that this process has created, as the new outlet.
    pub fn set_made(&self, link: Link) {
        link.begin_to_write();
        self.outlet.set(Some(self.keep(link)));
    }

    /// Stores a segment that the peer has created, after all messages in the older segments were delivered.
    /// Returns the number of these messages.
    pub fn set_brought(&self, link: Link, sink: &dyn Sink) -> usize {
        let delivered = self.each(|before| before.drain(sink)).sum();
        self.keep(link);
        delivered
    }

    pub fn has_outlet(&self) -> bool {
        self.outlet.get().is_some()
    }

    /// Makes a segment that the peer has created the outlet,
    /// unless an open segment may contain messages that the peer has not read.
    /// Returns true if there is an outlet now.
    pub fn adopt(&self) -> bool {
        if !self.each(Link::has_written).any(|written| written) {
            let is_there = |slot: &Slot| slot.borrow().is_some();
            let brought = self.slots().position(is_there);
            self.outlet.set(brought);
            self.with_outlet(Link::begin_to_write);
        }
        self.has_outlet()
    }

    /// Calls `what` with the outlet; returns `None` if there is no outlet.
    pub fn with_outlet<R>(&self, what: impl FnOnce(&Link) -> R) -> Option<R> {
        let slot = self.slots.get(self.outlet.get()?)?;
        slot.borrow().as_ref().map(what)
    }

    /// Returns the number of open segments shared with the peer.
    pub fn links(&self) -> usize {
        self.each(|_| ()).count()
    }

    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Marks the process as lost; nothing is sent to it afterwards.
    pub fn lose(&self) {
        self.lost.set(true);
    }

    pub fn progress(&self, sink: &dyn Sink) -> usize {
        self.each(|link| link.sm.progress(sink)).sum()
    }

    pub fn is_pending(&self) -> bool {
        self.each(|link| link.sm.pending()).any(|pending| pending)
    }

    pub fn doorbells(&self, all: &mut Vec<Held<Inbox>>) {
        all.extend(self.each(Link::inbox));
    }

    pub fn cut(&self) {
        self.each(|link| link.sm.cut(link.to)).for_each(drop);
    }

    /// Disconnects from the process in the outlet. The segment is closed when the peer has read it.
    ///
    /// A segment to which this process never wrote stays open,
    /// because the peer may have created it for its next messages.
    pub fn part(&self) {
        self.with_outlet(|link| {
            link.say_goodbye();
            if link.has_heard() {
                link.confirm();
            }
        });
        self.outlet.set(None);
    }

    /// Sends the disconnect message in all segments and closes them, because this process leaves MPI. Returns the number of segments.
    pub fn leave(&self) -> usize {
        self.outlet.set(None);
        let links = self.slots().filter_map(RefCell::take);
        links.map(|link| link.say_goodbye()).count()
    }

    /// Handles the segments in which the peer has disconnected or died, after delivering their messages.
    /// `is_used` returns true if a communicator still contains the peer.
    pub fn look(&self, is_used: impl Fn() -> bool, sink: &dyn Sink) -> Ended {
        let mut ended = Ended::default();
        for (at, slot) in self.slots().enumerate() {
            let is_over = slot.borrow().as_ref().is_some_and(|link| {
                let Some(end) = link.end() else { return false };
                ended.delivered += link.drain(sink);
                // The sink may have sent messages, and may have connected or disconnected.
                let is_outlet = self.outlet.get() == Some(at);
                let stays = is_outlet && is_used();
                ended.has_parted |= stays && link.has_heard();
                ended.is_death |= end == End::Closed && !link.has_heard();
                if end == End::Goodbye && stays {
                    return false;
                }
                if is_outlet {
                    self.outlet.set(None);
                }
                link.say_goodbye();
                if end == End::Goodbye && link.has_written() {
                    link.confirm();
                    return false;
                }
                true
            });
            if is_over {
                ended.closed += usize::from(slot.take().is_some());
            }
        }
        ended
    }
}
