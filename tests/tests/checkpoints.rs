//! Tests of checkpoint and restart of jobs.
//!
//! Restarted jobs give bitwise the results of undisturbed ones. A job that is killed at any step of
//! writing leaves a complete checkpoint. Damaged or unsuitable checkpoints are refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tests::document::Document;
use tests::hosts::Hosts;
use tests::served::Server;
use tests::{Job, Outcome, compile, installation, killed_at, mpi4py_python};
use xtask::demo::{Report, simulator_arguments};
use xtask::process::{self, Running};

/// The number of steps of a short job, as argument of the program.
const STEPS: &str = "30";

fn folder() -> TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"))
}

/// Returns a job of `checkpoints.c` that saves checkpoints in `dir`.
/// `once` is the environment variable `CHECKPOINTS` of this run; a restart does not set it.
fn job(dir: &Path, ranks: u32, words: &[&str], once: &str) -> Job {
    let job = Job::of("checkpoints").ranks(ranks);
    let job = job.env("CHECKPOINTS", once);
    let job = job.with(["--checkpoint-dir".as_ref(), dir.as_os_str()]);
    words.iter().fold(job, |job, word| job.arg(word))
}

/// Restarts a job from the checkpoints in a folder, with these options of mpirun.
fn restart(dir: &Path, options: &[&str]) -> Outcome {
    let mut command = Command::new(installation().join("bin/mpirun"));
    command.arg("--restart").arg(dir).args(options);
    let outcome = ended(command.stdin(Stdio::null()));
    outcome.unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a command to its end; accepts any exit status.
fn ended(command: &mut Command) -> Result<Outcome, process::ProcessError> {
    Running::start(command)?.wait(Duration::from_secs(60))
}

/// Returns the line with the result that a job prints at its end.
#[track_caller]
fn result(outcome: &Outcome) -> String {
    let mut lines = outcome.stdout.lines();
    let line = lines.find(|line| line.starts_with("result "));
    let said = || {
        panic!(
            "no result: {}\n{}\n{}",
            outcome.status, outcome.stdout, outcome.stderr
        )
    };
    line.unwrap_or_else(said).to_owned()
}

/// Returns the result of a job that is neither checkpointed nor restarted.
fn undisturbed(ranks: u32, words: &[&str]) -> String {
    let job = Job::of("checkpoints").ranks(ranks);
    result(&words.iter().fold(job, |job, word| job.arg(word)).succeeds())
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_job_that_dies_is_taken_up_from_its_last_checkpoint_with_the_same_result() {
    for (how, ranks) in [("protect", 3), ("handlers", 2)] {
        let kept = folder();
        let expected = undisturbed(ranks, &[STEPS, how]);
        let once = "request 7 die 21";
        let outcome = job(kept.path(), ranks, &[STEPS, how], once).run();
        assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("checkpoint 1 is in "),
            "{}",
            outcome.stderr
        );
        assert_eq!(names(kept.path()), ["1", "lock"].map(String::from).into());
        let outcome = restart(kept.path(), &[]);
        assert_eq!(result(&outcome), expected);
        assert!(
            outcome
                .stderr
                .contains(&format!("of {ranks} ranks at point")),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains("restored 1"), "{}", outcome.stderr);
    }
}

#[test]
fn a_job_with_threads_a_window_and_a_file_is_stopped_and_taken_up_again() {
    let kept = folder();
    let plain = kept.path().join("plain").display().to_string();
    let file = kept.path().join("file").display().to_string();
    let words = |name| [STEPS, "handlers", "threads", "1", "file", name];
    let expected = undisturbed(2, &words(&plain));
    let dir = kept.path().join("saved");
    let outcome = job(&dir, 2, &words(&file), "request 11 die 17").run();
    assert!(!outcome.status.success());
    assert_eq!(result(&restart(&dir, &[])), expected);
    let read = |path: &str| fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    assert_eq!(read(&file), read(&plain));
}

/// A served board keeps no state of the job, and a restarted job creates a new simulated board.
/// So the restarted job sets up its hardware barrier again.
#[test]
fn a_job_with_hardware_barriers_is_taken_up_with_hardware_barriers() {
    let kept = folder();
    let dir = kept.path().join("saved");
    let words = [STEPS, "protect"];
    let expected = undisturbed(2, &words);
    let file = |name: &str| kept.path().join(name);
    let board = |run: &str| simulator_arguments(&file(&format!("{run}.vcd")), &file(run));
    let outcome = job(&dir, 2, &words, "request 11 die 17")
        .with(board("first"))
        .run();
    assert!(
        outcome.stderr.contains("checkpoint 1 is in "),
        "{}",
        outcome.stderr
    );
    let options = board("second");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let outcome = restart(&dir, &options);
    assert_eq!(result(&outcome), expected);
    let releases = Report::read(&file("second"))
        .unwrap_or_else(|e| panic!("{e}"))
        .releases;
    // Each of the steps 11 to 30 makes one barrier.
    assert!(releases >= 19, "{releases}");
}

/// A served board keeps the last level of the killed job, high or low: the restarted job must begin with this level, as after a reboot.
#[test]
fn a_job_on_a_served_board_is_taken_up_on_the_same_board() {
    let words = [STEPS, "protect"];
    let expected = undisturbed(2, &words);
    let server = Server::new(&["--nodes", "2"]);
    let board = ["--mca", "coll_hwbarr_port", &server.address];
    // With one barrier more, the last level is the opposite one.
    for last in ["17", "18"] {
        let kept = folder();
        let once = format!("request 11 die {last}");
        let before = server.releases();
        let outcome = job(kept.path(), 2, &words, &once).with(board).run();
        assert!(
            outcome.stderr.contains("checkpoint 1 is in "),
            "{}",
            outcome.stderr
        );
        let between = server.releases();
        assert!(between - before >= 11, "{before} and {between} releases");
        assert_eq!(result(&restart(kept.path(), &board)), expected);
        // Steps 11 to 30 have a barrier each.
        let after = server.releases();
        assert!(after - between >= 19, "{between} and {after} releases");
    }
}

#[test]
fn a_signal_and_mpi_ctl_take_checkpoints_and_the_job_stops_after_one() {
    let kept = folder();
    let words = [STEPS, "protect"];
    let expected = undisturbed(2, &words);
    let job = job(kept.path(), 2, &words, "stop 20");
    let options = ["--checkpoint-signal", "USR2", "--checkpoint-keep", "1"];
    let started = job.with(options).start();
    let ctl = |words: &[&str]| {
        let mut command = Command::new(installation().join("bin/mpi-ctl"));
        command.args(words).arg(started.process().to_string());
        let outcome = ended(command.stdin(Stdio::null()));
        outcome.unwrap_or_else(|e| panic!("{e}"))
    };
    // mpirun refuses a request until all ranks have completed MPI_Init, so the request is repeated.
    let mut taken = ctl(&["checkpoint"]);
    while !taken.status.success() {
        let early = [
            "has not called MPI_Init",
            "is no mpirun of this user",
            "accepts no request",
        ];
        let is_early = early.iter().any(|words| taken.stderr.contains(words));
        assert!(is_early, "{}", taken.stderr);
        taken = ctl(&["checkpoint"]);
    }
    assert!(
        taken.stdout.starts_with("checkpoint 1 is in "),
        "{}",
        taken.stdout
    );
    started.signal(Signal::USR2);
    started.complains("checkpoint 2 is in ", 1);
    let status = ctl(&["status"]).stdout;
    assert!(
        status.contains("rank 1 (") && status.contains(" runs\n"),
        "{status}"
    );
    assert!(
        status.contains("; the latest: checkpoint 2 is in "),
        "{status}"
    );
    let stopped = ctl(&["checkpoint", "--stop"]);
    assert!(
        stopped.stdout.contains("; the job is asked to stop"),
        "{}",
        stopped.stderr
    );
    let outcome = started.wait();
    assert_eq!(outcome.status.code(), Some(85), "{}", outcome.stderr);
    assert_eq!(names(kept.path()), ["3", "lock"].map(String::from).into());
    assert_eq!(result(&restart(kept.path(), &[])), expected);
}

#[test]
fn the_timer_takes_checkpoints() {
    let kept = folder();
    let job = job(kept.path(), 2, &[STEPS], "await 10");
    let outcome = job.with(["--checkpoint-every", "20ms"]).succeeds();
    assert!(
        outcome.stderr.contains("checkpoint 1 is in "),
        "{}",
        outcome.stderr
    );
    assert_eq!(result(&outcome), undisturbed(2, &[STEPS]));
}

/// Kills a job at each step of writing its second checkpoint, each time in a new run.
/// Each restart must print the result of an undisturbed job.
/// Returns, for each kill, the number of the checkpoint that the restart used.
fn kill_at_each_step(after: &[&str]) -> Vec<u64> {
    let expected = undisturbed(2, &[STEPS]);
    let (preload, first) = (killed_at(), folder());
    let outcome = job(first.path(), 2, &[STEPS], "request 3 die 9").run();
    assert!(!outcome.status.success());
    let mut taken = Vec::new();
    for at in 1..=40 {
        let kept = folder();
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(first.path().join("1")).arg(kept.path());
        process::output(&mut copy, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
        let killed = job(kept.path(), 2, &[STEPS], "request 12")
            .with(["--restart".as_ref(), kept.path().as_os_str()])
            .with(["-x", &format!("LD_PRELOAD={}", preload.display())])
            .with(["-x", &format!("KILLED_BELOW={}", kept.path().display())])
            .with(["-x", &format!("KILLED_AT={at}")])
            .with(after);
        if killed.run().status.success() {
            assert!(at > 10, "the job ends without a kill at step {at}");
            return taken;
        }
        let again = restart(kept.path(), &[]);
        assert_eq!(result(&again), expected, "killed at step {at}");
        taken.push(if again.stderr.contains("/2 of 2 ranks") {
            2
        } else {
            1
        });
    }
    panic!("more than 40 steps");
}

#[test]
fn a_kill_at_any_step_of_writing_leaves_the_checkpoint_before_or_the_new_one() {
    // Each kill comes before its step's system call; the last come after the checkpoint is renamed.
    let taken = kill_at_each_step(&[]);
    assert!(taken.contains(&1) && taken.contains(&2), "{taken:?}");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn two_hundred_kills_at_all_steps_of_writing_leave_a_whole_checkpoint() {
    let mut kills = 0;
    while kills < times("CHECKPOINT_KILLS", 200) as usize {
        kills += kill_at_each_step(&[]).len();
        kills += kill_at_each_step(&["-x", "KILLED_AFTER=1"]).len();
    }
}

#[test]
fn what_a_checkpoint_cannot_hold_is_refused_in_one_sentence_and_the_job_goes_on() {
    let expected = undisturbed(2, &[STEPS]);
    let cases = [
        (
            "1",
            "rank 1 has not received all messages: rank 0 has sent it a message with tag 9 and 4 bytes on MPI_COMM_WORLD",
        ),
        ("2", "rank 1 has an active receive from rank 0 with tag 9"),
        (
            "3",
            "rank 0 is at a point with a window of 2 processes, where it holds locks",
        ),
        // In this case a second thread is inside an MPI call.
        ("4", "rank 1 has an active receive from rank 0 with tag 9"),
    ];
    for (fault, sentence) in cases {
        let kept = folder();
        let once = format!("request 5 fault {fault}");
        let words: &[&str] = match fault {
            "4" => &[STEPS, "protect", "threads", "1"],
            _ => &[STEPS],
        };
        let outcome = job(kept.path(), 2, words, &once).succeeds();
        let sentence = format!("no checkpoint was taken: {sentence}");
        assert!(outcome.stderr.contains(&sentence), "{}", outcome.stderr);
        assert_eq!(result(&outcome), expected);
        assert_eq!(names(kept.path()), BTreeSet::new(), "nothing is written");
    }
}

#[test]
fn no_checkpoint_is_taken_while_a_job_that_this_one_has_spawned_lives() {
    let (kept, expected) = (folder(), undisturbed(2, &[STEPS]));
    let once = "request 5 fault 5";
    let outcome = job(kept.path(), 2, &[STEPS], once).succeeds();
    let sentence =
        "no checkpoint is taken: the job has spawned another one, and a checkpoint is of one job";
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    assert_eq!(result(&outcome), expected);
    assert_eq!(names(kept.path()), BTreeSet::new(), "nothing is written");
}

/// The two jobs have an mpirun each; a port connects them.
#[test]
fn no_checkpoint_is_taken_while_another_job_is_connected_by_a_port() {
    let (kept, expected) = (folder(), undisturbed(2, &[STEPS]));
    let port = kept.path().join("port").display().to_string();
    let dir = kept.path().join("saved");
    let words = [STEPS, "protect", "port", &port];
    let accepts = job(&dir, 2, &words, "request 5 fault 6").start();
    let connects = Job::of("checkpoints").ranks(2);
    let connects = connects.arg("1").arg("connects").arg("port").arg(&port);
    connects.succeeds();
    let outcome = accepts.wait();
    assert!(outcome.status.success(), "{}", outcome.stderr);
    let sentence = "no checkpoint was taken: rank 0 is connected with another job, and a checkpoint is of one job; MPI_Comm_disconnect comes before the point";
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    assert_eq!(result(&outcome), expected);
    assert_eq!(names(&dir), BTreeSet::new(), "nothing is written");
}

#[test]
fn jobs_and_folders_that_do_not_fit_are_refused_before_they_start() {
    let kept = folder();
    let dir = kept.path().display().to_string();
    let outcome = job(kept.path(), 2, &[STEPS], "request 5 die 9").run();
    assert!(!outcome.status.success());
    let hello = compile("hello").display().to_string();
    let program = compile("checkpoints").display().to_string();
    let changed = kept.path().join("changed/checkpoints");
    fs::create_dir(changed.parent().expect("a folder")).expect("made");
    bounded::copy_program(program.as_ref(), &changed).expect("copied");
    let mut longer = Command::new("sh");
    longer.args(["-c", "echo >>\"$1\"", "longer"]).arg(&changed);
    process::run(&mut longer).expect("appended");
    let changed = changed.display().to_string();
    let file = kept.path().join("lock").display().to_string();
    let elsewhere = folder();
    let recorded = elsewhere.path().display().to_string();
    let nothing = kept.path().join("nothing").display().to_string();
    let from = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let cases = [
        (
            from(&["-n", "3", "--restart", &dir]),
            "is of 2 ranks, and -n asks for 3; leave -n away, and choose any number of hosts",
        ),
        (
            from(&["-n", "3", "--restart", &dir, &program, STEPS]),
            "is of 2 ranks, and this job has 3; -n 2 restarts it, on any number of hosts",
        ),
        (
            from(&["-n", "2", "--restart", &dir, &hello]),
            "is of the program checkpoints, and this job runs hello; name a folder of its own for each program",
        ),
        (
            from(&["-n", "2", "--checkpoint-dir", &dir, &hello]),
            "is of the program checkpoints, and this job runs hello; name a folder of its own for each program",
        ),
        (
            from(&["-n", "2", "--restart", &dir, &changed]),
            "the file of the program checkpoints has changed since the checkpoint ",
        ),
        (
            from(&["-n", "2", "--restart", &dir, &program]),
            "leave the program away after --restart to repeat them",
        ),
        (
            from(&["--restart", &format!("{dir}@7")]),
            "/7 is not complete: its manifest cannot be read",
        ),
        (
            from(&["--restart", &nothing]),
            "/nothing cannot be read: No such file or directory",
        ),
        (
            from(&["--checkpoint-dir", &file, &hello]),
            "/lock cannot be made: File exists",
        ),
        (
            from(&["--checkpoint-dir", "/proc/1", &hello]),
            "the folder of checkpoints /proc/1 cannot be written to: ",
        ),
        (
            from(&["--checkpoint-every", "10min", &hello]),
            "--checkpoint-every needs the folder that checkpoints are written to: --checkpoint-dir DIR",
        ),
        (
            from(&["--record", &recorded, "--checkpoint-dir", &dir, &hello]),
            "--record or --replay and checkpoints exclude each other",
        ),
    ];
    for (words, sentence) in cases {
        let mut command = Command::new(installation().join("bin/mpirun"));
        let outcome = ended(command.args(&words).stdin(Stdio::null()));
        let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            outcome.status.code(),
            Some(2),
            "{words:?}\n{}",
            outcome.stderr
        );
        assert!(
            outcome.stderr.contains(sentence),
            "{words:?}: {sentence}\n{}",
            outcome.stderr
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
    assert_eq!(
        names(kept.path()),
        ["1", "changed", "lock"].map(String::from).into()
    );
}

#[test]
fn a_file_of_a_checkpoint_that_has_changed_ends_the_restart_with_its_name() {
    let kept = folder();
    let outcome = job(kept.path(), 2, &[STEPS], "request 5 die 9").run();
    assert!(!outcome.status.success());
    let path = kept.path().join("1/rank-1/protected");
    let mut bytes = fs::read(&path).expect("read");
    bytes[40] ^= 1;
    fs::write(&path, bytes).expect("written");
    let outcome = restart(kept.path(), &[]);
    assert!(!outcome.status.success());
    // Even if the rank with the intact file ends the job first, the message must name rank 1.
    let sentence = "rank 1 cannot begin from the checkpoint ";
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    // mpirun skips a truncated checkpoint before it starts the job.
    fs::write(&path, "").expect("written");
    let outcome = restart(kept.path(), &[]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(
        outcome
            .stderr
            .contains("there is no complete checkpoint in "),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_job_on_three_hosts_is_taken_up_on_two_and_on_one() {
    let Some(hosts) = Hosts::new(3) else { return };
    let hosts = hosts.network(0, &[1500]);
    let kept = folder();
    let expected = undisturbed(3, &[STEPS]);
    let program = compile("checkpoints");
    let first = hosts.remote_job(&program, 1).arg(STEPS);
    let first = first
        .env("CHECKPOINTS", "request 5 die 12")
        .with(["--checkpoint-dir".as_ref(), kept.path().as_os_str()]);
    let outcome = first.run();
    assert!(!outcome.status.success());
    assert!(
        outcome.stderr.contains("checkpoint 1 is in "),
        "{}",
        outcome.stderr
    );
    let agent = hosts.in_place_of_ssh().display().to_string();
    let two = ["--launch-agent", &agent, "--host", "h0:2,h1:1"];
    assert_eq!(result(&restart(kept.path(), &two)), expected);
    assert_eq!(result(&restart(kept.path(), &[])), expected);
}

/// Returns options of mpirun that let a Python program import the installation's module.
fn python_options() -> [String; 4] {
    let prefix = installation();
    let modules = prefix.join("share/portcullis/python");
    [
        "-x".into(),
        format!("PYTHONPATH={}", modules.display()),
        "-x".into(),
        format!("LD_LIBRARY_PATH={}", prefix.join("lib").display()),
    ]
}

/// Returns a folder with the page's Python program on checkpoints, the program's path, and a Python with mpi4py.
fn python_program() -> Option<(TempDir, PathBuf, PathBuf)> {
    let python = mpi4py_python()?;
    let kept = folder();
    let script = kept.path().join("steps.py");
    let text = Document::of("docs/checkpoint.md").file("steps.py");
    fs::write(&script, text).expect("written");
    Some((kept, script, python))
}

/// Runs a Python program with these options of mpirun, which also set its environment variables.
fn run_python(python: &Path, script: &Path, options: &[&str]) -> Outcome {
    let mut command = Command::new(installation().join("bin/mpirun"));
    command.args(["-n", "3"]).args(python_options());
    command.args(options).arg(python).arg(script);
    let outcome = ended(command.stdin(Stdio::null()));
    outcome.unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_python_program_is_taken_up_by_its_own_functions() {
    let Some((kept, script, python)) = python_program() else {
        return;
    };
    let dir = kept.path().join("saved").display().to_string();
    let with = ["--checkpoint-dir", &dir];
    let outcome = run_python(&python, &script, &[&with[..], &["-x", "FAIL=1"]].concat());
    assert_eq!(outcome.status.code(), Some(3), "{}", outcome.stderr);
    let options = python_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let outcome = restart(Path::new(&dir), &options);
    for rank in 0..3 {
        let line = format!("rank {rank} is taken up at step 5");
        assert!(
            outcome.stdout.contains(&line),
            "{}\n{}",
            outcome.stdout,
            outcome.stderr
        );
    }
    assert!(
        outcome.stdout.contains("the sum is 270\n"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn an_exception_in_a_python_function_refuses_the_checkpoint_and_the_job_goes_on() {
    let Some((kept, script, python)) = python_program() else {
        return;
    };
    let text = fs::read_to_string(&script).expect("read");
    let fails = "        raise OSError(\"no space\")\n";
    let text = text.replace("        json.dump(state, file)\n", fails);
    // Without its call of Abort the program only requests the checkpoint.
    let text = text.replace("        world.Abort(3)\n", "");
    fs::write(&script, text).expect("written");
    let dir = kept.path().join("saved").display().to_string();
    let options = ["--checkpoint-dir", &dir, "-x", "FAIL=1"];
    let outcome = run_python(&python, &script, &options);
    assert!(outcome.status.success(), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("the sum is 270\n"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stderr.contains("OSError: no space"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("no checkpoint was taken: "),
        "{}",
        outcome.stderr
    );
    assert_eq!(names(Path::new(&dir)), ["lock".to_owned()].into());
}

/// Returns the next number of a linear congruential generator.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *seed >> 33
}

/// Returns the number of the newest complete checkpoint in a folder; 0 if there is none.
fn newest_in(dir: &Path) -> u64 {
    let names = fs::read_dir(dir).into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.max().unwrap_or(0)
}

/// Kills and restarts a job at random moments until it completes.
/// Returns the job's result and the number of restarts.
/// At each start, `placed` gets a random number and adds options of mpirun that place the ranks.
fn interrupted(
    dir: &Path,
    job: &dyn Fn() -> Job,
    placed: &dyn Fn(Job, u64) -> Job,
    seed: &mut u64,
) -> (String, u32) {
    let (mut restarts, mut newest, mut vain) = (0, 0, 0);
    loop {
        let mut again = job().with(["--checkpoint-every", "30ms"]);
        if dir.is_dir() && names(dir).iter().any(|name| name.parse::<u64>().is_ok()) {
            again = again.with(["--restart".as_ref(), dir.as_os_str()]);
        }
        let started = placed(again, random(seed)).start();
        // On a machine where the start takes long, a job that is always killed before its next checkpoint would not
        // come to its end.
        std::thread::sleep(Duration::from_millis(
            100 + random(seed) % (300 + 100 * vain),
        ));
        started.signal(Signal::KILL);
        let outcome = started.wait_for_processes(Duration::from_secs(20));
        if outcome.stdout.contains("result ") {
            return (result(&outcome), restarts);
        }
        restarts += 1;
        let before = std::mem::replace(&mut newest, newest_in(dir));
        vain = if newest > before { 0 } else { vain + 1 };
        assert!(
            restarts < 400,
            "it does not come to its end: {}",
            outcome.stderr
        );
    }
}

/// Returns a job of `checkpoints.c` that pauses in each step, so that there is time to kill it.
fn slow(dir: &Path, ranks: u32, words: &[&str]) -> Job {
    job(dir, ranks, words, "pause 3000")
}

fn on_this_host(job: Job, _: u64) -> Job {
    job
}

/// Places the ranks of a restarted job on this host, on the same, fewer or other hosts, as a random number says.
/// Without the right to make hosts, all restarts are on this host.
struct Places {
    /// The hosts, and the command that reaches them.
    hosts: Option<(Hosts, String)>,
    lists: &'static [&'static str],
}

impl Places {
    /// `lists` are values of `--host` with h0, h1 and h2.
    fn new(lists: &'static [&'static str]) -> Places {
        let hosts = Hosts::new(3).map(|hosts| hosts.network(0, &[1500]));
        let hosts = hosts.map(|hosts| {
            let agent = hosts.in_place_of_ssh().display().to_string();
            (hosts, agent)
        });
        Places { hosts, lists }
    }

    fn place(&self, job: Job, number: u64) -> Job {
        let list = self.lists.get(number as usize % (self.lists.len() + 1));
        match (list, &self.hosts) {
            (Some(list), Some((_, agent))) => job.with(["--launch-agent", agent, "--host", list]),
            _ => job,
        }
    }
}

/// Places for three ranks and for two.
const THREE: &[&str] = &["h0:1,h1:1,h2:1", "h0:2,h1:1", "h2:1,h1:2", "h1:3"];
const TWO: &[&str] = &["h0:1,h1:1", "h2:1,h1:1", "h1:2"];

/// Returns the number that an environment variable sets.
fn times(variable: &str, otherwise: u32) -> u32 {
    let set = std::env::var(variable).ok();
    set.and_then(|set| set.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn a_job_that_is_killed_at_random_moments_comes_to_the_same_result() {
    let kept = folder();
    let words = ["100", "protect"];
    let expected = undisturbed(2, &words);
    let mut seed = 7;
    let job = || slow(kept.path(), 2, &words);
    let (found, _) = interrupted(kept.path(), &job, &on_this_host, &mut seed);
    assert_eq!(found, expected);
}

/// Kills jobs a hundred times in total; `job` creates each job in a new folder.
fn a_hundred_stops(
    job: &dyn Fn(&Path, &Path) -> Job,
    expected: &str,
    placed: &dyn Fn(Job, u64) -> Job,
) {
    let (mut seed, mut restarts) = (11, 0);
    while restarts < times("CHECKPOINT_STOPS", 100) {
        let kept = folder();
        let dir = kept.path().join("saved");
        let job = || job(&dir, kept.path());
        let (found, times) = interrupted(&dir, &job, placed, &mut seed);
        assert_eq!(found, expected, "after {restarts} and {times} stops");
        restarts += times;
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_stencil_that_is_killed_a_hundred_times_comes_to_the_same_result() {
    let words = ["200", "protect"];
    let expected = undisturbed(4, &words);
    let job = |dir: &Path, _: &Path| slow(dir, 4, &words);
    a_hundred_stops(&job, &expected, &on_this_host);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn windows_and_files_that_are_killed_a_hundred_times_come_to_the_same_result() {
    let expected = undisturbed(3, &["200", "handlers"]);
    let job = |dir: &Path, kept: &Path| {
        let file = kept.join("file").display().to_string();
        slow(dir, 3, &["200", "handlers", "file", &file])
    };
    let places = Places::new(THREE);
    a_hundred_stops(&job, &expected, &|job, number| places.place(job, number));
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn jobs_that_are_killed_a_hundred_times_come_to_the_same_result_on_the_same_fewer_and_other_hosts()
{
    let words = ["200", "protect"];
    let expected = undisturbed(3, &words);
    let job = |dir: &Path, _: &Path| slow(dir, 3, &words);
    let places = Places::new(THREE);
    a_hundred_stops(&job, &expected, &|job, number| places.place(job, number));
}

/// A Python program whose steps send messages, compute sums and broadcast from a changing root;
/// each rank saves its state in a file.
const WALK: &str = r#"
import json, os, time
from mpi4py import MPI
import portcullis_checkpoint as checkpoint

world = MPI.COMM_WORLD
state = {"step": 0, "here": world.rank + 1, "all": 0}

def save(folder):
    with open(os.path.join(folder, "state.json"), "w") as file:
        json.dump(state, file)

def load(folder):
    with open(os.path.join(folder, "state.json")) as file:
        state.update(json.load(file))

checkpoint.handlers(save, load)
while state["step"] < 200:
    checkpoint.point()
    up, down = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    came = world.sendrecv(state["here"], dest=up, source=down)
    state["here"] = (state["here"] * 31 + came * 17 + state["step"]) % 1000003
    state["all"] = (state["all"] * 7 + world.allreduce(state["here"])) % 1000003
    state["here"] += world.bcast(state["here"] % 5, root=state["step"] % world.size)
    state["step"] += 1
    if "SLOW" in os.environ:
        time.sleep(0.003)
if world.rank == 0:
    print(f"result {state['all']}", flush=True)
"#;

#[test]
#[ignore = "long: cargo xtask test --long"]
fn mpi4py_that_is_killed_a_hundred_times_comes_to_the_same_result() {
    let Some(python) = mpi4py_python() else {
        return;
    };
    let scripts = folder();
    let script = scripts.path().join("walk.py");
    fs::write(&script, WALK).expect("written");
    let plain = || {
        let job = Job::command(&python).under(&installation().join("bin/mpirun"));
        let job = job.with(python_options()).ranks(2);
        job.arg(script.display().to_string())
    };
    let expected = result(&plain().succeeds());
    let job = |dir: &Path, _: &Path| {
        let job = plain().env("SLOW", "1");
        job.with(["--checkpoint-dir".as_ref(), dir.as_os_str()])
    };
    let places = Places::new(TWO);
    a_hundred_stops(&job, &expected, &|job, number| places.place(job, number));
}
