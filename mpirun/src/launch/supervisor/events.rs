//! The descriptors that the supervisor's epoll watches, and the encoding of their event tokens.

use crate::launch::pmi_socket::PmiSocket;
use crate::pmi::Proc;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// The subject of an epoll event: a kind and a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    Front,
    Signals,
    Pmi(Proc),
    Stdout(Proc),
    Stderr(Proc),
    /// A pipe has space, or a stopped feed may go on; the handler checks which.
    SinkWritable,
    Link(usize),
    Stdin,
}

impl Watch {
    pub(super) fn token(self) -> u64 {
        let (kind, proc) = match self {
            Watch::Front => (0, 0),
            Watch::Signals => (1, 0),
            Watch::SinkWritable => (2, 0),
            // Both numbers are small, and no process number is as large.
            Watch::Stdin => (2, 1),
            Watch::Link(number) => (2, 2 + number),
            Watch::Pmi(proc) => (3, proc.0),
            Watch::Stdout(proc) => (4, proc.0),
            Watch::Stderr(proc) => (5, proc.0),
        };
        (proc as u64) << 3 | kind
    }

    pub(super) fn of(token: u64) -> Watch {
        let proc = Proc((token >> 3) as usize);
        match token & 7 {
            0 => Watch::Front,
            1 => Watch::Signals,
            2 => match proc.0 {
                0 => Watch::SinkWritable,
                1 => Watch::Stdin,
                number => Watch::Link(number - 2),
            },
            3 => Watch::Pmi(proc),
            4 => Watch::Stdout(proc),
            _ => Watch::Stderr(proc),
        }
    }
}

pub(super) fn watch(epoll: &OwnedFd, fd: impl AsFd, what: Watch) {
    // The only failures are lack of memory and a descriptor added twice. Neither can be reported here,
    // and a missed event is found when the process is reaped.
    let _ = epoll::add(epoll, fd, EventData::new_u64(what.token()), EventFlags::IN);
}

/// Watches a rank's PMI socket again: for space as well while bytes are queued for it.
pub(super) fn watch_client(epoll: &OwnedFd, socket: &PmiSocket, proc: Proc) {
    let flags = match socket.has_queued() {
        true => EventFlags::IN | EventFlags::OUT,
        false => EventFlags::IN,
    };
    let token = EventData::new_u64(Watch::Pmi(proc).token());
    let _ = epoll::modify(epoll, socket, token, flags);
}

/// Watches a pipe for space, edge-triggered: the epoll reports once that it has space again.
pub(super) fn watch_writable(epoll: &OwnedFd, fd: BorrowedFd<'_>) {
    let flags = EventFlags::OUT | EventFlags::ET;
    let _ = epoll::add(
        epoll,
        fd,
        EventData::new_u64(Watch::SinkWritable.token()),
        flags,
    );
}
