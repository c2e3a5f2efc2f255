//! Tests with a real Slurm, a controller and two nodes on this machine, which starts programs of this library.
//!
//! In an allocation, `mpirun` executes `srun`.

use std::time::Duration;

use rustix::process::Signal;
use tests::slurm::Slurm;
use tests::{compile, installation, leftovers};

#[test]
fn srun_with_pmi2_starts_programs_over_two_nodes() {
    let Some(slurm) = Slurm::new() else { return };
    for program in ["hello", "ring", "operators"] {
        slurm
            .srun(&compile(program), &["--nodes=2", "--mpi=pmi2"])
            .ranks(4)
            .holds();
    }
}

#[test]
fn srun_with_pmix_starts_programs_over_two_nodes() {
    let Some(slurm) = Slurm::new() else { return };
    for program in ["hello", "ring", "operators"] {
        slurm
            .srun(&compile(program), &["--nodes=2", "--mpi=pmix"])
            .ranks(4)
            .holds();
    }
}

#[test]
fn plain_srun_gets_one_sentence_about_what_is_missing() {
    let Some(slurm) = Slurm::new() else { return };
    let outcome = slurm.srun(&compile("hello"), &[]).ranks(3).run();
    assert!(!outcome.status.success());
    let sentence = "this is one of 3 processes that srun started without a way to find each other; use srun --mpi=pmi2 or --mpi=pmix";
    assert_eq!(
        outcome.stderr.matches(sentence).count(),
        3,
        "{}",
        outcome.stderr
    );
    assert!(!outcome.stdout.contains("Hello"), "{}", outcome.stdout);
    // A job of a single process can run without Slurm's PMI.
    slurm.srun(&compile("hello"), &[]).holds();
}

#[test]
fn mpirun_in_an_allocation_becomes_srun() {
    let Some(slurm) = Slurm::new() else { return };
    let mpirun = installation().join("bin/mpirun");
    let outcome = slurm
        .salloc(&mpirun, 4)
        .arg("--verbose")
        .arg(compile("ring"))
        .succeeds();
    assert!(
        outcome
            .stdout
            .contains("all claims of ring hold on 4 ranks"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome
            .stderr
            .contains("srun --mpi=pmi2 --ntasks=4 --nodes=2"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn ranks_run_where_mpirun_would_have_put_them() {
    let Some(slurm) = Slurm::new() else { return };
    let place = "echo rank $SLURM_PROCID on $SLURMD_NODENAME";
    let outcome = slurm
        .salloc(&installation().join("bin/mpirun"), 8)
        .with(["--ntasks-per-node=4"])
        .arg("-n")
        .arg("4")
        .arg("--map-by")
        .arg("node")
        .arg("sh")
        .arg("-c")
        .arg(place)
        .succeeds();
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "rank 0 on n1",
            "rank 1 on n2",
            "rank 2 on n1",
            "rank 3 on n2"
        ]
    );
}

#[test]
fn several_programs_in_an_allocation_are_one_job() {
    let Some(slurm) = Slurm::new() else { return };
    let hello = compile("hello");
    let outcome = slurm
        .salloc(&installation().join("bin/mpirun"), 4)
        .arg("-n")
        .arg("1")
        .arg(&hello)
        .arg(":")
        .arg("-n")
        .arg("3")
        .arg(&hello)
        .arg("4")
        .succeeds();
    assert!(
        outcome
            .stdout
            .contains("all claims of hello hold on 4 ranks"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_rank_that_fails_ends_the_whole_step() {
    let Some(slurm) = Slurm::new() else { return };
    for way in ["abort", "exit", "kill"] {
        let outcome = slurm
            .salloc(&installation().join("bin/mpirun"), 4)
            .arg(compile("leave"))
            .arg(way)
            .run();
        assert!(!outcome.status.success(), "{way}: {}", outcome.stdout);
    }
}

/// Slurm detects that the rank's connection is broken, and ends the step;
/// Slurm's output must name the rank.
#[test]
fn under_pmix_a_rank_that_dies_ends_the_others_and_is_named() {
    let Some(slurm) = Slurm::new() else { return };
    for (way, line) in [
        ("kill", "task 1: Killed"),
        ("segv", "task 1: Segmentation fault"),
        ("exit", "task 1: Exited with exit code 3"),
        ("abort", "task 1: Exited with exit code 42"),
    ] {
        let job = slurm.srun(&compile("leave"), &["--nodes=2", "--mpi=pmix"]);
        let job = job.ranks(4).arg(way).start();
        job.ready(4);
        let outcome = job.wait_with_grace(Duration::from_secs(10));
        assert!(!outcome.status.success(), "{way}: {}", outcome.stdout);
        // After MPI_Abort, Slurm cancels the step, and may kill the aborting rank before that rank exits.
        let is_cancelled = way == "abort" && outcome.stderr.contains("CANCELLED");
        let is_named = outcome.stderr.contains(line) || is_cancelled;
        assert!(is_named, "{way}: {}", outcome.stderr);
    }
}

#[test]
fn ranks_do_not_outlive_srun() {
    let Some(slurm) = Slurm::new() else { return };
    let job = slurm
        .srun(&compile("leave"), &["--nodes=2", "--mpi=pmi2"])
        .ranks(4)
        .arg("wait")
        .start();
    job.ready(4);
    job.signal(Signal::KILL);
    let outcome = job.wait_with_grace(Duration::from_secs(10));
    assert!(!outcome.status.success());
    let (mark, nothing) = (slurm.mark(), slurm.config().join("nothing"));
    drop(slurm);
    leftovers::assert_none(&mark, &nothing);
}
