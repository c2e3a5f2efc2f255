//! Tests of one ring with its producer and its consumer.
#![allow(unsafe_code)]

use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering, Ordering::Relaxed};

fn ring(cells: u32, bytes: u32) -> (Producer, Consumer) {
    let memory = RingMemory::on_heap(Shape::new(cells, bytes).unwrap());
    // SAFETY: these are the only producer and the only consumer of this memory.
    unsafe { (Producer::new(memory.clone()), Consumer::new(memory)) }
}

/// Returns the payload of message number `n`; the bytes are a function of `n`.
fn payload(n: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (n as usize * 31 + i * 7 + (i >> 8)) as u8)
        .collect()
}

fn push(tx: &mut Producer, n: u64, len: usize) -> Result<(), Full> {
    let bytes = payload(n, len);
    tx.push(n as u8, [n, !n], len, |to| to.copy_from_slice(&bytes))
}

fn pop(rx: &mut Consumer, n: u64, len: usize) -> bool {
    let seen = rx.pop(|m| {
        assert_eq!((m.am, m.header), (n as u8, [n, !n]));
        match m.body {
            Body::Here(bytes) => assert_eq!(bytes, payload(n, len)),
            Body::Elsewhere { .. } => panic!("message {n} was pushed with its payload"),
        }
    });
    match seen {
        Polled::Got(()) => true,
        Polled::Empty => false,
        Polled::Broken => panic!("message {n} broke the ring"),
    }
}

#[test]
fn a_cell_is_one_cache_line_and_the_consumer_has_its_own() {
    let shape = Shape::new(4, 0).unwrap();
    assert_eq!(shape.footprint(), 128 + 4 * 64);
}

#[test]
fn a_control_word_keeps_every_field_and_refuses_unknown_kinds() {
    for kind in [
        Kind::Inline,
        Kind::Bytes,
        Kind::BytesAtStart,
        Kind::Elsewhere,
    ] {
        let control = Control {
            seq: 0xdead_beef,
            am: 0xa5,
            kind,
            len: MAX_LEN,
        };
        assert_eq!(Control::unpack(control.pack()), Some(control));
    }
    assert_eq!(Control::unpack(4 << 40), None);
}

#[test]
fn an_untouched_ring_is_empty() {
    let (_tx, mut rx) = ring(4, 256);
    assert!(!rx.is_ready());
    assert_eq!(rx.pop(|_| ()), Polled::Empty);
}

#[test]
fn a_full_ring_takes_nothing_until_something_is_given_back() {
    let (mut tx, mut rx) = ring(8, 0);
    for n in 0..8 {
        push(&mut tx, n, 8).unwrap();
    }
    assert_eq!(push(&mut tx, 8, 8), Err(Full));
    assert_eq!(tx.push_word(0, [0; 2], 0), Err(Full));
    assert_eq!(tx.push_elsewhere(0, [0; 2], 9, 0), Err(Full));
    assert!(pop(&mut rx, 0, 8));
    // One cell is less than a quarter of the ring, so it is not released before `give_back`.
    assert_eq!(push(&mut tx, 8, 8), Err(Full));
    rx.give_back();
    push(&mut tx, 8, 8).unwrap();
    for n in 1..=8 {
        assert!(pop(&mut rx, n, 8));
    }
    assert!(!rx.is_ready());
    rx.give_back();
    assert!(tx.is_drained());
}

#[test]
fn payloads_of_every_length_arrive_whole() {
    let (mut tx, mut rx) = ring(16, 16384);
    for (n, len) in (0..=tx.longest()).enumerate() {
        push(&mut tx, n as u64, len).unwrap();
        assert!(pop(&mut rx, n as u64, len));
        rx.give_back();
    }
    let too_long = tx.longest() + 1;
    assert_eq!(push(&mut tx, 0, too_long), Err(Full));
}

/// The length of the messages of [`stretch`] in bytes.
const BLOCK: usize = 2 << 10;

/// Sends `count` messages of [`BLOCK`] bytes, of which at most `behind` are unread at any time.
/// If none may be unread, the sender polls after each message, as in a dialogue.
/// Returns the distance in bytes from the first to the last byte used.
fn stretch(behind: u64, count: u64) -> usize {
    let (tx, rx) = ring(16, NEAR as u32);
    stretch_of(tx, rx, behind, count)
}

fn stretch_of(mut tx: Producer, mut rx: Consumer, behind: u64, count: u64) -> usize {
    let mut places = Vec::new();
    for n in 0..count {
        push(&mut tx, n, BLOCK).unwrap();
        if n < behind {
            continue;
        }
        if behind == 0 {
            tx.begin_run();
        }
        let place = rx.pop(|m| match m.body {
            Body::Here(bytes) => bytes.as_ptr().addr(),
            Body::Elsewhere { .. } => panic!("message {n} was pushed with its payload"),
        });
        match place {
            Polled::Got(place) => places.push(place),
            other => panic!("{other:?} in place of message {n}"),
        }
        rx.give_back();
    }
    places.iter().max().unwrap() + BLOCK - places.iter().min().unwrap()
}

#[test]
fn while_the_consumer_keeps_up_only_the_beginning_of_the_bytes_is_used() {
    let lap = LAP as usize * UNIT;
    assert_eq!(stretch(0, 2_000), lap);
    assert_eq!(stretch(1, 8_000), NEAR);
}

#[test]
fn a_part_for_cores_that_share_the_last_cache_only_is_cycled_through_though_the_consumer_keeps_up()
{
    let lap = LAP as usize * UNIT;
    let long = NEAR + lap;
    let (mut tx, rx) = ring(16, 2 * long as u32);
    tx.set_span(long);
    assert_eq!(stretch_of(tx, rx, 0, 16_000), long);
    // The receiver may change between a short and a long span at any time.
    for (wish, used) in [(NEAR, lap), (2 * long, 2 * long)] {
        let (mut tx, mut rx) = ring(16, 2 * long as u32);
        tx.set_span(long);
        rx.wish_span(wish);
        assert!(tx.is_drained());
        assert_eq!(stretch_of(tx, rx, 0, 16_000), used);
    }
}

#[test]
fn of_a_consumer_that_lags_behind_as_much_is_used_as_either_side_says() {
    let lap = LAP as usize * UNIT;
    let (mut tx, rx) = ring(16, 8 * LAP * UNIT as u32);
    tx.set_span(2 * lap);
    assert_eq!(stretch_of(tx, rx, 1, 16_000), 2 * lap);
    for (wish, used) in [(3 * lap, 3 * lap), (1, lap), (usize::MAX / 2, 8 * lap)] {
        let (mut tx, mut rx) = ring(16, 8 * LAP * UNIT as u32);
        tx.set_span(2 * lap);
        rx.wish_span(wish);
        assert!(tx.is_drained());
        assert_eq!(stretch_of(tx, rx, 1, 16_000), used, "wished for {wish}");
    }
}

/// A new page takes microseconds, so the producer of a dialogue populates one page for each 32 KiB
/// of blocks. In a stream, the consumer does not wait for the producer.
#[test]
fn a_span_that_is_cycled_through_is_opened_slowly_in_a_dialogue_and_quickly_in_a_stream() {
    const KIB: usize = 1 << 10;
    let used = |behind: u64, blocks| {
        let (mut tx, rx) = ring(128, 2 * NEAR as u32);
        tx.populate_first(64 * KIB);
        stretch_of(tx, rx, behind, blocks) / KIB
    };
    // In the first lap of 64 KiB, two pages are populated, and in the second lap two more.
    assert_eq!(used(0, 32), 64);
    assert_eq!(used(0, 32 + 36), 72);
    assert_eq!(used(0, 32 + 36 + 40), 80);
    // After 32 KiB for each of the other 176 pages, the next lap uses all of the span.
    assert_eq!(used(0, 176 * 16 + 800), 2 * NEAR / KIB);
    // A sender that does not poll is in a stream; the second lap uses the whole span.
    assert_eq!(used(48, 1_000), 2 * NEAR / KIB);
    assert_eq!(used(1, 1_000), 2 * NEAR / KIB);
}

/// The fragments of one message are sent in a row, too, but they are at most 64 KiB of short blocks.
#[test]
fn runs_of_a_lap_are_a_dialogue_and_longer_ones_are_a_stream() {
    const KIB: usize = 1 << 10;
    let populated = |run: u64, len: usize| {
        let (mut tx, mut rx) = ring(128, 2 * NEAR as u32);
        tx.populate_first(64 * KIB);
        for n in 0..(2 * NEAR / len) as u64 {
            push(&mut tx, n, len).unwrap();
            assert!(pop(&mut rx, n, len));
            rx.give_back();
            if n % run == run - 1 {
                tx.begin_run();
            }
        }
        tx.populated as usize * UNIT / KIB
    };
    let slowly = 64 + 2 * NEAR / (8 * KIB);
    assert_eq!(populated(1, 8 * KIB), slowly);
    assert_eq!(populated(8, 8 * KIB), slowly);
    // Blocks that are longer than eager messages are fragments.
    assert_eq!(populated(64, 16 * KIB), slowly);
    assert!(populated(64, 8 * KIB) > 3 * slowly);
}

#[test]
fn a_consumer_that_lags_gets_short_blocks_in_new_pages_and_long_ones_after_it_has_read_some() {
    let (mut tx, mut rx) = ring(64, 2 * NEAR as u32);
    for n in 0..48 {
        assert_eq!(push(&mut tx, n, 8 << 10), Ok(()));
    }
    (0..48).for_each(|n| assert!(pop(&mut rx, n, 8 << 10)));
    // A ring begins with 64 KiB, and three long blocks open it as far as they reach.
    for (long, count) in [(64 << 10, 3), (16 << 10, 4)] {
        let (mut tx, mut rx) = ring(64, 8 * (64 << 10));
        for n in 0..count {
            assert_eq!(push(&mut tx, n, long), Ok(()));
        }
        assert_eq!(push(&mut tx, count, long), Err(Full));
        assert!(!tx.has_room(long) && tx.has_room(8 << 10));
        assert!(pop(&mut rx, 0, long));
        rx.give_back();
        assert_eq!(push(&mut tx, count, long), Ok(()));
        assert!((1..=count).all(|n| pop(&mut rx, n, long)));
    }
}

#[test]
fn whatever_a_consumer_claims_to_have_read_blocks_stay_in_the_ring() {
    let memory = RingMemory::on_heap(Shape::new(1 << 10, 64 * UNIT as u32).unwrap());
    // SAFETY: this is the only producer of this memory, which has no consumer.
    let mut tx = unsafe { Producer::new(memory.clone()) };
    let mut word = 1_u64;
    for n in 0..2_000 {
        // Pseudo-random counts, most of which no correct consumer publishes.
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n);
        let back = match n % 3 {
            0 => u64::from(tx.next.wrapping_sub(1)) | (word >> 62 << 32),
            1 => u64::from(tx.next.wrapping_sub(1)) | (word >> 32 << 32),
            _ => u64::from(tx.next.wrapping_sub(1)) | (word >> 58 << 32),
        };
        memory.given_back().consumed.store(back, Relaxed);
        memory.given_back().span.store(word >> (word % 64), Relaxed);
        // The assertion in `write`, and Miri, detect a write outside the ring.
        let _ = push(&mut tx, n, 170 + (word >> 40) as usize % 800);
    }
}

#[test]
fn a_word_and_a_token_travel_in_the_cell() {
    let (mut tx, mut rx) = ring(4, 0);
    tx.push_word(1, [2, 3], 0x0807_0605_0403_0201).unwrap();
    tx.push_elsewhere(4, [5, 6], 70_000, 99).unwrap();
    let word = rx.pop(|m| matches!(m.body, Body::Here([1, 2, 3, 4, 5, 6, 7, 8])));
    assert_eq!(word, Polled::Got(true));
    let token = rx.pop(|m| match m.body {
        Body::Elsewhere { token, len } => (m.am, token, len),
        Body::Here(_) => (0, 0, 0),
    });
    assert_eq!(token, Polled::Got((4, 99, 70_000)));
}

#[test]
fn a_cell_that_no_producer_wrote_breaks_the_ring_and_is_never_read() {
    for word in [1 | 9 << 40, 1 | 153 << 44, 1 | 1 << 40 | 65 << 44] {
        let memory = RingMemory::on_heap(Shape::new(4, 256).unwrap());
        memory.cell(1).words[0].store(word, crate::atomic::Ordering::Release);
        // SAFETY: this is the only consumer of this memory, which has no producer.
        let mut rx = unsafe { Consumer::new(memory) };
        assert_eq!(rx.pop(|_| ()), Polled::Broken);
        assert!(rx.is_broken() && !rx.is_ready());
        assert_eq!(rx.pop(|_| ()), Polled::Empty);
    }
}

#[test]
fn sequence_numbers_may_wrap_around() {
    let memory = RingMemory::on_heap(Shape::new(4, 1024).unwrap());
    // SAFETY: these are the only producer and the only consumer of this memory.
    let (mut tx, mut rx) = unsafe { (Producer::new(memory.clone()), Consumer::new(memory)) };
    // Both ends start shortly before the sequence numbers wrap around.
    let start = u32::MAX - 9;
    (tx.next, tx.consumed) = (start, start.wrapping_sub(1));
    (rx.next, rx.published) = (start, start.wrapping_sub(1));
    for n in 0..40 {
        // Messages occupy one to three cells, so numbers also wrap around within a message.
        let len = 60 * (n as usize % 3);
        push(&mut tx, n, len).unwrap();
        assert!(pop(&mut rx, n, len));
    }
}

/// The messages that a ring must deliver: those which have been sent and not received.
#[derive(Default)]
struct Oracle {
    /// The numbers and the lengths of the messages.
    unread: std::collections::VecDeque<(u64, usize)>,
    sent: u64,
}

impl Oracle {
    /// Sends a message if the ring takes it. Returns whether the ring had room, and whether the message is sent.
    fn send(&mut self, tx: &mut Producer, len: usize) -> Result<(bool, bool), TestCaseError> {
        let had_room = tx.has_room(len);
        let is_sent = push(tx, self.sent, len).is_ok();
        if is_sent {
            self.unread.push_back((self.sent, len));
            self.sent += 1;
        }
        prop_assert!(!self.unread.is_empty(), "an empty ring takes every payload");
        Ok((had_room, is_sent))
    }

    /// Receives the oldest message; without one, the ring must be empty.
    fn receive(&mut self, rx: &mut Consumer) -> Result<(), TestCaseError> {
        match self.unread.pop_front() {
            Some((n, len)) => prop_assert!(pop(rx, n, len)),
            None => prop_assert!(!rx.is_ready()),
        }
        Ok(())
    }

    fn release_if_empty(&self, rx: &mut Consumer) {
        if self.unread.is_empty() {
            rx.give_back();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    /// Compares the ring with a simple queue, for any sizes and any interleaving of pushes and pops.
    #[test]
    fn a_ring_is_a_queue(
        cells in 2u32..6,
        units in 4u32..40,
        steps in proptest::collection::vec((any::<bool>(), 0usize..700, 0u32..50), 1..300)
    ) {
        let (mut tx, mut rx) = ring(1 << cells, units * 64);
        let mut queue = Oracle::default();
        for (send, len, span) in steps {
            // Occasionally the consumer or the producer requests another span.
            match span {
                0..3 => tx.set_span(len),
                3..6 => rx.wish_span(len),
                _ => {}
            }
            let len = len % (tx.longest().max(SPREAD) + 1);
            if send {
                let (had_room, is_sent) = queue.send(&mut tx, len)?;
                prop_assert_eq!(is_sent, had_room);
            } else {
                queue.receive(&mut rx)?;
            }
            queue.release_if_empty(&mut rx);
        }
    }
}

// Miri would need minutes for one case.
#[cfg(not(miri))]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// As `a_ring_is_a_queue`, with spans that are opened in parts: longer ones than a lap.
    /// The sender and the receiver may be far apart, and pages may be populated at any time.
    #[test]
    fn a_ring_that_is_opened_in_parts_is_a_queue(
        units in 5 * LAP..9 * LAP,
        steps in proptest::collection::vec((0u32..60, 0usize..1 << 20, 0u32..60), 1..600)
    ) {
        const SHORT: usize = 8 << 10;
        let (mut tx, mut rx) = ring(64, units * UNIT as u32);
        let mut queue = Oracle::default();
        let mut sends = true;
        for (turn, word, other) in steps {
            match other {
                0 => tx.set_span(word),
                1 => rx.wish_span(word),
                2 => { tx.populate_ahead(); }
                3 => tx.populate_first(word / 8),
                4..8 => rx.give_back(),
                8..20 => tx.begin_run(),
                _ => {}
            }
            // Many sends or receives follow each other.
            sends ^= turn < 2;
            let len = match word % 8 {
                0 => word % (tx.longest() + 1),
                _ => word % (SHORT + 1),
            };
            if sends {
                // `has_room` may read a newly requested span, which only `push` uses.
                let (had_room, is_sent) = queue.send(&mut tx, len)?;
                prop_assert!(is_sent || !had_room);
            } else {
                queue.receive(&mut rx)?;
            }
            queue.release_if_empty(&mut rx);
        }
        while !queue.unread.is_empty() {
            queue.receive(&mut rx)?;
        }
    }
}

#[test]
fn two_threads_pass_messages_of_all_sizes_in_order() {
    let (mut tx, mut rx) = ring(16, 4096);
    let longest = tx.longest();
    let count = if cfg!(miri) { 50 } else { 100_000 };
    let len = move |n: u64| (n as usize * 2_654_435_761) % (longest + 1);
    let [writer_ended, reader_ended] = [const { AtomicBool::new(false) }; 2];
    std::thread::scope(|s| {
        let ends = Ends(&writer_ended);
        s.spawn(|| {
            let _ends = ends;
            for n in 0..count {
                while push(&mut tx, n, len(n)).is_err() {
                    assert!(
                        !reader_ended.load(Ordering::Acquire),
                        "the reader has ended"
                    );
                    std::thread::yield_now();
                }
            }
        });
        let _ends = Ends(&reader_ended);
        for n in 0..count {
            loop {
                // The flag is read before the ring. So everything that the thread wrote is visible
                // if the thread has ended.
                let ended = writer_ended.load(Ordering::Acquire);
                if pop(&mut rx, n, len(n)) {
                    break;
                }
                assert!(!ended, "the writer has ended");
                rx.give_back();
                std::thread::yield_now();
            }
        }
    });
}

/// A guard that sets a flag when its thread ends or panics, so that no thread waits for it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
