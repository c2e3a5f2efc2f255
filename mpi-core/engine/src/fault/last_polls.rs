//! Processes that have ended, from the report of their end to the declaration that they are lost.
//!
//! If another source than its own connection notifies a process of an end,
//! the process first polls [`LAST_POLLS`] more times,
//! because messages that the ended process had sent may still be in sockets that are polled rarely.

use std::cell::RefCell;

/// Number of polls between the report of an end and the declaration of the loss.
/// Each of these polls reads all sockets and rings of the transports, so a small number is sufficient.
const LAST_POLLS: u32 = 64;

/// Processes that have ended, and how this process was notified of their end.
pub(super) struct Ended {
    /// The names of the processes.
    pub(super) names: Vec<u64>,
    pub(super) reason: Reason,
}

/// How this process was notified of an end.
#[derive(Debug, PartialEq)]
pub(super) enum Reason {
    /// Another process announced the end; contains a description of the announcing process.
    AnnouncedBy(String),
    /// The job ended as a whole after one of its processes was lost; describes that process.
    EndedWith(String),
}

/// The ended processes, each entry with its number of remaining polls.
#[derive(Default)]
pub(super) struct LastPolls(RefCell<Vec<(u32, Ended)>>);

impl LastPolls {
    /// Adds processes, which are declared lost after [`LAST_POLLS`] polls.
    pub(super) fn add(&self, ended: Ended) {
        self.0.borrow_mut().push((LAST_POLLS, ended));
    }

    /// Returns true if there are no ended processes.
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Counts a poll for each entry. Removes and returns the entries that have no polls left.
    pub(super) fn count_poll(&self) -> Vec<Ended> {
        let mut entries = self.0.borrow_mut();
        for (polls_left, _) in entries.iter_mut() {
            *polls_left -= 1;
        }
        let done = entries.extract_if(.., |(polls_left, _)| *polls_left == 0);
        done.map(|(_, ended)| ended).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_returned_once_after_their_last_poll() {
        let polls = LastPolls::default();
        let add = |name, reason| {
            polls.add(Ended {
                names: vec![name],
                reason,
            });
        };
        let counted = |times| -> Vec<Reason> {
            let done = (0..times).flat_map(|_| polls.count_poll());
            done.map(|ended| ended.reason).collect()
        };
        let announced = || Reason::AnnouncedBy("rank 1".to_owned());
        let fellow = || Reason::EndedWith("rank 2".to_owned());
        add(1, announced());
        assert_eq!(counted(1), []);
        add(2, fellow());
        assert_eq!(counted(LAST_POLLS), [announced(), fellow()]);
        assert!(polls.is_empty());
    }
}
