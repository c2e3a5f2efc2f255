//! `shm` joins the claims of barriers, with both of its gates, and takes its memory back.

use super::gate::Kind;
use crate::coll::suite::barrier::{self, Form};
use crate::coll::{Call, CallId};
use crate::datatype::{Named, Scratch};
use crate::engine::testing::{Job, eventually};
use crate::op::Predefined;
use mpi_base::param::Source;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A job whose world passes this gate, whatever this machine has cores.
fn job(ranks: u32, kind: Kind) -> Job {
    let mut job = Job::of(ranks);
    let gate = match kind {
        Kind::Counter => "counter",
        Kind::Flags => "flags",
    };
    job.params.set("coll_shm_gate", gate, Source::Environment);
    job
}

const GATES: [Kind; 2] = [Kind::Counter, Kind::Flags];
const FORMS: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Mixed];

#[test]
fn nobody_leaves_before_all_have_entered() {
    for kind in GATES {
        for ranks in [2, 3, 5, 8, 17] {
            for form in FORMS {
                barrier::nobody_leaves_before_all_have_entered(&job(ranks, kind), "shm", form, 60);
            }
        }
    }
}

#[test]
fn a_late_rank_holds_everyone() {
    for kind in GATES {
        for form in FORMS {
            barrier::a_late_rank_holds_everyone(&job(4, kind), "shm", form);
        }
    }
}

#[test]
fn barriers_in_flight_end_in_order() {
    for kind in GATES {
        for ranks in [2, 7] {
            barrier::barriers_in_flight_end_in_order(&job(ranks, kind), "shm");
        }
    }
}

#[test]
fn a_barrier_does_not_stop_messages() {
    for kind in GATES {
        for ranks in [2, 5] {
            for form in FORMS {
                barrier::a_barrier_does_not_stop_messages(&job(ranks, kind), "shm", form);
            }
        }
    }
}

#[test]
fn communicators_come_and_go_and_do_not_meet() {
    for kind in GATES {
        barrier::communicators_do_not_meet(&job(5, kind), 40);
    }
}

#[test]
fn sixty_ranks_pass_on_few_cores() {
    barrier::nobody_leaves_before_all_have_entered(&Job::of(60), "shm", Form::Blocking, 30);
}

/// Where data go one way, the giver is through with its call before the taker has begun his: nobody waits for an answer.
#[test]
fn who_only_gives_does_not_wait_for_who_takes() {
    let reductions = [CallId::Reduce, CallId::Scan, CallId::Exscan];
    let in_one = [&[CallId::Gather][..], &reductions].concat();
    // One cell, and as many pieces as there are cells, into which only operands are cut.
    for (bytes, calls) in [(8, &in_one[..]), (64 << 10, &reductions)] {
        for &call in calls {
            let given = AtomicUsize::new(0);
            job(2, Kind::Flags).run(|engine| {
                let world = engine.world().expect("a world");
                // Scans go from the first to the last, the others to the root, which is the last here.
                let (taker, root) = (world.rank() == 1, 1);
                if taker {
                    let what = format!("the giver's return from {call} of {bytes} bytes");
                    eventually(engine, &what, || given.load(Ordering::SeqCst) > 0);
                }
                let count = bytes / 8;
                let own = Scratch::new(count, &Named::UINT64.into()).expect("room");
                let to = Scratch::new(2 * count, &Named::UINT64.into()).expect("room");
                let words = |word: u64| word.to_ne_bytes().repeat(count as usize);
                own.all().unpack_at(0, &words(u64::from(world.rank()) + 1));
                let (send, recv) = (Some(own.all().as_send()), to.recv(0..count));
                let at_root = taker.then(|| recv.clone());
                let op = Predefined::Sum.into();
                let made = match call {
                    CallId::Gather => Call::Gather {
                        send,
                        recv: at_root,
                        root,
                    },
                    CallId::Reduce => Call::Reduce {
                        send,
                        recv: at_root,
                        op,
                        root,
                    },
                    CallId::Scan => Call::Scan { send, recv, op },
                    _ => Call::Exscan { send, recv, op },
                };
                world.collective(made).expect("a collective");
                given.fetch_add(1, Ordering::SeqCst);
                if taker {
                    let sum = match call {
                        CallId::Gather | CallId::Exscan => 1,
                        _ => 3,
                    };
                    let first = to.send(0..count).to_vec();
                    assert!(first == words(sum), "{call} of {bytes} bytes");
                }
            });
        }
    }
}

#[test]
fn all_reductions_of_a_node_are_served_here() {
    job(3, Kind::Counter).run(|engine| {
        let world = engine.world().expect("a world");
        let table = world.coll().expect("a table");
        for call in [
            CallId::Reduce,
            CallId::Allreduce,
            CallId::ReduceScatter,
            CallId::ReduceScatterBlock,
            CallId::Scan,
            CallId::Exscan,
        ] {
            assert_eq!(table.chain(call).next(), Some("shm"), "{call}");
        }
    });
}
