//! Tests of `mpirun --end-dead`: deadlocked jobs are ended with a report, and no other job is ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::hosts::Hosts;
use tests::{Job, compile};
use xtask::process::Outcome;

const SENTENCE: &str = "the job cannot go on: all";

/// Runs `hang WAY`, which mpirun must end as deadlocked.
fn is_ended(job: Job) -> Outcome {
    // The timeout is the fallback if mpirun does not detect the deadlock.
    let outcome = job.with(["--timeout", "60"]).run();
    assert_eq!(outcome.status.code(), Some(125), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(SENTENCE), "{}", outcome.stderr);
    outcome
}

fn hang(way: &str, ranks: u32) -> Job {
    Job::of("hang").arg(way).ranks(ranks)
}

/// Deadlocks: the argument of `hang`, the number of ranks, and a text that the report must contain.
const DEAD: &[(&str, u32, &str)] = &[
    ("crossed", 2, "ranks 0, 1 wait for each other in a circle"),
    ("tag", 2, "their tags differ, so they never meet"),
    ("missing", 2, "ranks 0, 1 wait for each other in a circle"),
    ("left", 2, "rank 0 waits for rank 1, which has left"),
    (
        "exception",
        2,
        "rank 1 has printed the Python exception ValueError: bad, and ",
    ),
    ("collective", 2, "MPI_Allreduce"),
    ("root", 2, "MPI_Bcast"),
    (
        "any",
        3,
        "a message of any rank, and no rank is left that could send one",
    ),
    ("inner", 3, "rank 0 waits in MPI_Recv"),
    ("shift", 4, "wait"),
    ("parted", 2, "ranks 0, 1 wait for each other in a circle"),
];

#[test]
fn a_job_whose_ranks_all_wait_for_each_other_is_ended_with_a_report() {
    for (way, ranks, part) in DEAD {
        let said = is_ended(hang(way, *ranks)).stderr;
        assert!(
            said.contains(part),
            "no {part:?} in the report of {way}:\n{said}"
        );
    }
}

#[test]
fn a_collective_operation_that_was_started_is_named_as_the_program_calls_it() {
    let said = is_ended(hang("started", 2)).stderr;
    for part in [
        "rank 0 waits in MPI_Wait for MPI_Iallgather #",
        "rank 1 waits in MPI_Wait for MPI_Bcast_init #",
    ] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
}

#[test]
fn a_dead_job_is_ended_over_tcp_with_messages_alone_beside_hardware_and_oversubscribed() {
    let ways: [&[&str]; 3] = [
        &["--mca", "btl", "self,tcp"],
        &["--mca", "coll_shm_priority", "0"],
        &["--mca", "coll_hwbarr_port", "sim"],
    ];
    for way in ways {
        is_ended(hang("missing", 2).with(way));
    }
    is_ended(hang("shift", 9));
}

#[test]
fn a_job_that_relies_on_buffered_sends_is_ended_if_sends_wait_for_their_receives() {
    let check = ["--mca", "pml_ob1_check_buffering", "true"];
    is_ended(hang("buffering", 2).with(check));
    hang("buffering", 2).succeeds();
}

/// The options of a job whose threads wait in lanes.
const LANES: [&str; 3] = ["--mca", "threads_lanes", "4"];

#[test]
fn a_job_whose_threads_all_wait_in_lanes_is_ended_and_each_wait_is_named() {
    let said = is_ended(hang("threads", 2).with(LANES)).stderr;
    for part in [
        "ranks 0, 1 wait for each other in a circle",
        "rank 0 waits in 2 threads: thread ",
        "rank 1 waits in 2 threads: thread ",
        " in MPI_Recv from rank 0 of communicator ",
        " in MPI_Recv from rank 1 of communicator ",
        ", tag 70, for ",
        " in MPI_Ssend to rank 1 of communicator ",
        ", tag 71, 4 bytes, for ",
        " in MPI_Wait for its MPI_Irecv from rank 0 of communicator ",
        ", tag 72, for ",
    ] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
    for (way, part) in [
        ("beside", " in MPI_Recv from rank 1, tag 74, for "),
        ("several", " in MPI_Waitany for one of 4 requests, for "),
    ] {
        let said = is_ended(hang(way, 2).with(LANES)).stderr;
        assert!(said.contains(part), "no {part:?} of {way} in:\n{said}");
    }
}

#[test]
fn a_job_on_two_hosts_is_ended() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    is_ended(hosts.remote_job(&compile("hang"), 1).arg("crossed"));
}

#[test]
fn ranks_that_stand_still_while_another_computes_are_reported_and_the_job_goes_on() {
    let job = hang("part", 3).with(["--end-dead", "yes"]).start();
    job.complains("a part of the job has stood still", 1);
    job.complains("ranks 0, 1 wait for each other in a circle", 1);
    job.signal(rustix::process::Signal::TERM);
    let outcome = job.wait();
    assert!(!outcome.stderr.contains(SENTENCE), "{}", outcome.stderr);
}

#[test]
fn a_job_with_a_rank_outside_mpi_is_not_ended() {
    // In each of these jobs a rank might still make progress, as far as the library can tell.
    let ways = [
        ("computes", 2),
        ("absent", 4),
        ("waitall", 2),
        ("second", 2),
        ("polls", 2),
    ];
    let start = |(way, ranks)| hang(way, ranks).with(["--timeout", "2500ms"]).start();
    let jobs = ways.map(start);
    for job in jobs {
        let outcome = job.wait();
        assert_eq!(outcome.status.code(), Some(124), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains(SENTENCE), "{}", outcome.stderr);
    }
}

#[test]
fn a_report_of_a_dead_job_is_printed_once_and_a_choice_turns_it_off() {
    let start = |wanted, limit| {
        let options = ["--end-dead", wanted, "--timeout", limit];
        hang("crossed", 2).with(options).start()
    };
    // mpirun needs 1.5 s to prove a deadlock, or longer on a loaded machine.
    let jobs = [start("report", "8s"), start("no", "3500ms")];
    let [reported, silent] = jobs.map(|job| job.wait());
    let count = |outcome: &Outcome| outcome.stderr.matches(SENTENCE).count();
    assert_eq!(
        (reported.status.code(), count(&reported)),
        (Some(124), 1),
        "{}",
        reported.stderr
    );
    assert_eq!(
        (silent.status.code(), count(&silent)),
        (Some(124), 0),
        "{}",
        silent.stderr
    );
}

/// The arguments of `healthy` and the number of ranks of each job.
const HEALTHY: &[(&str, u32)] = &[
    ("sleeps", 2),
    ("sleeps", 9),
    ("pipe", 3),
    ("file", 3),
    ("stops", 3),
    ("thread", 2),
    ("lanes", 2),
    ("busy_lanes", 2),
    ("timer", 2),
    ("lock", 3),
    ("shared", 3),
    ("polls", 2),
    ("accepts", 3),
    ("spawns", 2),
];

/// Returns a healthy job, with lanes if it needs them.
fn healthy(way: &str, milliseconds: usize) -> Job {
    let job = Job::of("healthy").arg(way).arg(milliseconds.to_string());
    match way {
        "lanes" | "busy_lanes" | "timer" => job.with(LANES),
        _ => job,
    }
}

/// Runs all healthy jobs at the same time, with these options of mpirun.
fn no_healthy_job_is_ended(options: &[&str], milliseconds: usize) {
    let start = |(way, ranks): &(&'static str, u32)| {
        let job = healthy(way, milliseconds);
        (*way, job.ranks(*ranks).with(options).start())
    };
    let jobs: Vec<_> = HEALTHY.iter().map(start).collect();
    for (way, job) in jobs {
        let outcome = job.wait();
        let said = &outcome.stderr;
        assert!(
            outcome.status.success(),
            "{way} with {options:?}: {}\n{said}",
            outcome.status
        );
        assert!(!said.contains(SENTENCE), "{way} with {options:?}:\n{said}");
        assert!(
            outcome.stdout.contains("all claims of healthy hold"),
            "{way}: {}",
            outcome.stdout
        );
    }
}

#[test]
fn a_job_that_stands_still_and_goes_on_is_not_ended() {
    // The pause is longer than the proof of a deadlock takes (1.5 s).
    no_healthy_job_is_ended(&[], 2200);
}

#[test]
fn a_job_whose_ranks_all_wait_for_another_job_is_not_ended() {
    let waiting = Job::of("healthy").arg("serves").ranks(3).start();
    let port = waiting.says("port ");
    // The pause is longer than a proof takes; the connecting job pauses again after it has connected.
    std::thread::sleep(Duration::from_millis(2200));
    Job::of("healthy").arg("calls").arg(port).holds();
    let outcome = waiting.wait();
    assert!(outcome.status.success(), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains(SENTENCE), "{}", outcome.stderr);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn no_healthy_job_is_ended_whatever_carries_its_messages() {
    let ways: [&[&str]; 4] = [
        &["--mca", "btl", "self,tcp"],
        &["--mca", "osc_am_progress_thread", "true"],
        &["--mca", "btl_sm_single_copy", "false"],
        &["--bind-to", "core"],
    ];
    for way in ways {
        no_healthy_job_is_ended(way, 11_000);
    }
}

/// Returns the pause of job number `number` of the soak test, in milliseconds.
/// Pauses range from 50 ms to 3.55 s, more than twice as long as a deadlock proof takes (1.5 s).
/// One in four jobs with stopped ranks pauses for ten seconds.
fn stands_still_ms(number: usize, way: &str) -> usize {
    match way == "stops" && (number / HEALTHY.len()).is_multiple_of(4) {
        true => 10_000,
        false => 50 + number * 377 % 3500,
    }
}

/// A soak of many healthy jobs with different pauses, run concurrently on few cores.
///
/// `HEALTHY_JOBS=10000 cargo test -p tests --test dead_jobs -- --ignored soak` runs 10,000 jobs
/// and takes about two hours on two cores.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_soak_of_healthy_jobs_ends_none_of_them() {
    const AT_ONCE: usize = 12;
    let count = std::env::var("HEALTHY_JOBS").ok();
    let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(80);
    let ways: [&[&str]; 4] = [
        &[],
        &["--mca", "btl", "self,tcp"],
        &["--oversubscribe"],
        &["--mca", "osc_am_progress_thread", "true"],
    ];
    let next = AtomicUsize::new(0);
    let run_all = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let (way, ranks) = HEALTHY[number % HEALTHY.len()];
            let job = healthy(way, stands_still_ms(number, way));
            let outcome = job
                .ranks(ranks)
                .with(ways[number % ways.len()])
                .start()
                .wait();
            let said = &outcome.stderr;
            assert!(
                outcome.status.success(),
                "job {number}, {way}: {}\n{said}",
                outcome.status
            );
            if number % 100 == 99 {
                println!("{} healthy jobs, none ended", number + 1);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(run_all);
        }
    });
}
