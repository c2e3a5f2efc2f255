//! Tests that every receive gets the message that the standard prescribes, with every protocol.

use super::plan::{holds, phase};
use super::{content, recv_bytes, scratch};
use mpi_core::pml::Mode;
use mpi_core::pml::{Config, Sent};
use mpi_core::request::{ANY_SOURCE, ANY_TAG};
use mpi_core::testing::Job;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Generates parameters that select different protocols and transports.
fn ways() -> impl Strategy<Value = &'static [(&'static str, &'static str)]> {
    prop::sample::select(vec![
        &[("btl", "self,tcp")][..],
        &[("btl", "self,tcp"), ("btl_tcp_eager_limit", "16")],
        &[
            ("btl", "self,tcp"),
            ("btl_tcp_max_send_size", "64k"),
            ("btl_tcp_sndbuf", "8k"),
        ],
        &[("btl", "self,tcp"), ("btl_tcp_if_include", "::1/128")],
        &[("btl", "self,tcp"), ("btl_tcp_links", "2")],
        &[
            ("btl", "self,tcp"),
            ("btl_tcp_links", "2"),
            ("btl_fault_cut", "100k"),
            ("btl_fault_link", "2"),
        ],
        &[("btl_checksum_enable", "yes"), ("btl_fault_refuse", "0.2")],
        &[("btl_fault_late", "0.5"), ("btl_sm_eager_limit", "1k")],
        &[("btl_sm_eager_limit", "16"), ("btl_sm_single_copy", "no")],
        &[("btl_sm_max_send_size", "1000")],
    ])
}

/// Makes the tests of random phases, with this number of cases and an attribute for each test.
macro_rules! in_random_cases {
    ($cases:literal $(, #[$mark:meta])?) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: $cases, max_shrink_iters: 200, ..ProptestConfig::default() })]

            #[test]
            $(#[$mark])?
            fn every_receive_gets_the_message_that_the_standard_says(
                phases in prop::collection::vec(phase(3), 1..4),
            ) {
                holds(&Job::of(3), &phases);
            }

            #[test]
            $(#[$mark])?
            fn it_is_the_same_without_single_copy(phases in prop::collection::vec(phase(2), 1..3)) {
                let pml = Config { single_copy_min: u64::MAX, ..Config::default() };
                holds(&Job { pml, ..Job::of(2) }, &phases);
            }

            #[test]
            $(#[$mark])?
            fn it_is_the_same_when_every_unexpected_message_is_one_too_many(phases in prop::collection::vec(phase(3), 1..3)) {
                let pml = Config { unexpected_max: 0, ..Config::default() };
                holds(&Job { pml, ..Job::of(3) }, &phases);
            }

            #[test]
            $(#[$mark])?
            fn it_is_the_same_when_both_sides_copy(phases in prop::collection::vec(phase(3), 1..3)) {
                let pml = Config { assist_min: 0, ..Config::default() };
                holds(&Job { pml, ..Job::of(3) }, &phases);
            }

            #[test]
            $(#[$mark])?
            fn it_is_the_same_when_the_faster_way_is_looked_for(phases in prop::collection::vec(phase(2), 1..3)) {
                let pml = Config { measure: true, assist_min: 64 << 10, ..Config::default() };
                holds(&Job { pml, ..Job::of(2) }, &phases);
            }

            #[test]
            $(#[$mark])?
            fn it_is_the_same_when_data_travel_unasked_in_pieces(phases in prop::collection::vec(phase(2), 1..3)) {
                let pml = Config { single_copy_min: u64::MAX, ..Config::default() };
                let job = Job { pml, ..Job::of(2) };
                holds(&job.with("btl_sm_max_send_size", "1000"), &phases);
            }

            #[test]
            $(#[$mark])?
            fn it_is_the_same_whichever_way_messages_take(
                way in ways(),
                phases in prop::collection::vec(phase(3), 1..3),
            ) {
                let job = way.iter().fold(Job::of(3), |job, (name, value)| job.with(name, value));
                holds(&job, &phases);
            }
        }
    };
}

in_random_cases!(32);

mod in_more_cases {
    use super::*;

    in_random_cases!(128, #[ignore = "long: cargo xtask test --long"]);
}

#[test]
fn a_receive_that_waits_does_not_overtake_one_that_was_posted() {
    Job::of(2).run(|engine| {
        let world = engine.world().expect("a world");
        if engine.me() == 0 {
            for at in [0u8, 1] {
                let data = scratch(1);
                data.all().unpack_at(0, &[at]);
                world
                    .p2p()
                    .send(data.all().as_send(), 1, 7, Mode::Standard)
                    .expect("sent");
            }
            return;
        }
        let first = scratch(1);
        let posted = world
            .p2p()
            .irecv(first.all(), ANY_SOURCE, 7)
            .expect("posted");
        let mut second = [9];
        let status = recv_bytes(&world, &mut second, 0, ANY_TAG).expect("received");
        engine.wait(&posted).expect("received");
        assert_eq!((first.all().as_send().to_vec(), second), (vec![0], [1]));
        assert_eq!((status.source, status.tag, status.bytes), (0, 7, 1));
    });
}

/// No rank waits in this test, and a poll that finds no message usually does not continue queued sends either.
/// So polls alone must advance announcements, replies, fragments, and the release of space in the rings.
#[test]
fn ranks_that_only_poll_exchange_messages_of_all_lengths() {
    let pml = Config {
        single_copy_min: u64::MAX,
        ..Config::default()
    };
    let job = Job { pml, ..Job::of(2) };
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let (me, other) = (world.rank() as i32, 1 - world.rank() as i32);
        let limit = Instant::now() + Duration::from_secs(60);
        let poll_until = |done: &dyn Fn() -> bool| {
            while !done() {
                assert!(Instant::now() < limit, "rank {me} polls without a result");
                engine.poll_once();
            }
        };
        let exchanges = (0..400).map(|_| 8).chain([0, 3_000, 20_000, 300_000]);
        for (tag, len) in (0..).zip(exchanges) {
            let (data, buffer) = (scratch(len), scratch(len));
            data.all().unpack_at(0, &content(me as usize, len));
            let sent = world
                .p2p()
                .isend(data.all().as_send(), other, tag, Mode::Standard)
                .expect("sent");
            let found = |tag| world.probes().iprobe(ANY_SOURCE, tag).expect("probed");
            let status = loop {
                if let Some(status) = found(tag) {
                    break status;
                }
                assert!(Instant::now() < limit, "rank {me} probes without a result");
            };
            assert_eq!(status.bytes, len as u64);
            let posted = world.p2p().irecv(buffer.all(), other, tag).expect("posted");
            poll_until(&|| posted.is_complete());
            engine.wait(&posted).expect("received");
            if let Sent::Pending(req) = sent {
                poll_until(&|| req.is_complete());
                engine.wait(&req).expect("sent");
            }
            let expected = content(other as usize, len);
            assert_eq!(buffer.all().as_send().to_vec(), expected);
        }
    });
}

#[test]
fn a_message_to_the_own_process_arrives_in_one_poll() {
    for len in [8, 20_000] {
        let pml = Config {
            single_copy_min: u64::MAX,
            ..Config::default()
        };
        let job = Job { pml, ..Job::of(1) };
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let (data, buffer) = (scratch(len), scratch(len));
            data.all().unpack_at(0, &content(5, len));
            let posted = world.p2p().irecv(buffer.all(), 0, 3).expect("posted");
            let sent = world
                .p2p()
                .isend(data.all().as_send(), 0, 3, Mode::Synchronous)
                .expect("sent");
            engine.poll_once();
            assert!(posted.is_complete(), "{len} bytes are still on their way");
            engine.wait(&posted).expect("received");
            if let Sent::Pending(req) = sent {
                engine.wait(&req).expect("sent");
            }
            assert_eq!(buffer.all().as_send().to_vec(), content(5, len));
        });
    }
}
