//! Images of jobs on several hosts, which are network namespaces. Each restart is on new hosts.

use super::stops::{
    Random, nothing_is_left_of, on_hosts, stencil_of, stop, times, walk, with_images,
};
use super::{PROGRAM, ctl, folder, has_criu, numbers, result, script};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::hosts::Hosts;
use tests::{Job, Outcome, compile, installation};

/// A restart that has not printed a result after this number of attempts is an error.
const ATTEMPTS: u32 = 400;

/// Returns new hosts with the same addresses as all others of these tests.
pub(super) fn hosts(count: u32) -> Option<Hosts> {
    Some(Hosts::new(count)?.network(0, &[1500]))
}

/// Returns a stencil with one rank on each of the hosts.
pub(super) fn stencil(hosts: &Hosts) -> Job {
    stencil_of(hosts.remote_job(&compile("checkpoints"), 1))
}

pub(super) fn restart(kept: &Path, hosts: &Hosts) -> Job {
    let mpirun = installation().join("bin/mpirun");
    let restart = Job::command(&mpirun).limit(100).arg("--restart");
    let restart = restart.arg(kept.join("saved")).arg("--launch-agent");
    restart.arg(hosts.in_place_of_ssh())
}

/// Stops jobs on `count` hosts at random moments, `wanted` times in total.
/// `plain` returns a job without checkpoints in a folder; its file, if it writes one, must be that of an undisturbed job.
fn stopped_at_random(count: u32, wanted: u32, plain: &dyn Fn(&Hosts, &Path) -> Job) {
    let Some(first) = hosts(count) else { return };
    if !has_criu() {
        return;
    }
    let undisturbed = folder();
    let expected = result(&plain(&first, undisturbed.path()).succeeds());
    let written = |kept: &Path| fs::read(kept.join("file")).unwrap_or_default();
    let (mut random, mut stops) = (Random::new(11), 0);
    while stops < wanted {
        let (kept, mut at) = (folder(), hosts(count).expect("hosts as before"));
        let mut job = with_images(plain(&at, kept.path()), kept.path());
        let (mut attempts, mut output) = (0, String::new());
        loop {
            let started = job.start();
            let mark = started.mark().to_owned();
            if stops < wanted {
                random.pause(700);
                stop(&started);
            }
            let outcome = started.wait_for_processes(Duration::from_secs(20));
            nothing_is_left_of(&mark, kept.path());
            // A job that is stopped after its last step has printed its result before.
            output += &outcome.stdout;
            if outcome.status.code() != Some(85) {
                assert!(outcome.status.success(), "{}", outcome.stderr);
                let found = output.lines().find(|line| line.starts_with("result "));
                assert_eq!(found, Some(expected.as_str()), "{}", outcome.stderr);
                break;
            }
            stops += 1;
            attempts += 1;
            assert!(attempts < ATTEMPTS, "{}", outcome.stderr);
            at = hosts(count).expect("hosts as before");
            job = restart(kept.path(), &at);
        }
        assert!(attempts > 0, "the job ends before its first stop");
        assert_eq!(written(kept.path()), written(undisturbed.path()));
        drop(at);
    }
}

#[test]
fn a_job_on_two_hosts_is_stopped_and_continues_on_hosts_with_the_same_addresses() {
    stopped_at_random(2, 3, &|hosts, _| stencil(hosts));
}

/// The hosts' ranks listen at the same port, so the port of a peer is that of an own listener.
#[test]
fn a_job_whose_ranks_listen_at_one_port_is_stopped_and_continues() {
    let port = ["--mca", "btl_tcp_port", "5000"];
    stopped_at_random(2, 1, &|hosts, _| stencil(hosts).with(port));
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn jobs_on_two_and_three_hosts_are_stopped_at_random_moments() {
    for count in [2, 3] {
        stopped_at_random(count, times("CHECKPOINT_STOPS", 50), &|hosts, _| {
            stencil(hosts)
        });
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn windows_and_files_on_two_hosts_are_stopped_at_random_moments() {
    stopped_at_random(2, times("CHECKPOINT_STOPS", 100), &on_hosts);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn mpi4py_on_two_hosts_is_stopped_at_random_moments() {
    let scripts = folder();
    let Some(walk) = walk(scripts.path()) else {
        return;
    };
    let job = |hosts: &Hosts, _: &Path| {
        let job = hosts.remote_job(&walk.python, 1).limit(100);
        job.with(["-x", &walk.libraries]).arg(&walk.script)
    };
    stopped_at_random(2, times("CHECKPOINT_STOPS", 100), &job);
}

#[test]
fn a_job_on_two_hosts_goes_on_after_a_checkpoint_and_is_restored_after_its_death() {
    let (Some(first), Some(other)) = (hosts(2), hosts(2)) else {
        return;
    };
    if !has_criu() {
        return;
    }
    let (kept, expected) = (folder(), result(&stencil(&first).succeeds()));
    let started = with_images(stencil(&first), kept.path()).start();
    let mark = started.mark().to_owned();
    for number in 1..=2 {
        std::thread::sleep(Duration::from_millis(100));
        let taken = ctl(&["checkpoint"], &started);
        let said = format!("checkpoint {number} is in ");
        assert!(taken.stdout.starts_with(&said), "{}", taken.stderr);
    }
    started.signal(Signal::KILL);
    started.wait_for_processes(Duration::from_secs(20));
    nothing_is_left_of(&mark, kept.path());
    drop(first);
    let again = restart(kept.path(), &other).run();
    assert_eq!(result(&again), expected, "{}", again.stderr);
}

/// Kills mpirun at random moments, `wanted` times in total.
fn killed_at_random(wanted: u32) {
    let Some(first) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let (expected, mut random, mut kills) =
        (result(&stencil(&first).succeeds()), Random::new(23), 0);
    while kills < wanted {
        let (kept, mut attempts) = (folder(), 0);
        loop {
            let at = hosts(2).expect("hosts as before");
            let is_saved = numbers(kept.path()).iter().any(|(_, complete)| *complete);
            let job = match is_saved {
                true => restart(kept.path(), &at),
                false => {
                    with_images(stencil(&at), kept.path()).with(["--checkpoint-every", "150ms"])
                }
            };
            let started = job.start();
            let mark = started.mark().to_owned();
            random.pause(1500);
            started.signal(Signal::KILL);
            let outcome = started.wait_for_processes(Duration::from_secs(20));
            nothing_is_left_of(&mark, kept.path());
            if outcome.stdout.contains("result ") {
                assert_eq!(result(&outcome), expected, "{}", outcome.stderr);
                break;
            }
            assert_eq!(outcome.status.code(), None, "{}", outcome.stderr);
            (kills, attempts) = (kills + 1, attempts + 1);
            assert!(attempts < ATTEMPTS, "{}", outcome.stderr);
        }
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_job_on_two_hosts_whose_mpirun_is_killed_at_random_moments_comes_to_the_same_result() {
    killed_at_random(times("CHECKPOINT_KILLS", 100));
}

/// Writes a command that reaches hosts; on host h1 the variable `H1` is set.
pub(super) fn agent_that_marks_h1(kept: &Path, hosts: &Hosts) -> PathBuf {
    let path = kept.join("agent");
    let text = format!(
        "#!/bin/sh\ntest $1 = h1 && export H1=1\nexec {} \"$@\"\n",
        hosts.in_place_of_ssh().display()
    );
    bounded::write_program(&path, &text).expect("written");
    path
}

/// Starts a job whose CRIU runs these commands first on host h1.
pub(super) fn with_another_criu_on_h1(kept: &Path, hosts: &Hosts, commands: &str) -> Job {
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    let criu = format!("if [ \"$H1\" ]; then\n{commands}\nfi\nexec {real} \"$@\"");
    let agent = agent_that_marks_h1(kept, hosts);
    let job = Job::of("checkpoints")
        .ranks(2)
        .with(["--host", "h0:1,h1:1"]);
    let job = job.with(["--launch-agent".as_ref(), agent.as_os_str()]);
    with_images(stencil_of(job), kept).env(PROGRAM, script(kept, &criu))
}

pub(super) fn sentence_of(outcome: &Outcome, sentence: &str) {
    let said = outcome
        .stderr
        .lines()
        .filter(|line| line.contains(sentence));
    assert_eq!(said.count(), 1, "{sentence} in:\n{}", outcome.stderr);
}

#[test]
fn a_host_with_another_criu_is_refused_by_its_name() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let kept = folder();
    let old = "test $1 = --version && echo Version: 3.17.1 && exit";
    let outcome = with_another_criu_on_h1(kept.path(), &hosts, old).run();
    assert!(!outcome.status.success(), "{}", outcome.stdout);
    sentence_of(
        &outcome,
        "h1: checkpoints of processes need CRIU 4.2 or later, and ",
    );
    let absent = "exit 127";
    let outcome = with_another_criu_on_h1(kept.path(), &hosts, absent).run();
    assert!(!outcome.status.success(), "{}", outcome.stdout);
    sentence_of(&outcome, "does not report its version as CRIU does");
}

#[test]
fn a_host_whose_disk_is_full_is_named_and_the_job_goes_on() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let (kept, expected) = (folder(), result(&stencil(&hosts).succeeds()));
    let full = "case \"$*\" in */1.tmp/*) echo 'Error (x): Can not write: No space left on device' >$7; exit 1;; esac";
    let started = with_another_criu_on_h1(kept.path(), &hosts, full).start();
    std::thread::sleep(Duration::from_millis(300));
    let taken = ctl(&["checkpoint"], &started);
    let sentence = "no checkpoint was taken: on h1: CRIU has failed to dump the job: Can not write: No space left on device (";
    assert!(taken.stderr.contains(sentence), "{}", taken.stderr);
    let outcome = started.wait();
    assert_eq!(result(&outcome), expected, "{}", outcome.stderr);
    assert_eq!(numbers(kept.path()), []);
}

#[test]
fn hosts_with_other_addresses_are_refused_by_name_before_anything_is_restored() {
    let (Some(first), Some(bare)) = (hosts(2), Hosts::new(2)) else {
        return;
    };
    if !has_criu() {
        return;
    }
    let (kept, bare) = (folder(), bare.network(3, &[1500]));
    let steps = |hosts: &Hosts, file: &str| {
        let job = hosts.remote_job(&compile("images"), 1);
        job.arg("40").arg("20000").arg(kept.path().join(file))
    };
    let started = with_images(steps(&first, "file"), kept.path()).start();
    // In the first step the ranks have opened their connections.
    started.says("step 3");
    stop(&started);
    let outcome = started.wait();
    assert_eq!(outcome.status.code(), Some(85), "{}", outcome.stderr);
    let refused = restart(kept.path(), &bare).run();
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    sentence_of(
        &refused,
        "the job cannot be restarted: on h0: this host does not have the address ",
    );
    drop(first);
    let Some(again) = hosts(2) else { return };
    let expected = result(&steps(&again, "plain").succeeds());
    let restarted = restart(kept.path(), &again).run();
    assert_eq!(result(&restarted), expected, "{}", restarted.stderr);
}
