//! Hosts that hang, fail or end while a job is saved or restored, and what mpirun answers meanwhile.

use super::hosts::{hosts, restart, sentence_of, stencil, with_another_criu_on_h1};
use super::stops::{nothing_is_left_of, stencil_of, stop, with_images};
use super::{PROGRAM, ctl, file, folder, has_criu, job, numbers, printed, result, script};
use super::{STEPS, undisturbed};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tests::{Job, Outcome, Started, compile, installation, leftovers};
use xtask::process::Running;

/// Waits until a file exists.
fn wait_for(path: &Path, started: &Started) {
    while !path.exists() {
        assert!(!super::is_over(started.process()), "the job has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks for something while the job runs.
fn asks(words: &[&str], started: &Started) -> Running {
    let mut command = Command::new(installation().join("bin/mpi-ctl"));
    let command = command.args(words).arg(started.process().to_string());
    let running = Running::start(command.stdin(Stdio::null()));
    running.unwrap_or_else(|e| panic!("{e}"))
}

fn ended(running: Running) -> Outcome {
    let outcome = running.wait(Duration::from_secs(100));
    outcome.unwrap_or_else(|e| panic!("{e}"))
}

/// Commands of a shell that are executed by CRIU on host h1 for a checkpoint, and not for the trial dump.
fn at_the_dump(commands: &str) -> String {
    format!("case \"$*\" in dump*.tmp/images*) {commands};; esac")
}

/// Starts a job on two hosts with this CRIU on h1, and waits until its ranks are connected.
fn started_with(kept: &Path, job: Job) -> Started {
    let started = job.start();
    // The first checkpoint is asked for when the ranks run.
    while !ctl(&["status"], &started).stdout.contains("rank 1") {
        assert!(!super::is_over(started.process()), "the job has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(numbers(kept), []);
    started
}

#[test]
fn a_rank_of_another_host_that_ended_before_it_was_saved_prevents_the_checkpoint() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let kept = folder();
    let dumps = kept.path().join("dumps");
    let kills = format!(
        "echo >>{}; kill -9 $(cat /proc/$3/task/$3/children)",
        dumps.display()
    );
    let job = with_another_criu_on_h1(kept.path(), &hosts, &at_the_dump(&kills));
    let started = started_with(kept.path(), job);
    let taken = ctl(&["checkpoint"], &started);
    let sentence = " of the job ended while the job was saved";
    let host = "no checkpoint was taken: on h1: process ";
    assert!(taken.stderr.contains(host), "{}", taken.stderr);
    assert!(taken.stderr.contains(sentence), "{}", taken.stderr);
    let outcome = started.wait_for_processes(Duration::from_secs(20));
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    assert_eq!(numbers(kept.path()), []);
    let dumps = fs::read_to_string(dumps).expect("dumps");
    assert_eq!(dumps.lines().count(), 1, "a repetition is of no use");
}

#[test]
fn an_error_that_lasts_is_met_once_and_one_that_passes_is_tried_again() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let expected = result(&stencil(&hosts).succeeds());
    for (error, taken, count) in [
        ("img: Can't write: No space left on device", false, 1),
        ("epoll: Escaped/closed fd descriptor 7 on pid 9", true, 2),
    ] {
        let kept = folder();
        let dumps = kept.path().join("dumps");
        let dumps = dumps.display();
        // The second attempt succeeds.
        let fails = format!(
            "echo >>{dumps}; if [ $(wc -l <{dumps}) = 1 ]; then echo \"Error (x): {error}\" >$7; exit 1; fi"
        );
        let job = with_another_criu_on_h1(kept.path(), &hosts, &at_the_dump(&fails));
        let started = started_with(kept.path(), job);
        let said = ctl(&["checkpoint"], &started);
        assert_eq!(
            said.status.success(),
            taken,
            "{}{}",
            said.stdout,
            said.stderr
        );
        let dumps = fs::read_to_string(kept.path().join("dumps")).expect("dumps");
        assert_eq!(dumps.lines().count(), count, "{error}");
        let outcome = started.wait();
        assert_eq!(result(&outcome), expected, "{}", outcome.stderr);
    }
}

#[test]
fn a_criu_that_hangs_on_another_host_is_killed_after_the_time_limit() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let kept = folder();
    let job = with_another_criu_on_h1(kept.path(), &hosts, &at_the_dump("sleep 1000"));
    let started = started_with(kept.path(), job.with(["--mca", "crs_criu_limit", "500ms"]));
    let taken = ctl(&["checkpoint"], &started);
    let sentence = "no checkpoint was taken: on h1: CRIU took more than 0.5 s to dump the job (";
    assert!(taken.stderr.contains(sentence), "{}", taken.stderr);
    let mark = started.mark().to_owned();
    let outcome = started.wait_for_processes(Duration::from_secs(20));
    assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stderr);
    sentence_of(
        &outcome,
        "the processes may be damaged, so the job is ended",
    );
    assert_eq!(numbers(kept.path()), []);
    nothing_is_left_of(&mark, kept.path());
}

/// The guard of the daemon on h1 hangs. Its late messages must not complete the checkpoint.
#[test]
fn a_host_that_hangs_while_it_is_saved_is_given_up_with_its_name() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let kept = folder();
    // CRIU's parent is the process that watches it, and the guard is the parent of that one.
    let guard = "$(sed 's/.*) . \\([0-9]*\\) .*/\\1/' /proc/$PPID/stat)";
    let hangs = at_the_dump(&format!("kill -STOP {guard}; sleep 1000"));
    let job = with_another_criu_on_h1(kept.path(), &hosts, &hangs);
    // Hosts beside a large load are not that late.
    let started = started_with(kept.path(), job.with(["--mca", "mpirun_silence", "5s"]));
    let taken = ctl(&["checkpoint"], &started);
    let sentence = "no checkpoint was taken: on h1: it has sent nothing for 5 s";
    assert!(taken.stderr.contains(sentence), "{}", taken.stderr);
    let outcome = started.wait_for_processes(Duration::from_secs(20));
    assert!(!outcome.status.success(), "{}", outcome.stdout);
    sentence_of(
        &outcome,
        " is lost with its host h1: it has sent nothing for 5 s",
    );
    // The folder that the host may still write to is not that of another checkpoint.
    assert_eq!(numbers(kept.path()), [(1, false)]);
}

#[test]
fn mpi_ctl_is_answered_and_a_signal_ends_the_job_while_a_host_hangs_in_its_dump() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let kept = folder();
    let hangs = kept.path().join("hangs");
    let commands = at_the_dump(&format!("touch {}; sleep 1000", hangs.display()));
    let job = with_another_criu_on_h1(kept.path(), &hosts, &commands);
    let started = started_with(kept.path(), job);
    let taken = asks(&["checkpoint"], &started);
    wait_for(&hangs, &started);
    let second = asks(&["checkpoint"], &started);
    // The dump on h0 takes some time.
    let status = loop {
        let status = ended(asks(&["status"], &started)).stdout;
        if status.contains("waits for h1\n") {
            break status;
        }
    };
    assert!(status.contains("rank 1 ("), "{status}");
    let sentence = ": one is being taken since ";
    assert!(status.contains(sentence), "{status}");
    let stopped = ended(asks(&["stop"], &started));
    assert_eq!(
        stopped.stdout, "the job is asked to end\n",
        "{}",
        stopped.stderr
    );
    // A second signal ends the wait for the dump.
    started.signal(Signal::TERM);
    for asked in [taken, second] {
        let why = ended(asked).stderr;
        let sentence = "no checkpoint was taken: a signal ends the job";
        assert!(why.contains(sentence), "{why}");
    }
    let mark = started.mark().to_owned();
    let outcome = started.wait_for_processes(Duration::from_secs(20));
    assert_eq!(outcome.status.code(), Some(128 + 15), "{}", outcome.stderr);
    nothing_is_left_of(&mark, kept.path());
}

/// A dump that ends soon after the signal leaves the ranks as they were, and they get the signal.
#[test]
fn ranks_get_the_signal_that_arrives_during_a_dump() {
    if !has_criu() {
        return;
    }
    let kept = folder();
    let dumps = kept.path().join("dumps");
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    let waits = format!(
        "case \"$*\" in dump*.tmp/images*) touch {0}; while ! test -e {0}.go; do sleep 0.01; done;; esac\nexec {real} \"$@\"",
        dumps.display()
    );
    let started = job(kept.path(), "self,sm").env(PROGRAM, script(kept.path(), &waits));
    let started = started.start();
    started.says("step 2");
    let taken = asks(&["checkpoint"], &started);
    wait_for(&dumps, &started);
    started.signal(Signal::TERM);
    fs::write(kept.path().join("dumps.go"), "").expect("written");
    let why = ended(taken).stderr;
    let sentence = "no checkpoint was taken: a signal ends the job";
    assert!(why.contains(sentence), "{why}");
    let outcome = started.wait();
    assert_eq!(outcome.status.code(), Some(128 + 15), "{}", outcome.stderr);
    assert_eq!(numbers(kept.path()), []);
}

/// SIGHUP is the signal that requests a checkpoint, and by default one that ends the job.
#[test]
fn a_second_request_by_signal_does_not_end_the_present_checkpoint() {
    if !has_criu() {
        return;
    }
    let (expected, kept) = (undisturbed(), folder());
    let dumps = kept.path().join("dumps");
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    let waits = format!(
        "case \"$*\" in dump*.tmp/images*) touch {0}; while ! test -e {0}.go; do sleep 0.01; done;; esac\nexec {real} \"$@\"",
        dumps.display()
    );
    let job = job(kept.path(), "self,sm").with(["--checkpoint-signal", "HUP"]);
    let started = job.env(PROGRAM, script(kept.path(), &waits)).start();
    started.says("step 2");
    started.signal(Signal::HUP);
    wait_for(&dumps, &started);
    started.signal(Signal::HUP);
    fs::write(kept.path().join("dumps.go"), "").expect("written");
    let outcome = started.wait();
    sentence_of(&outcome, "checkpoint 1 is in ");
    assert_eq!(result(&outcome), expected.0, "{}", outcome.stderr);
    assert_eq!(numbers(kept.path()), [(1, true)]);
}

/// CRIU is a script that does not replace itself by CRIU. The restored launcher would be its child, and die with it.
#[test]
fn a_script_that_waits_for_criu_is_refused_in_a_restart_on_several_hosts() {
    let Some(first) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    let (expected, kept) = (result(&stencil(&first).succeeds()), folder());
    let waits = script(kept.path(), &format!("{real} \"$@\"\nexit $?"));
    let started = with_images(stencil(&first), kept.path())
        .env(PROGRAM, &waits)
        .start();
    std::thread::sleep(Duration::from_millis(300));
    stop(&started);
    assert_eq!(started.wait().status.code(), Some(85));
    drop(first);
    let again = hosts(2).expect("hosts as before");
    let refused = restart(kept.path(), &again).env(PROGRAM, &waits).run();
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    sentence_of(
        &refused,
        "the script that runs CRIU must replace itself by CRIU (exec)",
    );
    let again = restart(kept.path(), &again).run();
    assert_eq!(result(&again), expected, "{}", again.stderr);
}

#[test]
fn files_are_cut_only_after_all_hosts_have_agreed_to_the_restart() {
    let Some(first) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let kept = folder();
    let path = kept.path().join("file");
    let steps = |hosts: &tests::hosts::Hosts, name: &str| {
        let job = hosts.remote_job(&compile("images"), 1);
        job.arg("40").arg("20000").arg(kept.path().join(name))
    };
    let expected = result(&steps(&first, "plain").succeeds());
    let started = with_images(steps(&first, "file"), kept.path()).start();
    started.says("step 3");
    let taken = ctl(&["checkpoint"], &started);
    assert!(taken.status.success(), "{}", taken.stderr);
    started.says("step 12");
    started.signal(Signal::KILL);
    started.wait_for_processes(Duration::from_secs(20));
    drop(first);
    let again = hosts(2).expect("hosts as before");
    let grown = fs::metadata(&path).expect("a file").len();
    // The CRIU of h1 is too old for the restart.
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    let old = "if [ \"$H1\" ] && test $1 = --version; then echo Version: 3.17.1; exit; fi";
    let old = script(kept.path(), &format!("{old}\nexec {real} \"$@\""));
    let agent = super::hosts::agent_that_marks_h1(kept.path(), &again);
    let mpirun = installation().join("bin/mpirun");
    let refused = Job::command(&mpirun).limit(100).arg("--restart");
    let refused = refused
        .arg(kept.path().join("saved"))
        .arg("--checkpoint-truncate");
    let refused = refused.arg("--launch-agent").arg(&agent);
    let refused = refused.env(PROGRAM, &old).run();
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    sentence_of(
        &refused,
        "the job cannot be restarted: on h1: checkpoints of processes need CRIU",
    );
    assert_eq!(
        fs::metadata(&path).expect("a file").len(),
        grown,
        "the file is as it was"
    );
    let again = restart(kept.path(), &again)
        .arg("--checkpoint-truncate")
        .run();
    assert_eq!(result(&again), expected, "{}", again.stderr);
    let lines = |name: &str| fs::read(kept.path().join(name)).expect("a file");
    assert_eq!(lines("file"), lines("plain"));
}

#[test]
fn the_manifest_names_the_host_of_each_rank() {
    let Some(hosts) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let kept = folder();
    let started = with_images(stencil(&hosts), kept.path()).start();
    std::thread::sleep(Duration::from_millis(300));
    stop(&started);
    assert_eq!(started.wait().status.code(), Some(85));
    let manifest = fs::read_to_string(kept.path().join("saved/1/manifest")).expect("a manifest");
    let of_ranks = manifest.lines().filter(|line| line.starts_with("host "));
    assert_eq!(of_ranks.collect::<Vec<_>>(), ["host h0", "host h1"]);
}

/// Returns the states of the processes of a job whose command begins with this text.
fn states(mark: &str, command: &str) -> Vec<char> {
    let all = leftovers::processes(mark).into_iter();
    let ours = all.filter_map(|process| {
        let (pid, line) = process.split_once(' ')?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        line.starts_with(command).then_some(state)
    });
    ours.collect()
}

/// Each rank has a child that it has stopped.
#[test]
fn a_process_that_the_program_has_stopped_stays_so_after_a_checkpoint_and_after_a_restart() {
    if !has_criu() {
        return;
    }
    let (expected, kept) = (undisturbed(), folder());
    let by = kept.path().join("by");
    fs::create_dir_all(&by).expect("made");
    let by = script(
        &by,
        "sleep 7777 </dev/null >/dev/null 2>&1 &\nuntil grep -q sleep /proc/$!/cmdline; do :; done\nkill -STOP $!\nexec \"$@\"",
    );
    let dir = kept.path().join("saved");
    let job = Job::command(&by).under(&installation().join("bin/mpirun"));
    let job = job.with(["--checkpoint-dir".as_ref(), dir.as_os_str()]);
    let job = job.with(["--mca", "crs", "criu"]).ranks(2).limit(100);
    let job = job
        .arg(compile("images"))
        .arg(STEPS.to_string())
        .arg("20000");
    let started = job.arg(kept.path().join("file")).start();
    let mark = started.mark().to_owned();
    started.says("step 3");
    assert_eq!(states(&mark, "sleep 7777"), ['T', 'T']);
    let taken = ctl(&["checkpoint"], &started);
    assert!(taken.status.success(), "{}", taken.stderr);
    let step = printed_so_far(&started) + 2;
    started.says(&format!("step {step}"));
    assert_eq!(states(&mark, "sleep 7777"), ['T', 'T']);
    stop(&started);
    let first = started.wait();
    assert_eq!(first.status.code(), Some(85), "{}", first.stderr);
    let mpirun = installation().join("bin/mpirun");
    let again = Job::command(&mpirun).limit(100).arg("--restart");
    let again = again.arg(kept.path().join("saved")).start();
    again.says("step 38");
    assert_eq!(states(&mark, "sleep 7777"), ['T', 'T']);
    let second = again.wait_for_processes(Duration::from_secs(20));
    assert_eq!(result(&second), expected.0, "{}", second.stderr);
    let steps = [printed(&first.stdout), printed(&second.stdout)].concat();
    assert_eq!(steps, (0..STEPS).collect::<Vec<_>>());
    assert_eq!(file(kept.path()), expected.1);
}

/// Returns the last step that a job has printed.
fn printed_so_far(started: &Started) -> usize {
    (0..STEPS)
        .take_while(|step| started.has_said(&format!("step {step}")))
        .last()
        .unwrap_or(0)
}

/// The stencil of two hosts is here as a job whose image has no open file.
#[test]
fn a_signal_ends_a_restart_that_hangs() {
    let Some(first) = hosts(2) else { return };
    if !has_criu() {
        return;
    }
    let (kept, job) = (
        folder(),
        stencil_of(first.remote_job(&compile("checkpoints"), 1)),
    );
    let started = with_images(job, kept.path()).start();
    std::thread::sleep(Duration::from_millis(300));
    stop(&started);
    assert_eq!(started.wait().status.code(), Some(85));
    drop(first);
    let again = hosts(2).expect("hosts as before");
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    let hangs = kept.path().join("hangs");
    let commands = format!(
        "case \"$*\" in restore*) touch {}; sleep 1000;; esac\nexec {real} \"$@\"",
        hangs.display()
    );
    let criu = script(kept.path(), &commands);
    let started = restart(kept.path(), &again).env(PROGRAM, criu).start();
    wait_for(&hangs, &started);
    started.signal(Signal::INT);
    started.signal(Signal::TERM);
    let mark = started.mark().to_owned();
    let outcome = started.wait_for_processes(Duration::from_secs(20));
    assert_eq!(outcome.status.code(), Some(128 + 15), "{}", outcome.stderr);
    nothing_is_left_of(&mark, kept.path());
}
