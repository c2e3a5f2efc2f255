//! Tests that a fast call on some members matches the same general call on others.

use super::job;
use crate::datatype::{Named, RecvBuf, RecvBytes, Scratch, SendBuf};
use crate::pml::Mode;
use crate::shm::layout::DEPTH;
use crate::suite::fast_calls::{Made, have_the_results_of_the_general_form};
use crate::{Call, CallId, FastCall};
use mpi_base::occupancy::Occupancy;

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
        let made = |rank, round, call| match is_chosen(rank, round, call) {
            true => Made::Fast,
            false => Made::General,
        };
        have_the_results_of_the_general_form(&job(ranks, occupancy), ranks, made);
    }
}

#[test]
fn a_fast_request_matches_the_general_request_and_has_its_result() {
    for (occupancy, ranks) in JOBS {
        let made = |rank, round, call| match is_chosen(rank, round, call) {
            true => Made::FastRequest,
            false => Made::GeneralRequest,
        };
        have_the_results_of_the_general_form(&job(ranks, occupancy), ranks, made);
    }
}

/// The last rank to arrive finds the data of all others, so its call completes without a request.
#[test]
#[allow(unsafe_code)]
fn a_fast_request_does_not_wait_and_the_last_rank_needs_none() {
    const SENT: &[u8] = b"sent";
    const NOTE: i32 = 7;
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
                        p2p.recv(empty(), rank, NOTE).expect("a note");
                    }
                    assert!(begin().is_none(), "all others have arrived");
                }
                _ => {
                    let request = begin().expect("rank 0 has not arrived");
                    assert!(!request.is_complete());
                    let note = p2p.send(SendBuf::empty(), 0, NOTE, Mode::Standard);
                    note.expect("a note");
                    engine.wait(&request).expect("an allgather");
                }
            }
            assert_eq!(received, SENT.repeat(ranks as usize));
        });
    }
}

/// More requests than cells are in progress, fast and general ones in a different order on each rank, with barriers between them.
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
