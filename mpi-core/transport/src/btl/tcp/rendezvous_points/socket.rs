//! Sockets of the lobby: made, watched, spoken to, and asked for their addresses.

use super::TOKEN;
use crate::btl::ProcId;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, getpeername, getsockname, recv,
    send, socket_with, sockopt,
};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Sizes of a socket's buffers; zero leaves it to the system, which adapts them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    pub send: usize,
    pub receive: usize,
}

/// A connection whose both ends have proved themselves.
pub struct Met {
    pub proc: ProcId,
    pub socket: OwnedFd,
    /// Both ends, for error texts.
    pub ends: String,
    /// The other end's address.
    pub remote: Option<SocketAddr>,
    /// Whether it does not leave this machine.
    pub is_inside: bool,
}

impl Met {
    pub(super) fn new(proc: ProcId, socket: OwnedFd) -> Met {
        let shown = |address: Option<SocketAddr>| {
            address.map_or_else(|| "an unknown address".into(), |a| a.to_string())
        };
        let remote = getpeername(&socket)
            .ok()
            .flatten()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map(canonical);
        let local = local_address(&socket);
        let ip = |end: Option<SocketAddr>| end.map(|address| address.ip());
        Met {
            proc,
            ends: format!("{} to {}", shown(local), shown(remote)),
            remote,
            // The system calls an address of its own from that address.
            is_inside: local.is_some() && ip(local) == ip(remote),
            socket,
        }
    }
}

/// Bytes of a message that has not come whole; never reads beyond it, since frames may follow.
#[derive(Default)]
pub(super) struct Heard(Vec<u8>);

impl Heard {
    /// The message of `len` bytes, once it is there.
    pub(super) fn read(&mut self, socket: &OwnedFd, len: usize) -> Result<Option<Vec<u8>>, String> {
        let mut bytes = [0; 128];
        let missing = (len - self.0.len()).min(bytes.len());
        match recv(socket, &mut bytes[..missing], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Err("it closed the connection without an answer".into()),
            Ok((_, read)) => {
                self.0.extend_from_slice(&bytes[..read]);
                Ok((self.0.len() == len).then(|| std::mem::take(&mut self.0)))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(text(error)),
        }
    }
}

/// Everything said in here fits any socket's buffer; one that does not take it whole is given up.
pub(super) fn say(socket: &OwnedFd, bytes: &[u8]) -> Result<(), String> {
    match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err("the connection takes nothing".into()),
        Err(error) => Err(text(error)),
    }
}

/// The system's words for an error.
pub fn text(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

pub(super) fn local_address(socket: &OwnedFd) -> Option<SocketAddr> {
    socket_address(socket).map(canonical)
}

/// The address as the socket has it.
pub(super) fn socket_address(socket: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getsockname(socket).ok()?).ok()
}

/// An IPv4 address that a socket of both families shows as IPv6, as what it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

pub(super) fn watch(
    epoll: BorrowedFd<'_>,
    socket: &OwnedFd,
    events: epoll::EventFlags,
) -> Result<(), Errno> {
    epoll::add(epoll, socket, epoll::EventData::new_u64(TOKEN), events)
}

pub(super) fn open_socket(for_address: &SocketAddr, buffers: Buffers) -> Result<OwnedFd, Errno> {
    let family = match for_address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // Before the connection exists, since the window's scale is agreed when it is made.
    if buffers.send > 0 {
        sockopt::set_socket_send_buffer_size(&socket, buffers.send)?;
    }
    if buffers.receive > 0 {
        sockopt::set_socket_recv_buffer_size(&socket, buffers.receive)?;
    }
    Ok(socket)
}

/// Callers that may wait to be let in.
pub(super) const BACKLOG: i32 = 4096;

pub(super) fn listen(address: SocketAddr, buffers: Buffers) -> Result<OwnedFd, Errno> {
    let socket = bound(address, buffers)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A socket that has the address and does not listen yet.
pub(super) fn bound(address: SocketAddr, buffers: Buffers) -> Result<OwnedFd, Errno> {
    let socket = open_socket(&address, buffers)?;
    if let SocketAddr::V6(v6) = address {
        // The address that stands for all takes calls of both families.
        sockopt::set_ipv6_v6only(&socket, !v6.ip().is_unspecified())?;
    }
    // Connections that have ended a moment ago must not keep a known port from being listened on again.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}
