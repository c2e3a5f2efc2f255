//! Socket functions: creation, epoll registration, handshake messages and addresses.

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

/// Sizes of a socket's buffers in bytes. If a size is 0, the system chooses and adapts it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    pub send: usize,
    pub receive: usize,
}

/// An authenticated connection.
pub struct Met {
    pub proc: ProcId,
    pub socket: OwnedFd,
    /// The addresses of both sockets, for error texts.
    pub ends: String,
    /// The addresses of the local and the remote socket.
    pub local: Option<SocketAddr>,
    pub remote: Option<SocketAddr>,
    /// True if both processes are on this machine.
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
            local,
            remote,
            // The system uses the same source address as the destination if the destination is this machine.
            is_inside: local.is_some() && ip(local) == ip(remote),
            socket,
        }
    }
}

/// The received part of a handshake message. Bytes behind the message are not read, because they may be frames.
#[derive(Default)]
pub(super) struct Heard(Vec<u8>);

impl Heard {
    /// Reads from the socket. Returns the message of `len` bytes if it is complete, otherwise `None`.
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

/// Sends a handshake message. Each message fits into any socket's buffer, so a socket that accepts only a part counts as failed.
pub(super) fn say(socket: &OwnedFd, bytes: &[u8]) -> Result<(), String> {
    match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err("the connection takes nothing".into()),
        Err(error) => Err(text(error)),
    }
}

/// Returns the system's text for an error.
pub fn text(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

pub(super) fn local_address(socket: &OwnedFd) -> Option<SocketAddr> {
    socket_address(socket).map(canonical)
}

/// Returns the local address as the socket reports it; it can be an IPv4-mapped IPv6 address.
pub(super) fn socket_address(socket: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getsockname(socket).ok()?).ok()
}

/// Converts an IPv4-mapped IPv6 address of a dual-stack socket to IPv4.
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
    // The sizes are set before connecting, because the window scale is negotiated when the connection is established.
    if buffers.send > 0 {
        sockopt::set_socket_send_buffer_size(&socket, buffers.send)?;
    }
    if buffers.receive > 0 {
        sockopt::set_socket_recv_buffer_size(&socket, buffers.receive)?;
    }
    Ok(socket)
}

/// Maximum number of connections that wait to be accepted.
pub(super) const BACKLOG: i32 = 4096;

pub(super) fn listen(address: SocketAddr, buffers: Buffers) -> Result<OwnedFd, Errno> {
    let socket = bound(address, buffers)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Returns a socket that is bound to the address and does not listen.
pub(super) fn bound(address: SocketAddr, buffers: Buffers) -> Result<OwnedFd, Errno> {
    let socket = open_socket(&address, buffers)?;
    if let SocketAddr::V6(v6) = address {
        // A socket with the unspecified address accepts connections of both families.
        sockopt::set_ipv6_v6only(&socket, !v6.ip().is_unspecified())?;
    }
    // Connections in TIME_WAIT must not prevent listening again on a known port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}
