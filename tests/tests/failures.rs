//! Tests of abnormal ends: all processes of the job must end quickly, with an error message,
//! and leave no processes and no files.
//!
//! `Job::wait` panics if a process or a file is left one second after the job's end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::job::send;
use tests::{Job, Outcome, Started};

/// Maximum time from the failure to the launcher's end.
const SOON: Duration = Duration::from_secs(1);

const RANKS: u32 = 3;

/// Returns a job of `leave.c`: rank 1 ends in the way that the argument names, while the other ranks wait.
fn leaves(way: &str) -> Job {
    Job::of("leave").arg(way).arg("1").ranks(RANKS)
}

fn ends_soon(job: Started, deed: impl FnOnce(&Started)) -> Outcome {
    let begin = Instant::now();
    deed(&job);
    let outcome = job.wait();
    let took = begin.elapsed();
    assert!(
        took < SOON + tests::leftovers::GRACE,
        "the end took {took:?}"
    );
    outcome
}

#[track_caller]
fn names(outcome: &Outcome, parts: &[&str]) {
    let said = outcome.stderr.to_lowercase();
    for part in parts {
        assert!(
            said.contains(&part.to_lowercase()),
            "{part:?} is missing in:\n{}",
            outcome.stderr
        );
    }
}

fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[test]
fn a_rank_that_is_killed_ends_the_job_and_is_named() {
    let job = leaves("wait").start();
    let victim = job.ready(RANKS as usize)[1];
    let outcome = ends_soon(job, |_| send(victim, Signal::KILL));
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    names(&outcome, &["rank", "sigkill", &host()]);
}

#[test]
fn a_death_is_reported_and_not_the_reactions_of_other_ranks() {
    // The kill times increase in equal steps, from before MPI_Init until messages of every protocol
    // are in flight.
    for round in 0..20_u64 {
        let transports = ["self,sm", "self,tcp"][(round % 2) as usize];
        let job = Job::of("endless")
            .ranks(RANKS)
            .env("PORTCULLIS_MCA_btl", transports);
        let job = job.start();
        let first = round % 5 == 0;
        let ready = job.ready(if first { 1 } else { RANKS as usize });
        let victim = ready[round as usize % ready.len()];
        std::thread::sleep(Duration::from_millis(round * 17 % 60));
        send(victim, Signal::KILL);
        let outcome = job.wait();
        let said = &outcome.stderr;
        assert_eq!(
            outcome.status.code(),
            Some(128 + 9),
            "round {round}: {said}"
        );
        let named = said.contains(&format!("pid {victim})")) && said.contains("SIGKILL");
        assert!(named, "round {round}, {victim} was killed: {said}");
    }
}

#[test]
fn a_death_is_reported_and_not_that_of_ranks_whose_memory_goes_with_it() {
    for round in 0..5 {
        for (way, code, part) in [("kill", 128 + 9, "sigkill"), ("exit", 3, "status 3")] {
            let outcome = Job::of("memory_gone").arg(way).ranks(RANKS).run();
            let (status, said) = (outcome.status.code(), &outcome.stderr);
            assert_eq!(status, Some(code), "round {round}: {said}");
            names(&outcome, &["rank 1 (", part]);
        }
    }
    let outcome = Job::of("memory_gone").arg("alone").ranks(RANKS).run();
    let (status, said) = (outcome.status.code(), &outcome.stderr);
    assert_eq!(status, Some(128 + 7), "{said}");
    names(&outcome, &["rank 1 (", "sigbus"]);
}

#[test]
fn rubbish_in_shared_memory_crashes_and_blocks_no_process() {
    for seed in 1..=12 {
        let job = Job::of("hostile").arg(seed.to_string()).ranks(RANKS);
        let outcome = job.run();
        let (status, said) = (outcome.status.code(), &outcome.stderr);
        // A crash would give a status of 128 plus a signal number;
        // damaged memory must only make the program's MPI calls return errors.
        assert!(
            matches!(status, Some(1..=127)),
            "seed {seed}: {status:?}: {said}"
        );
        assert!(said.contains("MPI_Sendrecv"), "seed {seed}: {said}");
    }
}

#[test]
fn the_end_of_a_rank_is_reported_with_its_number_and_status() {
    for (way, code, parts) in [
        ("kill", 137, &["rank 1", "sigkill"][..]),
        ("segv", 139, &["rank 1", "sigsegv"]),
        ("exit", 3, &["rank 1", "3"]),
    ] {
        let outcome = leaves(way).run();
        assert_eq!(
            outcome.status.code(),
            Some(code),
            "{way}: {}",
            outcome.stderr
        );
        names(&outcome, parts);
    }
}

#[test]
fn a_rank_that_leaves_without_finalize_is_a_failure_even_with_status_zero() {
    let outcome = leaves("quiet").run();
    assert!(!outcome.status.success());
    names(&outcome, &["rank 1", "MPI_Finalize"]);
}

#[test]
fn an_abort_keeps_its_code() {
    let outcome = leaves("abort").run();
    assert_eq!(outcome.status.code(), Some(42), "{}", outcome.stderr);
    names(&outcome, &["rank 1", "42"]);
}

#[test]
fn an_unhandled_error_names_both_sides() {
    let outcome = Job::of("fatal").ranks(2).run();
    assert!(!outcome.status.success());
    names(&outcome, &["MPI_Recv", "rank 1", "tag 7", "400", "40"]);
    // The call that could have returned the error has already returned,
    // so the error ends the job whatever the error handler is.
    for (ranks, last) in [(1, "rank 0"), (2, "rank 1")] {
        let outcome = Job::of("fatal").ranks(ranks).arg("freed").run();
        assert!(!outcome.status.success());
        names(&outcome, &["MPI_Request_free", last, "tag 7", "400", "40"]);
    }
    for lanes in ["1", "4"] {
        let job = Job::of("lanes").arg("freed");
        let outcome = job.with(["--mca", "threads_lanes", lanes]).run();
        assert!(!outcome.status.success());
        names(
            &outcome,
            &["MPI_Request_free", "rank 0", "tag 77", "8", "4"],
        );
        assert!(!outcome.stdout.contains("hold on"), "{}", outcome.stdout);
    }
}

#[test]
fn programs_begin_with_the_error_handler_that_mpirun_is_told() {
    for (handler, word) in [
        ("mpi_errors_return", "return"),
        ("MPI_ERRORS_ABORT", "abort"),
        ("mpi_errors_are_fatal", "fatal"),
    ] {
        let job = Job::of("begun_with").arg(word).ranks(2);
        job.with(["--initial-errhandler", handler]).holds();
    }
    Job::of("begun_with").arg("fatal").ranks(2).holds();
}

#[test]
fn a_signal_to_mpirun_ends_the_job() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let job = leaves("wait").start();
        job.ready(RANKS as usize);
        let outcome = ends_soon(job, |job| job.signal(signal));
        assert_eq!(
            outcome.status.code(),
            Some(code),
            "{signal:?}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn ranks_that_ignore_the_polite_signal_are_gone_too() {
    let job = leaves("deaf").start();
    job.ready(RANKS as usize);
    ends_soon(job, |job| job.signal(Signal::INT));
}

#[test]
fn mpirun_killed_takes_the_whole_job_with_it() {
    let job = leaves("wait").start();
    job.ready(RANKS as usize);
    ends_soon(job, |job| job.signal(Signal::KILL));
}

#[test]
fn children_of_ranks_are_gone_when_mpirun_is_killed() {
    let job = leaves("fork").start();
    job.ready(2 * RANKS as usize);
    ends_soon(job, |job| job.signal(Signal::KILL));
}

#[test]
fn children_of_ranks_are_gone_when_a_rank_is_killed() {
    let job = leaves("fork").start();
    let victim = job.ready(2 * RANKS as usize)[0];
    ends_soon(job, |job| {
        // The first process to print "ready" may be a child process of a rank, whose death mpirun need not detect;
        // SIGINT then ends the job.
        send(victim, Signal::KILL);
        job.signal(Signal::INT);
    });
}

/// Stops all ranks with SIGSTOP, as a user or a batch system does to free the machine.
fn stopped(job: &Started) -> Vec<i32> {
    let ranks = job.ready(RANKS as usize);
    for &rank in &ranks {
        send(rank, Signal::STOP);
    }
    ranks
}

#[test]
fn a_stopped_job_is_gone_when_mpirun_is_killed() {
    let job = leaves("wait").start();
    stopped(&job);
    ends_soon(job, |job| job.signal(Signal::KILL));
}

#[test]
fn the_death_of_a_rank_is_reported_when_a_stopped_mpirun_goes_on() {
    let job = leaves("wait").start();
    let ranks = job.ready(RANKS as usize);
    job.signal(Signal::STOP);
    send(ranks[1], Signal::KILL);
    std::thread::sleep(Duration::from_millis(50));
    let outcome = ends_soon(job, |job| job.signal(Signal::CONT));
    assert_eq!(outcome.status.code(), Some(137), "{}", outcome.stderr);
    names(&outcome, &["rank", "sigkill"]);
}

#[test]
fn ranks_that_ignore_the_polite_signal_are_gone_too_when_another_dies() {
    let job = leaves("deaf").start();
    let victim = job.ready(RANKS as usize)[2];
    let outcome = ends_soon(job, |_| send(victim, Signal::KILL));
    assert_eq!(outcome.status.code(), Some(137), "{}", outcome.stderr);
}

/// Returns the outcome of `crashes WAY`, and the part of standard error after the heading of rank 1's stack.
fn stack_of(way: &str) -> (Outcome, String) {
    let outcome = Job::of("crashes").arg(way).ranks(2).run();
    let said = outcome.stderr.split_once("its stack, the fault first:\n");
    let stack = said.map(|(_, stack)| stack.to_owned()).unwrap_or_default();
    (outcome, stack)
}

#[test]
fn a_rank_that_dies_by_a_fault_prints_its_stack() {
    let (outcome, stack) = stack_of("null");
    assert_eq!(outcome.status.code(), Some(128 + 11), "{}", outcome.stderr);
    names(
        &outcome,
        &[
            "rank 1 on",
            "got signal 11 (SIGSEGV) at address 0x0",
            "was killed by signal 11",
        ],
    );
    let frames: Vec<&str> = stack.lines().take(3).collect();
    for (frame, name) in frames.iter().zip([
        "#0 innermost_function+0x",
        "#1 middle_function+0x",
        "#2 main+0x",
    ]) {
        assert!(
            frame.contains(name),
            "no {name:?} in {frame:?} of\n{}",
            outcome.stderr
        );
    }
    assert_eq!(frames.len(), 3, "{}", outcome.stderr);
    // The first case is a stack overflow; the second is a signal that another process could have sent.
    let (outcome, stack) = stack_of("overflow");
    assert_eq!(outcome.status.code(), Some(128 + 11), "{}", outcome.stderr);
    assert!(
        stack.contains("#9 innermost_function"),
        "{}",
        outcome.stderr
    );
    names(
        &outcome,
        &["(SIGSEGV) at address", "a stack overflow (ulimit -s is"],
    );
    assert!(!stack_of("null").0.stderr.contains("overflow"));
    let (outcome, _) = stack_of("sent");
    assert_eq!(outcome.status.code(), Some(128 + 11), "{}", outcome.stderr);
    names(&outcome, &["(SIGSEGV), sent by a process"]);
}

#[test]
fn a_program_that_handles_its_faults_and_a_choice_of_the_user_keep_the_stack_away() {
    let (outcome, stack) = stack_of("handled");
    assert_eq!(
        (outcome.status.code(), &*stack),
        (Some(7), ""),
        "{}",
        outcome.stderr
    );
    let silent = Job::of("crashes")
        .ranks(2)
        .with(["--mca", "mpi_base_backtrace", "false"]);
    let said = silent.run().stderr;
    assert!(!said.contains("its stack"), "{said}");
}
