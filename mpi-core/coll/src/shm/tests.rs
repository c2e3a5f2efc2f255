//! Tests of `shm`: the barrier suite with both barriers, and all reductions; the folder has more, by subject.

mod config;
mod fast_calls;
mod long;
mod scans;
mod segments;

use super::barrier::Kind;
use crate::suite::barrier::{self, Form};
use crate::testing::Job;
use crate::{CallId, Table};
use mpi_base::param::Source;

/// A job whose world uses this barrier, regardless of the machine's cores.
fn job(ranks: u32, kind: Kind) -> Job {
    let mut job = Job::of(ranks);
    let barrier = match kind {
        Kind::Counter => "counter",
        Kind::Flags => "flags",
    };
    job.params
        .set("coll_shm_barrier", barrier, Source::Environment);
    job
}

/// The same with a fixed protocol for long data, where it can be used.
fn job_with(ranks: u32, kind: Kind, way: &str) -> Job {
    job(ranks, kind).with("coll_shm_protocol", way)
}

const BARRIERS: [Kind; 2] = [Kind::Counter, Kind::Flags];
const FORMS: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Mixed];

#[test]
fn no_rank_leaves_before_all_have_entered() {
    for kind in BARRIERS {
        for ranks in [2, 3, 5, 8, 17] {
            for form in FORMS {
                barrier::no_rank_leaves_before_all_have_entered(&job(ranks, kind), "shm", form, 60);
            }
        }
    }
}

#[test]
fn a_late_rank_holds_everyone() {
    for kind in BARRIERS {
        for form in FORMS {
            barrier::a_late_rank_holds_everyone(&job(4, kind), "shm", form);
        }
    }
}

#[test]
fn barriers_in_flight_end_in_order() {
    for kind in BARRIERS {
        for ranks in [2, 7] {
            barrier::barriers_in_flight_end_in_order(&job(ranks, kind), "shm");
        }
    }
}

#[test]
fn a_barrier_does_not_stop_messages() {
    for kind in BARRIERS {
        for ranks in [2, 5] {
            for form in FORMS {
                barrier::a_barrier_does_not_stop_messages(&job(ranks, kind), "shm", form);
            }
        }
    }
}

#[test]
fn communicators_come_and_go_and_do_not_meet() {
    for kind in BARRIERS {
        barrier::communicators_do_not_meet(&job(5, kind), 40);
    }
}
#[test]
fn sixty_ranks_pass_on_few_cores() {
    barrier::no_rank_leaves_before_all_have_entered(&Job::of(60), "shm", Form::Blocking, 30);
}

#[test]
fn all_reductions_of_a_node_are_served_here() {
    job(3, Kind::Counter).run(|engine| {
        let world = engine.world().expect("a world");
        let table = Table::chosen(&world).expect("a table");
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
