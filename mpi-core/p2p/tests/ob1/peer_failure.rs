//! Tests of lost links and peers, and of messages that no peer of this library sends.

use super::{recv_bytes, scratch};
use mpi_core::btl::{OVERTAKES, Sink};
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::request::{ANY_SOURCE, Outcome};
use mpi_core::testing::{Job, until_set};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// For any messages of a peer: messages of other peers continue to arrive, and no operation waits for a peer that was declared lost.
    #[test]
    fn malformed_messages_of_a_peer_are_harmless(
        said in prop::collection::vec(
            (
                prop::sample::select(vec![2u8, 3, 4, 4 | OVERTAKES, 5, 6, 7, 8, 9, 10, 11, 12, 13, 255]),
                any::<[u64; 2]>(),
                prop::collection::vec(any::<u8>(), 0..40),
            ),
            0..40,
        ),
    ) {
        Job::of(2).run(|engine| {
            let world = engine.world().expect("a world");
            if engine.me() != 0 {
                return;
            }
            {
                for (am, header, bytes) in &said {
                    let (pml, len) = (engine.pml(), bytes.len() + 100);
                    if pml.begin(1, *am, *header, len, bytes) {
                        pml.landed(1, *am, *header, len);
                    }
                    pml.deliver(1, *am, *header, bytes);
                    pml.again(1, *am, *header, len, &mut |_| panic!("nothing was sent"));
                }
            }
            let (mine, dest) = (scratch(8), scratch(8));
            mine.all().unpack_at(0, &[7; 8]);
            let came = world.p2p().irecv(dest.all(), 0, 1).expect("posted");
            world.p2p().send(mine.all().as_send(), 0, 1, Mode::Standard).expect("sent");
            engine.wait(&came).expect("received");
            assert_eq!(dest.all().as_send().to_vec(), [7; 8]);
            if engine.pml().counts_as_lost(1) {
                let found_out = |outcome: Outcome| {
                    let sentence = outcome.expect_err("rank 1 is lost").to_string();
                    assert!(sentence.contains("rank 1 sent"), "{sentence}");
                };
                found_out(world.p2p().recv(dest.all(), 1, 1));
                let sent = world.p2p().send(mine.all().as_send(), 1, 1, Mode::Standard);
                found_out(sent.map(|()| mpi_core::request::Status::EMPTY));
            }
        });
    }
}

#[test]
fn memory_that_a_send_has_given_back_is_not_sent_when_a_link_dies() {
    const LEN: usize = 1 << 20;
    let job = Job::of(2)
        .with("btl", "self,tcp")
        .with("btl_tcp_links", "2")
        .with("btl_fault_cut", "5m")
        .with("btl_fault_link", "1");
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let buffer = scratch(LEN);
        for round in 0..20u8 {
            if engine.me() == 0 {
                buffer.all().unpack_at(0, &vec![round; LEN]);
                let sent = world
                    .p2p()
                    .send(buffer.all().as_send(), 1, 1, Mode::Standard);
                sent.expect("sent");
                buffer.all().unpack_at(0, &vec![255; LEN]);
            } else {
                world.p2p().recv(buffer.all(), 0, 1).expect("received");
                let came = buffer.all().as_send().to_vec();
                assert!(came.iter().all(|&b| b == round), "message {round}");
            }
        }
        assert_eq!(engine.pml().protocol_errors(), 0);
    });
}

#[test]
fn whoever_waits_for_a_lost_peer_is_told_why_and_others_go_on() {
    Job::of(3).with("btl", "self,tcp").run(|engine| {
        let world = engine.world().expect("a world");
        let word = scratch(8);
        if engine.me() == 1 {
            let sent = world.p2p().send(word.all().as_send(), 0, 7, Mode::Standard);
            sent.expect("sent");
        }
        if engine.me() != 0 {
            return;
        }
        let long = scratch(1 << 20);
        let posted = world.p2p().irecv(word.all(), 2, 7).expect("posted");
        let Ok(Sent::Pending(waiting)) =
            world
                .p2p()
                .isend(long.all().as_send(), 2, 9, Mode::Synchronous)
        else {
            panic!("a synchronous send ended without a receive");
        };
        // Injects a transport's report of a loss. The peer itself is alive and is not notified.
        Sink::lost(engine.pml(), 2, "the wire was cut");
        let text = |outcome: Outcome| outcome.expect_err("a loss").to_string();
        assert_eq!(
            text(engine.wait(&posted)),
            "8 bytes with tag 7 to or from job rank 2 cannot arrive: the wire was cut"
        );
        assert_eq!(
            text(engine.wait(&waiting)),
            "1048576 bytes with tag 9 to or from job rank 2 cannot arrive: the wire was cut"
        );
        assert_eq!(
            text(recv_bytes(&world, &mut [0; 5], 2, 3)),
            "5 bytes with tag 3 to or from job rank 2 cannot arrive: the wire was cut"
        );
        let status = world
            .p2p()
            .recv(word.all(), ANY_SOURCE, 7)
            .expect("a message");
        assert_eq!(status.source, 1);
    });
}

/// The peer stops reading while short messages to it are queued, or while a long message is sent in fragments.
#[test]
fn sends_to_a_lost_peer_whose_ring_is_full_end() {
    const LONG: usize = 16 << 20;
    for len in [8, 4096, LONG] {
        let (stopped, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let job = Job::of(2).with("btl_sm_single_copy", "false");
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let dest = scratch(LONG);
            if engine.me() == 1 {
                let long = world.p2p().irecv(dest.all(), 0, 1).expect("posted");
                while len == LONG && engine.pml().incoming_from(&long).is_none() {
                    engine.progress();
                }
                stopped.store(true, Ordering::Release);
                until_set(&over);
                return engine.pml().termination().abandon(&long);
            }
            // Until the peer stops, it reads the short messages and requests the long one.
            while len < LONG && !stopped.load(Ordering::Acquire) {
                engine.progress();
            }
            let waiting = loop {
                let data = dest.send(0..len as i64);
                match world.p2p().isend(data, 1, 1, Mode::Standard).expect("sent") {
                    Sent::Done => {}
                    Sent::Pending(waiting) => {
                        // If the credit is spent, the next poll passes a short message to the transport.
                        // A message that is still pending after the poll waits for space.
                        engine.progress();
                        if len == LONG || !waiting.is_complete() {
                            break waiting;
                        }
                    }
                }
            };
            // Fills the transport until it neither accepts nor delivers data.
            while !stopped.load(Ordering::Acquire) || engine.progress() {
                std::hint::spin_loop();
            }
            // The peer may have read all fragments of the long message before it stopped.
            let is_over = len == LONG && waiting.is_complete();
            assert!(is_over || !waiting.is_complete(), "{len} bytes have gone");
            Sink::lost(engine.pml(), 1, "it has died");
            let ended = engine.wait(&waiting).map_err(|error| error.to_string());
            let is_told = |error: String| error.ends_with("cannot arrive: it has died");
            assert!(is_over || ended.is_err_and(is_told), "{len} bytes");
            let later = world
                .p2p()
                .isend(dest.send(0..len as i64), 1, 1, Mode::Synchronous);
            let later = later.err().map(|error| error.to_string());
            assert!(later.is_some_and(|told| told.ends_with("cannot arrive: it has died")));
            over.store(true, Ordering::Release);
        });
    }
}
