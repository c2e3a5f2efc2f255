//! Launcher's end of a rank's PMI socket, with nonblocking reads and writes.
//!
//! A rank reads the answers to its requests immediately, but notices of deaths later.
//! Bytes that the socket does not accept are queued in order;
//! [`PmiSocket::drain`] writes them later.
//!
//! The launcher's end is not `O_NONBLOCK`: libraries in the rank expect the other end to block.
//! Each transfer passes `MSG_DONTWAIT` instead.

use super::link::Queue;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// The socket, and the queue of bytes that the socket has not accepted yet.
#[derive(Debug)]
pub struct PmiSocket {
    fd: OwnedFd,
    unread: Queue,
}

/// The result of reading from the socket.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Bytes,
    Nothing,
    HungUp,
}

/// The result of sending bytes to a rank.
#[derive(Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The bytes are sent to the rank or queued.
    Sent,
    /// The rank has closed its end or has died; the caller's next read reports the hang-up.
    HungUp,
    /// The queue has reached its limit: the rank is alive but does not read, and is given up.
    Unread,
}

impl PmiSocket {
    /// Wraps the launcher's end of a socket pair.
    pub fn new(fd: OwnedFd) -> PmiSocket {
        PmiSocket {
            fd,
            unread: Queue::default(),
        }
    }

    /// Reads from the socket with one system call; `take` receives the bytes.
    pub fn receive(&self, take: impl FnOnce(&[u8])) -> Received {
        let mut buffer = [0u8; 16 * 1024];
        match rustix::net::recv(&self.fd, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Received::HungUp,
            Ok((got, _)) => {
                take(&buffer[..got]);
                Received::Bytes
            }
            Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
            Err(_) => Received::HungUp,
        }
    }

    /// Sends bytes to the rank, or queues them.
    pub fn say(&mut self, bytes: &[u8]) -> SendOutcome {
        self.unread.push(bytes);
        self.drain()
    }

    /// Writes queued bytes without blocking.
    pub fn drain(&mut self) -> SendOutcome {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let fd = &self.fd;
        let written = self
            .unread
            .drain_with(|bytes| rustix::net::send(fd, bytes, flags));
        match written {
            None => SendOutcome::HungUp,
            Some(_) if self.unread.is_full() => SendOutcome::Unread,
            Some(_) => SendOutcome::Sent,
        }
    }

    /// Returns true if bytes are queued that the socket has not accepted.
    pub fn has_queued(&self) -> bool {
        !self.unread.is_empty()
    }
}

impl AsFd for PmiSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (PmiSocket, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        let (ours, rank_end) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        (PmiSocket::new(ours), rank_end)
    }

    #[test]
    fn what_a_rank_reads_late_comes_whole_and_in_order() {
        let (mut socket, rank_end) = pair();
        let lines: Vec<String> = (0..6000)
            .map(|n| format!("cmd=line number={n}\n"))
            .collect();
        for line in &lines {
            assert_eq!(socket.say(line.as_bytes()), SendOutcome::Sent);
        }
        assert!(socket.has_queued());
        let mut got = Vec::new();
        let wanted: usize = lines.iter().map(String::len).sum();
        while got.len() < wanted {
            let mut buffer = [0u8; 4096];
            let read = rustix::io::read(&rank_end, &mut buffer).unwrap();
            got.extend_from_slice(&buffer[..read]);
            assert_eq!(socket.drain(), SendOutcome::Sent);
        }
        assert!(!socket.has_queued());
        assert_eq!(String::from_utf8(got).unwrap(), lines.concat());
    }

    #[test]
    fn a_rank_that_never_reads_is_distinguished_from_one_that_has_left() {
        let (mut socket, rank_end) = pair();
        let line = [b'x'; 64 * 1024];
        let said = std::iter::repeat_with(|| socket.say(&line)).take(1000);
        assert!(said.into_iter().any(|said| said == SendOutcome::Unread));
        drop(rank_end);
        assert_eq!(socket.say(&line), SendOutcome::HungUp);
        assert_eq!(socket.receive(|_| ()), Received::HungUp);
    }
}
