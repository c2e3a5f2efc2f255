//! Listening sockets of a process: all on one port, on the addresses that the user permits.
//!
//! A process that has left MPI does not listen. It may start a new session, and its peers know the port. So the sockets remain
//! bound to the port without listening: connections are refused, and no other process gets the port.

use super::socket::{BACKLOG, Buffers, bound, listen, local_address, socket_address, watch};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Maximum number of ports that are tried.
/// A port that is free on the first address may be in use on another address.
const TRIES: u32 = 20;

/// The addresses on which the process listens.
#[derive(Clone, Debug)]
pub enum On {
    /// All addresses that the machine has now or gets later.
    Everywhere,
    /// Only these addresses.
    Addresses(Vec<IpAddr>),
}

pub struct Listeners {
    port: u16,
    sockets: Vec<OwnedFd>,
    /// Addresses on which the port could not be reserved at the latest close.
    lost: Vec<SocketAddr>,
}

impl Listeners {
    /// Listens on `port`; if it is 0, the system chooses a port.
    pub fn open(on: On, port: u16, buffers: Buffers) -> Result<Listeners, Errno> {
        let mut tries = 0;
        let sockets = loop {
            match open_all(&on, port, buffers) {
                Err(Errno::ADDRINUSE) if port == 0 && tries < TRIES => tries += 1,
                opened => break opened?,
            }
        };
        let port = sockets
            .first()
            .and_then(local_address)
            .map_or(0, |address| address.port());
        Ok(Listeners {
            port,
            sockets,
            lost: Vec::new(),
        })
    }

    /// Returns the port on which all sockets listen.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn sockets(&self) -> &[OwnedFd] {
        &self.sockets
    }

    /// Stops listening, but reserves the port.
    pub fn close(&mut self, buffers: Buffers) {
        let at: Vec<_> = self.sockets.iter().filter_map(socket_address).collect();
        self.sockets.clear();
        for at in at {
            match bound(at, buffers) {
                Ok(socket) => self.sockets.push(socket),
                // Another process has taken the port between closing the listening socket and binding the new one.
                Err(_) => self.lost.push(at),
            }
        }
        // With SO_REUSEADDR on a socket that does not listen, any process could bind to its address, so the option is cleared.
        for socket in &self.sockets {
            let _ = sockopt::set_socket_reuseaddr(socket, false);
        }
    }

    /// Listens again on the reserved port.
    pub fn reopen(&mut self, buffers: Buffers) -> Result<(), Errno> {
        while let Some(&at) = self.lost.last() {
            self.sockets.push(bound(at, buffers)?);
            self.lost.pop();
        }
        let mut sockets = self.sockets.iter();
        sockets.try_for_each(|socket| {
            // Accepted connections inherit this option. Without it, connections that remain would prevent binding to the port at the next close.
            sockopt::set_socket_reuseaddr(socket, true)?;
            rustix::net::listen(socket, BACKLOG)
        })
    }

    /// Registers the sockets with epoll for incoming connections.
    pub fn watch(&self, epoll: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut sockets = self.sockets.iter();
        sockets.try_for_each(|socket| watch(epoll, socket, epoll::EventFlags::IN))
    }
}

fn open_all(on: &On, mut port: u16, buffers: Buffers) -> Result<Vec<OwnedFd>, Errno> {
    let addresses = match on {
        On::Everywhere => {
            // A dual-stack socket if the machine supports IPv6, otherwise an IPv4 socket.
            let of = |ip: IpAddr| listen(SocketAddr::from((ip, port)), buffers);
            let socket =
                of(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| of(Ipv4Addr::UNSPECIFIED.into()))?;
            return Ok(vec![socket]);
        }
        On::Addresses(addresses) => addresses,
    };
    let mut sockets = Vec::with_capacity(addresses.len());
    for &ip in addresses {
        let socket = listen(SocketAddr::from((ip, port)), buffers)?;
        // All further sockets use the port of the first one.
        port = local_address(&socket).map_or(port, |address| address.port());
        sockets.push(socket);
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn calls(ip: [u8; 4], port: u16) -> bool {
        TcpStream::connect((Ipv4Addr::from(ip), port)).is_ok()
    }

    #[test]
    fn only_the_addresses_that_are_allowed_answer() {
        let allowed: [IpAddr; 2] = [[127, 0, 0, 1].into(), [127, 0, 0, 2].into()];
        let on = On::Addresses(allowed.to_vec());
        let listeners = Listeners::open(on, 0, Buffers::default()).unwrap();
        let port = listeners.port();
        let answers = [1, 2, 3].map(|last| calls([127, 0, 0, last], port));
        assert_eq!(answers, [true, true, false]);
        let mut closed =
            Listeners::open(On::Addresses(allowed.to_vec()), 0, Buffers::default()).unwrap();
        let port = closed.port();
        closed.close(Buffers::default());
        assert!(!calls([127, 0, 0, 1], port), "it has been closed");
        for at in allowed {
            let taken = listen(SocketAddr::new(at, port), Buffers::default());
            assert_eq!(taken.err(), Some(Errno::ADDRINUSE), "{at} is kept");
        }
        closed.reopen(Buffers::default()).unwrap();
        assert!(calls([127, 0, 0, 2], port), "it listens again");
        let everywhere = Listeners::open(On::Everywhere, 0, Buffers::default()).unwrap();
        assert!(calls([127, 0, 0, 3], everywhere.port()));
    }
}
