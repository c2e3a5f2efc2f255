//! Launcher's end of a rank's PMI socket, with nonblocking reads and writes.
//!
//! A rank reads the answers to its requests immediately, but notices of deaths later.
//! Bytes that the socket does not accept are queued in order;
//! [`PmiSocket::drain`] writes them later.
//!
//! The launcher's end is not `O_NONBLOCK`: libraries in the rank expect the other end to block.
//! Each transfer passes `MSG_DONTWAIT` instead.

use super::link::Queue;
use mpi_base::fdpass;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::io::ErrorKind;

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

    /// Sends bytes with a descriptor. The descriptor cannot be queued,
    /// so a rank that has not read the bytes before these has not read its answers.
    pub fn say_with(&mut self, bytes: &[u8], fd: BorrowedFd<'_>) -> SendOutcome {
        match self.drain() {
            SendOutcome::Sent if self.has_queued() => return SendOutcome::Unread,
            SendOutcome::Sent => {}
            other => return other,
        }
        let sent = loop {
            match fdpass::send_now(self.fd.as_fd(), bytes, fd) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                sent => break sent,
            }
        };
        match sent {
            Ok(sent) => self.say(&bytes[sent..]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => SendOutcome::Unread,
            Err(_) => SendOutcome::HungUp,
        }
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
    fn a_descriptor_is_passed_only_to_a_rank_that_reads() {
        let (mut socket, rank_end) = pair();
        let file = mpi_base::mem::memfd("test", 1).unwrap();
        let line = b"cmd=response_to_init rc=0\n";
        assert_eq!(socket.say_with(line, file.as_fd()), SendOutcome::Sent);
        let mut buffer = [0u8; 64];
        let (got, passed) = fdpass::receive(rank_end.as_fd(), &mut buffer).unwrap();
        assert_eq!(&buffer[..got], line);
        let number = |fd| rustix::fs::fstat(fd).unwrap().st_ino;
        assert_eq!(number(passed.unwrap()), number(file.try_clone().unwrap()));
        while !socket.has_queued() {
            socket.say(&[b'x'; 4096]);
        }
        assert_eq!(socket.say_with(line, file.as_fd()), SendOutcome::Unread);
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
