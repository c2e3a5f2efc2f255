//! Datagram sockets that wake processes sleeping in `poll`.
//!
//! A socket has an abstract name, which contains a random number.
//! Processes exchange only the number. There is no file, and the name disappears with the process.
//! A process that guesses the name can wake the owner.
//! The owner then polls without a result and sleeps again.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, sendto, socket_with,
};

use crate::fdpass::Key;

fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        flags,
        None,
    )?)
}

fn address(tag: u64) -> io::Result<SocketAddrUnix> {
    let name = format!("portcullis-doorbell-{tag:016x}");
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

/// Binds a socket to a new abstract name; returns the socket and the number in the name.
pub(crate) fn listen() -> io::Result<(OwnedFd, u64)> {
    let random = Key::random().map_err(io::Error::other)?;
    let mut tag = [0; 8];
    tag.copy_from_slice(&random.bytes()[..8]);
    let tag = u64::from_ne_bytes(tag);
    let socket = open()?;
    bind(&socket, &address(tag)?)?;
    Ok((socket, tag))
}

/// Sends a datagram to the socket whose name contains the number `tag`. Errors are ignored:
/// a process that has ended, or that has many unread datagrams, needs no further one.
pub(crate) fn ring(tag: u64) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    if let (Ok(socket), Ok(address)) = (open(), address(tag)) {
        let _ = sendto(socket, &[1], flags, &address);
    }
}

#[cfg(test)]
mod tests {
    use super::ring;

    #[test]
    fn ringing_an_unused_address_is_harmless() {
        ring(0);
    }
}
