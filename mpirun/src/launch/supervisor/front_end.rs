//! Socket to the front end: one byte per signal of the user; closed when the front end dies.
//! In the other direction the socket carries the reports for debuggers
//! ([`mpir`](super::super::mpir)).

use super::super::ends_the_job;
use super::super::hold::{self, Go};
use super::super::mpir::RELEASED;
use super::super::sys::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{RecvFlags, SendFlags};

/// The maximum duration of one call of [`FrontEnd::wait_for`].
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

pub(super) struct FrontEnd {
    socket: OwnedFd,
    alive: bool,
    /// Signals that arrived while the supervisor waited for a debugger.
    early: Vec<Signal>,
}

/// The data that the front end has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromUser {
    Signals(Vec<Signal>),
    /// The front end was killed; no process is left to report to.
    Died,
}

impl FrontEnd {
    pub(super) fn new(socket: OwnedFd) -> FrontEnd {
        FrontEnd {
            socket,
            alive: true,
            early: Vec::new(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive
    }

    /// Reads the signals that the front end has forwarded.
    pub(super) fn read(&mut self) -> FromUser {
        let mut bytes = [0u8; 64];
        match rustix::net::recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.alive = false;
                FromUser::Died
            }
            Ok((got, _)) => {
                let mut signals = std::mem::take(&mut self.early);
                let arrived = bytes[..got].iter().filter(|byte| **byte != RELEASED);
                signals.extend(arrived.copied().map(Signal::from));
                FromUser::Signals(signals)
            }
            Err(_) => FromUser::Signals(std::mem::take(&mut self.early)),
        }
    }

    /// Sends one byte to the front end.
    pub(super) fn send(&self, byte: u8) {
        // Errors are ignored: a dead or stopped front end has no debugger that needs the byte.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.socket, &[byte], flags);
    }

    /// Waits until the debugger has read the process table.
    /// A signal that ends the job, or the death of the front end, also ends the wait.
    pub(super) fn wait_for_release(&mut self) {
        let mut byte = [0; 1];
        loop {
            match rustix::net::recv(&self.socket, &mut byte, RecvFlags::empty()) {
                Ok((1, _)) if byte == [RELEASED] => return,
                Ok((1, _)) => {
                    let signal = Signal::from(byte[0]);
                    self.early.push(signal);
                    if ends_the_job(signal) {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                // The next read reports the front end's death.
                _ => return,
            }
        }
    }

    /// Waits for the end of a checkpoint. Returns `None` if the front end has died.
    /// Signals of the user that arrive before the answer are kept.
    pub(super) fn wait_for_go(&mut self) -> Option<Go> {
        hold::wait_for_go(&self.socket, &mut self.early)
    }

    /// Returns the signals that arrived before the answer about a checkpoint.
    pub(super) fn take_early(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.early)
    }

    /// Waits up to [`PAUSE`] for one of these descriptors or for the death of the front end.
    /// Returns false if `poll` fails.
    pub(super) fn wait_for<'a>(&'a mut self, mut fds: Vec<PollFd<'a>>) -> bool {
        fds.push(PollFd::new(&self.socket, PollFlags::RDHUP));
        let polled = poll(&mut fds, Some(&PAUSE));
        let ended = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
        let front = fds.pop().map(|front| front.revents());
        drop(fds);
        if front.is_some_and(|events| events.intersects(ended)) {
            self.alive = false;
        }
        matches!(polled, Ok(_) | Err(rustix::io::Errno::INTR))
    }

    /// Reads one signal. Returns true if the signal ends the job.
    pub(super) fn asks_for_the_end(&self) -> bool {
        let mut byte = [0u8; 1];
        let asked = rustix::net::recv(&self.socket, &mut byte, RecvFlags::DONTWAIT);
        asked.is_ok_and(|(got, _)| got > 0 && ends_the_job(Signal::from(byte[0])))
    }
}

impl AsFd for FrontEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn signals_arrive_as_bytes_and_a_closed_socket_is_a_death() {
        let flags = SocketFlags::CLOEXEC;
        let (ours, user) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let mut front = FrontEnd::new(ours);
        assert_eq!(front.read(), FromUser::Signals(Vec::new()));
        rustix::io::write(&user, &[libc::SIGUSR1 as u8, libc::SIGINT as u8]).unwrap();
        assert!(!front.asks_for_the_end());
        assert!(front.asks_for_the_end());
        rustix::io::write(&user, &[libc::SIGCONT as u8]).unwrap();
        assert_eq!(front.read(), FromUser::Signals(vec![libc::SIGCONT]));
        rustix::net::shutdown(&user, rustix::net::Shutdown::Both).unwrap();
        assert!(front.wait_for(Vec::new()));
        assert!(!front.is_alive());
        assert_eq!(front.read(), FromUser::Died);
    }
}
