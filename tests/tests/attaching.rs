//! Tests of debugger support: mpirun's table of a job's processes (MPIR), and a rank's message queues.

use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tests::{Job, compile, installation, needs};
use xtask::process;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs gdb with these commands and without the user's settings.
fn gdb(commands: &[&str], rest: &[&str]) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off"]);
    gdb.args(commands.iter().flat_map(|command| ["-ex", command]));
    gdb.args(rest);
    let outcome = process::output(&mut gdb, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    format!("{}\n{}", outcome.stdout, outcome.stderr)
}

fn has_gdb() -> bool {
    needs(Path::new("/usr/bin/gdb").exists(), "gdb")
}

fn hung() -> Job {
    Job::of("hung_queues")
        .ranks(2)
        .with(["--end-dead", "no", "--timeout", "60"])
}

#[test]
fn a_debugger_attaches_to_mpirun_and_finds_the_ranks_of_a_hung_job() {
    if !has_gdb() {
        return;
    }
    let job = hung().start();
    let mut ranks = job.ready(2);
    let mpirun = job.process().to_string();
    let shown = gdb(
        &[
            "print MPIR_proctable_size",
            "print MPIR_debug_state",
            "print MPIR_proctable[0]@2",
            "print (long)&MPIR_i_am_starter != 0",
            "detach",
        ],
        &["-p", &mpirun],
    );
    for line in ["$1 = 2", "$2 = 1", "$4 = 1"] {
        assert!(shown.lines().any(|l| l == line), "no {line:?} in:\n{shown}");
    }
    let pids = shown.split("pid = ").skip(1);
    let pids = pids.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let mut pids: Vec<i32> = pids.filter_map(|pid| pid.parse().ok()).collect();
    pids.sort_unstable();
    ranks.sort_unstable();
    assert_eq!(pids, ranks, "{shown}");
    let program = format!("\"{}\"", compile("hung_queues").display());
    assert_eq!(shown.matches(&program).count(), 2, "{program}:\n{shown}");
    job.signal(Signal::TERM);
    job.wait();
}

#[test]
fn ranks_wait_in_mpi_init_until_the_debugger_that_started_mpirun_has_seen_them() {
    if !has_gdb() {
        return;
    }
    let mpirun = installation().join("bin/mpirun");
    let program = compile("hello");
    // While mpirun is stopped in MPIR_Breakpoint, no rank can complete MPI_Init or print.
    let shown = gdb(
        &[
            "break main",
            "run",
            "delete 1",
            // mpirun is a Rust program, but its process table has C types.
            "set language c",
            "set variable MPIR_being_debugged = 1",
            "break MPIR_Breakpoint",
            "continue",
            "shell sleep 0.3",
            "print MPIR_proctable_size",
            "continue",
        ],
        &[
            "--args",
            &mpirun.display().to_string(),
            "-n",
            "2",
            &program.display().to_string(),
        ],
    );
    let (before, after) = shown
        .split_once("$1 = 2")
        .unwrap_or_else(|| panic!("no table in:\n{shown}"));
    assert!(!before.contains("all claims"), "{shown}");
    assert!(after.contains("all claims of hello hold"), "{shown}");
}

#[test]
fn a_rank_under_gdb_waits_at_main_in_a_pane_until_the_user_continues_it() {
    if !has_gdb() || !needs(Path::new("/usr/bin/tmux").exists(), "tmux") {
        return;
    }
    // The test uses its own tmux server.
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let tmux = |arguments: &[&str]| {
        let mut tmux = Command::new("tmux");
        tmux.args(arguments).env("TMUX_TMPDIR", folder.path());
        process::output(&mut tmux, LIMIT).map_or(String::new(), |outcome| outcome.stdout)
    };
    let job = Job::of("hello").ranks(2).with(["--gdb=1"]);
    let job = job.env("TMUX_TMPDIR", folder.path()).start();
    job.complains("each rank of 1 waits at main in a gdb", 1);
    let begin = Instant::now();
    while !tmux(&["capture-pane", "-p"]).contains("(rank 1)") {
        assert!(begin.elapsed() < LIMIT, "no prompt of gdb");
        std::thread::sleep(Duration::from_millis(50));
    }
    tmux(&["send-keys", "continue", "Enter", "quit", "Enter"]);
    let outcome = job.wait();
    assert!(outcome.status.success(), "{}", outcome.stderr);
    assert!(
        outcome
            .stdout
            .contains("all claims of hello hold on 2 ranks")
    );
}

#[test]
fn the_queues_of_a_hung_rank_are_shown_by_the_library_that_it_names() {
    let lanes = ["--mca", "threads_lanes", "4"];
    for job in [hung(), hung().arg("threads").with(lanes)] {
        shows_its_queues(job);
    }
}

fn shows_its_queues(job: Job) {
    let debugger = compile("queue_debugger");
    let job = job.start();
    job.ready(2);
    let rank = job.says("rank 0 is ");
    let begin = Instant::now();
    let expected = "\
MPI_COMM_WORLD: rank 0 of 2, members 0 1
  send to 1 (1 in the job), tag 33, 1048576 bytes
  receive from 1 (1 in the job), tag 32, 40 bytes
  unexpected from 1 (1 in the job), tag 30, 4 bytes
MPI_COMM_SELF: rank 0 of 1, members 0
backwards: rank 1 of 2, members 1 0
  receive from -1 (-1 in the job), tag any, 20 bytes
first: rank 1 of 2, members 1 0
  unexpected from 0 (1 in the job), tag 34, 4 bytes
second: rank 1 of 2, members 1 0
  unexpected from 0 (1 in the job), tag 34, 4 bytes
";
    // The rank prints its line first, and publishes its queues a moment later, before it sleeps in a wait.
    loop {
        let mut command = Command::new(&debugger);
        let shown = process::output(command.arg(&rank), LIMIT);
        if shown.as_ref().is_ok_and(|shown| shown.stdout == expected) {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{shown:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    job.signal(Signal::TERM);
    job.wait();
}

#[test]
fn the_failure_of_a_rank_is_shown_to_the_debugger_that_started_mpirun() {
    if !has_gdb() {
        return;
    }
    let mpirun = installation().join("bin/mpirun");
    let shown = gdb(
        &[
            "break main",
            "run",
            "delete 1",
            "set language c",
            "set variable MPIR_being_debugged = 1",
            "break MPIR_Breakpoint",
            "continue",
            "print MPIR_debug_state",
            "continue",
            "print MPIR_debug_state",
            "print MPIR_debug_abort_string",
            "continue",
        ],
        &[
            "--args",
            &mpirun.display().to_string(),
            "-n",
            "2",
            "sh",
            "-c",
            "exit 3",
        ],
    );
    for line in ["$1 = 1", "$2 = 2", "the job ends because a rank has failed"] {
        assert!(shown.contains(line), "no {line:?} in:\n{shown}");
    }
}

/// rr needs performance counters, which virtual machines often lack.
/// A script named `rr` shows how mpirun calls it.
#[test]
fn a_rank_that_is_recorded_is_a_program_of_rr() {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
    let rr = folder.path().join("rr");
    let script = "#!/bin/sh\necho \"rank $PMI_RANK: rr $1\"\nshift\nexec \"$@\"\n";
    bounded::write_program(&rr, script).unwrap_or_else(|e| panic!("{e}"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.path().display());
    let job = Job::of("ring").ranks(2).with(["--rr=1"]).env("PATH", path);
    let outcome = job.succeeds();
    assert_eq!(
        outcome.stdout.matches(": rr record").count(),
        1,
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("rank 1: rr record"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("all claims of ring hold"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stderr.contains("ranks are recorded by rr"),
        "{}",
        outcome.stderr
    );
}
