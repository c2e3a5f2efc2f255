//! Tests of `shm`: the barrier suite for both barriers (one per occupancy), and all reductions; the submodules have tests of other subjects.

mod config;
mod exchanges;
mod fast_calls;
mod long;
mod scans;
mod segments;

use crate::suite::barrier::{self, Form};
use crate::testing::Job;
use crate::{CallId, Table};
use mpi_base::occupancy::Occupancy;
use mpi_base::param::Source;

/// Returns a job that uses the protocols for this occupancy, whatever the number of the machine's cores.
fn job(ranks: u32, occupancy: Occupancy) -> Job {
    let mut job = Job::of(ranks);
    let value = match occupancy {
        Occupancy::Oversubscribed => "oversubscribed",
        Occupancy::Dedicated => "dedicated",
    };
    job.params
        .set("coll_shm_occupancy", value, Source::Environment);
    job
}

/// Returns a job that uses the protocol `way` for long data, if this protocol supports the call.
fn job_with(ranks: u32, occupancy: Occupancy, way: &str) -> Job {
    job(ranks, occupancy).with("coll_shm_protocol", way)
}

const OCCUPANCIES: [Occupancy; 2] = [Occupancy::Oversubscribed, Occupancy::Dedicated];
const FORMS: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Mixed];

#[test]
fn no_rank_leaves_before_all_have_entered() {
    for occupancy in OCCUPANCIES {
        for ranks in [2, 3, 5, 8, 17] {
            for form in FORMS {
                barrier::no_rank_leaves_before_all_have_entered(
                    &job(ranks, occupancy),
                    "shm",
                    form,
                    60,
                );
            }
        }
    }
}

#[test]
fn a_late_rank_holds_everyone() {
    for occupancy in OCCUPANCIES {
        for form in FORMS {
            barrier::a_late_rank_holds_everyone(&job(4, occupancy), "shm", form);
        }
    }
}

#[test]
fn barriers_in_flight_end_in_order() {
    for occupancy in OCCUPANCIES {
        for ranks in [2, 7] {
            barrier::barriers_in_flight_end_in_order(&job(ranks, occupancy), "shm");
        }
    }
}

#[test]
fn a_barrier_does_not_stop_messages() {
    for occupancy in OCCUPANCIES {
        for ranks in [2, 5] {
            for form in FORMS {
                barrier::a_barrier_does_not_stop_messages(&job(ranks, occupancy), "shm", form);
            }
        }
    }
}

#[test]
fn communicators_come_and_go_and_do_not_meet() {
    for occupancy in OCCUPANCIES {
        barrier::communicators_do_not_meet(&job(5, occupancy), 40);
    }
}
#[test]
fn sixty_ranks_pass_on_few_cores() {
    barrier::no_rank_leaves_before_all_have_entered(&Job::of(60), "shm", Form::Blocking, 30);
}

#[test]
fn all_reductions_of_a_node_are_served_here() {
    job(3, Occupancy::Oversubscribed).run(|engine| {
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

/// Tests long blocks too, which are announced in cells and sent as messages.
#[test]
fn forms_with_counts_are_served_in_the_node_s_memory() {
    for occupancy in OCCUPANCIES {
        job(3, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            let table = Table::chosen(&world).expect("a table");
            let lines = table.explain(&world.label()).join("\n");
            for call in [
                CallId::Gatherv,
                CallId::Scatterv,
                CallId::Allgatherv,
                CallId::Alltoallv,
                CallId::Alltoallw,
            ] {
                assert_eq!(table.chain(call).next(), Some("shm"), "{call}");
                assert!(lines.contains(call.name()), "{call}: {lines}");
            }
        });
    }
}
