//! A random plan of messages and a check of their arrival: tests matching and protocols against a model that every rank computes.
//!
//! All ranks have the same plan, so each receiver knows which message each of its receives must get:
//! among the messages from its source that the receive accepts, the one that was sent first (MPI 5.0, section 3.5).

use super::{content, recv_bytes, scratch};
use mpi_core::comm::{Comm, Probed};
use mpi_core::datatype::Scratch;
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::request::{ANY_SOURCE, ANY_TAG, Req, Status};
use mpi_core::testing::Job;
use proptest::prelude::*;

/// A message of the plan. The message's index in the plan determines its bytes.
#[derive(Clone, Copy, Debug)]
struct Planned {
    from: i32,
    to: i32,
    tag: i32,
    len: usize,
    synchronous: bool,
}

/// The form of the receives' keys in one phase. All receives of a phase have the same form, so every assignment of receives to messages is complete.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Exact,
    AnySource,
    AnyTag,
    Any,
}

/// The kind of receive for one message.
#[derive(Clone, Copy, Debug)]
enum How {
    Blocking,
    /// A receive into bytes, on the fast path if the slot is free.
    Bytes,
    Posted,
    Probed,
    Matched,
}

#[derive(Clone, Debug)]
pub struct Phase {
    keys: Keys,
    messages: Vec<Planned>,
    hows: Vec<How>,
}

pub fn phase(ranks: i32) -> impl Strategy<Value = Phase> {
    // Lengths near the limits: one word, the cell of a ring, the eager limit, a fragment, the single copy.
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

fn send(comm: &Comm, at: usize, message: Planned) -> Option<(Req, Scratch)> {
    let data = scratch(message.len);
    data.all().unpack_at(0, &content(at, message.len));
    let mode = match message.synchronous {
        true => Mode::Synchronous,
        false => Mode::Standard,
    };
    match comm
        .p2p()
        .isend(data.all().as_send(), message.to, message.tag, mode)
    {
        Ok(Sent::Done) => None,
        Ok(Sent::Pending(req)) => Some((req, data)),
        Err(e) => panic!("{e}"),
    }
}

/// Receives one message with this key. Returns the status and the bytes, or the request to wait for if the receive is only posted.
fn receive(
    comm: &Comm,
    how: How,
    source: i32,
    tag: i32,
    space: usize,
) -> Result<(Status, Vec<u8>), (Req, Scratch)> {
    let buffer = scratch(space);
    let taken = |status: Status, buffer: &Scratch| {
        let mut bytes = buffer.all().as_send().to_vec();
        bytes.truncate(status.bytes as usize);
        (status, bytes)
    };
    match how {
        How::Blocking => {
            let status = comm
                .p2p()
                .recv(buffer.all(), source, tag)
                .expect("a message");
            Ok(taken(status, &buffer))
        }
        How::Bytes => {
            let mut bytes = vec![0; space];
            let status = recv_bytes(comm, &mut bytes, source, tag).expect("a message");
            bytes.truncate(status.bytes as usize);
            Ok((status, bytes))
        }
        How::Posted => Err((
            comm.p2p()
                .irecv(buffer.all(), source, tag)
                .expect("a receive"),
            buffer,
        )),
        How::Probed => {
            let seen = comm.probes().probe(source, tag).expect("a message");
            let status = comm
                .p2p()
                .recv(buffer.all(), seen.source, seen.tag)
                .expect("a message");
            assert_eq!(
                status, seen,
                "the probe saw another message than the receive"
            );
            Ok(taken(status, &buffer))
        }
        How::Matched => {
            let Ok(Probed::Message(message)) = comm.probes().mprobe(source, tag) else {
                panic!("MPI_PROC_NULL");
            };
            let req = comm.p2p().imrecv(message, buffer.all());
            let status = comm.engine().wait(&req).expect("a message");
            Ok(taken(status, &buffer))
        }
    }
}

/// Executes a phase on one rank.
fn act(comm: &Comm, phase: &Phase) {
    let me = comm.rank() as i32;
    let mut pending = Vec::new();
    for (at, message) in phase.messages.iter().enumerate() {
        if message.from == me {
            pending.extend(send(comm, at, *message));
        }
    }
    // The messages to this rank that have not been received, in the order in which they were sent.
    let mut waiting: Vec<usize> = (0..phase.messages.len())
        .filter(|&at| phase.messages[at].to == me)
        .collect();
    let space = phase.messages.iter().map(|m| m.len).max().unwrap_or(0);
    // The receives are posted in the reverse order of the messages.
    let asked: Vec<Planned> = waiting.iter().rev().map(|&at| phase.messages[at]).collect();
    let mut posted = Vec::new();
    for (message, how) in asked.iter().zip(&phase.hows) {
        let (source, tag) = match phase.keys {
            Keys::Exact => (message.from, message.tag),
            Keys::AnySource => (ANY_SOURCE, message.tag),
            Keys::AnyTag => (message.from, ANY_TAG),
            Keys::Any => (ANY_SOURCE, ANY_TAG),
        };
        match receive(comm, *how, source, tag, space) {
            // A posted receive already has its position in the matching order; its result is checked after all other receives.
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

/// Checks the result of a receive with this key: it must be the first unreceived message of its source that the key accepts.
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

/// Checks the result of a receive while others are posted: it must be one of the unreceived messages, with correct bytes.
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
    let found =
        found.unwrap_or_else(|| panic!("rank {me} got a message that no rank sent: {status:?}"));
    waiting.remove(found);
}

pub fn holds(job: &Job, phases: &[Phase]) {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        for phase in phases {
            act(&world, phase);
            world
                .collectives()
                .carry_out(mpi_core::coll::Call::Barrier)
                .expect("a barrier");
        }
        assert_eq!(engine.pml().protocol_errors(), 0);
    });
}
