//! Tests that only one process at a time can be a given rank.
//!
//! An MPI program started by the rank inherits the identity, and its MPI_Init is refused while the first process lives.
//! `one_after_the_other.rs` has the programs that a script runs as the same rank.

use std::path::Path;

use tests::{Job, compile, installation};

/// Returns a job of one rank that is a shell; the script refers to the C program as `$0`.
fn shell(script: &str, program: &str) -> Job {
    Job::command(Path::new("sh"))
        .under(&installation().join("bin/mpirun"))
        .arg("-c")
        .arg(script)
        .arg(compile(program))
}

const REFUSED: &str = ", and this process has inherited the same place from the process that started it; \
                       an MPI program that a rank starts is started by env -u PMI_FD PROGRAM to be a job of one rank, or by mpirun or MPI_Comm_spawn";

const HOLDS: &str = "all claims of hello hold on 1 ranks\n";

#[test]
fn the_job_goes_on_when_a_second_process_is_refused_while_the_first_lives() {
    // The first program keeps running until it reads a line from the pipe.
    let script = "mkfifo \"$TMPDIR/go\" && { \"$0\" \"$TMPDIR/go\" & } && read line < \"$TMPDIR/go.there\"; \
                  \"$0\"; echo status $?; echo > \"$TMPDIR/go\"; wait; rm \"$TMPDIR\"/go*";
    let script = format!("mkfifo \"$TMPDIR/go.there\" && {script}");
    let outcome = shell(&script, "waiting").succeeds();
    assert!(!outcome.stdout.contains("status 0"), "{outcome:?}");
    assert!(
        outcome
            .stdout
            .contains("all claims of waiting hold on 1 ranks"),
        "{outcome:?}"
    );
    let said = outcome.stderr.lines().find(|line| line.contains(REFUSED));
    let said = said.unwrap_or_else(|| panic!("{outcome:?}"));
    assert!(
        said.contains("rank 0 of 1 is process ") && said.contains(" (waiting), and"),
        "{said}"
    );
}

#[test]
fn a_program_without_the_socket_of_the_rank_is_a_job_of_its_own() {
    let outcome = shell("\"$0\"; env -u PMI_FD \"$0\"", "hello").succeeds();
    assert_eq!(outcome.stdout.matches(HOLDS).count(), 2, "{outcome:?}");
}

/// Without its socket, the rank would be a job of its own, and the other ranks would wait for it.
#[test]
fn a_rank_that_closes_its_inherited_descriptors_fails_with_a_message() {
    for rank in [&["1"][..], &[]] {
        let job = rank.iter().fold(Job::of("closed"), Job::arg);
        let outcome = job.ranks(2).run();
        assert!(!outcome.status.success(), "{outcome:?}");
        assert!(!outcome.stdout.contains("hold"), "{outcome:?}");
        let said = " of 2, and its connection with mpirun, the descriptor ";
        assert!(outcome.stderr.contains(said), "{outcome:?}");
    }
}
