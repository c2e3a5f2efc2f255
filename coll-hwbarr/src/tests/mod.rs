//! Tests of the component on the simulator. Ranks are threads, and all calls use the C tables.

/// Instantiates the barrier test suite (`coll::suite::barrier`) for these parameters and job sizes.
macro_rules! claims {
    ($set:expr, $sizes:expr) => {
        #[test]
        fn no_rank_leaves_before_all_have_entered() {
            for ranks in $sizes {
                for form in [Form::Blocking, Form::Nonblocking, Form::Mixed] {
                    let rounds = (300 / ranks).clamp(10, 50);
                    let job = job(ranks, $set);
                    barrier::no_rank_leaves_before_all_have_entered(&job, "hwbarr", form, rounds);
                }
            }
        }

        #[test]
        fn a_late_rank_holds_everyone() {
            for form in [Form::Blocking, Form::Nonblocking] {
                barrier::a_late_rank_holds_everyone(&job(5, $set), "hwbarr", form);
            }
        }

        #[test]
        fn barriers_in_flight_end_in_order() {
            for ranks in [2, 4, 7] {
                barrier::barriers_in_flight_end_in_order(&job(ranks, $set), "hwbarr");
            }
        }

        #[test]
        fn a_barrier_does_not_stop_messages() {
            for form in [Form::Blocking, Form::Nonblocking] {
                barrier::a_barrier_does_not_stop_messages(&job(6, $set), "hwbarr", form);
            }
        }

        #[test]
        fn communicators_do_not_meet() {
            barrier::communicators_do_not_meet(&job(4, $set), 10);
        }
    };
}

mod channels;
mod eureka;
mod falling_back;
mod on_boards;
mod on_rtl;
mod refusing;
mod returning;
mod served;
mod serving;
mod wired;

use crate::TABLE;
use mpi_base::param::{Params, Source};
use mpi_core::Engine;
use mpi_core::coll::suite::barrier::{self, Form};
use mpi_core::coll::{Call, CallId};
use mpi_core::comm::Comm;
use mpi_core::engine::testing::Job;
use mpi_core::plugin::Catalogue;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Creates a job with these parameters of the component.
fn job(ranks: u32, set: &[(&str, &str)]) -> Job {
    let mut params = Params::default();
    for (name, value) in set {
        params.set(&format!("coll_hwbarr_{name}"), value, Source::Environment);
    }
    let coll = || {
        let mut components = mpi_core::coll::built_in();
        components.extend(Catalogue::gather(&[TABLE], &[], &Params::default(), None).components());
        components
    };
    Job {
        params,
        coll: Box::new(coll),
        ..Job::of(ranks)
    }
}

/// Runs `rank` on `ranks` ranks with these parameters.
fn run<T: Send>(ranks: u32, set: &[(&str, &str)], rank: impl Fn(&Engine) -> T + Sync) -> Vec<T> {
    job(ranks, set).run(rank)
}

fn world(engine: &Engine) -> Comm {
    engine.world().expect("a world")
}

/// Checks that the component is the first to serve this communicator's barriers;
/// the error is its reason for refusing.
fn verdict(comm: &Comm) -> Result<(), String> {
    let table = mpi_core::coll::Table::chosen(comm).expect("chosen");
    if table.chain(CallId::Barrier).next() == Some("hwbarr") {
        return Ok(());
    }
    let why = table.refused().iter().find(|(name, _)| **name == *"hwbarr");
    Err(why.map_or_else(
        || "no component gave a reason".into(),
        |(_, why)| why.to_string(),
    ))
}

fn blocking(comm: &Comm) {
    comm.collectives()
        .carry_out(Call::Barrier)
        .expect("a barrier");
}

struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a directory"))
    }

    fn vcd(&self) -> PathBuf {
        self.0.path().join("wires.vcd")
    }

    fn report(&self) -> PathBuf {
        self.0.path().join("report.json")
    }

    fn count(&self, what: &str) -> u64 {
        let text = std::fs::read_to_string(self.report()).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        report[what].as_u64().expect("a number")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
