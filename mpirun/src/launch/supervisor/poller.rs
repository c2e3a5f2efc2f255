//! Poller: the supervisor's epoll, its watched descriptors, and the encoding of event tokens.

use crate::launch::output::Target;
use crate::launch::pmi_socket::PmiSocket;
use crate::launch::starter::{StartError, system};
use crate::pmi::Proc;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// The maximum number of events per wait.
const EVENTS: usize = 64;

/// The source of an epoll event: its kind, with a process or index if the kind has several sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    Front,
    Signals,
    Pmi(Proc),
    Stdout(Proc),
    Stderr(Proc),
    /// A pipe has space, or a paused input may resume; the handler serves all links and the input.
    SinkWritable,
    Link(usize),
    Stdin,
    /// The control socket has a connection to accept.
    Control,
    /// A connection of `mpi-ctl` has data.
    Controller(usize),
}

impl Watch {
    pub(super) fn output(proc: Proc, of: Target) -> Watch {
        match of {
            Target::Stdout => Watch::Stdout(proc),
            Target::Stderr => Watch::Stderr(proc),
        }
    }

    fn token(self) -> u64 {
        let (kind, proc) = match self {
            Watch::Front => (0, 0),
            Watch::Signals => (1, 0),
            Watch::SinkWritable => (2, 0),
            // Token kind 2 is shared: 0 is SinkWritable, 1 is Stdin, and 2 + n is link n.
            Watch::Stdin => (2, 1),
            Watch::Link(number) => (2, 2 + number),
            Watch::Control => (6, 0),
            Watch::Controller(number) => (6, 1 + number),
            Watch::Pmi(proc) => (3, proc.0),
            Watch::Stdout(proc) => (4, proc.0),
            Watch::Stderr(proc) => (5, proc.0),
        };
        (proc as u64) << 3 | kind
    }

    fn of(token: u64) -> Watch {
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
            6 => match proc.0 {
                0 => Watch::Control,
                number => Watch::Controller(number - 1),
            },
            _ => Watch::Stderr(proc),
        }
    }
}

/// The result of waiting for events.
pub(super) enum Waited {
    Events(Vec<Watch>),
    /// The timeout has expired without an event.
    Nothing,
}

pub(super) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(super) fn new() -> Result<Poller, StartError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll_create"))?;
        Ok(Poller { epoll })
    }

    /// Waits for events, up to `timeout`.
    pub(super) fn wait(&self, timeout: Option<&Timespec>) -> Result<Waited, StartError> {
        let mut events = Vec::with_capacity(EVENTS);
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, spare, timeout) {
            Ok(0) => Ok(Waited::Nothing),
            Ok(_) | Err(Errno::INTR) => {
                let watches = events.iter().map(|event| Watch::of(event.data.u64()));
                Ok(Waited::Events(watches.collect()))
            }
            Err(error) => Err(system("epoll_wait")(error)),
        }
    }

    /// Watches a descriptor for data. Returns false if it cannot be watched, as a regular file.
    ///
    /// Other failures are lack of memory and a descriptor that is added twice.
    /// These failures are not reported: a missed event is found when the process is reaped.
    pub(super) fn watch(&self, fd: impl AsFd, what: Watch) -> bool {
        let token = EventData::new_u64(what.token());
        epoll::add(&self.epoll, fd, token, EventFlags::IN).is_ok()
    }

    /// Removes a descriptor from the epoll.
    pub(super) fn unwatch(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Updates the watch of a rank's PMI socket: data, and space while bytes are queued.
    pub(super) fn watch_client(&self, socket: &PmiSocket, proc: Proc) {
        let flags = match socket.has_queued() {
            true => EventFlags::IN | EventFlags::OUT,
            false => EventFlags::IN,
        };
        self.modify(socket, Watch::Pmi(proc), flags);
    }

    /// Watches a rank's output pipe for data if `read`, else for no event.
    pub(super) fn watch_output(&self, pipe: BorrowedFd<'_>, what: Watch, read: bool) {
        let flags = match read {
            true => EventFlags::IN,
            false => EventFlags::empty(),
        };
        self.modify(pipe, what, flags);
    }

    fn modify(&self, fd: impl AsFd, what: Watch, flags: EventFlags) {
        let token = EventData::new_u64(what.token());
        let _ = epoll::modify(&self.epoll, fd, token, flags);
    }

    /// Watches a pipe or socket with a full buffer for space.
    pub(super) fn watch_full(&self, fd: impl AsFd) {
        let token = EventData::new_u64(Watch::SinkWritable.token());
        let _ = epoll::add(&self.epoll, fd, token, EventFlags::OUT);
    }

    /// Watches a pipe for space, edge-triggered: one event each time the pipe becomes writable.
    pub(super) fn watch_writable(&self, fd: BorrowedFd<'_>) {
        let token = EventData::new_u64(Watch::SinkWritable.token());
        let _ = epoll::add(&self.epoll, fd, token, EventFlags::OUT | EventFlags::ET);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_one_subject() {
        let of_procs = [0, 1, 70_000].map(Proc).into_iter();
        let of_procs = of_procs.flat_map(|proc| {
            let outputs = [Target::Stdout, Target::Stderr].map(|of| Watch::output(proc, of));
            outputs.into_iter().chain([Watch::Pmi(proc)])
        });
        let links = [0, 1, 500].map(Watch::Link);
        let single = [
            Watch::Front,
            Watch::Signals,
            Watch::SinkWritable,
            Watch::Stdin,
            Watch::Control,
        ];
        let controllers = [0, 1, 500].map(Watch::Controller);
        let all = of_procs.chain(links).chain(single).chain(controllers);
        let all: Vec<Watch> = all.collect();
        for (n, &watch) in all.iter().enumerate() {
            assert_eq!(Watch::of(watch.token()), watch);
            assert!(all[..n].iter().all(|other| other.token() != watch.token()));
        }
    }
}
