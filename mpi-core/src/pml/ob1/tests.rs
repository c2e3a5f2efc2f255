//! Matching and protocols, against what every process may know beforehand.
//!
//! All ranks draw the same random plan of messages, so each receiver can say which message any of its receives must get:
//! of the messages from its source that the receive accepts, the one that was sent first (MPI 5.0, section 3.5).

use crate::btl::{OVERTAKES, Sink};
use crate::comm::{Comm, Probed};
use crate::datatype::{Datatype, Named, RecvBytes, Scratch};
use crate::engine::testing::{Job, eventually};
use crate::pml::Mode;
use crate::pml::ob1::{Config, Sent};
use crate::request::{ANY_SOURCE, ANY_TAG, Outcome, Req, Status};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// A message of the plan; its bytes follow from where it stands there.
#[derive(Clone, Copy, Debug)]
struct Planned {
    from: i32,
    to: i32,
    tag: i32,
    len: usize,
    synchronous: bool,
}

/// What the messages of one phase are received with; within a phase any assignment of receives to messages works out.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Exact,
    AnySource,
    AnyTag,
    Any,
}

/// How one message is received.
#[derive(Clone, Copy, Debug)]
enum How {
    Blocking,
    /// The express lane, if it is free.
    Bytes,
    Posted,
    Probed,
    Matched,
}

#[derive(Clone, Debug)]
struct Phase {
    keys: Keys,
    messages: Vec<Planned>,
    hows: Vec<How>,
}

fn phase(ranks: i32) -> impl Strategy<Value = Phase> {
    // Around every border: one word, the ring's cell, the eager limit, a fragment, the single copy.
    let len = prop::sample::select(vec![0, 8, 9, 40, 41, 700, 8192, 8193, 33_000, 300_000]);
    let message = (0..ranks, 0..ranks, 0..3, len, prop::bool::weighted(0.2)).prop_map(
        |(from, to, tag, len, synchronous)| Planned {
            from,
            to,
            tag,
            len,
            synchronous,
        },
    );
    let keys = prop::sample::select(vec![Keys::Exact, Keys::AnySource, Keys::AnyTag, Keys::Any]);
    let how = prop::sample::select(vec![
        How::Blocking,
        How::Bytes,
        How::Posted,
        How::Probed,
        How::Matched,
    ]);
    (
        keys,
        prop::collection::vec(message, 0..24),
        prop::collection::vec(how, 24),
    )
        .prop_map(|(keys, messages, hows)| Phase {
            keys,
            messages,
            hows,
        })
}

/// The bytes of message `at` of a phase: a word that names it, then a pattern.
fn content(at: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (at as u8).wrapping_mul(31) ^ (i as u8) ^ (i >> 8) as u8)
        .collect()
}

fn scratch(bytes: usize) -> Scratch {
    Scratch::bytes(bytes as i64).expect("memory")
}

fn send(comm: &Comm, at: usize, message: Planned) -> Option<(Req, Scratch)> {
    let data = scratch(message.len);
    data.all().unpack_at(0, &content(at, message.len));
    let mode = match message.synchronous {
        true => Mode::Synchronous,
        false => Mode::Standard,
    };
    match comm.isend(data.all().as_send(), message.to, message.tag, mode) {
        Ok(Sent::Done) => None,
        Ok(Sent::Pending(req)) => Some((req, data)),
        Err(e) => panic!("{e}"),
    }
}

fn recv_bytes(comm: &Comm, room: &mut [u8], source: i32, tag: i32) -> Outcome {
    // SAFETY: the slice outlives the call, which waits for the end of the operation.
    let bytes = unsafe { RecvBytes::new(room.as_mut_ptr(), room.len()) };
    comm.recv_bytes(bytes, source, tag)
}

/// Receives one message with this key; its status and bytes, now or (for `Posted`) when waited for.
fn receive(
    comm: &Comm,
    how: How,
    source: i32,
    tag: i32,
    room: usize,
) -> Result<(Status, Vec<u8>), (Req, Scratch)> {
    let buffer = scratch(room);
    let taken = |status: Status, buffer: &Scratch| {
        let mut bytes = buffer.all().as_send().to_vec();
        bytes.truncate(status.bytes as usize);
        (status, bytes)
    };
    match how {
        How::Blocking => {
            let status = comm.recv(buffer.all(), source, tag).expect("a message");
            Ok(taken(status, &buffer))
        }
        How::Bytes => {
            let mut bytes = vec![0; room];
            let status = recv_bytes(comm, &mut bytes, source, tag).expect("a message");
            bytes.truncate(status.bytes as usize);
            Ok((status, bytes))
        }
        How::Posted => Err((
            comm.irecv(buffer.all(), source, tag).expect("a receive"),
            buffer,
        )),
        How::Probed => {
            let seen = comm.probe(source, tag).expect("a message");
            let status = comm
                .recv(buffer.all(), seen.source, seen.tag)
                .expect("a message");
            assert_eq!(
                status, seen,
                "the probe saw another message than the receive"
            );
            Ok(taken(status, &buffer))
        }
        How::Matched => {
            let Ok(Probed::Message(message)) = comm.mprobe(source, tag) else {
                panic!("MPI_PROC_NULL");
            };
            let req = comm.imrecv(message, buffer.all());
            let status = comm.engine().wait(&req).expect("a message");
            Ok(taken(status, &buffer))
        }
    }
}

/// One rank's part of a phase.
fn act(comm: &Comm, phase: &Phase) {
    let me = comm.rank() as i32;
    let mut pending = Vec::new();
    for (at, message) in phase.messages.iter().enumerate() {
        if message.from == me {
            pending.extend(send(comm, at, *message));
        }
    }
    // What is still to come, in the order in which each source sent it.
    let mut waiting: Vec<usize> = (0..phase.messages.len())
        .filter(|&at| phase.messages[at].to == me)
        .collect();
    let room = phase.messages.iter().map(|m| m.len).max().unwrap_or(0);
    // Receives are made for the messages in an order of our own, the last first.
    let asked: Vec<Planned> = waiting.iter().rev().map(|&at| phase.messages[at]).collect();
    let mut posted = Vec::new();
    for (message, how) in asked.iter().zip(&phase.hows) {
        let (source, tag) = match phase.keys {
            Keys::Exact => (message.from, message.tag),
            Keys::AnySource => (ANY_SOURCE, message.tag),
            Keys::AnyTag => (message.from, ANY_TAG),
            Keys::Any => (ANY_SOURCE, ANY_TAG),
        };
        match receive(comm, *how, source, tag, room) {
            // A posted receive has its place in the order of matching already; what it got is seen when the others are done.
            Err((req, buffer)) => posted.push((req, buffer)),
            Ok(got) if posted.is_empty() => {
                must_be_next(phase, me, &mut waiting, (source, tag), got)
            }
            Ok(got) => must_be_some(phase, me, &mut waiting, got),
        }
    }
    for (req, buffer) in posted {
        let status = comm.engine().wait(&req).expect("a message");
        let mut bytes = buffer.all().as_send().to_vec();
        bytes.truncate(status.bytes as usize);
        must_be_some(phase, me, &mut waiting, (status, bytes));
    }
    assert!(waiting.is_empty());
    for (req, _data) in pending {
        comm.engine().wait(&req).expect("the end of a send");
    }
}

/// A receive with this key got this: it must be the first of its source that the key accepts.
fn must_be_next(
    phase: &Phase,
    me: i32,
    waiting: &mut Vec<usize>,
    (source, tag): (i32, i32),
    (status, bytes): (Status, Vec<u8>),
) {
    let first = waiting.iter().position(|&at| {
        let m = phase.messages[at];
        m.from == status.source && (tag == ANY_TAG || tag == m.tag)
    });
    let first = first.expect("a message that was sent");
    assert!(source == ANY_SOURCE || source == status.source);
    let at = waiting.remove(first);
    let message = phase.messages[at];
    assert_eq!(
        status.tag, message.tag,
        "rank {me}, message {at}: {message:?}"
    );
    assert!(
        bytes == content(at, message.len),
        "rank {me}, message {at}: {message:?}"
    );
}

/// Some receive got this: it must be one of the messages that are still to come, whole.
fn must_be_some(
    phase: &Phase,
    me: i32,
    waiting: &mut Vec<usize>,
    (status, bytes): (Status, Vec<u8>),
) {
    let found = waiting.iter().position(|&at| {
        let m = phase.messages[at];
        m.from == status.source && m.tag == status.tag && bytes == content(at, m.len)
    });
    let found = found.unwrap_or_else(|| panic!("rank {me} got what nobody sent: {status:?}"));
    waiting.remove(found);
}

fn holds(job: &Job, phases: &[Phase]) {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        for phase in phases {
            act(&world, phase);
            world
                .collective(crate::coll::Call::Barrier)
                .expect("a barrier");
        }
        assert_eq!(engine.pml().garbled(), 0);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_receive_gets_the_message_that_the_standard_says(
        phases in prop::collection::vec(phase(3), 1..4),
    ) {
        holds(&Job::of(3), &phases);
    }

    #[test]
    fn it_is_the_same_without_single_copy(phases in prop::collection::vec(phase(2), 1..3)) {
        let pml = Config { single_copy_min: u64::MAX, ..Config::default() };
        holds(&Job { pml, ..Job::of(2) }, &phases);
    }

    #[test]
    fn it_is_the_same_when_every_unexpected_message_is_one_too_many(phases in prop::collection::vec(phase(3), 1..3)) {
        let pml = Config { unexpected_max: 0, ..Config::default() };
        holds(&Job { pml, ..Job::of(3) }, &phases);
    }

    #[test]
    fn it_is_the_same_when_both_sides_copy(phases in prop::collection::vec(phase(3), 1..3)) {
        let pml = Config { together_min: 0, ..Config::default() };
        holds(&Job { pml, ..Job::of(3) }, &phases);
    }

    #[test]
    fn it_is_the_same_when_the_faster_way_is_looked_for(phases in prop::collection::vec(phase(2), 1..3)) {
        let pml = Config { measure: true, together_min: 64 << 10, ..Config::default() };
        holds(&Job { pml, ..Job::of(2) }, &phases);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn it_is_the_same_when_streams_are_not_asked_for(phases in prop::collection::vec(phase(2), 1..3)) {
        let pml = Config { stream_eager: 32 << 10, ..Config::default() };
        holds(&Job { pml, ..Job::of(2) }, &phases);
    }
}

/// Layouts of 120,000 bytes: one run, few long ones, equal or not, and many short ones.
fn layouts() -> Vec<(Datatype, i64)> {
    let double = Datatype::from(Named::DOUBLE);
    let committed = |datatype: Result<Datatype, _>, count| {
        let datatype: Datatype = datatype.expect("a type");
        datatype.commit().expect("committed");
        (datatype, count)
    };
    vec![
        (double.clone(), 15_000),
        committed(Datatype::vector(15, 1000, 1100, &double), 1),
        committed(Datatype::vector(5, 1000, 3000, &double), 3),
        committed(
            Datatype::indexed(&[7000, 600, 7400], &[20_000, 0, 2000], &double),
            1,
        ),
        committed(Datatype::vector(15_000, 1, 3, &double), 1),
        committed(Datatype::indexed(&[1, 2, 2], &[9, 0, 4], &double), 3000),
    ]
}

#[test]
fn a_typed_message_is_the_same_at_both_ends_however_its_data_lie() {
    let alone = Config::default();
    let together = Config {
        together_min: 0,
        ..alone
    };
    let fragments = Config {
        single_copy_min: u64::MAX,
        ..alone
    };
    for pml in [alone, together, fragments] {
        let job = Job { pml, ..Job::of(2) };
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let pairs = layouts()
                .into_iter()
                .flat_map(|from| layouts().into_iter().map(move |to| (from.clone(), to)));
            for (at, (from, to)) in pairs.enumerate() {
                let data = content(at, 120_000);
                if engine.me() == 0 {
                    let buffer = Scratch::new(from.1, &from.0).expect("memory");
                    buffer.all().unpack_at(0, &data);
                    let sent = world.send(buffer.all().as_send(), 1, 0, Mode::Standard);
                    sent.expect("sent");
                } else {
                    let buffer = Scratch::new(to.1, &to.0).expect("memory");
                    let status = world.recv(buffer.all(), 0, 0).expect("received");
                    assert_eq!(status.bytes, 120_000);
                    assert!(buffer.all().as_send().to_vec() == data, "pair {at}");
                }
            }
            assert_eq!(engine.pml().garbled(), 0);
        });
    }
}

/// Parameters that send every message another way.
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn it_is_the_same_whichever_way_messages_take(
        way in ways(),
        phases in prop::collection::vec(phase(3), 1..3),
    ) {
        let job = way.iter().fold(Job::of(3), |job, (name, value)| job.with(name, value));
        holds(&job, &phases);
    }
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
                    .send(data.all().as_send(), 1, 7, Mode::Standard)
                    .expect("sent");
            }
            return;
        }
        let first = scratch(1);
        let posted = world.irecv(first.all(), ANY_SOURCE, 7).expect("posted");
        let mut second = [9];
        let status = recv_bytes(&world, &mut second, 0, ANY_TAG).expect("received");
        engine.wait(&posted).expect("received");
        assert_eq!((first.all().as_send().to_vec(), second), (vec![0], [1]));
        assert_eq!((status.source, status.tag, status.bytes), (0, 7, 1));
    });
}

#[test]
fn a_message_to_ourselves_arrives_in_one_look() {
    for len in [8, 20_000] {
        let pml = Config {
            single_copy_min: u64::MAX,
            ..Config::default()
        };
        let job = Job { pml, ..Job::of(1) };
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let (data, room) = (scratch(len), scratch(len));
            data.all().unpack_at(0, &content(5, len));
            let posted = world.irecv(room.all(), 0, 3).expect("posted");
            let sent = world
                .isend(data.all().as_send(), 0, 3, Mode::Synchronous)
                .expect("sent");
            engine.look();
            assert!(posted.is_complete(), "{len} bytes are still on their way");
            engine.wait(&posted).expect("received");
            if let Sent::Pending(req) = sent {
                engine.wait(&req).expect("sent");
            }
            assert_eq!(room.all().as_send().to_vec(), content(5, len));
        });
    }
}

#[test]
fn a_message_that_is_too_long_says_so_and_fills_the_buffer() {
    for (btl, len) in [
        ("", 12),
        ("", 100_000),
        ("self,tcp", 12),
        ("self,tcp", 40_000),
    ] {
        Job::of(2).with("btl", btl).run(|engine| {
            let world = engine.world().expect("a world");
            if engine.me() == 0 {
                let data = scratch(len);
                data.all().unpack_at(0, &content(3, len));
                world
                    .send(data.all().as_send(), 1, 4, Mode::Standard)
                    .expect("sent");
                return;
            }
            let mut room = [0; 5];
            let error = recv_bytes(&world, &mut room, 0, 4).expect_err("no room");
            let text = error.to_string();
            let said = format!(
                "on rank 1: the message from 0, tag 4, has {len} bytes, the buffer holds 5"
            );
            assert_eq!(text, said);
            assert_eq!(room, content(3, 5)[..]);
        });
    }
}

#[test]
fn a_receive_that_is_given_up_while_the_sender_copies_is_not_written_to_afterwards() {
    const LEN: usize = 4 << 20;
    let pml = Config {
        together_min: 0,
        ..Config::default()
    };
    let job = Job { pml, ..Job::of(2) };
    job.run(|engine| {
        let world = engine.world().expect("a world");
        for round in 0..20 {
            let buffer = scratch(LEN);
            if engine.me() == 0 {
                buffer.all().unpack_at(0, &vec![1; LEN]);
                let sent = world.send(buffer.all().as_send(), 1, round, Mode::Standard);
                sent.expect("sent");
                continue;
            }
            let req = world.irecv(buffer.all(), 0, round).expect("posted");
            eventually(engine, "the message", || {
                engine.pml().incoming_from(&req).is_some() || req.is_complete()
            });
            if req.is_complete() {
                engine.wait(&req).expect("received");
                continue;
            }
            engine.pml().abandon(&req);
            buffer.all().unpack_at(0, &vec![2; LEN]);
            std::thread::yield_now();
            assert!(buffer.all().as_send().to_vec().iter().all(|&b| b == 2));
        }
    });
}

/// Neither of the two: the sender is not there before the receive is given up, and finds nothing to do.
#[test]
fn a_sender_that_comes_after_its_receive_was_given_up_is_released() {
    const LEN: usize = 4 << 20;
    let pml = Config {
        together_min: 0,
        ..Config::default()
    };
    let given_up = AtomicBool::new(false);
    Job { pml, ..Job::of(2) }.run(|engine| {
        let world = engine.world().expect("a world");
        let buffer = scratch(LEN);
        if engine.me() == 0 {
            let sent = world.isend(buffer.all().as_send(), 1, 5, Mode::Standard);
            let Ok(Sent::Pending(sent)) = sent else {
                panic!("4 MiB were sent at once");
            };
            while !given_up.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            eventually(engine, "the end of the send", || sent.is_complete());
            engine.wait(&sent).expect("sent");
            return;
        }
        let req = world.irecv(buffer.all(), 0, 5).expect("posted");
        let mut begun = false;
        while !begun {
            // Not to the end: what only one side works on is taken up again by those who wait.
            engine.progress();
            begun = engine.pml().incoming_from(&req).is_some();
            assert!(
                !req.is_complete(),
                "the receiver has copied all of it alone"
            );
        }
        engine.pml().abandon(&req);
        given_up.store(true, Ordering::Release);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever a peer says: no request that it does not know is touched, and messages go on to arrive.
    #[test]
    fn what_no_peer_of_ours_says_does_no_harm(
        said in prop::collection::vec(
            (
                prop::sample::select(vec![2u8, 3, 4, 4 | OVERTAKES, 5, 6, 7, 8, 9, 255]),
                any::<[u64; 2]>(),
                prop::collection::vec(any::<u8>(), 0..40),
            ),
            0..40,
        ),
    ) {
        Job::of(2).run(|engine| {
            let world = engine.world().expect("a world");
            if engine.me() == 0 {
                for (am, header, bytes) in &said {
                    let (pml, len) = (engine.pml(), bytes.len() + 100);
                    if pml.begin(1, *am, *header, len, bytes) {
                        pml.landed(1, *am, *header, len);
                    }
                    pml.deliver(1, *am, *header, bytes);
                    pml.again(1, *am, *header, len, &mut |_| panic!("nothing was sent"));
                }
            }
            let (mine, room, other) = (scratch(8), scratch(8), 1 - engine.me() as i32);
            mine.all().unpack_at(0, &[engine.me() as u8; 8]);
            let came = world.irecv(room.all(), other, 1).expect("posted");
            world.send(mine.all().as_send(), other, 1, Mode::Standard).expect("sent");
            engine.wait(&came).expect("received");
            assert_eq!(room.all().as_send().to_vec(), [other as u8; 8]);
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
                let sent = world.send(buffer.all().as_send(), 1, 1, Mode::Standard);
                sent.expect("sent");
                buffer.all().unpack_at(0, &vec![255; LEN]);
            } else {
                world.recv(buffer.all(), 0, 1).expect("received");
                let came = buffer.all().as_send().to_vec();
                assert!(came.iter().all(|&b| b == round), "message {round}");
            }
        }
        assert_eq!(engine.pml().garbled(), 0);
    });
}

#[test]
fn whoever_waits_for_a_lost_peer_is_told_why_and_others_go_on() {
    Job::of(3).with("btl", "self,tcp").run(|engine| {
        let world = engine.world().expect("a world");
        let word = scratch(8);
        if engine.me() == 1 {
            let sent = world.send(word.all().as_send(), 0, 7, Mode::Standard);
            sent.expect("sent");
        }
        if engine.me() != 0 {
            return;
        }
        let long = scratch(1 << 20);
        let posted = world.irecv(word.all(), 2, 7).expect("posted");
        let Ok(Sent::Pending(waiting)) = world.isend(long.all().as_send(), 2, 9, Mode::Synchronous)
        else {
            panic!("a synchronous send ended without a receive");
        };
        // As the transport would say; the peer itself is well and knows nothing.
        engine.pml().lose(2, "the wire was cut");
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
        let status = world.recv(word.all(), ANY_SOURCE, 7).expect("a message");
        assert_eq!(status.source, 1);
    });
}
