//! Models of rings: messages arrive complete and in order.

use loom::thread;

use super::{check, ring};
use crate::ring::{Body, Full, NEAR, Polled};

/// SYNC POINT ring.cell, ring.consumed, for messages of one cell.
#[test]
fn messages_arrive_whole_and_in_order_though_the_ring_wraps() {
    check(|| {
        let (mut tx, mut rx) = ring(4, 0);
        let producer = thread::spawn(move || {
            for n in 1..=6u64 {
                while tx.push_word(n as u8, [n, n], n) == Err(Full) {
                    thread::yield_now();
                }
            }
        });
        for n in 1..=6u64 {
            loop {
                let seen = rx.pop(|m| match m.body {
                    Body::Here(bytes) => (m.am, m.header, bytes.to_vec()),
                    Body::Elsewhere { .. } => unreachable!("only words are sent"),
                });
                if seen == Polled::Empty {
                    rx.give_back();
                    thread::yield_now();
                } else {
                    assert_eq!(
                        seen,
                        Polled::Got((n as u8, [n, n], n.to_ne_bytes().to_vec()))
                    );
                    break;
                }
            }
        }
        producer.join().unwrap();
    });
}

/// Sends `count` messages of `len` bytes through a ring of four cells and `bytes` bytes.
/// Each byte of message i has the value i.
fn each_arrives_whole(bytes: u32, len: usize, count: u8) {
    check(move || {
        let (mut tx, mut rx) = ring(4, bytes);
        let producer = thread::spawn(move || {
            for n in 1..=count {
                while tx.push(n, [0; 2], len, |to| to.fill(n)) == Err(Full) {
                    thread::yield_now();
                }
            }
        });
        for n in 1..=count {
            while rx.pop(|m| match m.body {
                Body::Here(bytes) => assert!(bytes.len() == len && bytes.iter().all(|&b| b == n)),
                Body::Elsewhere { .. } => unreachable!("only bytes are sent"),
            }) == Polled::Empty
            {
                rx.give_back();
                thread::yield_now();
            }
        }
        producer.join().unwrap();
    });
}

/// SYNC POINT ring.cell, ring.consumed, for the byte ring;
/// loom detects concurrent accesses to its cache lines.
#[test]
fn bytes_are_never_written_while_they_are_read() {
    each_arrives_whole(1024, 256, 5);
}

/// SYNC POINT ring.consumed, for a span that is used cyclically and opened in parts:
/// the third block is in new space, or in the space that the consumer has released.
#[test]
fn bytes_of_an_open_part_are_never_written_while_they_are_read() {
    each_arrives_whole(2 * NEAR as u32, 256, 5);
}

/// SYNC POINT ring.cell, ring.consumed, for two-cell messages: the first cell publishes both.
#[test]
fn a_spread_message_is_seen_whole_or_not_at_all() {
    each_arrives_whole(0, 96, 3);
}
