//! Tests of `--with-ft ulfm`: ranks die, and the job continues with the other ranks.
//!
//! The ranks are shells that die in several ways;
//! `rte.rs` tests the notices that MPI programs receive.

mod common;

use common::{Done, Launch, kill};
use std::path::Path;

fn run(n: &str, script: &str) -> Done {
    Launch::new(&["--with-ft", "ulfm", "-n", n, "bash", "-c", script]).run()
}

/// A shell script prefix that speaks PMI-1 on descriptor 9.
const GREET: &str = "eval \"exec 9<&$PMI_FD\"; say() { printf \"cmd=$1\\n\" >&9; read -r answer <&9; }; \
     say 'init pmi_version=1 pmi_subversion=1';";

#[test]
fn a_killed_rank_is_named_and_the_others_go_on() {
    let done = run("3", "[ $PMI_RANK = 1 ] && kill -9 $$; sleep 0.2; echo done");
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\ndone\n"));
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert!(
        lines[0].contains("rank 1 (of 3; bash, pid ")
            && lines[0].ends_with(
                " was killed by signal 9 (SIGKILL). The job goes on without it (--with-ft ulfm)."
            ),
        "{}",
        done.stderr
    );
    assert_eq!(lines[1..], ["mpirun: 1 of 3 ranks was lost: 1"]);
}

#[test]
fn the_parameter_is_as_good_as_the_option() {
    let script = "[ $PMI_RANK = 0 ] && exit 3; sleep 0.2; echo $PORTCULLIS_FT";
    let done = Launch::new(&[
        "--mca",
        "mpi_ft_enable",
        "true",
        "-n",
        "2",
        "sh",
        "-c",
        script,
    ])
    .run();
    assert_eq!((done.code, done.stdout.as_str()), (0, "1\n"));
    assert!(
        done.stderr
            .contains("exited with status 3. The job goes on"),
        "{}",
        done.stderr
    );
    let off = ["--with-ft", "no", "--mca", "mpi_ft_enable", "true"];
    let args = [&off[..], &["-n", "2", "sh", "-c", script]].concat();
    let done = Launch::new(&args).run();
    assert_eq!((done.code, done.stdout.as_str()), (3, ""));
}

#[test]
fn without_survivors_the_status_is_that_of_the_first_loss() {
    let done = run("3", "sleep 0.$PMI_RANK; exit $((PMI_RANK + 5))");
    assert_eq!(done.code, 5, "{}", done.stderr);
    let last = done.stderr.lines().last();
    assert_eq!(last, Some("mpirun: 3 of 3 ranks were lost: 0, 1, 2"));
    let done = run("1", "exit 7");
    assert_eq!(done.code, 7);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    assert!(!done.stderr.contains("goes on"), "{}", done.stderr);
}

#[test]
fn a_survivor_that_ends_badly_after_finalize_gives_the_status() {
    let script = format!("[ $PMI_RANK = 0 ] && kill -9 $$; {GREET} say finalize; exit 4");
    let done = run("2", &script);
    assert_eq!(done.code, 4, "{}", done.stderr);
    assert!(
        done.stderr
            .contains("exited with status 4 after MPI_Finalize"),
        "{}",
        done.stderr
    );
}

#[test]
fn an_abort_ends_all_nevertheless() {
    let script = format!(
        "[ $PMI_RANK = 1 ] && kill -9 $$; [ $PMI_RANK = 2 ] || sleep 1000; \
         {GREET} sleep 0.1; printf 'cmd=abort exitcode=42\\n' >&9; sleep 1000"
    );
    let done = run("3", &script);
    assert_eq!(done.code, 42, "{}", done.stderr);
    assert!(
        done.stderr.contains("rank 2 (of 3;")
            && done.stderr.contains("aborted the job with code 42"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_rank_that_never_comes_to_a_barrier_does_not_hold_it() {
    // Rank 1 dies before the barrier, rank 2 while others wait, rank 3 after its `init`.
    let script = format!(
        "[ $PMI_RANK = 1 ] && exit 0; [ $PMI_RANK = 2 ] && sleep 0.1 && kill -9 $$; \
         {GREET} [ $PMI_RANK = 3 ] && exit 0; \
         say barrier_in; echo $answer; say barrier_in; echo $answer; say finalize"
    );
    let done = run("5", &script);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.stdout, "cmd=barrier_out rc=0\n".repeat(4));
    let said = |part: &str| assert!(done.stderr.contains(part), "{}", done.stderr);
    said("exited without calling MPI_Finalize. The job goes on");
    said("mpirun: 3 of 5 ranks were lost: 1, 2, 3");
}

#[test]
fn a_client_that_does_not_understand_deaths_is_not_notified() {
    let script = format!(
        "[ $PMI_RANK = 1 ] && sleep 0.1 && kill -9 $$; {GREET} sleep 0.3; say get_maxes; echo ${{answer%% *}}; say finalize"
    );
    let done = run("2", &script);
    assert_eq!((done.code, done.stdout.as_str()), (0, "cmd=maxes\n"));
}

#[test]
fn what_a_dead_rank_has_left_is_ended_with_it() {
    // The dead rank's child holds the pipe's write end, so rank 0 reads until the child is killed.
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let pipe = pipe.display();
    let script = format!(
        "if [ $PMI_RANK = 1 ]; then sleep 1000 >{pipe} & sleep 0.1; kill -9 $$; fi; \
         cat {pipe}; echo over"
    );
    let make = std::process::Command::new("mkfifo")
        .arg(pipe.to_string())
        .status();
    assert!(make.unwrap().success());
    let done = run("2", &script);
    assert_eq!((done.code, done.stdout.as_str()), (0, "over\n"));
}

#[test]
fn dead_ranks_are_reported_when_the_time_is_over() {
    let done = Launch::new(&[
        "--with-ft",
        "ulfm",
        "--timeout",
        "300ms",
        "-n",
        "3",
        "sh",
        "-c",
        "[ $PMI_RANK = 2 ] || kill -9 $$; sleep 1000",
    ])
    .run();
    assert_eq!(done.code, 124, "{}", done.stderr);
    let said = |part: &str| assert!(done.stderr.contains(part), "{}", done.stderr);
    said("the time limit of 0.3 s is over; rank 2 had not finished");
    said("ranks 0-1 are dead; each was killed by signal 9 (SIGKILL)");
}

#[test]
fn a_signal_ends_what_is_left() {
    let job = Launch::new(&[
        "--with-ft",
        "ulfm",
        "-n",
        "3",
        "sh",
        "-c",
        "echo $$; exec sleep 1000",
    ])
    .start(3);
    kill(job.lines[0].parse().unwrap(), libc::SIGKILL);
    job.signal_mpirun(libc::SIGTERM);
    assert_eq!(job.end().code, 143);
}

#[test]
fn mpirun_killed_leaves_nothing() {
    let job = Launch::new(&[
        "--with-ft",
        "ulfm",
        "-n",
        "3",
        "sh",
        "-c",
        "echo $$; exec sleep 1000",
    ])
    .start(3);
    kill(job.lines[0].parse().unwrap(), libc::SIGKILL);
    job.signal_mpirun(libc::SIGKILL);
    assert_eq!(job.end().code, 137);
}

#[test]
fn a_program_that_is_not_there_is_no_loss() {
    let done = Launch::new(&["--with-ft", "ulfm", "-n", "2", "./nothing-here"]).run();
    assert_eq!(done.code, 127, "{}", done.stderr);
}

fn on_two_hosts(folder: &Path, script: &str) -> Launch {
    let agent = common::agent(folder);
    Launch::new(&[
        "--with-ft",
        "ulfm",
        "--launch-agent",
        &agent,
        "--host",
        "a:2,b:2",
        "-n",
        "4",
        "bash",
        "-c",
        script,
    ])
}

#[test]
fn a_death_on_another_host_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    // The dead rank's child holds the rank's PMI socket open.
    let script = format!(
        "if [ $PMI_RANK = 3 ]; then sleep 1000 & sleep 0.1; kill -9 $$; fi; \
         {GREET} say barrier_in; echo $answer; say finalize"
    );
    let done = on_two_hosts(folder.path(), &script).run();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.stdout, "cmd=barrier_out rc=0\n".repeat(3));
    assert!(
        done.stderr
            .contains(" on b was killed by signal 9 (SIGKILL). The job goes on without it"),
        "{}",
        done.stderr
    );
}

#[test]
fn the_loss_of_a_host_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    // The ranks on host b print the pid of their daemon.
    let script = format!(
        "[ $PMI_RANK -ge 2 ] && {{ echo $PPID; exec sleep 1000; }}; \
         {GREET} say barrier_in; [ $answer = cmd=barrier_out ] || say finalize"
    );
    let job = on_two_hosts(folder.path(), &script).start(2);
    assert_eq!(job.lines[0], job.lines[1]);
    kill(job.lines[0].parse().unwrap(), libc::SIGKILL);
    let done = job.end();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = |part: &str| assert!(done.stderr.contains(part), "{}", done.stderr);
    said(
        "ranks 2, 3 are lost with their host b: its launcher has ended. The job goes on without them",
    );
    said("mpirun: 2 of 4 ranks were lost: 2, 3");
}

#[test]
fn hosts_are_lost_one_after_another_each_with_those_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let agent = common::agent(folder.path());
    // With a fan-out of 1 each launcher reaches one host: mpirun reaches a, a reaches b, and so on.
    let script = "echo $PMI_RANK $PPID; [ $PMI_RANK = 0 ] && exec sleep 1; exec sleep 1000";
    let job = Launch::new(&[
        "--with-ft",
        "ulfm",
        "--launch-agent",
        &agent,
        "--mca",
        "mpirun_fanout",
        "1",
        "--host",
        "a:1,b:1,c:1,d:1",
        "-n",
        "4",
        "bash",
        "-c",
        script,
    ])
    .start(4);
    let launcher_of = |rank: &str| {
        let mut lines = job.lines.iter();
        let line = lines.find_map(|line| line.strip_prefix(rank)).unwrap();
        line.trim().parse().unwrap()
    };
    kill(launcher_of("3 "), libc::SIGKILL);
    std::thread::sleep(std::time::Duration::from_millis(100));
    kill(launcher_of("1 "), libc::SIGKILL);
    let done = job.end();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = |part: &str| assert!(done.stderr.contains(part), "{}", done.stderr);
    said(" on d is lost with its host d: ");
    said(" on b is lost with its host b: ");
    said(" on c is lost with its host c: ");
    said("mpirun: 3 of 4 ranks were lost: 1, 2, 3");
}

#[test]
fn a_host_that_cannot_be_reached_is_no_loss() {
    let done = Launch::new(&[
        "--with-ft",
        "ulfm",
        "--launch-agent",
        "false",
        "--host",
        "a,b",
        "-n",
        "2",
        "true",
    ])
    .run();
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(!done.stderr.contains("goes on"), "{}", done.stderr);
}
