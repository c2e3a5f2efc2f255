//! Server of the control socket in the supervisor: connections, requests and replies.

use super::{Command, DONE, LONGEST, REFUSED, address, is_trusted};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::Pid;
use std::collections::BTreeMap;

/// The maximum number of open connections; further connections are closed.
const MOST: usize = 16;

/// The control socket and its connections.
pub(crate) struct ControlSocket {
    socket: OwnedFd,
    /// The open connections, each under a number that is never assigned again.
    connections: BTreeMap<usize, Connection>,
    next: usize,
}

struct Connection {
    socket: OwnedFd,
    request: Vec<u8>,
    /// Whether the request is complete and only the reply is missing.
    is_asked: bool,
}

/// The result of reading a connection.
pub(crate) enum Asked {
    /// The request is still incomplete.
    Nothing,
    Command(Command),
    /// The client has closed the connection, or the request is malformed.
    Ended,
}

impl ControlSocket {
    /// Creates the control socket of this mpirun. Returns `None` if the socket's name is taken
    /// or sockets are unavailable; the job then runs without a control socket.
    pub(crate) fn listen(mpirun: Pid) -> Option<ControlSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let socket = socket.ok()?;
        rustix::net::bind(&socket, &address(mpirun).ok()?).ok()?;
        rustix::net::listen(&socket, MOST as i32).ok()?;
        Some(ControlSocket {
            socket,
            connections: BTreeMap::new(),
            next: 0,
        })
    }

    /// Accepts a connection; returns its key in `connections`.
    /// A connection is closed if its peer belongs to another user or [`MOST`] connections are open.
    pub(crate) fn accept(&mut self) -> Option<usize> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::accept_with(&self.socket, flags).ok()?;
        if !is_trusted(&socket) || self.connections.len() >= MOST {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let connection = Connection {
            socket,
            request: Vec::new(),
            is_asked: false,
        };
        self.connections.insert(number, connection);
        Some(number)
    }

    /// Returns the keys of all open connections.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        self.connections.keys().copied().collect()
    }

    /// Returns the descriptor of a connection.
    pub(crate) fn connection(&self, number: usize) -> Option<BorrowedFd<'_>> {
        let connection = self.connections.get(&number);
        connection.map(|connection| connection.socket.as_fd())
    }

    /// Reads available bytes of a connection with one system call.
    pub(crate) fn read(&mut self, number: usize) -> Asked {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Asked::Nothing;
        };
        let mut bytes = [0; LONGEST];
        match rustix::net::recv(&connection.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Asked::Ended,
            Ok((got, _)) => connection.request.extend(&bytes[..got]),
            Err(Errno::AGAIN | Errno::INTR) => return Asked::Nothing,
            Err(_) => return Asked::Ended,
        }
        let end = connection.request.iter().position(|byte| *byte == b'\n');
        match end {
            Some(end) if !connection.is_asked => {
                connection.is_asked = true;
                let word = String::from_utf8_lossy(&connection.request[..end]);
                Command::read(&word).map_or(Asked::Ended, Asked::Command)
            }
            None if connection.request.len() < LONGEST => Asked::Nothing,
            _ => Asked::Ended,
        }
    }

    /// Sends the reply and closes the connection; text beyond the socket's buffer is cut off.
    pub(crate) fn reply(&mut self, number: usize, reply: &Result<String, String>) {
        let Some(connection) = self.connections.remove(&number) else {
            return;
        };
        reply_on(connection.socket.as_fd(), reply);
    }

    /// Closes the socket and all connections except those with these numbers, which are returned.
    pub(crate) fn into_connections(mut self, numbers: &[usize]) -> Vec<OwnedFd> {
        let kept = numbers.iter();
        let kept = kept.filter_map(|number| self.connections.remove(number));
        kept.map(|connection| connection.socket).collect()
    }

    /// Returns the descriptors of all open connections.
    pub(crate) fn connections(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let connections = self.connections.values();
        connections.map(|connection| connection.socket.as_fd())
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, number: usize) {
        self.connections.remove(&number);
    }
}

/// Sends a reply; text beyond the socket's buffer is cut off.
pub(crate) fn reply_on(connection: BorrowedFd<'_>, reply: &Result<String, String>) {
    let (word, text) = match reply {
        Ok(text) => (DONE, text),
        Err(why) => (REFUSED, why),
    };
    let bytes = format!("{word}\n{text}\n");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = rustix::net::send(connection, bytes.as_bytes(), flags);
    // A forked child may have a copy of the connection, whose client waits for the end of the reply.
    let _ = rustix::net::shutdown(connection, rustix::net::Shutdown::Write);
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
