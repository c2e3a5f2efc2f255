//! The claims of the framework's promise, which every transport joins with one line: `btl_suite!(|| net)`.
//!
//! A [`Net`] is the transports of all processes of a little job, with one ordered pair to try; for a loop both ends are one.

use mpi_base::param::{Params, Source};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{
    Am, Btl, Endpoint, GetError, Header, OVERTAKES, Payload, ProcId, Reach, Region, SendError,
    Share, Sink, Together,
};

/// Parameters of a transport whose sockets are small, so that they fill up, with those of the test.
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
    /// Who each of `btls` is.
    pub procs: Vec<ProcId>,
    /// From and to, as indices of `btls`.
    pub pair: (usize, usize),
}

impl Net {
    fn from(&self) -> &dyn Btl {
        &*self.btls[self.pair.0]
    }

    fn to(&self) -> &dyn Btl {
        &*self.btls[self.pair.1]
    }

    fn endpoint(&self) -> Endpoint {
        endpoint(self.from(), self.procs[self.pair.1])
    }

    /// One round of everybody; what is for the pair's receiver goes to `sink`, and there must be nothing else.
    fn pump(&self, sink: &dyn Sink) -> usize {
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

    /// Pumps until `done`, for a bounded number of rounds.
    fn pump_until(&self, sink: &dyn Sink, done: impl Fn() -> bool) {
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
        Reach::No(why) => panic!("{} does not reach {peer}: {why}", btl.name()),
    }
}

/// Nobody should be here.
pub struct Nothing;

impl Sink for Nothing {
    fn deliver(&self, from: ProcId, am: Am, _: Header, payload: &[u8]) {
        panic!("{} bytes of {am} came from {from} unasked", payload.len());
    }
}

/// Keeps what comes: headers and payloads.
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

/// Expects numbered messages whose lengths and bytes follow from the number.
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

pub fn pattern(n: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (n as usize * 37 + i * 11 + (i >> 8)) as u8)
        .collect()
}

/// Sends message `n` if there is room.
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

/// Sends message `n`, for which there has to be room.
pub fn must_send(btl: &dyn Btl, to: Endpoint, n: u64, len: usize) {
    if let Err(error) = send_numbered(btl, to, n, len) {
        panic!("message {n} of {len} bytes was not taken: {error}");
    }
}

fn together(btl: &dyn Btl) -> &dyn Together {
    match btl.single_copy().and_then(|copy| copy.together()) {
        Some(together) => together,
        None => panic!("{} does not copy together", btl.name()),
    }
}

/// A message number's active message: any that keeps its order.
fn kind(n: u64) -> Am {
    n as Am & !OVERTAKES
}

/// Lengths that walk over all protocols of a transport, odd ones and borders among them.
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

fn exchange(net: &Net, count: u64, len: impl Fn(u64) -> usize + Copy) {
    let sink = Expect {
        from: net.procs[net.pair.0],
        next: Cell::new(0),
        len,
    };
    for n in 0..count {
        loop {
            match send_numbered(net.from(), net.endpoint(), n, len(n)) {
                Ok(()) => break,
                Err(SendError::WouldBlock) => {
                    net.pump(&sink);
                }
                Err(error) => panic!("message {n}: {error}"),
            }
        }
        // Now and then the receiver falls behind, now and then it catches up.
        if n % 50 > 40 {
            net.pump(&sink);
        }
    }
    net.pump_until(&sink, || sink.next.get() == count);
    assert_eq!(net.pump(&sink), 0);
}

pub fn messages_of_all_sizes_arrive_once_each_in_order(net: Net) {
    let max = net.from().limits().max_send;
    exchange(&net, 5000, mixed(max));
}

pub fn every_length_up_to_the_eager_limit_arrives_whole(net: Net) {
    let eager = net.from().limits().eager;
    exchange(&net, eager as u64 + 1, |n| n as usize);
}

pub fn the_longest_messages_arrive_whole(net: Net) {
    let max = net.from().limits().max_send;
    exchange(&net, 300, |_| max);
}

pub fn a_longer_message_is_refused_and_nothing_sent(net: Net) {
    let max = net.from().limits().max_send;
    let bytes = vec![0; max + 1];
    let result = net
        .from()
        .send(net.endpoint(), 0, [0; 2], Payload::Bytes(&bytes));
    assert_eq!(result, Err(SendError::TooLong { len: max + 1, max }));
    assert_eq!(net.pump(&Nothing), 0);
}

pub fn would_block_takes_nothing_and_room_comes_back(net: Net) {
    for len in [8, 300, net.from().limits().max_send] {
        let sink = Keep::default();
        let mut sent = 0;
        // A transport that never says no would collect without bound.
        while sent < 100_000 && send_numbered(net.from(), net.endpoint(), sent, len).is_ok() {
            sent += 1;
        }
        assert!(sent < 100_000);
        let again = send_numbered(net.from(), net.endpoint(), sent, len);
        assert_eq!(again, Err(SendError::WouldBlock));
        net.pump_until(&sink, || sink.len() as u64 == sent);
        assert_eq!(net.pump(&sink), 0);
        // Whoever was refused may sleep now only if told when there is room, and there is.
        assert!(send_numbered(net.from(), net.endpoint(), sent, len).is_ok());
        net.pump_until(&sink, || sink.len() as u64 == sent + 1);
        for (n, (header, payload)) in sink.0.borrow().iter().enumerate() {
            assert_eq!(header[0], n as u64);
            assert!(*payload == pattern(n as u64, len));
        }
    }
}

pub fn a_sent_payload_may_be_overwritten_at_once(net: Net) {
    let sink = Keep::default();
    let max = net.from().limits().max_send;
    for len in [1, 8, 40, 41, 1000, max] {
        let mut bytes = vec![1; len];
        let sent = net
            .from()
            .send(net.endpoint(), 3, [0; 2], Payload::Bytes(&bytes));
        assert_eq!(sent, Ok(()));
        bytes.fill(2);
        let before = sink.len();
        net.pump_until(&sink, || sink.len() > before);
    }
    let kept = sink.0.borrow();
    assert!(
        kept.iter()
            .all(|(_, payload)| payload.iter().all(|&b| b == 1))
    );
}

pub fn what_waits_is_pending_until_delivered(net: Net) {
    assert!(!net.to().pending());
    let sink = Keep::default();
    for len in [8, 1000] {
        must_send(net.from(), net.endpoint(), 0, len);
        for _ in 0..1_000_000 {
            if net.to().pending() {
                break;
            }
            // A transport that makes its connections as it goes has work to do at both ends.
            net.from().progress(&Nothing);
            net.from().pending();
        }
        assert!(net.to().pending());
        let before = sink.len();
        net.pump_until(&sink, || sink.len() > before);
        assert!(!net.to().pending());
    }
}

/// Sends on from inside the sink, and tries to progress there.
struct Busybody<'a> {
    net: &'a Net,
    inside: Cell<bool>,
    seen: Cell<u64>,
}

impl Sink for Busybody<'_> {
    fn deliver(&self, _: ProcId, _: Am, header: Header, _: &[u8]) {
        assert!(!self.inside.replace(true), "the sink was entered twice");
        self.seen.set(self.seen.get() + 1);
        if header[0] > 0 {
            let next = header[0] - 1;
            must_send(self.net.from(), self.net.endpoint(), next, 100);
        }
        assert_eq!(self.net.to().progress(&Nothing), 0);
        self.inside.set(false);
    }
}

pub fn a_sink_may_send_and_is_never_entered_twice(net: Net) {
    let sink = Busybody {
        net: &net,
        inside: Cell::new(false),
        seen: Cell::new(0),
    };
    must_send(net.from(), net.endpoint(), 9, 100);
    net.pump_until(&sink, || sink.seen.get() == 10);
}

pub fn limits_make_sense_and_strangers_are_not_reached(net: Net) {
    let limits = net.from().limits();
    assert!(limits.eager <= limits.max_send);
    let Reach::No(why) = net.from().reach(ProcId::MAX) else {
        panic!("a rank that does not exist is reached");
    };
    assert!(!why.is_empty());
}

fn region(data: &[u8]) -> Region {
    Region {
        address: data.as_ptr().expose_provenance() as u64,
        len: data.len() as u64,
    }
}

/// Where the system forbids it, `Forbidden` is the right answer and the only one.
pub fn single_copy_reads_the_peers_memory_or_says_why_not(net: Net) {
    let Some(copy) = net.from().single_copy() else {
        return;
    };
    for len in [0, 1, 4097, 1 << 20] {
        // The ranks of this test are in one process, so the peer's memory is ours.
        let theirs = pattern(len as u64, len);
        let mut ours = vec![0; len];
        let target = Cell::from_mut(&mut ours[..]).as_slice_of_cells();
        match copy.get(net.endpoint(), &[region(&theirs)], &[target]) {
            Ok(()) => assert!(ours == theirs),
            Err(error) => return assert_eq!(error, GetError::Forbidden),
        }
    }
    let nowhere = Region {
        address: 16,
        len: 1,
    };
    let result = copy.get(net.endpoint(), &[nowhere], &[&[Cell::new(0)]]);
    assert_eq!(result, Err(GetError::BadAddress));
}

/// The sender comes late, in time or not at all; where the system forbids it, the receiver is told so.
pub fn a_copy_together_is_whole_whoever_does_how_much(net: Net) {
    let copy = net.from().single_copy();
    if copy.is_none_or(|copy| copy.together().is_none()) {
        return;
    }
    let procs = [net.procs[net.pair.0], net.procs[net.pair.1]];
    let mut btls = net.btls.into_iter();
    let (Some(receiver), Some(sender)) = (btls.next(), btls.next()) else {
        return;
    };
    let cases = [(1, 0), (4096, 0), (70_001, 3), (1 << 20, 20), (5 << 20, 0)];
    let datas = cases.map(|(len, _)| pattern(len as u64, len));
    let (ask, asked) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel::<Result<usize, GetError>>();
    std::thread::scope(|s| {
        let datas = &datas;
        s.spawn(move || {
            let copy = together(&*receiver);
            let peer = endpoint(&*receiver, procs[1]);
            for data in datas {
                let mut room = vec![0; data.len()];
                let target = Cell::from_mut(&mut room[..]).as_slice_of_cells();
                // Both lists are cut, and not in the same places.
                let target: Vec<_> = target.chunks(data.len().div_ceil(3)).collect();
                let from: Vec<_> = data.chunks(data.len().div_ceil(5)).map(region).collect();
                let to = target.iter().map(|run| Region {
                    address: run.as_ptr().expose_provenance() as u64,
                    len: run.len() as u64,
                });
                let Some(number) = copy.offer(data.len()) else {
                    panic!("a copy of {} bytes was not begun", data.len());
                };
                // Whoever does not listen any more has failed, and says so.
                if ask.send((number, to.collect::<Vec<_>>())).is_err() {
                    return;
                }
                let mut ours = 0;
                for share in [Share::Half, Share::Rest] {
                    let fetched = copy.fetch(peer, number, &from, &target, share);
                    if fetched.result == Err(GetError::Forbidden) {
                        return;
                    }
                    assert_eq!(fetched.result, Ok(()));
                    assert!(share == Share::Half || !fetched.open);
                    ours += fetched.bytes;
                }
                assert_eq!(told.recv(), Ok(Ok(data.len() - ours)));
                assert!(room == *data, "{ours} of {}", data.len());
            }
            while copy.offer(1 << 20).is_some() {}
            // As many as may be open are open; when one is closed there is room again.
            for number in 0..1000 {
                copy.close(number);
            }
            assert!(copy.offer(1).is_some());
        });
        let copy = together(&*sender);
        let peer = endpoint(&*sender, procs[0]);
        for (data, (_, late)) in datas.iter().zip(cases) {
            let Ok((number, to)) = asked.recv() else {
                return;
            };
            std::thread::sleep(Duration::from_micros(late));
            let data: Vec<_> = data.chunks(data.len().div_ceil(7)).collect();
            let _ = tell.send(copy.help(peer, number, &data, &to));
        }
    });
}

/// A transport without room leaves what it is lent with its sender, who comes again or leaves the rest; ordered messages go their way beside it.
pub fn what_is_lent_arrives_whole_and_once_or_not_at_all(net: Net) {
    let Some(lending) = net.from().lending() else {
        return;
    };
    let (peer, len) = (net.endpoint(), net.from().limits().max_send);
    let (sink, mut ordered, mut refused, mut left) = (Keep::default(), 0, 0, Vec::new());
    let lend = |n: u64, data: &[u8]| lending.lend(peer, 3 | OVERTAKES, [n, !n], data);
    for n in 1000..1100 {
        let data = pattern(n, len);
        while let Err(error) = lend(n, &data) {
            assert_eq!(error, SendError::WouldBlock);
            refused += 1;
            let another = lend(n + 1, &data);
            assert_eq!(another, Err(SendError::WouldBlock));
            if ordered < 500 && send_numbered(net.from(), peer, ordered, 100).is_ok() {
                ordered += 1;
            }
            if refused % 9 == 0 {
                lending.leave_rest(peer, 3 | OVERTAKES, [n, !n], &data);
                left.push(n);
                break;
            }
            net.pump(&sink);
        }
    }
    assert!(ordered > 0 && !left.is_empty(), "there was always room");
    // What keeps its order comes last of all that was taken before it.
    while send_numbered(net.from(), peer, ordered, 100).is_err() {
        net.pump(&sink);
    }
    let last = |(header, _): &(Header, Vec<u8>)| header[0] == ordered;
    net.pump_until(&sink, || sink.0.borrow().last().is_some_and(last));
    let mut came = Vec::new();
    for (header, payload) in sink.0.borrow().iter() {
        let whole = pattern(header[0], if header[0] < 1000 { 100 } else { len });
        assert!(*payload == whole, "bytes of message {}", header[0]);
        came.push(header[0]);
    }
    let (lent, numbered): (Vec<u64>, Vec<u64>) = came.into_iter().partition(|n| *n >= 1000);
    assert!(numbered.into_iter().eq(0..=ordered));
    assert!(lent.is_sorted_by(|a, b| a < b), "{lent:?}");
    let missing = (1000..1100).filter(|n| !lent.contains(n));
    assert!(missing.clone().all(|n| left.contains(&n)), "{lent:?}");
    assert!(missing.count() < left.len(), "nothing was begun: {left:?}");
}

/// The claims of one thread of a test; what failed is told to those who wait for that thread.
pub struct Claims<'a>(pub &'a AtomicBool);

impl Claims<'_> {
    /// For whoever waits for another thread, again and again.
    pub fn hold(&self) {
        let failed = self.0.load(Ordering::Relaxed);
        assert!(!failed, "a claim of another thread has failed");
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Two threads as two ranks, both sending and receiving at full speed.
pub fn two_ranks_exchange_at_full_speed(net: Net) {
    if net.btls.len() < 2 {
        return;
    }
    let max = net.from().limits().max_send;
    let procs = [net.procs[net.pair.0], net.procs[net.pair.1]];
    let failed = AtomicBool::new(false);
    std::thread::scope(|s| {
        for (me, btl) in net.btls.into_iter().take(2).enumerate() {
            let claims = Claims(&failed);
            s.spawn(move || {
                let sink = Expect {
                    from: procs[1 - me],
                    next: Cell::new(0),
                    len: mixed(max),
                };
                let to = endpoint(&*btl, procs[1 - me]);
                let count = 30_000;
                let mut sent = 0;
                while sent < count || sink.next.get() < count {
                    if sent < count {
                        match send_numbered(&*btl, to, sent, (sink.len)(sent)) {
                            Ok(()) => sent += 1,
                            Err(error) => assert_eq!(error, SendError::WouldBlock),
                        }
                    }
                    if btl.progress(&sink) == 0 {
                        claims.hold();
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
}

/// Joins a transport: the closure makes a fresh [`Net`].
#[macro_export]
macro_rules! btl_suite {
    ($net:expr) => {
        $crate::btl_suite!($net;
            messages_of_all_sizes_arrive_once_each_in_order
            every_length_up_to_the_eager_limit_arrives_whole
            the_longest_messages_arrive_whole
            a_longer_message_is_refused_and_nothing_sent
            would_block_takes_nothing_and_room_comes_back
            a_sent_payload_may_be_overwritten_at_once
            what_waits_is_pending_until_delivered
            a_sink_may_send_and_is_never_entered_twice
            limits_make_sense_and_strangers_are_not_reached
            single_copy_reads_the_peers_memory_or_says_why_not
            a_copy_together_is_whole_whoever_does_how_much
            what_is_lent_arrives_whole_and_once_or_not_at_all
            two_ranks_exchange_at_full_speed);
    };
    ($net:expr; $($claim:ident)*) => {
        $(#[test]
        fn $claim() {
            $crate::btl::suite::$claim(($net)());
        })*
    };
}
