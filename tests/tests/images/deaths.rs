//! Jobs that mpirun restarts after the death of a rank (`--restart-on-death`), with both kinds of checkpoints.

use super::stops::{Random, nothing_is_left_of, times, with_images};
use super::{folder, has_criu, is_over, result};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;
use tests::{Job, Started, leftovers};

/// A stencil of 300 steps of about 3 ms.
fn stencil() -> Job {
    let job = Job::of("checkpoints").ranks(3).limit(200);
    job.arg("300").env("CHECKPOINTS", "pause 3000")
}

fn with_self(job: Job, kept: &Path) -> Job {
    let dir = kept.join("saved");
    job.with(["--checkpoint-dir".as_ref(), dir.as_os_str()])
}

/// Kills one of the ranks, if there is one.
fn kill_a_rank(started: &Started, random: &mut Random) -> bool {
    let processes = leftovers::processes(started.mark());
    let ranks = processes.iter().filter_map(|process| {
        let (pid, command) = process.split_once(' ')?;
        let program = command.split(' ').next()?;
        let is_rank = program.ends_with("/checkpoints");
        Pid::from_raw(pid.parse().ok()?).filter(|_| is_rank)
    });
    let ranks: Vec<Pid> = ranks.collect();
    if ranks.is_empty() {
        return false;
    }
    let rank = ranks[random.below(ranks.len() as u64) as usize];
    kill_process(rank, Signal::KILL).is_ok()
}

/// Kills ranks of jobs at random moments after their first checkpoint, `wanted` times in total.
fn killed_ranks(with: &dyn Fn(Job, &Path) -> Job, wanted: u32) {
    let (expected, mut random, mut kills) = (result(&stencil().succeeds()), Random::new(41), 0);
    while kills < wanted {
        let kept = folder();
        let options = ["--checkpoint-every", "100ms", "--restart-on-death", "1000"];
        let started = with(stencil(), kept.path()).with(options).start();
        let mark = started.mark().to_owned();
        started.complains("checkpoint 1 is in ", 1);
        let before = kills;
        while !is_over(started.process()) {
            random.pause(1200);
            if kills < wanted {
                kills += u32::from(kill_a_rank(&started, &mut random));
            }
        }
        let outcome = started.wait_for_processes(Duration::from_secs(20));
        nothing_is_left_of(&mark, kept.path());
        assert_eq!(result(&outcome), expected, "{}", outcome.stderr);
        let restarts = outcome
            .stderr
            .matches("the job is restarted after a death")
            .count();
        let kills_here = (kills - before) as usize;
        // A second rank may be killed while the job ends, and one after the result.
        assert!(restarts <= kills_here, "{}", outcome.stderr);
    }
}

#[test]
fn a_job_whose_ranks_are_killed_is_restarted_by_mpirun_from_its_last_checkpoint() {
    killed_ranks(&with_self, 3);
}

#[test]
fn a_job_with_images_whose_ranks_are_killed_is_restarted_by_mpirun() {
    if has_criu() {
        killed_ranks(&with_images, 3);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn jobs_whose_ranks_are_killed_at_random_moments_come_to_the_same_result() {
    killed_ranks(&with_self, times("CHECKPOINT_KILLS", 100));
    if has_criu() {
        killed_ranks(&with_images, times("CHECKPOINT_KILLS", 100));
    }
}

/// One rank dies at the same step after each restart.
#[test]
fn a_job_is_restarted_as_often_as_asked_for_and_then_ends_with_the_death() {
    let kept = folder();
    let job = Job::of("checkpoints").ranks(2).arg("30");
    let job = with_self(job.env("CHECKPOINTS", "request 7 die 21"), kept.path());
    let outcome = job.with(["--restart-on-death", "2"]).run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    for said in [
        "restart 1, 1 more may follow",
        "restart 2, 0 more may follow",
    ] {
        assert_eq!(
            outcome.stderr.matches(said).count(),
            1,
            "{}",
            outcome.stderr
        );
    }
}

/// Each start prints the soft limit of open files, which is below that of mpirun.
#[test]
fn a_restarted_job_has_the_limit_of_open_files_of_the_first_start() {
    let kept = folder();
    let by = super::script(kept.path(), "echo limit $(ulimit -Sn)\nexec \"$@\"");
    let limited = kept.path().join("limited");
    let mpirun = tests::installation().join("bin/mpirun");
    let text = format!(
        "#!/bin/sh\nulimit -Sn 200\nexec {} \"$@\"\n",
        mpirun.display()
    );
    bounded::write_program(&limited, &text).expect("written");
    let job = Job::command(&by).under(&limited).ranks(2);
    let job = job.arg(tests::compile("checkpoints")).arg("30");
    let job = with_self(job.env("CHECKPOINTS", "request 7 die 21"), kept.path());
    let outcome = job.with(["--restart-on-death", "1"]).run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    let limits = outcome
        .stdout
        .lines()
        .filter(|line| line.starts_with("limit "));
    assert_eq!(limits.collect::<Vec<_>>(), ["limit 200"; 4]);
}

/// The launcher on h1 hangs, and its rank runs on. A link with a limit of 6 s is lost, and the restart waits until
/// the rank must have ended. With a limit of 1 s, a busy machine also loses the links of the restarted job.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_restart_after_the_loss_of_a_host_waits_for_the_end_of_its_ranks() {
    let Some(hosts) = super::hosts::hosts(2) else {
        return;
    };
    let kept = folder();
    let job = || super::stops::stencil_of(hosts.remote_job(&tests::compile("checkpoints"), 1));
    let expected = result(&job().succeeds());
    let options = ["--checkpoint-every", "100ms", "--restart-on-death", "1"];
    let job = with_self(job(), kept.path()).with(options);
    let started = job.with(["--mca", "mpirun_silence", "6s"]).start();
    started.complains("checkpoint 1 is in ", 1);
    let daemons: Vec<Pid> = leftovers::processes(started.mark())
        .iter()
        .filter(|process| process.ends_with(" --daemon "))
        .filter_map(|process| Pid::from_raw(process.split_once(' ')?.0.parse().ok()?))
        .collect();
    assert!(!daemons.is_empty());
    // The last process is the daemon of h1; the one before it is its guard.
    kill_process(daemons[daemons.len() - 1], Signal::STOP).expect("stopped");
    started.complains(
        "mpirun: the restart waits 17 s, until no rank runs any more",
        1,
    );
    let outcome = started.wait_for_processes(Duration::from_secs(20));
    assert_eq!(result(&outcome), expected, "{}", outcome.stderr);
}

/// The folder contains a checkpoint of an earlier job of the same program, which this job must not continue.
#[test]
fn a_job_without_a_checkpoint_or_with_fault_tolerance_is_not_restarted() {
    let kept = folder();
    let earlier = Job::of("checkpoints").ranks(2).arg("30");
    let earlier = with_self(earlier.env("CHECKPOINTS", "request 7"), kept.path()).run();
    assert!(earlier.status.success(), "{}", earlier.stderr);
    let job = Job::of("checkpoints").ranks(2).arg("30");
    let job = with_self(job.env("CHECKPOINTS", "die 5"), kept.path());
    let outcome = job.with(["--restart-on-death", "2"]).run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    let said = "the job has no complete checkpoint to be restarted from";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let job = with_self(Job::of("checkpoints").ranks(2).arg("30"), kept.path());
    let both = ["--restart-on-death", "2", "--with-ft", "ulfm"];
    let outcome = job.with(both).run();
    assert_eq!(outcome.status.code(), Some(2), "{}", outcome.stderr);
}
