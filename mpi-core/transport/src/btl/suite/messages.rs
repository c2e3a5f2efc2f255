//! Conformance tests of messages: complete, exactly once, and in order; and space becomes free again.

use std::cell::Cell;

use super::super::{Am, Header, Payload, ProcId, Reach, SendError, Sink};
use super::net::{Expect, Keep, Net, Nothing, mixed, must_send, pattern, send_numbered};

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
        // The receiver polls in ten of fifty rounds, so it alternately falls behind and catches up.
        if n % 50 > 40 {
            net.pump(&sink);
        }
    }
    net.pump_until(&sink, || sink.next.get() == count);
    assert_eq!(net.pump(&sink), 0);
}

pub fn messages_of_all_sizes_arrive_once_each_in_order(net: Net) {
    let max = net.from().info().limits.max_send;
    exchange(&net, 5000, mixed(max));
}

pub fn every_length_up_to_the_eager_limit_arrives_whole(net: Net) {
    let eager = net.from().info().limits.eager;
    exchange(&net, eager as u64 + 1, |n| n as usize);
}

/// Exchanges messages of every length up to 8 KiB, of every fifth length above, and of the eager limit.
pub fn lengths_up_to_the_eager_limit_arrive_whole(net: Net) {
    const ALL: usize = 8 << 10;
    const STEP: usize = 5;
    let eager = net.from().info().limits.eager;
    let above = eager.saturating_sub(ALL).div_ceil(STEP);
    let count = eager.min(ALL) + 1 + above;
    exchange(&net, count as u64, |n| match n as usize {
        n if n <= ALL => n,
        n => eager.min(ALL + (n - ALL) * STEP),
    });
}

pub fn the_longest_messages_arrive_whole(net: Net) {
    let max = net.from().info().limits.max_send;
    exchange(&net, 300, |_| max);
}

pub fn a_longer_message_is_refused_and_nothing_sent(net: Net) {
    let max = net.from().info().limits.max_send;
    let bytes = vec![0; max + 1];
    let result = net
        .from()
        .send(net.endpoint(), 0, [0; 2], Payload::Bytes(&bytes));
    assert_eq!(result, Err(SendError::TooLong { len: max + 1, max }));
    assert_eq!(net.pump(&Nothing), 0);
}

pub fn would_block_takes_nothing_and_room_comes_back(net: Net) {
    for len in [8, 300, net.from().info().limits.max_send] {
        let sink = Keep::default();
        let mut sent = 0;
        // A transport must refuse at some time. Otherwise it would buffer without a limit.
        while sent < 100_000 && send_numbered(net.from(), net.endpoint(), sent, len).is_ok() {
            sent += 1;
        }
        assert!(sent < 100_000);
        let again = send_numbered(net.from(), net.endpoint(), sent, len);
        assert_eq!(again, Err(SendError::WouldBlock));
        net.pump_until(&sink, || sink.len() as u64 == sent);
        assert_eq!(net.pump(&sink), 0);
        // The refused message must be accepted after a poll of the receiver; a decorator may skip polls.
        let mut polls = 0;
        while send_numbered(net.from(), net.endpoint(), sent, len).is_err() {
            assert!(polls < 1_000, "{len} bytes are still refused");
            polls += 1;
            net.pump(&sink);
        }
        net.pump_until(&sink, || sink.len() as u64 == sent + 1);
        for (n, (header, payload)) in sink.0.borrow().iter().enumerate() {
            assert_eq!(header[0], n as u64);
            assert!(*payload == pattern(n as u64, len));
        }
    }
}

pub fn a_sent_payload_may_be_overwritten_at_once(net: Net) {
    let sink = Keep::default();
    let max = net.from().info().limits.max_send;
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
            // If a transport connects on demand, both processes must poll.
            net.from().progress(&Nothing);
            net.from().pending();
        }
        assert!(net.to().pending());
        let before = sink.len();
        net.pump_until(&sink, || sink.len() > before);
        assert!(!net.to().pending());
    }
}

/// The sender fills its queue repeatedly, so `has_work` of the receiver must also report space to be released.
pub fn polls_that_first_check_for_work_miss_no_message_and_no_space(net: Net) {
    let max = net.from().info().limits.max_send;
    for (total, len) in [(3_000, 8), (100, max)] {
        let (sink, mut sent) = (Keep::default(), 0);
        for _ in 0..1_000_000 {
            if sink.len() as u64 == total {
                break;
            }
            while sent < total && send_numbered(net.from(), net.endpoint(), sent, len).is_ok() {
                sent += 1;
            }
            for (at, btl) in net.btls.iter().enumerate() {
                if at != net.pair.1 {
                    btl.progress(&Nothing);
                } else if btl.has_work() {
                    btl.progress(&sink);
                }
            }
        }
        assert_eq!(sink.len() as u64, total, "messages of {len} bytes");
    }
}

/// A sink that sends messages and calls `progress` while it is called.
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
    let limits = net.from().info().limits;
    assert!(limits.eager <= limits.max_send);
    let Reach::No(why) = net.from().reach(ProcId::MAX) else {
        panic!("a rank that does not exist is reached");
    };
    assert!(!why.is_empty());
}
