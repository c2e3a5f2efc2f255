//! Tests of launches that fail: all processes end, and mpirun reports the failure.
//!
//! After every launch `common::finish` checks by an environment variable that no process remains.

mod common;

use common::{Launch, Running, kill, parent_of};

/// A script for ranks that start a child, print their pid, and wait.
const STAY: &str = "sleep 1000 & echo $$; wait";

fn staying(n: &str) -> Running {
    Launch::new(&["-n", n, "sh", "-c", STAY]).start(n.parse().unwrap())
}

fn pid(line: &str) -> i32 {
    line.parse().unwrap()
}

#[test]
fn a_killed_rank_ends_all_and_is_named_with_host_and_signal() {
    let job = staying("4");
    kill(pid(&job.lines[2]), libc::SIGKILL);
    let victim = job.lines[2].clone();
    let done = job.end();
    assert_eq!(done.code, 137);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let tail = format!(
        "pid {victim}) on {} was killed by signal 9 (SIGKILL). All other ranks are ended.",
        host.trim()
    );
    assert!(done.stderr.contains(&tail), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1);
}

#[test]
fn a_segmentation_fault_is_named() {
    let done = Launch::new(&[
        "-n",
        "2",
        "sh",
        "-c",
        "[ $PMI_RANK = 1 ] && kill -SEGV $$; sleep 1000",
    ])
    .run();
    assert_eq!(done.code, 139);
    assert!(
        done.stderr.contains("rank 1") && done.stderr.contains("(SIGSEGV)"),
        "{}",
        done.stderr
    );
}

/// The parent of mpirun may ignore SIGCHLD, as servers do that do not wait for their children.
#[test]
fn a_job_ends_although_its_parent_ignores_the_ends_of_children() {
    let ignore = ["env", "--ignore-signal=CHLD"];
    let script = "grep SigIgn /proc/self/status; exit 3";
    let done = Launch::by(&ignore, &["-n", "1", "sh", "-c", script]).run();
    assert_eq!(done.code, 3, "{}", done.stderr);
    let ignored = done.stdout.split_whitespace().last().unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    assert_eq!(ignored >> (libc::SIGCHLD - 1) & 1, 0, "{}", done.stdout);
}

/// nohup(1) ignores SIGHUP; mpirun and the ranks still do then, and SIGTERM ends the job.
#[test]
fn the_closing_of_the_terminal_does_not_end_a_job_under_nohup() {
    let job = Launch::by(&["nohup"], &["-n", "2", "sh", "-c", "echo $$; sleep 1000"]).start(2);
    job.signal_mpirun(libc::SIGHUP);
    kill(pid(&job.lines[0]), libc::SIGHUP);
    job.signal_mpirun(libc::SIGTERM);
    let done = job.end();
    assert_eq!(done.code, 143, "{}", done.stderr);
}

#[test]
fn mpirun_killed_leaves_nothing() {
    let job = staying("4");
    job.signal_mpirun(libc::SIGKILL);
    assert_eq!(job.end().code, 137);
}

#[test]
fn mpirun_killed_leaves_nothing_even_of_those_that_ignore_signals() {
    let script = "trap '' TERM INT HUP; sh -c 'trap \"\" TERM; sleep 1000' & echo $$; wait";
    let job = Launch::new(&["-n", "2", "sh", "-c", script]).start(2);
    job.signal_mpirun(libc::SIGKILL);
    job.end();
}

#[test]
fn the_agent_killed_leaves_nothing() {
    let job = staying("3");
    let agent = parent_of(pid(&job.lines[0]));
    assert_ne!(agent, job.mpirun());
    kill(agent, libc::SIGKILL);
    assert_eq!(job.end().code, 137);
}

#[test]
fn signals_to_mpirun_end_the_job_with_their_code() {
    for (signal, code) in [
        (libc::SIGINT, 130),
        (libc::SIGTERM, 143),
        (libc::SIGHUP, 129),
    ] {
        let job = staying("3");
        job.signal_mpirun(signal);
        assert_eq!(job.end().code, code);
    }
}

#[test]
fn ranks_that_ignore_signals_are_killed() {
    let job = Launch::new(&[
        "-n",
        "2",
        "sh",
        "-c",
        "trap '' TERM INT; echo $$; sleep 1000; sleep 1000",
    ])
    .start(2);
    job.signal_mpirun(libc::SIGINT);
    assert_eq!(job.end().code, 130);
}

#[test]
fn a_stopped_rank_is_ended_too() {
    let job = staying("2");
    kill(pid(&job.lines[0]), libc::SIGSTOP);
    job.signal_mpirun(libc::SIGTERM);
    assert_eq!(job.end().code, 143);
}

#[test]
fn a_child_in_its_own_session_with_open_pipes_delays_no_process() {
    let script = "setsid sleep 1000 & [ $PMI_RANK = 0 ] && kill -9 $$; wait";
    let done = Launch::new(&["-n", "2", "sh", "-c", script]).run();
    assert_eq!(done.code, 137);
    let done = Launch::new(&["-n", "2", "sh", "-c", "setsid sleep 1000 & echo done"]).run();
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\ndone\n"));
}

#[test]
fn the_second_user_signal_reaches_every_rank_and_the_first_is_for_mpirun() {
    let script = "trap 'exit 9' USR1; trap 'echo got; exit 0' USR2; echo ready; while :; do sleep 0.01; done";
    let job = Launch::new(&["-n", "2", "sh", "-c", script]).start(2);
    job.signal_mpirun(libc::SIGUSR1);
    job.signal_mpirun(libc::SIGUSR2);
    assert_eq!(job.end().code, 0);
}

#[test]
fn a_job_that_runs_out_of_time_is_124_and_names_the_late_ranks() {
    let done = Launch::new(&[
        "-n",
        "2",
        "--timeout",
        "200ms",
        "sh",
        "-c",
        "[ $PMI_RANK = 0 ] || sleep 1000",
    ])
    .run();
    assert_eq!(done.code, 124);
    assert!(
        done.stderr
            .contains("the time limit of 0.2 s is over; rank 1 had not finished"),
        "{}",
        done.stderr
    );
}

#[test]
fn quiet_leaves_only_the_exit_code() {
    let done = Launch::new(&["-q", "-n", "2", "sh", "-c", "exit 5"]).run();
    assert_eq!((done.code, done.stderr.as_str()), (5, ""));
}

#[test]
fn a_reader_that_leaves_ends_the_job_as_it_would_end_a_program() {
    let mut job = Launch::new(&["-n", "2", "yes"]).start(3);
    job.hang_up();
    assert_eq!(job.end().code, 128 + libc::SIGPIPE);
}

#[test]
fn a_rank_that_leaves_others_waiting_is_named() {
    // Rank 0 speaks PMI-1 from a shell and enters a barrier that rank 1 never enters.
    let script = "[ $PMI_RANK = 1 ] && exit 0; \
        eval \"exec 9<&$PMI_FD\"; printf 'cmd=init pmi_version=1 pmi_subversion=1\\ncmd=barrier_in\\n' >&9; sleep 1000";
    let done = Launch::new(&["-n", "2", "bash", "-c", script]).run();
    assert_eq!(done.code, 1);
    assert!(
        done.stderr.contains("rank 1 (of 2; bash, pid "),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("ended, but rank 0 waits for it"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_rank_that_sends_malformed_requests_to_the_launcher_is_given_up() {
    let script = "eval \"exec 9<&$PMI_FD\"; echo 'cmd=fly_me_to_the_moon' >&9; sleep 1000";
    let done = Launch::new(&["-n", "2", "bash", "-c", script]).run();
    assert_eq!(done.code, 1);
    assert!(
        done.stderr
            .contains("does not speak PMI-1: \"fly_me_to_the_moon\" came"),
        "{}",
        done.stderr
    );
}

#[test]
fn an_abort_ends_all_with_its_code_and_reports_the_reason() {
    let script = "[ $PMI_RANK = 1 ] || sleep 1000; eval \"exec 9<&$PMI_FD\"; \
        printf 'cmd=abort exitcode=42 message=out\\\\ of\\\\ cheese\\n' >&9; sleep 1000";
    let done = Launch::new(&["-n", "3", "bash", "-c", script]).run();
    assert_eq!(done.code, 42);
    assert!(
        done.stderr
            .contains("aborted the job with code 42: out of cheese."),
        "{}",
        done.stderr
    );
}

#[test]
fn a_stack_that_is_too_short_is_a_sentence() {
    let mpirun = env!("CARGO_BIN_EXE_mpirun");
    let path = std::env::var("PATH").unwrap();
    let mut enough = 0;
    // The environment and the arguments occupy a part of the stack.
    for (kib, environment) in [64, 96, 112, 128, 144, 160, 192, 256]
        .into_iter()
        .flat_map(|kib| [(kib, 0), (kib, 16), (kib, 48)])
        // With a smaller stack the kernel cannot start any program.
        .filter(|(kib, environment)| kib - environment >= 40)
    {
        let mut command = std::process::Command::new("sh");
        let script = format!("ulimit -s {kib}; exec {mpirun} -n 2 --tag-output echo a line");
        let long = "x".repeat(environment << 10);
        command.args(["-c", &script]).env_clear();
        command.env("PATH", &path).env("LONG", long);
        let done = common::run_bounded(&mut command);
        let said = String::from_utf8(done.stderr).unwrap();
        match done.status.code() {
            Some(0) => enough += 1,
            Some(2) => assert!(
                said.starts_with(
                    "mpirun: beside the environment and the arguments the stack may have "
                ) && said.ends_with(" KiB; raise the limit\n"),
                "{said}"
            ),
            other => panic!("{kib} KiB, environment of {environment} KiB: {other:?}, {said}"),
        }
    }
    assert!(enough > 8, "{enough}");
}

/// Starts ranks that handle one signal.
/// The handler takes longer than the grace period of ranks that do not handle the signal.
fn handling(signal: &str) -> Running {
    let script = format!(
        "trap 'sleep 0.6; echo handled >&2; exit 3' {signal}; echo $$; while :; do sleep 0.05; done"
    );
    Launch::new(&["-n", "2", "sh", "-c", &script]).start(2)
}

#[test]
fn ranks_that_handle_the_signal_of_the_user_have_time_for_it() {
    for (signal, name, code) in [(libc::SIGINT, "INT", 130), (libc::SIGTERM, "TERM", 143)] {
        let job = handling(name);
        job.signal_mpirun(signal);
        let done = job.end();
        assert_eq!(done.code, code, "{}", done.stderr);
        assert_eq!(
            done.stderr.matches("handled\n").count(),
            2,
            "{}",
            done.stderr
        );
    }
}

#[test]
fn ranks_that_still_run_a_while_after_the_signal_are_announced() {
    let script = "trap '' TERM; trap : INT; echo $$; while :; do sleep 0.05; done";
    let grace = ["--mca", "mpirun_signal_grace", "1500ms"];
    let options = [&grace[..], &["-n", "2", "sh", "-c", script]].concat();
    let job = Launch::new(&options).start(2);
    job.signal_mpirun(libc::SIGINT);
    let done = job.end();
    assert_eq!(done.code, 130, "{}", done.stderr);
    let said = "mpirun: ranks 0, 1 have not ended after SIGINT and have 1 s more; the same signal once more ends the job at once";
    assert!(done.stderr.contains(said), "{}", done.stderr);
}
