//! Tests of C++ exceptions that a program's callbacks throw inside library calls.

use tests::{Job, compile_cpp, installation};

fn thrown() -> Job {
    Job::command(&compile_cpp("thrown")).under(&installation().join("bin/mpirun"))
}

#[test]
fn an_exception_of_a_function_that_the_library_calls_is_caught_by_the_program() {
    thrown().ranks(1).holds();
    thrown().ranks(3).holds();
    // The argument "threads" requests MPI_THREAD_MULTIPLE, so each call acquires the library's lock.
    thrown().ranks(2).arg("threads").holds();
    thrown().ranks(2).with(["--mca", "coll", "basic"]).holds();
}

#[test]
fn an_exception_that_the_program_does_not_catch_is_named() {
    let outcome = thrown().arg("uncaught").run();
    assert_eq!(outcome.status.code(), Some(128 + 6), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("terminate called after throwing an instance of 'Mine'")
            && outcome.stderr.contains("what():  operator"),
        "{}",
        outcome.stderr
    );
}
