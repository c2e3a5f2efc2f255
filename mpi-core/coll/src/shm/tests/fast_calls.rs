//! Tests that a fast call on some members matches the same general call on others.

use super::job;
use crate::suite::fast_calls::have_the_results_of_the_general_form;
use mpi_base::occupancy::Occupancy;

/// Members whose buffers are not contiguous bytes make the general call.
#[test]
fn a_fast_call_matches_the_general_form_and_has_its_result() {
    for (occupancy, ranks) in [
        (Occupancy::Dedicated, 2),
        (Occupancy::Dedicated, 3),
        (Occupancy::Oversubscribed, 4),
    ] {
        let fast = |rank, round, call| (rank + round + call as u32) % 2 == 0;
        have_the_results_of_the_general_form(&job(ranks, occupancy), ranks, fast);
    }
}
