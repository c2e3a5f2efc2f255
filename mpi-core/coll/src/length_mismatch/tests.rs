//! Tests of length mismatches: if one member has another count, each member that would get invalid data gets an error, and no member hangs.

use super::*;
use crate::algo::{self, Algorithm};
use crate::comm::{Comm, SplitKey};
use crate::datatype::{Named, RecvBuf};
use crate::op::Predefined;
use crate::testing::Job;
use crate::{Call, CallId, Invocation};

/// A number of elements that fits one segment, but is large enough that every rank gets some of the elements.
const USUAL: i64 = 40;

const ROOT: u32 = 1;

fn scratch(count: i64) -> RecvBuf {
    let memory = algo::elements(count, &Named::INT32.into());
    memory.expect("memory").all()
}

/// Returns a rank's call: with `count` elements per block if the operation has a block for each rank
/// (such as gather or alltoall), otherwise with `count` elements in total.
fn call(id: CallId, count: i64, comm: &Comm, root: u32) -> Call {
    let (size, at_root) = (i64::from(comm.size()), comm.rank() == root);
    let send = Some(scratch(count).as_send());
    let many = || scratch(count * size);
    let (each, op) = (many().with_count(count), Predefined::Sum.into());
    let blocks = || -> Vec<RecvBuf> { (0..size).map(|_| scratch(count)).collect() };
    let sent = || blocks().iter().map(RecvBuf::as_send).collect();
    match id {
        CallId::Bcast => Call::Bcast {
            buf: scratch(count),
            root,
        },
        CallId::Gather => Call::Gather {
            send,
            recv: at_root.then_some(each),
            root,
        },
        CallId::Gatherv => Call::Gatherv {
            send,
            recv: at_root.then(|| blocks().into()),
            root,
        },
        CallId::Scatter => Call::Scatter {
            send: at_root.then(|| each.as_send()),
            recv: Some(scratch(count)),
            root,
        },
        CallId::Scatterv => Call::Scatterv {
            send: at_root.then(sent),
            recv: Some(scratch(count)),
            root,
        },
        CallId::Allgather => Call::Allgather { send, recv: each },
        CallId::Alltoall => Call::Alltoall {
            send: Some(each.as_send()),
            recv: many().with_count(count),
        },
        CallId::Alltoallv => Call::Alltoallv {
            send: Some(sent()),
            recv: blocks().into(),
        },
        CallId::Reduce => Call::Reduce {
            send,
            recv: at_root.then(|| scratch(count)),
            op,
            root,
        },
        CallId::Allreduce => Call::Allreduce {
            send,
            recv: scratch(count),
            op,
        },
        CallId::Scan => Call::Scan {
            send,
            recv: scratch(count),
            op,
        },
        other => panic!("no call of {other} here"),
    }
}

/// Returns true if `rank` must get an error, with every algorithm, when rank `odd` passes another count.
fn concerns(id: CallId, rank: u32, odd: u32) -> bool {
    match id {
        CallId::Bcast | CallId::Scatter | CallId::Scatterv if odd == ROOT => rank != ROOT,
        CallId::Bcast | CallId::Scatter | CallId::Scatterv => rank == odd,
        CallId::Gather | CallId::Gatherv | CallId::Reduce => rank == ROOT,
        CallId::Scan => rank > odd,
        _ => true,
    }
}

#[track_caller]
fn is_told(outcome: Result<(), Error>, about: &dyn std::fmt::Debug) {
    let error = outcome.err();
    assert!(
        error.as_ref().is_some_and(is_of_lengths),
        "{about:?}: {error:?}"
    );
}

/// Runs the selected algorithms with another count on one rank, and checks that later calls succeed.
fn differ(size: u32, usual: i64, algorithms: impl Fn(CallId, Algorithm) -> bool + Sync) {
    Job::of(size).run(|engine| {
        let world = engine.world().expect("a world");
        let me = world.rank();
        let calls = [
            CallId::Bcast,
            CallId::Gather,
            CallId::Gatherv,
            CallId::Scatter,
            CallId::Scatterv,
            CallId::Allgather,
            CallId::Alltoall,
            CallId::Alltoallv,
            CallId::Reduce,
            CallId::Allreduce,
            CallId::Scan,
        ];
        for id in calls {
            for algorithm in Algorithm::serving(id).filter(|a| algorithms(id, *a)) {
                for (odd, other) in [0, ROOT, size - 1]
                    .into_iter()
                    .flat_map(|odd| [(odd, usual / 2), (odd, usual * 2)])
                {
                    let count = if me == odd { other } else { usual };
                    let call = call(id, count, &world, ROOT);
                    let invocation = Invocation::from(&world.internal().conversation());
                    let outcome = engine.block_on(algorithm.run(&invocation, &call));
                    let about = (id, algorithm.name(), size, me, odd, other);
                    if concerns(id, me, odd) {
                        is_told(outcome, &about);
                    }
                    engine.block_on(world.internal().fence()).expect("a fence");
                }
            }
        }
        assert!(
            engine
                .extension(LengthMismatch::default)
                .0
                .borrow()
                .is_empty()
        );
        assert_eq!(engine.pml().requests().live(), 0);
        world
            .collectives()
            .carry_out(Call::Barrier)
            .expect("a barrier");
    });
}

#[test]
fn another_count_of_one_member_is_told_by_every_algorithm_and_hangs_nobody() {
    for size in [2, 4, 5, 8] {
        differ(size, USUAL, |_, _| true);
    }
}

#[test]
fn another_count_is_told_where_messages_wait_for_their_receives() {
    let names = ["binomial", "knomial", "linear", "recursive_doubling"];
    for size in [2, 4, 5] {
        differ(size, 60_000, |_, a| names.contains(&a.name()));
    }
}

/// In most cases the blocks fit a shared-memory cell for some ranks' counts, while ranks with another count send them as messages.
#[test]
fn another_count_of_one_member_is_an_error_in_the_node_s_memory_too() {
    for (size, occupancy) in [(2, "dedicated"), (3, "dedicated"), (3, "oversubscribed")] {
        let job = Job::of(size).with("coll_shm_occupancy", occupancy);
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let me = world.rank();
            for id in [CallId::Gatherv, CallId::Scatterv, CallId::Alltoallv] {
                for usual in [USUAL, 200, 12_000, 60_000] {
                    for (odd, other) in [0, ROOT, size - 1]
                        .into_iter()
                        .flat_map(|odd| [(odd, usual / 2), (odd, usual * 2), (odd, 0)])
                    {
                        let count = if me == odd { other } else { usual };
                        let made = call(id, count, &world, ROOT);
                        let outcome = world.collectives().carry_out(made);
                        if concerns(id, me, odd) {
                            is_told(outcome, &(id, occupancy, size, usual, me, odd, other));
                        }
                        // The next call succeeds.
                        let barrier = world.collectives().carry_out(Call::Barrier);
                        barrier.expect("a barrier");
                    }
                }
            }
            assert_eq!(engine.pml().requests().live(), 0);
        });
    }
}

#[test]
fn who_gets_nothing_from_a_member_with_another_count_is_not_told() {
    const SIZE: u32 = 8;
    Job::of(SIZE).run(|engine| {
        let world = engine.world().expect("a world");
        let me = world.rank();
        // In the trees of both algorithms, rank 4 is the only rank that forwards data to ranks 5, 6 and 7.
        for algorithm in Algorithm::serving(CallId::Bcast)
            .filter(|a| ["binomial", "knomial"].contains(&a.name()))
        {
            for other in [3, 5] {
                let buf = scratch(if me == 4 { other } else { 4 });
                buf.clone().unpack_at(0, &[me as u8 + 1; 12]);
                let call = Call::Bcast {
                    buf: buf.clone(),
                    root: 0,
                };
                let invocation = Invocation::from(&world.internal().conversation());
                let outcome = engine.block_on(algorithm.run(&invocation, &call));
                if me >= 4 {
                    is_told(outcome, &(algorithm.name(), me));
                } else {
                    outcome.expect("a broadcast");
                    assert_eq!(buf.as_send().to_vec()[..12], [1; 12]);
                }
                engine.block_on(world.internal().fence()).expect("a fence");
            }
        }
    });
}

#[test]
fn the_sentence_names_both_sides_and_what_each_meant() {
    Job::of(3).with("coll", "basic").run(|engine| {
        let world = engine.world().expect("a world");
        let (me, count) = (world.rank(), if world.rank() == 0 { 2 } else { 4 });
        let outcome = world.collectives().carry_out(call(CallId::Bcast, count, &world, 0));
        let text = outcome.err().map(|e| e.to_string());
        let expected = format!(
            "rank 0 sends 8 bytes in a collective operation on MPI_COMM_WORLD, but rank {me} expects 16"
        );
        assert_eq!(text, (me > 0).then_some(expected));
        // Repeats the call in nonblocking form (same errors); then a call with equal lengths succeeds.
        let req = world.collectives().begin(call(CallId::Bcast, count, &world, 0));
        let ended = engine.wait(&req.expect("begun"));
        assert_eq!(ended.is_err(), me > 0);
        let sum = call(CallId::Allreduce, 4, &world, 0);
        world.collectives().carry_out(sum).expect("a sum");
    });
}

#[test]
fn a_receive_is_exact_unless_it_says_otherwise() {
    Job::of(2).run(|engine| {
        let world = engine.world().expect("a world");
        let invocation = Invocation::from(&world.internal().conversation());
        let (short, long) = (scratch(1), scratch(3));
        engine.block_on(async {
            if world.rank() == 0 {
                for _ in 0..3 {
                    invocation.send(&short.as_send(), 1).await.expect("sent");
                }
                return;
            }
            is_told(invocation.recv(&long, 0).await, &"a short message");
            invocation
                .recv_up_to(&long, 0)
                .await
                .expect("a short message");
            invocation.recv(&short, 0).await.expect("a message");
        });
        engine.block_on(world.internal().fence()).expect("a fence");
    });
}

#[test]
fn both_groups_of_an_intercommunicator_end_their_calls() {
    Job::of(6).run(|engine| {
        let world = engine.world().expect("a world");
        let me = world.rank();
        let side = SplitKey {
            color: Some(u64::from(me % 2)),
            key: 0,
        };
        let part = engine
            .block_on(world.constructors().split(side))
            .expect("a part");
        let part = part.expect("each rank is on a side");
        let bridge = Some(Ok((&world, 1 - me % 2)));
        let inter = engine.block_on(part.inter().create(0, bridge, 1));
        let inter = inter.expect("an intercommunicator");
        for odd in 0..6 {
            let count = if me == odd { USUAL / 2 } else { USUAL };
            // `MPI_COMM_WORLD`'s rank 0 is the root, and rank 0 of the remote group for the odd ranks.
            let root = match (me, me % 2) {
                (0, _) => crate::inter::ROOT,
                (_, 0) => crate::inter::PROC_NULL,
                _ => 0,
            };
            let buf = scratch(count);
            let outcome = inter.collectives().carry_out(Call::Bcast { buf, root });
            match (me % 2, odd) {
                (1, 0) => is_told(outcome, &(me, odd)),
                // Rank 1, the leader of the receiving group, does not forward the data.
                (1, 1) => is_told(outcome, &(me, odd)),
                (1, _) if me == odd => is_told(outcome, &(me, odd)),
                (0, _) => outcome.expect("a broadcast"),
                _ => {}
            }
            let sum = Call::Allreduce {
                send: Some(scratch(count).as_send()),
                recv: scratch(count),
                op: Predefined::Sum.into(),
            };
            let outcome = inter.collectives().carry_out(sum);
            if me == odd || me % 2 != odd % 2 {
                is_told(outcome, &(me, odd));
            }
            engine.block_on(world.internal().fence()).expect("a fence");
        }
        drop(inter);
        assert!(
            engine
                .extension(LengthMismatch::default)
                .0
                .borrow()
                .is_empty()
        );
    });
}
