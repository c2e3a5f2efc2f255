//! Tests of peers to which a connection must be established first.

use super::{recv_bytes, scratch};
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::testing::Job;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// With this number of ranks, most pairs are not connected when a job starts.
const RANKS: u32 = 8;

/// The sender computes after its calls have returned, and does not poll its transports until the messages have arrived.
#[test]
fn the_first_message_to_a_peer_comes_though_its_sender_computes_from_then_on() {
    for (blocking, links) in [(true, "1"), (false, "1"), (true, "2"), (false, "2")] {
        let come = AtomicU32::new(1);
        let job = Job::of(RANKS).with("btl", "self,tcp");
        job.with("btl_tcp_links", links).run(|engine| {
            let world = engine.world().expect("a world");
            if engine.me() > 0 {
                recv_bytes(&world, &mut [0; 8], 0, 0).expect("received");
                come.fetch_add(1, Ordering::Release);
                return;
            }
            let word = scratch(8);
            for to in 1..RANKS as i32 {
                if blocking {
                    let sent = world
                        .p2p()
                        .send(word.all().as_send(), to, 0, Mode::Standard);
                    sent.expect("sent");
                } else {
                    let sent = world
                        .p2p()
                        .isend(word.all().as_send(), to, 0, Mode::Standard);
                    if let Sent::Pending(req) = sent.expect("begun") {
                        engine.wait(&req).expect("sent");
                    }
                }
            }
            let limit = Instant::now() + Duration::from_secs(10);
            while come.load(Ordering::Acquire) < RANKS {
                assert!(Instant::now() < limit, "a message does not come");
                std::thread::yield_now();
            }
        });
    }
}
