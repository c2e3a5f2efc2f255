//! Tests of a process that forks after `MPI_Init`: the library distinguishes the child from its parent.

use tests::Job;

#[test]
fn a_forked_child_may_execute_a_program_and_ask_for_the_state_of_mpi() {
    for way in ["asks", "executes"] {
        let outcome = Job::of("forked").arg(way).ranks(2).holds();
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn a_forked_child_that_calls_mpi_ends_with_a_sentence_and_the_job_goes_on() {
    let outcome = Job::of("forked").arg("sends").ranks(2).holds();
    for rank in 0..2 {
        let said = format!("MPI_Send: this process was forked from rank {rank} of 2 (process ");
        assert_eq!(
            outcome.stderr.matches(&said).count(),
            1,
            "{}",
            outcome.stderr
        );
    }
}
