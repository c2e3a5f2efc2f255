//! Tests of jobs over parallel ports.
//!
//! The test process emulates the kernel's parallel ports, and connects them to a simulated board.

use barrier_board::live::Board;
use rustix::process::Signal;
use tests::machines::{self, Kind as _};

type Machines = machines::Machines<Board<'static>>;

#[test]
fn a_job_over_parallel_ports_is_followed_by_another() {
    if let Some(machines) = Machines::new() {
        machines.pass_fifty_barriers();
        machines.pass_fifty_barriers();
    }
}

#[test]
fn mpi_abort_in_a_barrier_leaves_every_wire_at_rest() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let outcome = machines.job("in_barrier").arg("abort").run();
    assert_eq!(outcome.status.code(), Some(42), "{}", outcome.stderr);
    machines.board.must_rest();
    machines.pass_fifty_barriers();
}

#[test]
fn a_job_that_is_terminated_in_a_barrier_leaves_every_wire_at_rest() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let job = machines.job("in_barrier").start();
    machines.wait_for_arrivals();
    job.signal(Signal::TERM);
    job.wait();
    machines.board.must_rest();
    machines.pass_fifty_barriers();
}

/// A killed process cannot restore its wire; the other processes get SIGTERM and restore theirs.
#[test]
fn the_wire_that_a_killed_rank_has_left_is_taken_back_by_the_next_job() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let outcome = machines.job("in_barrier").arg("kill").run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    assert!(machines.board.has_arrived(0b0010));
    machines.pass_fifty_barriers();
}

/// A parallel port cannot report which nodes have entered, so the members exchange messages.
#[test]
fn a_rank_that_does_not_come_is_named_and_the_barrier_goes_on_in_software() {
    for late in ["0", "2"] {
        let Some(machines) = Machines::new() else {
            return;
        };
        let job = machines.job("in_barrier");
        let job = job.with(["--mca", "coll_hwbarr_timeout", "100ms"]);
        let outcome = job.arg("late").arg(late).holds();
        let named = format!("node {late} has not entered; MPI_COMM_WORLD goes on in software");
        assert!(outcome.stderr.contains(&named), "{}", outcome.stderr);
        let told = outcome.stderr.matches("has not released for").count();
        assert!(
            (1..=4).contains(&told),
            "{told} times in {}",
            outcome.stderr
        );
    }
}

/// Each barrier needs a rise and a fall of the wire,
/// so the fall of a wire that a reboot causes does not count as an arrival.
#[test]
fn a_job_that_bears_reboots_passes_its_barriers() {
    if let Some(machines) = Machines::new() {
        let job = machines.job("barrier_loop").arg("50").arg("0");
        job.with(["--mca", "coll_hwbarr_reboot", "low"]).holds();
        let releases = machines.board.releases();
        assert!(releases >= 2 * 52 - 1, "{releases} releases");
    }
}
