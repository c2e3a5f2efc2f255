//! Tests that several messages in fragments to one peer are sent round-robin.

use super::{content, scratch};
use mpi_core::pml::Mode;
use mpi_core::pml::{Config, Sent};
use mpi_core::testing::Job;

#[test]
fn a_message_is_not_held_up_by_all_of_a_longer_one_before_it() {
    const LONG: usize = 16 << 20;
    const SHORT: usize = 512 << 10;
    let fragments = Config {
        single_copy_min: u64::MAX,
        ..Config::default()
    };
    let job = Job {
        pml: fragments,
        ..Job::of(2)
    };
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let (long, short) = (scratch(LONG), scratch(SHORT));
        if engine.me() == 1 {
            let all = world.p2p().irecv(long.all(), 0, 0).expect("posted");
            let part = world.p2p().irecv(short.all(), 0, 1).expect("posted");
            let go = world
                .p2p()
                .send(scratch(1).all().as_send(), 0, 2, Mode::Standard);
            go.expect("sent");
            engine.wait(&part).expect("received");
            assert!(!all.is_complete());
            engine.wait(&all).expect("received");
            assert!(long.all().as_send().to_vec() == content(0, LONG));
            assert!(short.all().as_send().to_vec() == content(1, SHORT));
        } else {
            world.p2p().recv(scratch(1).all(), 1, 2).expect("received");
            long.all().unpack_at(0, &content(0, LONG));
            short.all().unpack_at(0, &content(1, SHORT));
            // Both messages are announced before the first fragment is sent.
            let sent = [(&long, 0), (&short, 1)].map(|(buffer, tag)| {
                let sent = world
                    .p2p()
                    .isend(buffer.all().as_send(), 1, tag, Mode::Standard);
                sent.expect("sent")
            });
            for sent in sent {
                let Sent::Pending(req) = sent else {
                    panic!("gone without being asked for");
                };
                engine.wait(&req).expect("sent");
            }
        }
        assert_eq!(engine.pml().protocol_errors(), 0);
    });
}
