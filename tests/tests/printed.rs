//! Tests that the output of a program is forwarded unchanged, and completely, in whatever way the program ends.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use tests::{Job, compile_cpp, installation};

fn prints(way: &str) -> Job {
    Job::of("printed").arg(way)
}

#[test]
fn a_line_is_shown_while_the_program_goes_on() {
    let job = prints("waits").start();
    job.says("before MPI_Init");
    job.says("after MPI_Init");
    job.signal(Signal::TERM);
    job.wait();
}

#[test]
fn lines_of_a_rank_that_is_killed_are_shown() {
    let outcome = prints("killed-before").run();
    assert_eq!(outcome.stdout, "before MPI_Init\n", "{}", outcome.stderr);
    let outcome = prints("killed").run();
    assert_eq!(
        outcome.stdout, "before MPI_Init\nafter MPI_Init\n",
        "{}",
        outcome.stderr
    );
}

#[test]
fn lines_of_a_job_that_runs_out_of_time_are_shown() {
    let outcome = prints("waits")
        .with(["--timeout", "1", "--end-dead", "no"])
        .run();
    assert_eq!(outcome.status.code(), Some(124), "{}", outcome.stderr);
    assert_eq!(
        outcome.stdout, "before MPI_Init\nafter MPI_Init\n",
        "{}",
        outcome.stderr
    );
}

#[test]
fn streams_are_flushed_when_a_program_aborts_or_an_error_is_fatal() {
    let folder = tempfile::tempdir().unwrap();
    for way in ["aborts", "fails"] {
        // With `--stream-buffering 2` the program's output is fully buffered, so without a flush all of it would be lost.
        for options in [&[][..], &["--stream-buffering", "2"]] {
            let file = folder.path().join(way);
            let outcome = prints(way).arg(&file).with(options).run();
            assert!(!outcome.status.success());
            assert_eq!(
                outcome.stdout, "before MPI_Init\nafter MPI_Init\na beginning",
                "{way} {options:?}: {}",
                outcome.stderr
            );
            assert_eq!(fs::read_to_string(&file).unwrap(), "a line in a file\n");
        }
    }
}

#[test]
fn a_buffer_of_cout_is_flushed_when_a_program_aborts() {
    let program = compile_cpp("printed_unsynced");
    let outcome = on_our_mpirun(&program).run();
    assert_eq!(outcome.status.code(), Some(42), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "a line\na beginning", "{}", outcome.stderr);
}

fn on_our_mpirun(program: &Path) -> Job {
    Job::command(program).under(&installation().join("bin/mpirun"))
}
