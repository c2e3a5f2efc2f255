//! Tests of fast calls: they match general calls of other members, and requests end as those of general calls when a communicator is freed or revoked.

use super::job;
use super::segments::sum_round;
use crate::comm::Comm;
use crate::datatype::{Named, RecvBuf, RecvBytes, Scratch, SendBuf};
use crate::engine::{Engine, Polls};
use crate::pml::Mode;
use crate::request::Req;
use crate::shm::Shm;
use crate::shm::layout::DEPTH;
use crate::suite::barrier::Form as BarrierForm;
use crate::suite::fast_calls::{Form, have_the_results_of_the_general_form};
use crate::{Call, CallId, FastCall, FastCarrier, Running, Unserved};
use mpi_base::occupancy::Occupancy;
use mpi_engine::fault::{FaultError, FaultKind};

const JOBS: [(Occupancy, u32); 3] = [
    (Occupancy::Dedicated, 2),
    (Occupancy::Dedicated, 3),
    (Occupancy::Oversubscribed, 4),
];

/// True for about half of the ranks, other ones in the next round and for the next collective.
fn is_chosen(rank: u32, round: u32, call: CallId) -> bool {
    (rank + round + call as u32).is_multiple_of(2)
}

/// Members whose buffers are not contiguous bytes make the general call.
#[test]
fn a_fast_call_matches_the_general_form_and_has_its_result() {
    for (occupancy, ranks) in JOBS {
        let form = |rank, round, call| match is_chosen(rank, round, call) {
            true => Form::Fast,
            false => Form::General,
        };
        have_the_results_of_the_general_form(&job(ranks, occupancy), ranks, form);
    }
}

#[test]
fn a_fast_request_matches_the_general_request_and_has_its_result() {
    for (occupancy, ranks) in JOBS {
        let form = |rank, round, call| match is_chosen(rank, round, call) {
            true => Form::FastRequest,
            false => Form::GeneralRequest,
        };
        have_the_results_of_the_general_form(&job(ranks, occupancy), ranks, form);
    }
}

/// The last rank to arrive finds the data of all others, so its call completes without a request.
#[test]
#[allow(unsafe_code)]
fn a_fast_request_does_not_wait_and_the_last_rank_needs_none() {
    const SENT: &[u8] = b"sent";
    const ARRIVED: i32 = 7;
    for (occupancy, ranks) in JOBS {
        job(ranks, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            let mut received = vec![0; SENT.len() * ranks as usize];
            // SAFETY: `received` lives until the operation is complete, and is not used before.
            let recv = unsafe { RecvBytes::new(received.as_mut_ptr(), received.len()) };
            let begin = || {
                let call = FastCall::Allgather { send: SENT, recv };
                let begun = world.collectives().try_fast_request(call);
                begun.expect("a fast call").expect("an allgather")
            };
            let (p2p, empty) = (world.p2p(), RecvBuf::empty);
            match world.rank() {
                0 => {
                    for rank in 1..ranks as i32 {
                        p2p.recv(empty(), rank, ARRIVED).expect("a message");
                    }
                    assert!(begin().is_none(), "all others have arrived");
                }
                _ => {
                    let request = begin().expect("rank 0 has not arrived");
                    assert!(!request.is_complete());
                    let sent = p2p.send(SendBuf::empty(), 0, ARRIVED, Mode::Standard);
                    sent.expect("a message");
                    engine.wait(&request).expect("an allgather");
                }
            }
            assert_eq!(received, SENT.repeat(ranks as usize));
        });
    }
}

/// More requests than cells are in progress, fast and general ones in a different order on each rank, with blocking calls and barriers between them.
#[test]
#[allow(unsafe_code)]
fn more_fast_requests_than_cells_complete_in_any_order() {
    const REQUESTS: i64 = 4 * DEPTH as i64;
    for (occupancy, ranks) in JOBS {
        job(ranks, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            let collectives = world.collectives();
            let (me, blocks) = (world.rank(), i64::from(ranks));
            let words = |count| Scratch::new(count, &Named::UINT64.into()).expect("room");
            let (from, to) = (words(REQUESTS), words(REQUESTS * blocks));
            let word = |rank: u32, request: i64| 1000 * u64::from(rank) + request as u64;
            let own = (0..REQUESTS).flat_map(|request| word(me, request).to_ne_bytes());
            from.all().unpack_at(0, &own.collect::<Vec<_>>());
            let begin = |request: i64| {
                let send = from.all().slice(request..request + 1);
                let recv = to.all().slice(request * blocks..(request + 1) * blocks);
                if !is_chosen(me, request as u32, CallId::Allgather) {
                    let (send, recv) = (Some(send.as_send()), recv.slice(0..1));
                    let begun = collectives.begin(Call::Allgather { send, recv });
                    return Some(begun.expect("an allgather"));
                }
                // SAFETY: the words live until all requests are complete, and are not changed before.
                let call = unsafe {
                    FastCall::Allgather {
                        send: std::slice::from_raw_parts(send.ptr(), 8),
                        recv: RecvBytes::new(recv.ptr(), 8 * ranks as usize),
                    }
                };
                let begun = collectives.try_fast_request(call).expect("a fast call");
                begun.expect("an allgather")
            };
            let mut requests = Vec::new();
            for request in 0..REQUESTS {
                requests.push(begin(request));
                if request % 5 == 4 {
                    collectives.carry_out(Call::Barrier).expect("a barrier");
                    sum_round(&world, BarrierForm::Blocking, request as u32);
                    let barrier = collectives.try_fast_request(FastCall::Barrier);
                    requests.push(barrier.expect("a fast call").expect("a barrier"));
                }
            }
            for request in requests.into_iter().rev().flatten() {
                engine.wait(&request).expect("a collective");
            }
            let expected = (0..REQUESTS)
                .flat_map(|request| (0..ranks).map(move |rank| word(rank, request)))
                .flat_map(u64::to_ne_bytes);
            assert!(to.all().as_send().to_vec() == expected.collect::<Vec<_>>());
        });
    }
}

/// The data of the rank `me` in a request.
fn own_word(me: u32) -> [u8; 8] {
    (1000 + u64::from(me)).to_ne_bytes()
}

/// Starts an allgather, a barrier and another allgather by fast calls.
///
/// # Safety
/// `sent` and `received` live, and the program does not use `received`, until the requests are complete.
#[allow(unsafe_code)]
unsafe fn begin_three(
    comm: &Comm,
    sent: &[u8; 8],
    received: &mut [Vec<u8>; 2],
) -> Vec<Option<Req>> {
    let [first, last] = received.each_mut().map(|received| {
        *received = vec![0; 8 * comm.size() as usize];
        // SAFETY: the caller keeps the buffers until the requests are complete.
        let (send, recv) = unsafe {
            (
                std::slice::from_raw_parts(sent.as_ptr(), sent.len()),
                RecvBytes::new(received.as_mut_ptr(), received.len()),
            )
        };
        FastCall::Allgather { send, recv }
    });
    let begin = |call| {
        let begun = comm.collectives().try_fast_request(call);
        begun.expect("a fast call").expect("a collective")
    };
    [first, FastCall::Barrier, last].map(begin).into()
}

/// Each rank but `late` sends an empty message to the rank `late`, which receives all of them.
fn wait_for_others(world: &Comm, late: u32) {
    const STARTED: i32 = 8;
    let p2p = world.p2p();
    if world.rank() != late {
        let sent = p2p.send(SendBuf::empty(), late as i32, STARTED, Mode::Standard);
        return sent.expect("a message");
    }
    for rank in (0..world.size()).filter(|rank| *rank != late) {
        let received = p2p.recv(RecvBuf::empty(), rank as i32, STARTED);
        received.expect("a message");
    }
}

/// All ranks but one start the operations and free the communicator before the last rank starts them.
#[test]
#[allow(unsafe_code)]
fn fast_requests_complete_after_their_communicator_was_freed() {
    for (occupancy, ranks) in JOBS {
        job(ranks, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            let (me, sent) = (world.rank(), own_word(world.rank()));
            let all: Vec<u8> = (0..ranks).flat_map(own_word).collect();
            for round in 0..3 * ranks {
                let (late, mut received) = (round % ranks, Default::default());
                let twin = world.constructors().dup_now().expect("a duplicate");
                if me == late {
                    wait_for_others(&world, late);
                }
                // SAFETY: the buffers are used again after the requests are complete.
                let requests = unsafe { begin_three(&twin, &sent, &mut received) };
                drop(twin);
                if me != late {
                    assert!(requests.iter().all(is_pending), "rank {late} is missing");
                    wait_for_others(&world, late);
                }
                for request in requests.into_iter().rev().flatten() {
                    engine.wait(&request).expect("a collective");
                }
                assert!(received.iter().all(|received| *received == all));
            }
        });
    }
}

fn is_pending(request: &Option<Req>) -> bool {
    request
        .as_ref()
        .is_some_and(|request| !request.is_complete())
}

fn is_revoked(engine: &Engine, request: &Req) -> bool {
    let error = engine.wait(request).err();
    let kind = error.and_then(|error| error.find().map(FaultError::kind));
    kind == Some(FaultKind::Revoked)
}

/// Rank 0 revokes the communicator instead of starting the operations.
#[test]
#[allow(unsafe_code)]
fn fast_requests_of_a_revoked_communicator_fail() {
    for (occupancy, ranks) in JOBS {
        job(ranks, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            let twin = world.constructors().dup_now().expect("a duplicate");
            let (sent, mut received) = (own_word(world.rank()), Default::default());
            if world.rank() == 0 {
                wait_for_others(&world, 0);
                return twin.failures().revoke();
            }
            // SAFETY: the buffers live until the requests are complete.
            let requests = unsafe { begin_three(&twin, &sent, &mut received) };
            wait_for_others(&world, 0);
            for request in requests {
                let request = request.expect("rank 0 is missing");
                assert!(is_revoked(engine, &request));
            }
            let another = twin.collectives().try_fast_request(FastCall::Barrier);
            assert!(another.is_none(), "the general call reports the error");
            assert!(twin.collectives().begin(Call::Barrier).is_err());
        });
    }
}

/// The limits of a fast slot prevent such calls; if one is made, it fails and does not return without data.
#[test]
#[allow(unsafe_code)]
fn a_fast_call_without_a_segment_fails() {
    job(2, Occupancy::Dedicated).run(|engine| {
        let world = engine.world().expect("a world");
        let module = Shm::default().module(&world).expect("a module");
        let recv = RecvBytes::empty();
        for call in [FastCall::Barrier, FastCall::Allgather { send: &[], recv }] {
            // SAFETY: the carrier serves all fast calls, and the buffers are empty.
            let (blocking, begun) =
                unsafe { (module.carry_out(&world, &call), module.begin(&world, call)) };
            assert!(blocking.is_err() && begun.is_err(), "{}", call.id());
        }
    });
}

/// The call returns a request, and the call that completes the request returns the error.
#[test]
fn an_operation_that_fails_at_its_first_poll_has_a_request() {
    job(2, Occupancy::Dedicated).run(|engine| {
        let world = engine.world().expect("a world");
        for polls in [Polls::One, Polls::Several] {
            let error = Unserved::on(&world, CallId::Barrier);
            let failing: Running = Box::pin(async { Err(error) });
            let request = engine.operations().start_unless_complete(failing, polls);
            let request = request.expect("a request");
            assert!(request.is_complete());
            let error = engine.wait(&request).expect_err("an error");
            assert!(error.find::<Unserved>().is_some(), "{error}");
        }
    });
}
