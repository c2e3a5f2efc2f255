//! mpirun's own standard output and standard error, which may be full, broken or closed.

use super::super::output::{Sink, Target};
use super::events::Watch;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

pub(super) struct Outputs {
    out: Sink,
    err: Sink,
    /// The ranks are not read, because a sink is full.
    held: bool,
    watching_room: bool,
}

impl Outputs {
    pub(super) fn new(out: OwnedFd, err: OwnedFd) -> Outputs {
        Outputs {
            out: Sink::new(out),
            err: Sink::new(err),
            held: false,
            watching_room: false,
        }
    }

    pub(super) fn sink(&mut self, target: Target) -> &mut Sink {
        match target {
            Target::Stdout => &mut self.out,
            Target::Stderr => &mut self.err,
        }
    }

    /// Prints a message of mpirun on standard error, or on standard output if standard error is broken.
    pub(super) fn say(&mut self, text: &str) {
        let sink = match self.err.is_broken() {
            true => &mut self.out,
            false => &mut self.err,
        };
        sink.push(printable::text(&format!("mpirun: {text}\n")).as_bytes());
    }

    /// Writes what can be written without blocking.
    pub(super) fn drain(&mut self) {
        self.out.drain();
        self.err.drain();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty() && self.err.is_empty()
    }

    /// Returns true if one of the sinks is full.
    pub(super) fn is_full(&self) -> bool {
        self.out.is_full() || self.err.is_full()
    }

    /// Returns true if no process reads standard output any more.
    pub(super) fn is_closed(&self) -> bool {
        self.out.is_closed()
    }

    /// Returns a sink that has queued bytes.
    pub(super) fn slow(&self) -> &Sink {
        match self.out.is_empty() {
            true => &self.err,
            false => &self.out,
        }
    }

    /// Returns the sentences about files that could not be written, once.
    pub(super) fn take_complaints(&mut self) -> Vec<String> {
        let mut complaints = self.out.take_complaints();
        complaints.append(&mut self.err.take_complaints());
        complaints
    }

    /// Returns the error that broke each sink, once.
    pub(super) fn take_write_errors(&mut self) -> [(&'static str, Option<Errno>); 2] {
        [
            ("standard output", self.out.take_write_error()),
            ("standard error", self.err.take_write_error()),
        ]
    }

    /// Watches for space while bytes are queued.
    pub(super) fn watch_writable(&mut self, epoll: &OwnedFd) {
        if self.is_empty() != self.watching_room {
            return;
        }
        self.watching_room = !self.watching_room;
        for sink in [&self.out, &self.err] {
            // A plain file cannot be watched and never needs to be; both sinks may be one file, which is watched once.
            let token = EventData::new_u64(Watch::SinkWritable.token());
            let _ = match self.watching_room && !sink.is_empty() {
                true => epoll::add(epoll, sink, token, EventFlags::OUT),
                false => epoll::delete(epoll, sink),
            };
        }
    }

    /// Returns whether reading the ranks must stop (true) or resume (false), if that has changed.
    pub(super) fn throttle_change(&mut self) -> Option<bool> {
        let full = self.is_full();
        (full != self.held).then(|| {
            self.held = full;
            full
        })
    }
}
