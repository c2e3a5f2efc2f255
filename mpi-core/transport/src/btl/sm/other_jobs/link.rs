//! A link to a process of another job: a segment that the two processes share, and a socket.

use super::meeting::{self, Caller, End, Entry};
use crate::btl::{Btl, Endpoint, OpenError, ProcId, Sink};
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::node::{Node, Sizes};
use mpi_base::param::Params;
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::super::Sm;

/// Returns the sizes of the segment: the rings of two ranks and a minimal arena, because only messages are shared.
pub(super) fn sizes() -> Sizes {
    Sizes {
        arena_len: 64 << 10,
        ..Sizes::for_ranks(2)
    }
}

/// The local rank of the process that creates the segment. `GUEST` is that of the other process.
const MAKER: u32 = 0;
const GUEST: u32 = 1;

/// One process's end of a two-process segment.
pub(super) struct Link {
    pub sm: Sm,
    /// The other process as an endpoint of `sm`.
    pub to: Endpoint,
    socket: OwnedFd,
    /// True if this segment is or was the outlet, so it may contain messages that the other process has not read.
    has_written: Cell<bool>,
    /// True if this process has sent its disconnect message; after it, this process writes no messages.
    has_said: Cell<bool>,
    /// True if the other process's disconnect message has arrived; after it, that process writes no messages.
    has_heard: Cell<bool>,
}

impl Link {
    /// Creates a segment and passes it to `peer` at the socket `entry`. The error is the reason of a failure.
    pub fn make(
        (me, name): (ProcId, u64),
        peer: ProcId,
        entry: Entry,
        params: &Params,
    ) -> Result<Link, String> {
        let memory = Node::create_with(2, sizes()).map_err(|error| error.to_string())?;
        let sm = end(memory.as_fd(), MAKER, vec![me, peer], params)?;
        let socket = meeting::call(entry, name, memory.as_fd())
            .map_err(|error| format!("its socket on this node is not reached: {error}"))?;
        Ok(Link::new(sm, GUEST, socket))
    }

    /// Attaches to the segment that a connecting process has sent.
    pub fn take(me: ProcId, peer: ProcId, caller: Caller, params: &Params) -> Result<Link, String> {
        let sm = end(caller.memory.as_fd(), GUEST, vec![peer, me], params)?;
        Ok(Link::new(sm, MAKER, caller.socket))
    }

    fn new(sm: Sm, other: u32, socket: OwnedFd) -> Link {
        Link {
            sm,
            to: Endpoint(other),
            socket,
            has_written: Cell::new(false),
            has_said: Cell::new(false),
            has_heard: Cell::new(false),
        }
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns `Some` if the other process has closed the segment or has sent its disconnect message.
    pub fn end(&self) -> Option<End> {
        let end = meeting::end(self.socket());
        if end == Some(End::Goodbye) {
            self.has_heard.set(true);
        }
        end
    }

    /// Returns true if the other process's disconnect message has arrived.
    pub fn has_heard(&self) -> bool {
        self.has_heard.get()
    }

    /// Sends the disconnect message if it has not been sent.
    pub fn say_goodbye(&self) {
        if !self.has_said.replace(true) {
            meeting::say_goodbye(self.socket());
        }
    }

    /// Records that this segment is the outlet.
    pub fn begin_to_write(&self) {
        self.has_written.set(true);
    }

    /// Returns true if this segment is or was the outlet.
    pub fn has_written(&self) -> bool {
        self.has_written.get()
    }

    /// Reports to the other process that this process has read all of its messages.
    /// Both disconnect messages must have been exchanged.
    pub fn confirm(&self) {
        meeting::confirm(self.socket());
    }

    /// Delivers all messages that the other process has written so far. Returns their number.
    pub fn drain(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        loop {
            match self.sm.progress(sink) {
                0 => return delivered,
                some => delivered += some,
            }
        }
    }

    /// Returns the inbox that contains the doorbell of this end.
    pub fn inbox(&self) -> Held<Inbox> {
        self.sm.node.my_inbox().clone()
    }
}

fn end(
    memory: BorrowedFd<'_>,
    rank: u32,
    procs: Vec<ProcId>,
    params: &Params,
) -> Result<Sm, String> {
    let node = Node::attach(memory, rank).map_err(|error| error.to_string())?;
    if node.nlocal() != 2 {
        return Err(format!("it is memory of {} processes", node.nlocal()));
    }
    Sm::of(node, procs, params, false).map_err(|error: OpenError| error.to_string())
}
