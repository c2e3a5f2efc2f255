//! Tests of bonded links (sharing, retransmission, loss of the peer only with the last link) and of the BML's polls.

use super::multirail::Multirail;
use super::{Bml, Route};
use crate::btl::suite::{Expect, Keep, Net, cramped, endpoint, mixed, pattern, send_numbered};
use crate::btl::{
    Am, Btl, Capabilities, Connections, Endpoint, Header, Info, Limits, OVERTAKES, OpenContext,
    Payload, Pipeline, ProcId, Reach, SendError, Sink, Transport, open_all,
};
use crate::rte::TestModex;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Bond = Multirail<Transport>;

/// Opens the transports of a job of `size` processes, each with `links` TCP links. Returns them by process.
fn opened(size: u32, links: u32) -> Vec<Vec<Transport>> {
    let params = cramped(&[("btl", "tcp"), ("btl_tcp_links", &links.to_string())]);
    let modex = TestModex::default();
    (0..size)
        .map(|me| {
            let around = OpenContext {
                me,
                size,
                node: None,
                params: &params,
                modex: Some(modex.of(me)),
            };
            open_all(&around).unwrap().btls
        })
        .collect()
}

fn net(links: u32) -> Net {
    let btls = opened(2, links).into_iter().enumerate();
    Net {
        btls: btls
            .map(|(me, links)| Box::new(Multirail::new(me as u32, 2, links)) as Transport)
            .collect(),
        procs: vec![0, 1],
        pair: (0, 1),
    }
}

#[test]
fn a_peer_without_a_route_is_reported_with_the_transports_that_could_not_be_opened() {
    let params = cramped(&[("btl", "self,tcp")]);
    let around = OpenContext {
        me: 0,
        size: 2,
        node: None,
        params: &params,
        modex: None,
    };
    let opened = open_all(&around).unwrap();
    let unopened = opened.unopened();
    assert_eq!(unopened.len(), 1, "{unopened:?}");
    let bml = Bml::new(0, 2, opened.btls, true);
    bml.set_unopened(unopened);
    let Route::None { reasons } = bml.route(1) else {
        panic!("there is a route");
    };
    let expected = "self: it is another process; tcp: ";
    assert!(reasons.starts_with(expected), "{reasons}");
}

mod of_two_links {
    crate::btl_suite!(|| super::net(2));
}

mod of_five_links {
    crate::btl_suite!(|| super::net(5));
}

/// A TCP link that counts its bytes, reports a given bandwidth, and is cut after a given number of bytes.
struct Meter {
    inner: Transport,
    megabits: u32,
    carried: Arc<AtomicU64>,
    /// The number of bytes after which the link is cut.
    dies_after: u64,
}

impl Btl for Meter {
    fn info(&self) -> &Info {
        self.inner.info()
    }
    fn reach(&self, peer: ProcId) -> Reach {
        self.inner.reach(peer)
    }
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let len = payload.len() as u64;
        self.inner.send(to, am, header, payload)?;
        let before = self.carried.fetch_add(len, Ordering::Relaxed);
        if before < self.dies_after && before + len >= self.dies_after {
            self.inner.capabilities().cut(to);
        }
        Ok(())
    }
    fn progress(&self, sink: &dyn Sink) -> usize {
        self.inner.progress(sink)
    }
    fn pending(&self) -> bool {
        self.inner.pending()
    }
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            connections: Some(self),
            ..Capabilities::default()
        }
    }
}

impl Connections for Meter {
    fn bandwidth(&self, _: Endpoint) -> u32 {
        self.megabits
    }
}

/// Returns a sender with metered links, a receiver with ordinary links, and the byte counters of the metered links.
fn metered(meters: &[(u32, u64)]) -> (Bond, Bond, Vec<Arc<AtomicU64>>) {
    let mut all = opened(2, meters.len() as u32).into_iter();
    let (first, second) = (all.next().unwrap(), all.next().unwrap());
    let counts: Vec<_> = meters.iter().map(|_| Default::default()).collect();
    let metered = first.into_iter().zip(meters).zip(&counts);
    let links = metered.map(|((inner, &(megabits, dies_after)), carried)| {
        Box::new(Meter {
            inner,
            megabits,
            carried: Arc::clone(carried),
            dies_after,
        }) as Transport
    });
    (
        Multirail::new(0, 2, links.collect()),
        Multirail::new(1, 2, second),
        counts,
    )
}

/// A sink that assembles a large message from its fragments, and records the texts about links.
#[derive(Default)]
struct Assembly {
    /// At the receiver, the data that have arrived; at the sender, the data that it sends.
    data: RefCell<Vec<u8>>,
    came: Cell<usize>,
    /// Number of bytes that were retransmitted.
    again: Cell<usize>,
    /// Number of fragments that were received directly into their destination.
    landed: Cell<u32>,
    notes: RefCell<Vec<String>>,
    losses: RefCell<Vec<String>>,
}

impl Sink for Assembly {
    fn deliver(&self, _: ProcId, _: Am, header: Header, payload: &[u8]) {
        let at = header[0] as usize;
        self.data.borrow_mut()[at..at + payload.len()].copy_from_slice(payload);
        self.came.set(self.came.get() + payload.len());
    }

    fn begin(&self, _: ProcId, _: Am, header: Header, _: usize, begun: &[u8]) -> bool {
        let at = header[0] as usize;
        self.data.borrow_mut()[at..at + begun.len()].copy_from_slice(begun);
        true
    }

    fn land(
        &self,
        _: ProcId,
        _: Am,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let at = header[0] as usize;
        fill(&mut self.data.borrow_mut()[at + range.start..at + range.end]);
        true
    }

    fn landed(&self, _: ProcId, _: Am, _: Header, len: usize) {
        self.came.set(self.came.get() + len);
        self.landed.set(self.landed.get() + 1);
    }

    fn again(&self, _: ProcId, _: Am, header: Header, len: usize, send: &mut dyn FnMut(&[u8])) {
        let at = header[0] as usize;
        if let Some(data) = self.data.borrow().get(at..at + len) {
            self.again.set(self.again.get() + len);
            send(data);
        }
    }

    fn lost(&self, _: ProcId, why: &str) {
        self.losses.borrow_mut().push(why.into());
    }

    fn link_lost(&self, _: ProcId, what: Option<&str>) {
        self.notes.borrow_mut().extend(what.map(String::from));
    }
}

/// Sends `len` bytes in overtaking fragments. Returns the data, and the sinks of sender and receiver.
fn transfer(from: &Bond, to: &Bond, len: usize) -> (Vec<u8>, Assembly, Assembly) {
    let data = pattern(1, len);
    let (here, there) = (Assembly::default(), Assembly::default());
    *there.data.borrow_mut() = vec![0; len];
    here.data.borrow_mut().clone_from(&data);
    let peer = endpoint(from, 1);
    let piece = from.info().limits.max_send;
    let (mut at, limit) = (0, Instant::now() + Duration::from_secs(30));
    while there.came.get() < len && here.losses.borrow().is_empty() {
        assert!(
            Instant::now() < limit,
            "{} of {len} bytes came",
            there.came.get()
        );
        while at < len {
            let end = (at + piece).min(len);
            let payload = Payload::Bytes(&data[at..end]);
            match from.send(peer, 4 | OVERTAKES, [at as u64, 0], payload) {
                Ok(()) => at = end,
                Err(_) => break,
            }
        }
        to.progress(&there);
        from.progress(&here);
    }
    (data, here, there)
}

/// A link in memory that accepts all messages and counts their bytes.
struct Sponge {
    info: Info,
    megabits: u32,
    carried: Arc<AtomicU64>,
}

impl Btl for Sponge {
    fn info(&self) -> &Info {
        &self.info
    }
    fn reach(&self, peer: ProcId) -> Reach {
        Reach::Yes(Endpoint(peer))
    }
    fn send(&self, _: Endpoint, _: Am, _: Header, payload: Payload<'_>) -> Result<(), SendError> {
        self.carried
            .fetch_add(payload.len() as u64, Ordering::Relaxed);
        Ok(())
    }
    fn progress(&self, _: &dyn Sink) -> usize {
        0
    }
    fn pending(&self) -> bool {
        false
    }
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            connections: Some(self),
            ..Capabilities::default()
        }
    }
}

impl Connections for Sponge {
    fn bandwidth(&self, _: Endpoint) -> u32 {
        self.megabits
    }
}

/// The sponges acknowledge no message, so the bandwidths that the links report determine the shares.
#[test]
fn links_share_a_message_in_proportion_to_their_bandwidth() {
    let carried: [Arc<AtomicU64>; 2] = Default::default();
    let links = carried.iter().zip([3000, 1000]).map(|(carried, megabits)| {
        let limits = Limits {
            eager: 32 << 10,
            max_send: 32 << 10,
        };
        Box::new(Sponge {
            info: Info::of_memory("sponge", 1, limits),
            megabits,
            carried: carried.clone(),
        }) as Transport
    });
    let from = Multirail::new(0, 2, links.collect());
    let peer = endpoint(&from, 1);
    for _ in 0..24 {
        let piece = Payload::Bytes(&[7; 20_000]);
        from.send(peer, OVERTAKES, [0; 2], piece).unwrap();
    }
    let carried = carried.map(|carried| carried.load(Ordering::Relaxed));
    let ratio = carried[0] as f64 / carried[1] as f64;
    assert!((2.5..3.5).contains(&ratio), "{carried:?}");
}

#[test]
fn long_messages_are_cut_so_that_each_link_gets_several_pieces() {
    let (from, _, _) = metered(&[(1000, u64::MAX), (1000, u64::MAX)]);
    let longest = from.info().limits.max_send;
    assert_eq!(from.fragment(64 << 20, false, true), longest);
    let piece = from.fragment(1 << 20, false, true);
    assert!(piece < longest && (1 << 20) / piece >= 16, "{piece}");
    // Short messages are not divided further.
    assert!(from.fragment(100, false, true) >= 16 << 10);
}

#[test]
fn a_link_that_is_cut_during_64_mib_loses_nothing_and_is_told_of() {
    let mut asked_for = 0;
    for victim in [0, 1] {
        let mut links = [(1000, u64::MAX); 2];
        links[victim].1 = 20 << 20;
        let (from, to, meters) = metered(&links);
        let (data, here, there) = transfer(&from, &to, 64 << 20);
        assert!(*there.data.borrow() == data, "the data differ");
        assert_eq!(there.came.get(), data.len(), "something came twice");
        assert!(here.losses.borrow().is_empty() && there.losses.borrow().is_empty());
        let notes = here.notes.borrow();
        assert_eq!(notes.len(), 1, "{notes:?}");
        let begin = format!("job rank 0: tcp link {victim} to job rank 1 is gone (the connection");
        assert!(notes[0].starts_with(&begin), "{}", notes[0]);
        assert!(
            notes[0].contains("are sent again over the others"),
            "{}",
            notes[0]
        );
        assert!(there.landed.get() > 0, "every piece was copied twice");
        let carried = meters[1 - victim].load(Ordering::Relaxed);
        assert!(carried > 32 << 20, "the other link carried {carried}");
        asked_for += here.again.get();
    }
    assert!(
        asked_for > 0,
        "the sender was never asked for what was lost"
    );
}

#[test]
fn a_lost_piece_leaves_no_gap() {
    let (from, to, _) = metered(&[(1000, 1 << 20), (1000, u64::MAX)]);
    let (here, there) = (Assembly::default(), Assembly::default());
    let piece = vec![0; from.info().limits.max_send];
    *there.data.borrow_mut() = piece.clone();
    let peer = endpoint(&from, 1);
    // Many times the number of bytes that may be sent without an acknowledgement (`WINDOW`).
    let (mut left, limit) = (64 << 20, Instant::now() + Duration::from_secs(30));
    // Fragments are sent until the sender has reported the failed link,
    // because the other link may carry nearly all of them.
    while left > 0 || here.notes.borrow().is_empty() {
        assert!(
            Instant::now() < limit,
            "{left} bytes are not taken, or no link has died"
        );
        match from.send(peer, 4 | OVERTAKES, [0; 2], Payload::Bytes(&piece)) {
            Ok(()) => left -= piece.len().min(left),
            Err(error) => assert_eq!(error, SendError::WouldBlock),
        }
        to.progress(&there);
        from.progress(&here);
    }
    assert_eq!((here.again.get(), here.notes.borrow().len()), (0, 1));
}

#[test]
fn ordered_messages_keep_their_order_though_their_link_dies() {
    let (from, to, _) = metered(&[(1000, 3 << 20), (1000, 9 << 20), (1000, u64::MAX)]);
    let len = mixed(from.info().limits.max_send);
    let sink = Expect {
        from: 0,
        next: Cell::new(0),
        len,
    };
    let here = Assembly::default();
    let peer = endpoint(&from, 1);
    let (mut sent, limit) = (0, Instant::now() + Duration::from_secs(30));
    while sink.next.get() < 2000 {
        assert!(Instant::now() < limit, "{} of 2000 came", sink.next.get());
        if sent < 2000 && send_numbered(&from, peer, sent, len(sent)).is_ok() {
            sent += 1;
        }
        from.progress(&here);
        to.progress(&sink);
    }
    assert_eq!(here.notes.borrow().len(), 2);
}

#[test]
fn when_the_last_link_is_gone_both_ends_are_named_with_every_reason() {
    let (from, to, _) = metered(&[(1000, 1 << 20), (1000, 2 << 20)]);
    let (_, here, _) = transfer(&from, &to, 64 << 20);
    let losses = here.losses.borrow();
    assert_eq!(losses.len(), 1, "{losses:?}");
    let begin = "no link is left between job ranks 0 and 1: link 0: the connection between job ranks 0 and 1 (";
    assert!(losses[0].starts_with(begin), "{}", losses[0]);
    assert!(
        losses[0].contains("; link 1: the connection"),
        "{}",
        losses[0]
    );
    let again = from.send(endpoint(&from, 1), 1, [0; 2], Payload::Bytes(&[]));
    assert_eq!(again, Err(SendError::PeerGone));
}

/// A link that works, or one that has failed and reports this only in its next poll.
struct Mortal {
    is_dead: bool,
}

impl Btl for Mortal {
    fn info(&self) -> &Info {
        const LIMITS: Limits = Limits {
            eager: 4096,
            max_send: 4096,
        };
        &const { Info::of_memory("mortal", 0, LIMITS) }
    }
    fn reach(&self, peer: ProcId) -> Reach {
        Reach::Yes(Endpoint(peer))
    }
    fn send(&self, _: Endpoint, _: Am, _: Header, _: Payload<'_>) -> Result<(), SendError> {
        match self.is_dead {
            true => Err(SendError::PeerGone),
            false => Ok(()),
        }
    }
    fn progress(&self, sink: &dyn Sink) -> usize {
        if self.is_dead {
            sink.lost(1, "the cable was cut");
        }
        0
    }
    fn pending(&self) -> bool {
        false
    }
}

/// The second link is connected only for long messages, so it has no connection when the first link fails.
#[test]
fn a_message_waits_for_the_link_that_is_left_though_it_was_not_in_use() {
    let links = [true, false].map(|is_dead| Box::new(Mortal { is_dead }) as Transport);
    let bond = Multirail::new(0, 2, links.into());
    let send = || bond.send(Endpoint(1), 3, [1, 2], Payload::Bytes(&[5]));
    assert_eq!(send(), Err(SendError::WouldBlock));
    let sink = Keep::default();
    bond.progress(&sink);
    assert_eq!(send(), Ok(()));
}

/// A transport that counts its polls, and reports one delivered message per poll while `brings` is set.
struct Watched {
    info: Info,
    brings: Arc<AtomicBool>,
    looks: Arc<AtomicU64>,
}

impl Btl for Watched {
    fn info(&self) -> &Info {
        &self.info
    }
    fn reach(&self, peer: ProcId) -> Reach {
        Reach::Yes(Endpoint(peer))
    }
    fn send(&self, _: Endpoint, _: Am, _: Header, _: Payload<'_>) -> Result<(), SendError> {
        Ok(())
    }
    fn progress(&self, _: &dyn Sink) -> usize {
        self.looks.fetch_add(1, Ordering::Relaxed);
        usize::from(self.brings.load(Ordering::Relaxed))
    }
    fn pending(&self) -> bool {
        false
    }
}

/// Each poll of a socket is a system call, which takes longer than a message through shared memory.
#[test]
fn neighbours_who_talk_through_memory_hardly_look_at_their_sockets() {
    let looks: [Arc<AtomicU64>; 2] = Default::default();
    let talking = Arc::new(AtomicBool::new(true));
    let silent = Arc::new(AtomicBool::new(false));
    let transport = |poll_is_syscall, brings: &Arc<AtomicBool>| {
        let limits = Limits {
            eager: 1,
            max_send: 1,
        };
        Box::new(Watched {
            info: Info {
                poll_is_syscall,
                ..Info::of_memory("watched", u32::from(!poll_is_syscall), limits)
            },
            brings: brings.clone(),
            looks: looks[usize::from(poll_is_syscall)].clone(),
        }) as Transport
    };
    // The transport with system calls is first in the list, so the test also covers the sorting in the BML.
    let all = vec![transport(true, &silent), transport(false, &talking)];
    let bml = Bml::new(0, 2, all, true);
    let sink = Keep::default();
    let look = |times| {
        let before = looks.each_ref().map(|n| n.load(Ordering::Relaxed));
        for _ in 0..times {
            bml.progress(&sink);
        }
        let after = looks.each_ref().map(|n| n.load(Ordering::Relaxed));
        [after[0] - before[0], after[1] - before[1]]
    };
    let [memory, wire] = look(10_000);
    assert_eq!(memory, 10_000);
    assert!(wire <= memory / 32, "{wire} looks at the wire");
    talking.store(false, Ordering::Relaxed);
    look(1000);
    assert_eq!(look(1000), [1000, 1000], "calm memory is no reason to wait");
}
