//! Tests of checkpoints that are images of all processes, taken with CRIU.
//!
//! Tests that run CRIU need CRIU 4.2 and root. The parameter `crs_criu_program` in the environment
//! names the program; otherwise it is searched in PATH. Without it these tests are skipped by name.
//! Tests of refusals at the start use scripts instead of CRIU.
//!
//! `images/stops.rs` stops and kills jobs at random moments; `images/refusals.rs` has what images cannot contain;
//! `images/hosts.rs` has jobs on several hosts, `images/waits.rs` hosts that hang or fail meanwhile,
//! and `images/deaths.rs` restarts after deaths of ranks.

#[path = "images/deaths.rs"]
mod deaths;
#[path = "images/hosts.rs"]
mod hosts;
#[path = "images/refusals.rs"]
mod refusals;
#[path = "images/stops.rs"]
mod stops;
#[path = "images/waits.rs"]
mod waits;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use tests::{Job, Outcome, Started, compile, installation, needs};
use xtask::process::Running;

/// The environment variable of the parameter `crs_criu_program`.
const PROGRAM: &str = "PORTCULLIS_MCA_crs_criu_program";

const STEPS: usize = 40;

/// The time for which a rank sleeps after each step, in microseconds.
const PAUSE: &str = "20000";

fn folder() -> TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"))
}

/// Returns true if CRIU can be used; otherwise prints that the test is skipped.
fn has_criu() -> bool {
    let program = std::env::var_os(PROGRAM).unwrap_or_else(|| "criu".into());
    let version = Command::new(program).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_default();
    let numbers = version
        .lines()
        .find_map(|line| line.strip_prefix("Version: "));
    let numbers = numbers.map(|text| text.split('.').filter_map(|n| n.parse().ok()).collect());
    let works = numbers.is_some_and(|numbers: Vec<u32>| numbers >= vec![4, 2]);
    let there = works && rustix::process::geteuid().is_root();
    if !there {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("skipped: {test} needs CRIU 4.2 and root\n").as_bytes(),
        );
    }
    there
}

/// Returns a job of `images.c` without checkpoints; the job's shared file is `file` in `kept`.
fn plain(kept: &Path, file: &str) -> Job {
    let job = Job::of("images").ranks(2);
    let job = job.arg(STEPS.to_string()).arg(PAUSE);
    job.arg(kept.join(file))
}

/// Returns a job of `images.c` with checkpoints in `kept/saved`.
fn job(kept: &Path, btl: &str) -> Job {
    let dir = kept.join("saved");
    plain(kept, "file")
        .with(["--checkpoint-dir".as_ref(), dir.as_os_str()])
        .with(["--mca", "crs", "criu", "--mca", "btl", btl])
}

fn restart(kept: &Path, options: &[&str]) -> Outcome {
    let mut command = Command::new(installation().join("bin/mpirun"));
    command
        .arg("--restart")
        .arg(kept.join("saved"))
        .args(options);
    run(&mut command)
}

fn run(command: &mut Command) -> Outcome {
    let running = Running::start(command.stdin(Stdio::null()));
    let outcome = running.and_then(|running| running.wait(Duration::from_secs(100)));
    outcome.unwrap_or_else(|e| panic!("{e}"))
}

fn ctl(words: &[&str], job: &Started) -> Outcome {
    ctl_of(words, job.process())
}

/// Before the ranks are started or restored, mpirun has no control socket; a request then waits for at most 10 s.
fn ctl_of(words: &[&str], mpirun: u32) -> Outcome {
    loop {
        let mut command = Command::new(installation().join("bin/mpi-ctl"));
        let outcome = run(command.args(words).arg(mpirun.to_string()));
        let absent = ["is no mpirun of this user", "accepts no request"];
        let is_absent = absent.iter().any(|words| outcome.stderr.contains(words));
        if !is_absent || is_over(mpirun) {
            return outcome;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the numbers of the checkpoints in `kept/saved`, and whether each one is complete.
fn numbers(kept: &Path) -> Vec<(u64, bool)> {
    let entries = fs::read_dir(kept.join("saved")).into_iter().flatten();
    let numbers = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_complete = !name.contains('.');
        let number = name.split('.').next()?.parse().ok()?;
        Some((number, is_complete))
    });
    numbers.collect()
}

/// Returns true if a child of this process has ended.
fn is_over(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    matches!(state, None | Some('Z'))
}

#[track_caller]
fn result(outcome: &Outcome) -> String {
    let line = outcome
        .stdout
        .lines()
        .find(|line| line.starts_with("result "));
    let said = || {
        panic!(
            "no result: {}\n{}\n{}",
            outcome.status, outcome.stdout, outcome.stderr
        )
    };
    line.unwrap_or_else(said).to_owned()
}

/// Returns the numbers of the steps that a job has printed.
fn printed(text: &str) -> Vec<usize> {
    let steps = text.lines().filter_map(|line| line.strip_prefix("step "));
    steps.filter_map(|step| step.parse().ok()).collect()
}

/// The result and the file of a job that is not stopped.
fn undisturbed() -> (String, Vec<u8>) {
    let kept = folder();
    let outcome = plain(kept.path(), "file").succeeds();
    (result(&outcome), file(kept.path()))
}

fn file(kept: &Path) -> Vec<u8> {
    let path = kept.join("file");
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Stops a job after the step `at`, restarts it, and compares results, output and file.
fn stop_and_restart(btl: &str, at: usize, expected: &(String, Vec<u8>)) {
    let kept = folder();
    let started = job(kept.path(), btl).start();
    started.says(&format!("step {at}"));
    let stopped = ctl(&["checkpoint", "--stop"], &started);
    assert!(
        stopped.stdout.contains("; the job is ended"),
        "{}",
        stopped.stderr
    );
    let first = started.wait();
    assert_eq!(first.status.code(), Some(85), "{}", first.stderr);
    let second = restart(kept.path(), &[]);
    assert_eq!(result(&second), expected.0, "{}", second.stderr);
    let steps = [printed(&first.stdout), printed(&second.stdout)].concat();
    let all: Vec<usize> = (0..STEPS).collect();
    assert_eq!(steps, all, "each line is printed once");
    assert_eq!(file(kept.path()), expected.1);
}

#[test]
fn a_stopped_job_is_restored_with_each_line_printed_once() {
    if has_criu() {
        stop_and_restart("self,sm", 7, &undisturbed());
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn ten_jobs_over_each_transport_are_stopped_at_any_step_and_restored() {
    if !has_criu() {
        return;
    }
    let expected = undisturbed();
    for at in 0..10 {
        for btl in ["self,sm", "self,tcp"] {
            stop_and_restart(btl, at * 37 % (STEPS - 2), &expected);
        }
    }
}

#[test]
fn a_job_goes_on_after_a_checkpoint_and_is_restored_after_its_death() {
    if !has_criu() {
        return;
    }
    let (expected, kept) = (undisturbed(), folder());
    let options = ["--checkpoint-signal", "USR2", "--checkpoint-keep", "1"];
    let started = job(kept.path(), "self,sm").with(options).start();
    started.says("step 3");
    started.signal(Signal::USR2);
    started.complains("checkpoint 1 is in ", 1);
    let taken = ctl(&["checkpoint"], &started);
    let said = "checkpoint 2 is in ";
    assert!(taken.stdout.starts_with(said), "{}", taken.stderr);
    let status = ctl(&["status"], &started).stdout;
    assert!(
        status.contains(&format!("; the latest: {said}")),
        "{status}"
    );
    started.says("step 12");
    started.signal(Signal::KILL);
    assert_eq!(started.wait().status.code(), None);
    let grown = restart(kept.path(), &[]);
    assert_eq!(grown.status.code(), Some(2), "{}", grown.stdout);
    let sentence = "; --checkpoint-truncate cuts it";
    assert!(grown.stderr.contains(sentence), "{}", grown.stderr);
    let second = restart(kept.path(), &["--checkpoint-truncate"]);
    assert_eq!(result(&second), expected.0, "{}", second.stderr);
    assert_eq!(file(kept.path()), expected.1);
}

/// A restored job is saved and restored again.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_restored_job_is_saved_again() {
    if !has_criu() {
        return;
    }
    let (expected, kept) = (undisturbed(), folder());
    let started = job(kept.path(), "self,sm").start();
    started.says("step 3");
    let stopped = ctl(&["checkpoint", "--stop"], &started);
    assert!(stopped.status.success(), "{}", stopped.stderr);
    started.wait();
    for at in [10, 20, 30] {
        let mut command = Command::new(installation().join("bin/mpirun"));
        command.arg("--restart").arg(kept.path().join("saved"));
        let again = Running::start(command.stdin(Stdio::null()));
        let again = again.unwrap_or_else(|e| panic!("{e}"));
        while !again.stdout_so_far().contains(&format!("step {at}\n")) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let stopped = ctl_of(&["checkpoint", "--stop"], again.id());
        assert!(stopped.status.success(), "{}", stopped.stderr);
        let outcome = again.wait(Duration::from_secs(100));
        let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(outcome.status.code(), Some(85), "{}", outcome.stderr);
    }
    assert_eq!(result(&restart(kept.path(), &[])), expected.0);
    assert_eq!(file(kept.path()), expected.1);
}

/// CRIU is a script that begins to write images and fails or dies.
fn disturbed_dump(end: &str) -> (Outcome, Outcome, PathBuf, TempDir) {
    let kept = folder();
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    let disturbed = format!(
        "case \"$*\" in *--leave-running*) test -e {0}/saved/1 && {{ echo x > $5/core-1.img; {end}; }};; esac\nexec {real} \"$@\"",
        kept.path().display()
    );
    let script = script(kept.path(), &disturbed);
    let started = job(kept.path(), "self,sm").env(PROGRAM, &script).start();
    started.says("step 2");
    assert!(ctl(&["checkpoint"], &started).status.success());
    let failed = ctl(&["checkpoint"], &started);
    let outcome = started.wait();
    let saved = kept.path().join("saved");
    assert!(saved.join("1/manifest").is_file() && !saved.join("2.tmp").exists());
    (failed, outcome, saved, kept)
}

#[test]
fn a_criu_that_fails_leaves_the_checkpoint_before_and_the_job_goes_on() {
    if !has_criu() {
        return;
    }
    let (failed, outcome, ..) = disturbed_dump("exit 3");
    let sentence =
        "no checkpoint was taken: CRIU has failed to dump the job: it has ended with status 3";
    assert!(failed.stderr.contains(sentence), "{}", failed.stderr);
    assert!(outcome.status.success(), "{}", outcome.stderr);
    assert_eq!(printed(&outcome.stdout), (0..STEPS).collect::<Vec<_>>());
}

/// A killed CRIU may have left changes in the processes.
#[test]
fn a_criu_that_is_killed_ends_the_job_and_leaves_the_checkpoint_before() {
    if !has_criu() {
        return;
    }
    let (failed, outcome, saved, kept) = disturbed_dump("kill -9 $$");
    let sentence =
        "no checkpoint was taken: CRIU was killed by SIGKILL before it could dump the job (";
    assert!(failed.stderr.contains(sentence), "{}", failed.stderr);
    assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stderr);
    let end = "; the processes may be damaged, so the job is ended";
    assert!(outcome.stderr.contains(end), "{}", outcome.stderr);
    let again = restart(kept.path(), &["--checkpoint-truncate"]);
    assert_eq!(result(&again), undisturbed().0, "{}", again.stderr);
    assert!(!saved.join("2").exists());
}

/// A script stands for CRIU, and waits while `mpi-ctl` asks for the state of the job, and for another checkpoint.
#[test]
fn mpi_ctl_is_answered_while_the_job_is_saved() {
    let kept = folder();
    let here = kept.path().display().to_string();
    let waits = format!(
        "case \"$*\" in --version) echo Version: 4.2;; *--leave-running*) touch {here}/saves\n\
         for i in $(seq 10000); do test -e {here}/go && break; sleep 0.01; done;; esac"
    );
    let criu = script(kept.path(), &waits);
    let started = job(kept.path(), "self,sm").env(PROGRAM, criu).start();
    started.says("step 2");
    let asks = |words: &str| {
        let mut command = Command::new(installation().join("bin/mpi-ctl"));
        let command = command
            .args(words.split(' '))
            .arg(started.process().to_string());
        let running = Running::start(command.stdin(Stdio::null()));
        running.unwrap_or_else(|e| panic!("{e}"))
    };
    let ended = |running: Running| {
        let outcome = running.wait(Duration::from_secs(100));
        outcome.unwrap_or_else(|e| panic!("{e}"))
    };
    let taken = asks("checkpoint");
    let begun = Instant::now();
    while !kept.path().join("saves").exists() {
        let is_early = begun.elapsed() < Duration::from_secs(100);
        assert!(is_early, "no checkpoint was begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = asks("checkpoint");
    let status = ended(asks("status"));
    let words = ["rank 1 (", ": one is being taken since "];
    let is_answered = words.iter().all(|words| status.stdout.contains(words));
    assert!(is_answered, "{}{}", status.stdout, status.stderr);
    let hang = ended(asks("hang"));
    let later = "mpirun prints the report after the checkpoint\n";
    assert_eq!(hang.stdout, later, "{}", hang.stderr);
    let stop = asks("checkpoint --stop");
    fs::write(kept.path().join("go"), "").expect("written");
    let taken = ended(taken);
    assert!(taken.status.success(), "{}", taken.stderr);
    // The second request gets the outcome of the first one, or that of a checkpoint of its own if it came later.
    let second = ended(second);
    assert!(second.status.success(), "{}", second.stderr);
    // The job goes on after the first checkpoint, so the request to stop is for another one.
    let stop = ended(stop);
    assert!(stop.status.success(), "{}", stop.stderr);
    assert!(
        stop.stdout.ends_with("; the job is ended\n"),
        "{}",
        stop.stdout
    );
    let outcome = started.wait();
    assert_eq!(outcome.status.code(), Some(85), "{}", outcome.stderr);
}

/// Threads are bound to the processors that they had, by mpirun or by the program.
#[test]
fn threads_are_bound_to_their_processors_after_a_restart() {
    if !has_criu() {
        return;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if !needs(cores > 1, "two processors") {
        return;
    }
    let kept = folder();
    let started = job(kept.path(), "self,sm")
        .with(["--bind-to", "core"])
        .start();
    started.says("step 3");
    let before = processors_of("images", started.process());
    assert_eq!(before.len(), 2, "{before:?}");
    assert!(ctl(&["checkpoint", "--stop"], &started).status.success());
    started.wait();
    let mut command = Command::new(installation().join("bin/mpirun"));
    command.arg("--restart").arg(kept.path().join("saved"));
    let again = Running::start(command.stdin(Stdio::null()));
    let again = again.unwrap_or_else(|e| panic!("{e}"));
    while !again.stdout_so_far().contains("step 20\n") {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(processors_of("images", again.id()), before);
    let outcome = again.wait(Duration::from_secs(100));
    let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(result(&outcome), undisturbed().0);
}

/// Returns the bindings of all threads of the programs with this name below mpirun, each one once.
fn processors_of(name: &str, mpirun: u32) -> BTreeSet<String> {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let (mut open, mut found) = (vec![mpirun.to_string()], BTreeSet::new());
    while let Some(pid) = open.pop() {
        let is_named = read(format!("/proc/{pid}/comm")).trim() == name;
        for task in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let task = task.path().display().to_string();
            let children = read(format!("{task}/children"));
            open.extend(children.split_whitespace().map(str::to_owned));
            let status = read(format!("{task}/status"));
            let allowed = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            found.extend(
                allowed
                    .filter(|_| is_named)
                    .map(|list| list.trim().to_owned()),
            );
        }
    }
    found
}

/// Writes an executable script that stands for CRIU.
fn script(folder: &Path, commands: &str) -> PathBuf {
    let path = folder.join("criu");
    bounded::write_program(&path, &format!("#!/bin/sh\n{commands}\n")).expect("written");
    path
}

#[test]
fn what_cannot_work_is_refused_in_one_sentence_before_anything_is_written() {
    let kept = folder();
    let debian = script(kept.path(), "echo Version: 3.17.1")
        .display()
        .to_string();
    let other = kept.path().join("other");
    fs::create_dir(&other).expect("made");
    let new = script(&other, "echo Version: 4.2.1").display().to_string();
    let nothing = kept.path().join("nothing").display().to_string();
    let hello = compile("hello").display().to_string();
    let dir = kept.path().join("saved").display().to_string();
    let cases: [(&str, &[&str], &str); 5] = [
        (
            &debian,
            &[],
            "/criu is 3.17.1, which does not start on Linux 6.13 and later (its memory layout of the vDSO is older)\n",
        ),
        (
            &nothing,
            &[],
            "checkpoints of processes need CRIU 4.2 or later, and there is no program ",
        ),
        (
            &new,
            &["--record", &nothing],
            "--record or --replay and checkpoints exclude each other",
        ),
        (
            &new,
            &["--mca", "coll_hwbarr_port", "/dev/parport0"],
            "the job uses the hardware barrier's port /dev/parport0, and checkpoints of processes cannot contain it",
        ),
        (&new, &["--restart", &nothing], "there is no checkpoint in "),
    ];
    for (criu, options, sentence) in cases {
        let mut command = Command::new(installation().join("bin/mpirun"));
        command.args(["--checkpoint-dir", &dir, "--mca", "crs", "criu"]);
        command.args(["--mca", "crs_criu_program", criu]);
        let outcome = run(command.args(options).arg(&hello));
        assert_eq!(outcome.status.code(), Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
        assert_eq!(
            outcome.stderr.matches('\n').count(),
            1,
            "{}",
            outcome.stderr
        );
        assert!(!Path::new(&dir).exists(), "{sentence}");
    }
}

/// The trial dump fails before the job starts, and its first error is told.
#[test]
fn a_trial_dump_that_fails_is_told_with_its_first_error() {
    let kept = folder();
    let fails = "case $1 in --version) echo Version: 4.2;; *) echo '(00.1) Error (criu/x.c:1): no ptrace here' > $7; exit 1;; esac";
    let fails = script(kept.path(), fails).display().to_string();
    let outcome = job(kept.path(), "self,sm").env(PROGRAM, fails).run();
    if rustix::process::geteuid().is_root() {
        assert_eq!(outcome.status.code(), Some(2), "{}", outcome.stdout);
        let sentence = "CRIU has failed to dump a trial process for the job: no ptrace here";
        assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    }
    assert_eq!(outcome.stdout, "");
    let made: Vec<_> = fs::read_dir(kept.path().join("saved"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(made.iter().all(|name| name == "criu-probe.log"), "{made:?}");
}
