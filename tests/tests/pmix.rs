//! Tests of PMIx launchers: PRRTE's `prterun` and Open MPI's `mpirun` start programs of this library.
//!
//! Each launcher uses its own libpmix.

use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;

use tests::{Job, compile, open_mpi};

/// Returns a job under one of the launchers, with the variables that let it run as root.
fn under(launcher: &Path, program: &Path) -> Job {
    Job::command(program)
        .under(launcher)
        .with(["--map-by", ":OVERSUBSCRIBE"])
        .env("PRTE_ALLOW_RUN_AS_ROOT", "1")
        .env("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
}

#[test]
fn prterun_starts_programs_on_our_library() {
    let Some(open_mpi) = open_mpi() else { return };
    for program in ["hello", "ring", "operators"] {
        for ranks in [1, 4] {
            under(&open_mpi.bin("prterun"), &compile(program))
                .ranks(ranks)
                .holds();
        }
    }
}

#[test]
fn open_mpis_mpirun_starts_programs_on_our_library() {
    let Some(open_mpi) = open_mpi() else { return };
    for program in ["hello", "ring", "collectives"] {
        under(&open_mpi.bin("mpirun"), &compile(program))
            .ranks(3)
            .holds();
    }
}

#[test]
fn prterun_starts_jobs_and_keeps_names_for_our_programs() {
    let Some(open_mpi) = open_mpi() else { return };
    let dynamic = |what: &str, ranks: u32| {
        under(&open_mpi.bin("prterun"), &compile("dynamic"))
            .ranks(ranks)
            .arg(what)
    };
    dynamic("spawn", 1).holds();
    dynamic("spawn", 3).holds();
    // The program also spawns a command that does not exist, so prterun reports a failed run.
    let outcome = dynamic("ports", 2).run();
    let said = "all claims of dynamic hold on 2 ranks";
    assert!(outcome.stdout.contains(said), "{}", outcome.stderr);
}

#[test]
fn the_programs_of_one_job_are_numbered_under_prterun() {
    let Some(open_mpi) = open_mpi() else { return };
    let hello = compile("hello");
    let outcome = under(&open_mpi.bin("prterun"), &hello)
        .arg(":")
        .arg("-n")
        .arg("2")
        .arg(&hello)
        .succeeds();
    assert!(
        outcome
            .stdout
            .contains("all claims of hello hold on 3 ranks"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn an_abort_under_prterun_keeps_its_code() {
    let Some(open_mpi) = open_mpi() else { return };
    let outcome = under(&open_mpi.bin("prterun"), &compile("leave"))
        .ranks(3)
        .arg("abort")
        .run();
    assert_eq!(outcome.status.code(), Some(42), "{}", outcome.stderr);
}

#[test]
fn a_rank_that_is_killed_under_prterun_ends_the_job() {
    let Some(open_mpi) = open_mpi() else { return };
    let outcome = under(&open_mpi.bin("prterun"), &compile("leave"))
        .ranks(3)
        .arg("kill")
        .run();
    assert_eq!(outcome.status.code(), Some(137), "{}", outcome.stderr);
}

#[test]
fn a_program_that_a_rank_starts_is_not_taken_for_the_rank() {
    let Some(open_mpi) = open_mpi() else { return };
    under(&open_mpi.bin("prterun"), &compile("child"))
        .ranks(3)
        .holds();
}

#[test]
fn where_prterun_lets_a_job_go_on_the_others_name_the_dead_rank() {
    let Some(open_mpi) = open_mpi() else { return };
    let outcome = under(&open_mpi.bin("prterun"), &compile("leave"))
        .with(["--rtos", "recoverable,notifyerrors"])
        .ranks(3)
        .arg("kill")
        .run();
    let line = "rank 1 has died, so this rank ends too";
    // prterun ends the job after the first rank has ended.
    // So the second rank may end before it has printed its line.
    let said = outcome.stderr.matches(line).count();
    assert!((1..=2).contains(&said), "{}", outcome.stderr);
}

#[test]
fn ranks_do_not_outlive_prterun() {
    let Some(open_mpi) = open_mpi() else { return };
    let job = under(&open_mpi.bin("prterun"), &compile("leave"))
        .ranks(3)
        .arg("wait")
        .start();
    job.ready(3);
    job.signal(Signal::KILL);
    // libpmix reports the loss after about a second; prterun leaves its session folder.
    let outcome = job.wait_for_processes(Duration::from_secs(10));
    assert!(!outcome.status.success());
}
