//! The transports of a small job for tests, and numbered messages with known lengths and contents.

use mpi_base::param::{Params, Source};
use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use super::super::{Am, Btl, Endpoint, Header, OVERTAKES, Payload, ProcId, Reach, SendError, Sink};

/// Returns parameters with small socket buffers, which fill quickly, and the parameters `pairs` of the test.
pub fn cramped(pairs: &[(&str, &str)]) -> Params {
    let mut params = Params::default();
    let small = [
        ("btl_tcp_sndbuf", "64k"),
        ("btl_tcp_rcvbuf", "64k"),
        ("btl_tcp_eager_limit", "4k"),
        ("btl_tcp_max_send_size", "128k"),
    ];
    for (name, value) in small.iter().chain(pairs) {
        params.set(name, value, Source::CommandLine);
    }
    params
}

pub struct Net {
    pub btls: Vec<Box<dyn Btl + Send>>,
    /// The process number of each transport in `btls`.
    pub procs: Vec<ProcId>,
    /// The indices of sender and receiver in `btls`.
    pub pair: (usize, usize),
}

impl Net {
    pub(super) fn from(&self) -> &dyn Btl {
        &*self.btls[self.pair.0]
    }

    pub(super) fn to(&self) -> &dyn Btl {
        &*self.btls[self.pair.1]
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        endpoint(self.from(), self.procs[self.pair.1])
    }

    /// Polls every process once. Messages to the receiver are delivered to `sink`; a message to another process fails the test. Returns the number of messages.
    pub(super) fn pump(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        for (i, btl) in self.btls.iter().enumerate() {
            if i == self.pair.1 {
                delivered += btl.progress(sink);
            } else {
                assert_eq!(btl.progress(&Nothing), 0);
            }
        }
        delivered
    }

    /// Polls until `done` returns true. Fails the test after a million rounds.
    pub(super) fn pump_until(&self, sink: &dyn Sink, done: impl Fn() -> bool) {
        for _ in 0..1_000_000 {
            if done() {
                return;
            }
            self.pump(sink);
        }
        panic!("what was sent has not come in a million rounds");
    }
}

pub fn endpoint(btl: &dyn Btl, peer: ProcId) -> Endpoint {
    match btl.reach(peer) {
        Reach::Yes(endpoint) => endpoint,
        Reach::No(why) => panic!("{} does not reach {peer}: {why}", btl.info().name),
    }
}

/// A sink that fails the test if a message arrives.
pub struct Nothing;

impl Sink for Nothing {
    fn deliver(&self, from: ProcId, am: Am, _: Header, payload: &[u8]) {
        panic!(
            "{} unexpected bytes of {am} arrived from {from}",
            payload.len()
        );
    }
}

/// A sink that records headers and payloads.
#[derive(Default)]
pub struct Keep(pub RefCell<Vec<(Header, Vec<u8>)>>);

impl Sink for Keep {
    fn deliver(&self, _: ProcId, _: Am, header: Header, payload: &[u8]) {
        self.0.borrow_mut().push((header, payload.to_vec()));
    }
}

impl Keep {
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }
}

/// A sink that expects numbered messages from one process; a message's number determines its length and content.
pub struct Expect<F: Fn(u64) -> usize> {
    pub from: ProcId,
    pub next: Cell<u64>,
    pub len: F,
}

impl<F: Fn(u64) -> usize> Sink for Expect<F> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        let n = self.next.get();
        assert_eq!((from, am, header), (self.from, kind(n), [n, !n]));
        assert_eq!(payload.len(), (self.len)(n), "message {n}");
        assert!(payload == pattern(n, payload.len()), "bytes of message {n}");
        self.next.set(n + 1);
    }
}

/// Returns the contents of message `n`: a part of a periodic sequence, whose offset depends on `n`.
pub fn pattern(n: u64, len: usize) -> Vec<u8> {
    const PERIOD: usize = 1 << 16;
    static SEQUENCE: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..PERIOD).map(|i| (i * 11 + (i >> 8)) as u8).collect());
    let start = n as usize * 37;
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let rest = &SEQUENCE[(start + bytes.len()) % PERIOD..];
        bytes.extend_from_slice(&rest[..rest.len().min(len - bytes.len())]);
    }
    bytes
}

/// Sends the message with number `n`. Returns an error if the transport has no space.
pub fn send_numbered(btl: &dyn Btl, to: Endpoint, n: u64, len: usize) -> Result<(), SendError> {
    let bytes = pattern(n, len);
    let mut write = |place: &mut [u8]| place.copy_from_slice(&bytes);
    let payload = if n.is_multiple_of(2) {
        Payload::Bytes(&bytes)
    } else {
        Payload::Fill {
            len,
            fill: &mut write,
        }
    };
    btl.send(to, kind(n), [n, !n], payload)
}

/// Sends the message with number `n`. Fails the test if the transport has no space.
pub fn must_send(btl: &dyn Btl, to: Endpoint, n: u64, len: usize) {
    if let Err(error) = send_numbered(btl, to, n, len) {
        panic!("message {n} of {len} bytes was not taken: {error}");
    }
}

/// Returns the handler number for the message with number `n`; all such messages are ordered.
pub(super) fn kind(n: u64) -> Am {
    n as Am & !OVERTAKES
}

/// Returns a function from message numbers to lengths that cover all protocols of a transport, including odd lengths and limits.
pub fn mixed(max: usize) -> impl Fn(u64) -> usize + Copy {
    move |n| match n % 7 {
        0 => 8,
        1 => (n as usize * 2_654_435_761) % (max + 1),
        2 => n as usize % 97,
        3 => max - n as usize % 3,
        4 => 0,
        5 => (n as usize * 40_503) % (max / 16 + 1),
        _ => 4096.min(max) - n as usize % 5,
    }
}
