//! `dgram`: a transport by datagrams between the processes of one host, which also read and write each other's memory.
//!
//! It serves hosts on which processes must not map shared memory.
//! It is also an example of a built-in transport that uses the plugin interface:
//! the library treats it like a transport from a plugin file. It is used only if the parameter `btl` names it.
//!
//! The kernel delivers datagrams of local sockets one time and in order, or refuses them while the receiver's queue is full.
//! Sockets have abstract names with 128 random bits, so no file remains, and only processes of the job know a name.
#![allow(unsafe_code)]

use mpi_base::cma;
use mpi_base::fdpass::Key;
use portcullis_plugin::btl::{Access, Accessed, Events, Host, Part, Sent, Transport};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Length of a socket name in bytes.
const NAME: usize = 32;
/// Length of an address in bytes: process ID and socket name.
const ADDRESS: usize = 4 + NAME;
/// Length in bytes of a key of registered memory: address and length of the memory, and a flag that is 1 if peers may write it.
const KEY: usize = 8 + 8 + 1;
/// Time after which messages that a full queue has refused are sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(1);

pub struct Dgram {
    socket: UnixDatagram,
    own: [u8; ADDRESS],
    peers: RefCell<BTreeMap<u32, Peer>>,
    last: Cell<u64>,
    /// True if a peer's queue was full since the last poll.
    is_full: Cell<bool>,
}

struct Peer {
    process: u32,
    socket: SocketAddr,
}

impl Peer {
    fn of(address: &[u8]) -> Option<Peer> {
        let (process, name) = address.split_first_chunk::<4>()?;
        if name.len() != NAME {
            return None;
        }
        Some(Peer {
            process: u32::from_le_bytes(*process),
            socket: SocketAddr::from_abstract_name(name).ok()?,
        })
    }
}

/// Returns the address in the peer's memory at which `part` begins, from its key and offset.
/// Returns `None` if the key is malformed or does not permit the access.
fn remote(part: &Part<'_>, writes: bool) -> Option<u64> {
    let (address, rest) = part.key.split_first_chunk::<8>()?;
    let (len, rights) = rest.split_first_chunk::<8>()?;
    let (address, len) = (u64::from_le_bytes(*address), u64::from_le_bytes(*len));
    let end = part.offset.checked_add(part.bytes as u64)?;
    let is_allowed = matches!((rights, writes), ([1], _) | ([0], false));
    (is_allowed && end <= len)
        .then(|| address.checked_add(part.offset))
        .flatten()
}

impl Transport for Dgram {
    const NAME: &'static CStr = c"dgram";
    const VERSION: &'static CStr = c"1.0";
    /// The exclusivity of `dgram`: lower than that of `sm` and of the networks.
    const EXCLUSIVITY: u32 = 20;
    const EAGER: usize = 4 << 10;
    const LONGEST: usize = 32 << 10;
    const MEMORY: bool = true;

    fn open(_: Host) -> Result<Dgram, String> {
        let random = Key::random().map_err(|error| format!("no random name: {error}"))?;
        let mut name = [0; NAME];
        name[..16].copy_from_slice(b"portcullis-dgram");
        name[16..].copy_from_slice(&random.bytes()[..16]);
        let mut own = [0; ADDRESS];
        own[..4].copy_from_slice(&std::process::id().to_le_bytes());
        own[4..].copy_from_slice(&name);
        let socket = SocketAddr::from_abstract_name(name);
        let socket = socket.and_then(|name| UnixDatagram::bind_addr(&name));
        let socket = socket.map_err(|error| format!("no local socket: {error}"))?;
        let ready = socket.set_nonblocking(true);
        ready.map_err(|error| format!("the socket must not wait: {error}"))?;
        Ok(Dgram {
            socket,
            own,
            peers: RefCell::default(),
            last: Cell::new(0),
            is_full: Cell::new(false),
        })
    }

    fn address(&self) -> Vec<u8> {
        self.own.to_vec()
    }

    fn connect(&self, peer: u32, address: &[u8]) -> Result<(), String> {
        let known = Peer::of(address).ok_or("its published address is malformed")?;
        self.peers.borrow_mut().insert(peer, known);
        Ok(())
    }

    fn close(&self, peer: u32, _at_once: bool) {
        self.peers.borrow_mut().remove(&peer);
    }

    fn send(&self, peer: u32, message: &[u8]) -> Result<Sent, String> {
        let peers = self.peers.borrow();
        let peer = peers.get(&peer).ok_or("it was never connected")?;
        match self.socket.send_to_addr(message, &peer.socket) {
            Ok(_) => Ok(Sent::Copied),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_full.set(true);
                Ok(Sent::NoSpace)
            }
            // The peer is on another host, or its process has ended.
            Err(error) => Err(format!("no datagram reaches it: {error}")),
        }
    }

    fn progress(&self, events: &Events) {
        self.is_full.set(false);
        // A received datagram contains the header in addition to the payload.
        let mut message = [0; Dgram::LONGEST + 1024];
        while let Ok(len) = self.socket.recv(&mut message) {
            events.arrived(&message[..len]);
        }
    }

    /// Always true: a datagram that was sent is already in the receiver's queue.
    fn is_quiet(&self) -> bool {
        true
    }

    fn wait_on(&self) -> (Option<RawFd>, Option<Duration>) {
        let longest = self.is_full.get().then_some(AGAIN_AFTER);
        (Some(self.socket.as_raw_fd()), longest)
    }

    unsafe fn expose(&self, memory: *mut u8, len: usize, writable: bool) -> Option<(u64, Vec<u8>)> {
        let mut key = Vec::with_capacity(KEY);
        key.extend((memory.expose_provenance() as u64).to_le_bytes());
        key.extend((len as u64).to_le_bytes());
        key.push(writable.into());
        let number = self.last.get() + 1;
        self.last.set(number);
        Some((number, key))
    }

    unsafe fn access(&self, peer: u32, access: Access<'_>, _: u64) -> Accessed {
        let peers = self.peers.borrow();
        let Some(Peer { process, .. }) = peers.get(&peer) else {
            return Accessed::Refused;
        };
        let moved = match access {
            // `process_vm_writev` has written the data when it returns, so a flush is complete immediately.
            Access::Flush => return Accessed::Ended,
            Access::Read(part) => remote(&part, false).map(|from| {
                // SAFETY: the caller reserves `bytes` bytes of valid memory for this access.
                let local = unsafe { std::slice::from_raw_parts_mut(part.local, part.bytes) };
                cma::read(*process, from, local)
            }),
            Access::Write(part) => remote(&part, true).map(|to| {
                // SAFETY: `bytes` bytes at `local` are valid, and the caller does not change them during this access.
                let local = unsafe { std::slice::from_raw_parts(part.local, part.bytes) };
                cma::write(*process, to, local)
            }),
        };
        match moved {
            Some(Ok(())) => Accessed::Ended,
            _ => Accessed::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_allows_what_its_memory_has() {
        let key = |rights: u8| {
            [
                &1000_u64.to_le_bytes()[..],
                &16_u64.to_le_bytes(),
                &[rights],
            ]
            .concat()
        };
        let at = |key: &[u8], offset, bytes, writes| {
            let local = std::ptr::null_mut();
            let part = Part {
                key,
                offset,
                local,
                bytes,
            };
            remote(&part, writes)
        };
        assert_eq!(at(&key(0), 4, 12, false), Some(1004));
        assert_eq!(at(&key(1), 0, 16, true), Some(1000));
        assert_eq!(at(&key(0), 0, 1, true), None);
        assert_eq!(at(&key(1), 4, 13, false), None);
        assert_eq!(at(&key(1), u64::MAX, 2, false), None);
        for malformed in [&key(2)[..], &key(1)[1..], &[]] {
            assert_eq!(at(malformed, 0, 1, false), None);
        }
    }

    #[test]
    fn a_malformed_address_is_refused() {
        assert!(Peer::of(&[7; ADDRESS]).is_some());
        for len in [0, 3, 4, ADDRESS - 1, ADDRESS + 1] {
            assert!(Peer::of(&vec![7; len]).is_none(), "{len}");
        }
    }
}
