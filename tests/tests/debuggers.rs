//! Tests of programs under valgrind: the library must add no errors to those of the program.

use std::path::Path;
use tests::{Job, Outcome, compile, compile_with, installation, needs};

fn has(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

/// Runs a program on two ranks under valgrind; valgrind must not report errors.
fn examine(program: &str, arguments: &[&str], ways: &[&str]) {
    if !needs(has("valgrind"), "valgrind (cargo xtask test installs it)") {
        return;
    }
    let mpirun = installation().join("bin/mpirun");
    let env = "/usr/bin/env".as_ref();
    let options = [
        "valgrind",
        "--quiet",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
        "--error-exitcode=9",
        // Reading the descriptions of inlined functions takes a second of each process.
        "--read-inline-info=no",
    ];
    for ways in ways {
        let job = options
            .iter()
            .fold(Job::command(env).under(&mpirun).ranks(2), |job, word| {
                job.arg(word)
            });
        let job = arguments
            .iter()
            .fold(job.arg(compile(program)), |job, word| job.arg(word));
        let outcome = job.with(["--mca", "btl", ways]).succeeds();
        let claim = format!("all claims of {program} hold on 2 ranks");
        assert!(outcome.stdout.contains(&claim), "{}", outcome.stdout);
    }
}

#[test]
fn valgrind_finds_nothing_uninitialised_and_nothing_lost() {
    examine("examined", &[], &["self,sm"]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn valgrind_finds_nothing_uninitialised_and_nothing_lost_over_tcp() {
    examine("examined", &[], &["self,tcp"]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn valgrind_finds_nothing_in_random_accesses_of_windows() {
    examine("accesses", &["2", "7"], &["self,sm", "self,tcp"]);
}

/// A race detector that did not know the library's lock would report races on the program's
/// variables.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn helgrind_knows_that_threads_take_turns_in_the_library() {
    if !needs(has("valgrind"), "valgrind (cargo xtask test installs it)") {
        return;
    }
    let arguments = ["--tool=helgrind", "--quiet", "--error-exitcode=9"];
    let program = compile("handed_over");
    for lanes in ["1", "4"] {
        hand_over(lanes, "valgrind", &arguments, program.as_ref());
    }
}

#[test]
fn thread_sanitizer_knows_that_threads_take_turns_in_the_library() {
    let program = compile_with(
        "handed_over",
        "handed_over_tsan",
        &["-fsanitize=thread", "-g"],
    );
    for lanes in ["1", "4"] {
        let outcome = hand_over(lanes, "TSAN_OPTIONS=exitcode=9", &[], program.as_ref());
        assert!(
            !outcome.stderr.contains("ThreadSanitizer"),
            "{}",
            outcome.stderr
        );
    }
}

/// Runs `handed_over` with a number of lanes under `env first arguments`, which must succeed.
fn hand_over(lanes: &str, first: &str, arguments: &[&str], program: &Path) -> Outcome {
    let mpirun = installation().join("bin/mpirun");
    let job = Job::command("/usr/bin/env".as_ref())
        .under(&mpirun)
        .ranks(2);
    let job = job.with(["--mca", "threads_lanes", lanes]).arg(first);
    let job = arguments
        .iter()
        .fold(job, |job, argument| job.arg(argument));
    let outcome = job.arg(program).succeeds();
    assert!(outcome.stdout.contains("all claims of handed_over hold"));
    outcome
}
