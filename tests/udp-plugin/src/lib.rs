//! A transport over UDP that loses datagrams on purpose and sends them again until they are acknowledged.
#![deny(unsafe_code)]

use portcullis_plugin::btl::abi::Param;
use portcullis_plugin::btl::{Events, Host, Sent, Transport, param};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, RawFd};
use std::time::{Duration, Instant};

/// The header of a datagram has this size in bytes: sender (u32), kind (u8), three zero bytes,
/// number (u64). The message follows.
const HEAD: usize = 16;
const MESSAGE: u8 = 0;
const ACKNOWLEDGEMENT: u8 = 1;
/// The number of messages to one peer that may be unacknowledged.
const WINDOW: usize = 64;
/// A message is sent again after this time; after [`MOST_TRIES`] transmissions it is given up.
const AGAIN_AFTER: Duration = Duration::from_millis(4);
const MOST_TRIES: u32 = 200;

struct Udp {
    me: u32,
    ranks: u32,
    socket: UdpSocket,
    peers: RefCell<BTreeMap<u32, Peer>>,
    /// One in `loss` datagrams is dropped; if `loss` is 0, none.
    loss: u64,
    random: Cell<u64>,
}

#[derive(Default)]
struct Peer {
    address: Option<SocketAddr>,
    sent: u64,
    unacknowledged: BTreeMap<u64, Waiting>,
    /// All messages with numbers below `received` have arrived, and the messages in `early`.
    received: u64,
    early: BTreeSet<u64>,
}

struct Waiting {
    datagram: Vec<u8>,
    since: Instant,
    tries: u32,
}

impl Udp {
    fn datagram(&self, kind: u8, number: u64, message: &[u8]) -> Vec<u8> {
        let mut datagram = self.me.to_le_bytes().to_vec();
        datagram.extend([kind, 0, 0, 0]);
        datagram.extend(number.to_le_bytes());
        datagram.extend(message);
        datagram
    }

    /// Sends a datagram, or drops it to simulate a loss. An error of the system is ignored.
    fn emit(&self, datagram: &[u8], to: SocketAddr) {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        if self.loss == 0 || !random.is_multiple_of(self.loss) {
            let _ = self.socket.send_to(datagram, to);
        }
    }

    fn on_datagram(&self, datagram: &[u8], from: SocketAddr, events: &Events) {
        let Some((head, message)) = datagram.split_first_chunk::<HEAD>() else {
            return;
        };
        let [a, b, c, d, kind, _, _, _, number @ ..] = *head;
        let (sender, number) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(number));
        // Any process can send a datagram to this socket.
        if sender >= self.ranks {
            return;
        }
        let mut peers = self.peers.borrow_mut();
        let peer = peers.entry(sender).or_default();
        if kind == ACKNOWLEDGEMENT {
            peer.unacknowledged.remove(&number);
            return;
        }
        if number >= peer.received + WINDOW as u64 {
            return;
        }
        self.emit(&self.datagram(ACKNOWLEDGEMENT, number, &[]), from);
        if number < peer.received || !peer.early.insert(number) {
            return;
        }
        while peer.early.remove(&peer.received) {
            peer.received += 1;
        }
        // The library may send from within `arrived`.
        drop(peers);
        events.arrived(message);
    }

    fn send_again(&self) {
        for peer in self.peers.borrow_mut().values_mut() {
            let Some(address) = peer.address else {
                continue;
            };
            for waiting in peer.unacknowledged.values_mut() {
                if waiting.since.elapsed() >= AGAIN_AFTER {
                    waiting.since = Instant::now();
                    waiting.tries += 1;
                    self.emit(&waiting.datagram, address);
                }
            }
        }
    }
}

impl Transport for Udp {
    const NAME: &'static CStr = c"udp";
    const VERSION: &'static CStr = c"1.0";
    const EXCLUSIVITY: u32 = 10;
    const EAGER: usize = 4 << 10;
    const LONGEST: usize = 8 << 10;
    const PARAMS: &'static [Param] = &[
        param(c"address", c"127.0.0.1", c"The address of this host"),
        param(
            c"loss",
            c"0",
            c"One in this number of datagrams is lost on purpose; 0: none",
        ),
    ];

    fn open(host: Host) -> Result<Udp, String> {
        let address = host.param(c"address");
        let socket = UdpSocket::bind((address.as_str(), 0));
        let socket = socket.map_err(|error| format!("no socket on {address}: {error}"))?;
        let ready = socket.set_nonblocking(true);
        ready.map_err(|error| format!("the socket must not wait: {error}"))?;
        Ok(Udp {
            me: host.rank(),
            ranks: host.ranks(),
            socket,
            peers: RefCell::default(),
            loss: host.param(c"loss").parse().unwrap_or(0),
            random: Cell::new(u64::from(host.rank()) + 88_172_645_463_325_252),
        })
    }

    fn address(&self) -> Vec<u8> {
        let address = self.socket.local_addr().map(|address| address.to_string());
        address.unwrap_or_default().into_bytes()
    }

    fn connect(&self, peer: u32, address: &[u8]) -> Result<(), String> {
        let address = std::str::from_utf8(address).ok();
        let address = address.and_then(|address| address.parse().ok());
        let address = address.ok_or("its published address is not an address of UDP")?;
        let mut peers = self.peers.borrow_mut();
        peers.entry(peer).or_default().address = Some(address);
        Ok(())
    }

    fn close(&self, peer: u32, at_once: bool) {
        if let (true, Some(peer)) = (at_once, self.peers.borrow_mut().get_mut(&peer)) {
            peer.unacknowledged.clear();
        }
    }

    fn send(&self, peer: u32, message: &[u8]) -> Result<Sent, String> {
        let mut peers = self.peers.borrow_mut();
        let peer = peers.entry(peer).or_default();
        let address = peer.address.ok_or("it was never connected")?;
        if peer.unacknowledged.len() >= WINDOW {
            return Ok(Sent::NoSpace);
        }
        let datagram = self.datagram(MESSAGE, peer.sent, message);
        self.emit(&datagram, address);
        let waiting = Waiting {
            datagram,
            since: Instant::now(),
            tries: 0,
        };
        peer.unacknowledged.insert(peer.sent, waiting);
        peer.sent += 1;
        Ok(Sent::Copied)
    }

    fn progress(&self, events: &Events) {
        let mut datagram = [0; 64 << 10];
        while let Ok((len, from)) = self.socket.recv_from(&mut datagram) {
            self.on_datagram(&datagram[..len], from, events);
        }
        self.send_again();
    }

    fn is_quiet(&self) -> bool {
        let peers = self.peers.borrow();
        let mut waiting = peers.values().flat_map(|peer| peer.unacknowledged.values());
        waiting.all(|waiting| waiting.tries > MOST_TRIES)
    }

    fn wait_on(&self) -> (Option<RawFd>, Option<Duration>) {
        let peers = self.peers.borrow();
        let is_waiting = peers.values().any(|peer| !peer.unacknowledged.is_empty());
        let longest = is_waiting.then_some(AGAIN_AFTER);
        (Some(self.socket.as_raw_fd()), longest)
    }
}

portcullis_plugin::portcullis_transport!(Udp);
