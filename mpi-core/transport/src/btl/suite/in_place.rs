//! Conformance tests of delivery in place: data arrive complete in their place and nowhere else, and a withdrawn place is not written.

#![allow(unsafe_code)]

use super::super::{Btl, Endpoint, InPlace, Region, SendError};
use super::net::{Net, Nothing, endpoint, pattern, send_numbered};
use super::threads::Claims;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes before and behind each place, which must not change.
const EDGE: usize = 64;

fn placing(btl: &dyn Btl) -> Option<&dyn InPlace> {
    btl.capabilities().in_place
}

/// A buffer with a place between two edges.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new(len: usize) -> Buffer {
        Buffer(vec![0xEE; len + 2 * EDGE])
    }

    fn place(&mut self) -> Region {
        let len = self.0.len() - 2 * EDGE;
        Region {
            address: self.0[EDGE..].as_mut_ptr().expose_provenance() as u64,
            len: len as u64,
        }
    }

    #[track_caller]
    fn holds(&self, data: &[u8]) {
        let (before, rest) = self.0.split_at(EDGE);
        let (place, behind) = rest.split_at(rest.len() - EDGE);
        assert!(place == data, "{} bytes came otherwise", data.len());
        let edges = before.iter().chain(behind);
        assert!(edges.copied().all(|byte| byte == 0xEE), "an edge");
    }
}

fn region(data: &[u8]) -> Region {
    Region {
        address: data.as_ptr().expose_provenance() as u64,
        len: data.len() as u64,
    }
}

/// Returns true if the receiver of the pair can post places for the sender.
fn serves(net: &Net) -> bool {
    let Some(all) = placing(net.to()) else {
        return false;
    };
    let mut buffer = Buffer::new(all.shortest());
    let from = endpoint(net.to(), net.procs[net.pair.0]);
    // SAFETY: the place is withdrawn before the buffer is freed.
    let posted = unsafe { all.post(from, 1, buffer.place()) };
    posted.is_some_and(|posted| all.withdraw(posted))
}

fn post(btl: &dyn Btl, from: Endpoint, number: u64, place: Region) -> u64 {
    let all = placing(btl).expect("checked by the caller");
    // SAFETY: the tests keep each place until its transfer has ended.
    let posted = unsafe { all.post(from, number, place) };
    posted.expect("there is space for a place")
}

fn fill(btl: &dyn Btl, to: Endpoint, number: u64, data: &[u8]) -> Result<u64, SendError> {
    let all = placing(btl).expect("checked by the caller");
    // SAFETY: the tests keep the data until the transfer has ended.
    unsafe { all.fill(to, number, region(data)) }
}

/// Polls until `done` returns true. Fails the test after 30 seconds.
fn until(net: &Net, what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < limit, "{what} has no end");
        net.pump(&Nothing);
    }
}

/// The sender of the pair fills places of the receiver: one after the other, several at once in another order, and a withdrawn one.
pub fn data_are_delivered_in_place_or_not_at_all(net: Net) {
    if !serves(&net) {
        return;
    }
    let (Some(sender), Some(receiver)) = (placing(net.from()), placing(net.to())) else {
        return;
    };
    let (to, from) = (net.endpoint(), endpoint(net.to(), net.procs[net.pair.0]));
    let shortest = sender.shortest();
    let end = |all: &dyn InPlace, id: u64, what: &str| {
        let (mut outcome, mut ended) = (None, Vec::new());
        until(&net, what, || {
            ended.clear();
            all.ended(&mut ended);
            outcome = all.outcome(id);
            outcome.is_some()
        });
        assert!(ended.contains(&id), "{what} is not named");
        assert_eq!(outcome, Some(true), "{what} has failed");
        assert_eq!(all.outcome(id), None, "{what} ends once");
    };
    for len in [shortest, shortest + 1, (3 << 20) + 5] {
        let (data, mut buffer) = (pattern(len as u64, len), Buffer::new(len));
        let posted = post(net.to(), from, 7, buffer.place());
        let filled = fill(net.from(), to, 7, &data).expect("there is space");
        end(receiver, posted, "the receiver's part");
        end(sender, filled, "the sender's part");
        buffer.holds(&data);
    }
    let mut ended = Vec::new();
    sender.ended(&mut ended);
    receiver.ended(&mut ended);
    assert_eq!(ended, [0; 0]);
    // Sixty at once. They are filled in the reverse order of their places.
    let len = shortest + 1000;
    let datas: Vec<Vec<u8>> = (0..60).map(|n| pattern(n, len)).collect();
    let mut buffers: Vec<Buffer> = (0..60).map(|_| Buffer::new(len)).collect();
    let mut numbers = 100..;
    let mut next = || numbers.next().expect("a number");
    let posted: Vec<(u64, u64)> = buffers
        .iter_mut()
        .map(|buffer| {
            let number = next();
            (number, post(net.to(), from, number, buffer.place()))
        })
        .collect();
    let mut filled = Vec::new();
    for ((number, _), data) in posted.iter().zip(&datas).rev() {
        until(&net, "the wait for space", || {
            match fill(net.from(), to, *number, data) {
                Ok(id) => filled.push(id),
                Err(error) => {
                    assert_eq!(error, SendError::WouldBlock);
                    return false;
                }
            }
            true
        });
    }
    for (_, id) in posted {
        end(receiver, id, "one of many receives");
    }
    for id in filled {
        end(sender, id, "one of many sends");
    }
    for (buffer, data) in buffers.iter().zip(&datas) {
        buffer.holds(data);
    }
    // A withdrawn place is not written, and its sender's part ends.
    let mut buffer = Buffer::new(len);
    let place = buffer.place();
    let posted = post(net.to(), from, 8, place);
    assert!(receiver.withdraw(posted) && !receiver.withdraw(posted));
    let filled = fill(net.from(), to, 8, &datas[0]).expect("there is space");
    end(sender, filled, "the send to a withdrawn place");
    buffer.holds(&vec![0xEE; len]);
}

/// Both sides of a transfer give it up while its data arrive, each in a thread of its own. Afterwards the place is not written.
pub fn a_place_that_is_given_up_is_not_written_afterwards(net: Net) {
    if net.btls.len() < 2 || !serves(&net) || net.pair.0 == net.pair.1 {
        return;
    }
    let procs = [net.procs[net.pair.0], net.procs[net.pair.1]];
    let failed = AtomicBool::new(false);
    let (is_posted, ended) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut btls: Vec<_> = net.btls.into_iter().map(Some).collect();
    let [sender, receiver] =
        [net.pair.0, net.pair.1].map(|at| btls[at].take().expect("two transports"));
    std::thread::scope(|s| {
        let (is_posted, ended) = (&is_posted, &ended);
        let [for_sender, for_receiver] = [Claims(&failed), Claims(&failed)];
        let poll_until = |btl: &dyn Btl, claims: &Claims<'_>, done: &dyn Fn() -> bool| {
            while !done() {
                btl.progress(&Quiet);
                claims.hold();
                std::thread::yield_now();
            }
        };
        s.spawn(move || {
            let all = placing(&*sender).expect("checked by the caller");
            let data = pattern(1, all.shortest() + 1000);
            poll_until(&*sender, &for_sender, &|| is_posted.load(Ordering::Acquire));
            let to = endpoint(&*sender, procs[1]);
            let filled = fill(&*sender, to, 9, &data).expect("there is space");
            all.give_up(filled);
            assert_eq!(all.outcome(filled), None);
            ended.fetch_add(1, Ordering::AcqRel);
            poll_until(&*sender, &for_sender, &|| {
                ended.load(Ordering::Acquire) == 2
            });
        });
        s.spawn(move || {
            let all = placing(&*receiver).expect("checked by the caller");
            let len = all.shortest() + 1000;
            let mut buffer = Buffer::new(len);
            let from = endpoint(&*receiver, procs[0]);
            let posted = post(&*receiver, from, 9, buffer.place());
            is_posted.store(true, Ordering::Release);
            receiver.progress(&Quiet);
            all.give_up(posted);
            assert_eq!(all.outcome(posted), None);
            buffer.0.fill(0xEE);
            poll_until(&*receiver, &for_receiver, &|| {
                ended.load(Ordering::Acquire) == 1
            });
            for _ in 0..1000 {
                receiver.progress(&Quiet);
            }
            buffer.holds(&vec![0xEE; len]);
            ended.fetch_add(1, Ordering::AcqRel);
        });
    });
}

/// Two ranks, each a thread, fill each other's places at the same time and send messages in between.
pub fn two_ranks_fill_each_others_places(net: Net) {
    const ROUNDS: u64 = 4;
    const EACH: u64 = 60;
    if net.btls.len() < 2 || !serves(&net) || net.pair.0 == net.pair.1 {
        return;
    }
    let procs = [net.procs[net.pair.0], net.procs[net.pair.1]];
    let failed = AtomicBool::new(false);
    let posted = [AtomicU64::new(0), AtomicU64::new(0)];
    let ended = [AtomicU64::new(0), AtomicU64::new(0)];
    let mut btls: Vec<_> = net.btls.into_iter().map(Some).collect();
    let pair = [net.pair.0, net.pair.1].map(|at| btls[at].take().expect("two transports"));
    std::thread::scope(|s| {
        for (me, btl) in pair.into_iter().enumerate() {
            let (claims, posted, ended) = (Claims(&failed), &posted, &ended);
            s.spawn(move || {
                let all = placing(&*btl).expect("checked by the caller");
                let len = all.shortest() + 12_345;
                let peer = endpoint(&*btl, procs[1 - me]);
                let poll = |counts: &[AtomicU64; 2], round: u64| {
                    while counts[1 - me].load(Ordering::Acquire) <= round {
                        btl.progress(&Quiet);
                        claims.hold();
                        std::thread::yield_now();
                    }
                };
                for round in 0..ROUNDS {
                    let content =
                        |from: usize, n| pattern(round * 1000 + n + from as u64 * 500, len);
                    let mut buffers: Vec<Buffer> = (0..EACH).map(|_| Buffer::new(len)).collect();
                    let ours: Vec<Vec<u8>> = (0..EACH).map(|n| content(me, n)).collect();
                    let places = buffers.iter_mut().zip(0..);
                    let mut open: Vec<u64> = places
                        .map(|(buffer, n)| post(&*btl, peer, n, buffer.place()))
                        .collect();
                    posted[me].store(round + 1, Ordering::Release);
                    poll(posted, round);
                    let mut waiting = ours.iter().zip(0..).peekable();
                    while waiting.peek().is_some() || !open.is_empty() {
                        if let Some((data, n)) = waiting.peek() {
                            match fill(&*btl, peer, *n, data) {
                                Ok(id) => {
                                    open.push(id);
                                    // A message may be refused; this test does not count messages.
                                    let _ = send_numbered(&*btl, peer, *n, 100);
                                    waiting.next();
                                }
                                Err(error) => assert_eq!(error, SendError::WouldBlock),
                            }
                        }
                        btl.progress(&Quiet);
                        open.retain(|id| match all.outcome(*id) {
                            Some(succeeded) => {
                                assert!(succeeded, "a transfer has failed");
                                false
                            }
                            None => true,
                        });
                        claims.hold();
                        std::thread::yield_now();
                    }
                    for (buffer, n) in buffers.iter().zip(0..) {
                        buffer.holds(&content(1 - me, n));
                    }
                    ended[me].store(round + 1, Ordering::Release);
                    poll(ended, round);
                }
            });
        }
    });
}

/// A sink that discards messages.
struct Quiet;

impl super::super::Sink for Quiet {
    fn deliver(&self, _: super::super::ProcId, _: u8, _: [u64; 2], _: &[u8]) {}
}
