//! Tests of the eager pipeline: messages of medium length whose data follow the announcement without a CTS.

use mpi_core::Engine;
use mpi_core::btl::Sink;
use mpi_core::comm::Comm;
use mpi_core::datatype::{Datatype, Named, Scratch};
use mpi_core::pml::testing::wire::{self, Rendezvous};
use mpi_core::pml::testing::{ASKING, LONGEST_FOLLOWED as LONGEST, ROUND, order_of};
use mpi_core::request::{Outcome, Req, ReqId};
use mpi_core::testing::Job;

const SENDER: u64 = 77;

/// Runs a test on rank 0 of two, with injected messages whose sender appears to be rank 1.
fn hears(test: impl Fn(&Engine, &Told) + Sync) {
    Job::of(2).run(|engine| {
        if engine.me() == 0 {
            let world = engine.world().expect("a world");
            test(engine, &Told { world });
        }
    });
}

struct Told {
    world: Comm,
}

impl Told {
    fn announces(&self, engine: &Engine, bytes: u64) {
        let context = self.world.context().plane(mpi_core::pml::Plane::User);
        let announcement = Rendezvous {
            key: None,
            bytes,
            sender: ReqId(SENDER),
            place: wire::Place::Scattered,
        };
        let header = wire::match_header(context, 1, 5);
        announcement.encoded(|payload| {
            engine.pml().deliver(1, wire::EAGER_START, header, payload);
        });
    }

    fn sends(&self, engine: &Engine, at: u64, data: &[u8]) {
        (engine.pml()).deliver(1, wire::EAGER_FRAG, [SENDER, at], data);
    }
}

fn receive(peer: &Told, buffer: &Scratch) -> Req {
    peer.world.p2p().irecv(buffer.all(), 1, 5).expect("posted")
}

fn ends(engine: &Engine, req: &Req) -> Outcome {
    assert!(req.is_complete());
    engine.pml().requests().finish(req)
}

fn data() -> Vec<u8> {
    (0..250).collect()
}

#[test]
fn a_receive_that_comes_before_between_or_after_the_pieces_gets_them_all() {
    // The receive is posted before the announcement, after it, or after one of the fragments.
    for comes in 0..=4 {
        hears(|engine, peer| {
            let buffer = Scratch::bytes(300).expect("memory");
            let mut posted = None;
            let mut step = |now| {
                if now == comes {
                    posted = Some(receive(peer, &buffer));
                }
            };
            step(0);
            peer.announces(engine, 250);
            for (at, piece) in (1..).zip(data().chunks(100)) {
                step(at);
                peer.sends(engine, (at as u64 - 1) * 100, piece);
            }
            step(4);
            let status = ends(engine, &posted.expect("posted")).expect("received");
            assert_eq!((status.bytes, status.source, status.tag), (250, 1, 5));
            assert_eq!(buffer.all().as_send().to_vec()[..250], data()[..]);
            assert_eq!(engine.pml().unexpected_bytes().0, 0);
            assert_eq!(engine.pml().protocol_errors(), 0);
        });
    }
}

#[test]
fn what_there_is_no_room_for_is_cut_off_and_reported() {
    for early in [false, true] {
        hears(|engine, peer| {
            let buffer = Scratch::bytes(150).expect("memory");
            let posted = early.then(|| receive(peer, &buffer));
            peer.announces(engine, 250);
            peer.sends(engine, 0, &data()[..200]);
            let req = posted.unwrap_or_else(|| receive(peer, &buffer));
            peer.sends(engine, 200, &data()[200..]);
            let error = ends(engine, &req).expect_err("too long").to_string();
            assert!(error.contains("250") && error.contains("150"), "{error}");
            assert_eq!(buffer.all().as_send().to_vec(), data()[..150]);
            assert_eq!(engine.pml().protocol_errors(), 0);
        });
    }
}

#[test]
fn pieces_for_a_receive_that_was_given_up_touch_nothing() {
    hears(|engine, peer| {
        let buffer = Scratch::bytes(250).expect("memory");
        let req = receive(peer, &buffer);
        peer.announces(engine, 250);
        peer.sends(engine, 0, &data()[..100]);
        engine.pml().termination().abandon(&req);
        peer.sends(engine, 100, &data()[100..]);
        assert_eq!(buffer.all().as_send().to_vec()[100..], [0; 150]);
        assert_eq!(engine.pml().protocol_errors(), 0);
    });
}

#[test]
fn a_sender_that_is_lost_in_the_middle_ends_receives_that_came_and_that_come() {
    for early in [false, true] {
        hears(|engine, peer| {
            let buffer = Scratch::bytes(250).expect("memory");
            let posted = early.then(|| receive(peer, &buffer));
            peer.announces(engine, 250);
            peer.sends(engine, 0, &data()[..100]);
            engine.pml().lost(1, "it fell over");
            let req = posted.unwrap_or_else(|| receive(peer, &buffer));
            let error = ends(engine, &req).expect_err("lost").to_string();
            assert!(error.contains("it fell over"), "{error}");
        });
    }
}

#[test]
fn a_peer_that_sends_pieces_out_of_turn_or_senseless_orders_is_lost() {
    type Nonsense = fn(&Engine, &Told);
    let all: [Nonsense; 9] = [
        |engine, peer| peer.sends(engine, 1, &[9; 10]),
        |engine, peer| peer.sends(engine, 0, &[9; 251]),
        |engine, peer| peer.sends(engine, u64::MAX, &[9; 2]),
        |engine, _| (engine.pml()).deliver(1, wire::EAGER_FRAG, [SENDER + 1, 0], &[9; 10]),
        |engine, peer| peer.announces(engine, 0),
        |engine, peer| peer.announces(engine, LONGEST + 1),
        |engine, _| engine.pml().deliver(1, wire::EAGER_MODE, [16, 1], &[]),
        |engine, _| engine.pml().deliver(1, wire::EAGER_MODE, [0, 2], &[]),
        |engine, _| {
            engine
                .pml()
                .deliver(1, wire::EAGER_MODE, [u64::MAX, 0], &[])
        },
    ];
    for nonsense in all {
        hears(|engine, peer| {
            let buffer = Scratch::bytes(250).expect("memory");
            let req = receive(peer, &buffer);
            peer.announces(engine, 250);
            nonsense(engine, peer);
            assert_eq!(engine.pml().protocol_errors(), 1);
            let lost = ends(engine, &req).expect_err("the peer is lost");
            assert!(lost.to_string().contains("rank 1 sent"), "{lost}");
        });
    }
}

/// Returns how many of `messages` messages of 40,000 bytes use the eager pipeline.
fn unasked(engine: &Engine, messages: u32) -> u32 {
    unasked_of(engine, messages, &Named::BYTE.into(), 40_000)
}

/// Returns how many of `messages` messages of `count` elements use the eager pipeline.
fn unasked_of(engine: &Engine, messages: u32, datatype: &Datatype, count: i64) -> u32 {
    datatype.commit().expect("a type");
    let data = Scratch::new(count, datatype).expect("memory");
    let buf = data.all().as_send();
    let unasked = |_| u32::from(engine.pml().uses_eager_pipeline_to(1, &buf));
    (0..messages).map(unasked).sum()
}

#[test]
fn messages_go_unasked_to_whom_that_is_faster_and_a_few_ask_all_the_same() {
    hears(|engine, _| {
        let order = order_of(40_000) as u64;
        assert_eq!(unasked(engine, 100), 0);
        engine.pml().deliver(1, wire::EAGER_MODE, [order, 1], &[]);
        let round = u32::from(ROUND);
        assert_eq!(unasked(engine, 3 * round), 3 * (round - u32::from(ASKING)));
        engine.pml().deliver(1, wire::EAGER_MODE, [order, 0], &[]);
        assert_eq!(unasked(engine, 100), 0);
        // A throttling receiver gets rendezvous even if it has requested the eager pipeline before.
        engine.pml().deliver(1, wire::EAGER_MODE, [order, 1], &[]);
        engine.pml().deliver(1, wire::THROTTLE, [1, 0], &[]);
        assert_eq!(unasked(engine, 100), 0);
    });
}

#[test]
fn what_cannot_be_copied_from_where_it_lies_goes_unasked_to_anybody() {
    hears(|engine, _| {
        let halves = Datatype::vector(2, 20_000, 30_000, &Named::BYTE.into()).expect("a type");
        assert_eq!(unasked_of(engine, 100, &halves, 1), 0);
        let column = Datatype::vector(5_000, 8, 16, &Named::BYTE.into()).expect("a type");
        assert_eq!(unasked_of(engine, 100, &column, 1), 100);
        engine.pml().deliver(1, wire::THROTTLE, [1, 0], &[]);
        assert_eq!(unasked_of(engine, 100, &column, 1), 0);
    });
}
