//! Tests with mpi4py 4.1.2, built from its unchanged source package with this `mpicc`.

use tests::{Job, installation, mpi4py_python};

fn module(arguments: &[&str]) -> Option<Job> {
    let python = mpi4py_python()?;
    let job = Job::command(&python)
        .under(&installation().join("bin/mpirun"))
        .on_library_of(installation())
        .ranks(4);
    Some(
        arguments
            .iter()
            .fold(job, |job, argument| job.arg(argument)),
    )
}

#[test]
fn mpi4py_says_hello_from_four_ranks() {
    let Some(job) = module(&["-m", "mpi4py.bench", "helloworld"]) else {
        return;
    };
    let outcome = job.succeeds();
    for rank in 0..4 {
        let greeting = format!("process {rank} of 4");
        assert!(
            outcome.stdout.contains(&greeting),
            "{greeting:?} is missing in:\n{}",
            outcome.stdout
        );
    }
}

#[test]
fn mpi4py_passes_a_message_round_the_ring() {
    let Some(job) = module(&["-m", "mpi4py.bench", "ringtest"]) else {
        return;
    };
    let outcome = job.succeeds();
    assert!(
        outcome.stdout.contains("time for 1 loops"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn mpi4py_runs_on_our_library() {
    let code = "from mpi4py import MPI; print(MPI.Get_library_version())";
    let Some(job) = module(&["-c", code]) else {
        return;
    };
    let outcome = job.succeeds();
    assert!(
        outcome.stdout.to_lowercase().contains("portcullis"),
        "{}",
        outcome.stdout
    );
}
