//! A process of another job on this node, and the memories that it shares with this one.

use super::link::Link;
use super::meeting::End;
use crate::btl::peers::Place;
use crate::btl::{Btl, ProcId, Sink};
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use std::cell::{Cell, RefCell};

pub(super) struct Peer {
    proc: Cell<ProcId>,
    /// The memory that this process made, and the one that the other process brought; usually there is one of them.
    made: RefCell<Option<Link>>,
    brought: RefCell<Option<Link>>,
    /// Nothing more is meant for it, and it was told so.
    leaving: Cell<bool>,
    lost: Cell<bool>,
}

/// What the end of a memory has brought.
pub(super) struct Ended {
    pub delivered: usize,
    pub is_death: bool,
}

impl Place for Peer {
    fn of(proc: ProcId) -> Peer {
        Peer {
            proc: Cell::new(proc),
            made: RefCell::default(),
            brought: RefCell::default(),
            leaving: Cell::new(false),
            lost: Cell::new(false),
        }
    }

    fn become_another(&self, proc: ProcId) {
        self.made.take();
        self.brought.take();
        self.leaving.set(false);
        self.lost.set(false);
        self.proc.set(proc);
    }

    fn proc(&self) -> ProcId {
        self.proc.get()
    }
}

impl Peer {
    fn links(&self) -> [&RefCell<Option<Link>>; 2] {
        [&self.made, &self.brought]
    }

    /// The error says why the memory is not needed.
    pub fn set_made(&self, link: Link) -> Result<(), String> {
        let mut made = self.made.try_borrow_mut();
        let made = made.as_mut().map_err(|_| "its memory is in use")?;
        **made = Some(link);
        Ok(())
    }

    /// A process that brings memory has given up what it had brought before, of which the last messages are delivered now.
    pub fn set_brought(&self, link: Link, sink: &dyn Sink) -> usize {
        let before = self.brought.replace(Some(link));
        before.map_or(0, |before| before.drain(sink))
    }

    /// Shows the memory through which the process is sent to.
    pub fn with_link<R>(&self, what: impl FnOnce(&Link) -> R) -> Option<R> {
        let (made, brought) = (self.made.borrow(), self.brought.borrow());
        made.as_ref().or(brought.as_ref()).map(what)
    }

    pub fn is_linked(&self) -> bool {
        self.links().iter().any(|link| link.borrow().is_some())
    }

    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.get()
    }

    /// Nothing is sent to it any more.
    pub fn lose(&self) {
        self.lost.set(true);
    }

    pub fn progress(&self, sink: &dyn Sink) -> usize {
        let look = |link: &RefCell<Option<Link>>| {
            let link = link.borrow();
            link.as_ref().map_or(0, |link| link.sm.progress(sink))
        };
        self.links().into_iter().map(look).sum()
    }

    pub fn is_pending(&self) -> bool {
        let pending = |link: &&RefCell<Option<Link>>| {
            let link = link.borrow();
            link.as_ref().is_some_and(|link| link.sm.pending())
        };
        self.links().iter().any(pending)
    }

    pub fn bells(&self, all: &mut Vec<Held<Inbox>>) {
        for link in self.links() {
            all.extend(link.borrow().as_ref().map(Link::inbox));
        }
    }

    pub fn cut(&self) {
        for link in self.links() {
            if let Some(link) = &*link.borrow() {
                link.sm.cut(link.to);
            }
        }
    }

    /// Tells the process that nothing more is meant for it.
    pub fn leave(&self) {
        if !self.leaving.replace(true) {
            for link in self.links() {
                if let Some(link) = &*link.borrow() {
                    link.say_goodbye();
                }
            }
        }
    }

    /// Gives up the memories whose other end has ended, when all that was in them has been delivered.
    pub fn ends(&self, sink: &dyn Sink) -> Vec<Ended> {
        let mut all = Vec::new();
        for place in self.links() {
            let ended = {
                let link = place.borrow();
                let end = link.as_ref().and_then(|link| Some((link, link.end()?)));
                end.map(|(link, end)| Ended {
                    delivered: link.drain(sink),
                    is_death: end == End::Died,
                })
            };
            if ended.is_some() {
                place.take();
            }
            all.extend(ended);
        }
        all
    }
}
