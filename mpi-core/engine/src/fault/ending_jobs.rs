//! The other processes of jobs that end as a whole, between the loss of a first process and their own.
//!
//! They are declared lost only after [`LAST_TURNS`] more polls,
//! because messages that they sent before may still be in sockets that are polled rarely.

use std::cell::RefCell;

/// Number of polls between the loss of a process and that of the other processes of its job.
/// Each of them first asks the transports for what they have not polled, so a few suffice.
const LAST_TURNS: u32 = 64;

/// The processes of one job that ends as a whole.
pub(super) struct EndingJob {
    /// The label of the process that was lost first.
    pub(super) first: String,
    /// The names of the other processes.
    pub(super) fellows: Vec<u64>,
}

/// The jobs whose processes are still polled, each with its number of remaining polls.
#[derive(Default)]
pub(super) struct EndingJobs(RefCell<Vec<(u32, EndingJob)>>);

impl EndingJobs {
    /// Adds a job, which has [`LAST_TURNS`] polls left.
    pub(super) fn add(&self, job: EndingJob) {
        self.0.borrow_mut().push((LAST_TURNS, job));
    }

    /// Returns true if there are no such jobs.
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Counts one poll for each job. Removes and returns those that have had their last one.
    pub(super) fn count_poll(&self) -> Vec<EndingJob> {
        let mut jobs = self.0.borrow_mut();
        for (turns_left, _) in jobs.iter_mut() {
            *turns_left -= 1;
        }
        let ended = jobs.extract_if(.., |(turns_left, _)| *turns_left == 0);
        ended.map(|(_, job)| job).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_returned_once_after_its_last_poll() {
        let jobs = EndingJobs::default();
        for (first, polls) in [("early", 1), ("late", LAST_TURNS)] {
            jobs.add(EndingJob {
                first: first.to_owned(),
                fellows: vec![1],
            });
            let ended = (0..polls).flat_map(|_| jobs.count_poll());
            let ended: Vec<String> = ended.map(|job| job.first).collect();
            let expected: &[&str] = if first == "early" {
                &[]
            } else {
                &["early", "late"]
            };
            assert_eq!(ended, expected);
        }
        assert!(jobs.is_empty());
    }
}
