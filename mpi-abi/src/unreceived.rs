//! Warning at `MPI_Finalize` about messages that the program has not received.
//!
//! `MPI_Finalize` requires that all communication is complete (MPI 5.0, section 11.2.2).
//! So an unreceived message is a program error: a missing receive, or one with another tag.
//! The sender does not notice the error, since short sends complete immediately.
//! Only messages that have arrived and are unreceived are listed.
//! A message in transit is not listed.

use crate::lane_tools;
use crate::state::{state, this_rank};
use mpi_base::param::{Level, Param};
use mpi_core::Engine;
use mpi_core::pml::{Key, Matching};

/// Enables the warning about unreceived messages.
pub static TELL_UNRECEIVED: Param<bool> = Param::new(
    "mpi",
    "base",
    "tell_unreceived",
    "true",
    Level::USER,
    "Whether a rank says at MPI_Finalize how many messages to it were never received, and of some their source, tag and communicator",
);

/// Maximum number of (source, tag) pairs in the line.
const NAMED: usize = 4;

/// Messages with one source and one tag on one communicator.
struct SameEnvelope {
    comm: String,
    key: Key,
    count: usize,
}

/// The unreceived messages of all communicators.
#[derive(Default)]
struct Unreceived {
    count: usize,
    named: Vec<SameEnvelope>,
}

impl Unreceived {
    fn add(&mut self, comm: &str, key: Key) {
        self.count += 1;
        let mut named = self.named.iter_mut();
        if let Some(alike) = named.find(|alike| alike.key == key && alike.comm == comm) {
            alike.count += 1;
        } else if self.named.len() < NAMED {
            self.named.push(SameEnvelope {
                comm: comm.to_owned(),
                key,
                count: 1,
            });
        }
    }

    /// Returns the text of the warning, without the rank, or `None` if all messages were received.
    fn sentence(&self) -> Option<String> {
        let messages = match self.count {
            0 => return None,
            1 => "1 message to this rank was".to_owned(),
            count => format!("{count} messages to this rank were"),
        };
        let mut named: Vec<String> = self.named.iter().map(SameEnvelope::words).collect();
        let told: usize = self.named.iter().map(|alike| alike.count).sum();
        if told < self.count {
            named.push(format!("{} others", self.count - told));
        }
        Some(format!("{messages} never received: {}", named.join("; ")))
    }
}

impl SameEnvelope {
    fn words(&self) -> String {
        let (source, tag) = (self.key.source(), self.key.tag());
        let one = format!("from rank {source} with tag {tag} on {}", self.comm);
        match self.count {
            1 => one,
            count => format!("{count} {one}"),
        }
    }
}

/// Prints the warning. Must be called after all ranks have started all their sends.
pub fn warn(engine: &Engine) {
    if !engine.params().get(&TELL_UNRECEIVED).unwrap_or(true) {
        return;
    }
    // Polls until all data written by peers are processed. Peers send no more, so the loop ends.
    const POLLS: usize = 1000;
    let poll = |engine: &Engine| {
        let _ = (0..POLLS).take_while(|_| engine.poll_once()).count();
    };
    poll(engine);
    lane_tools::each_engine(poll);
    let mut left = Unreceived::default();
    let predefined = [
        state().tables().world().borrow().clone(),
        state().tables().myself().borrow().clone(),
    ];
    let made = state().tables().comms().borrow();
    let made = made.iter().map(|(_, object)| object);
    for object in predefined.iter().flatten().chain(made) {
        // The communicators of a session end with the session, which may still be open.
        if object.session.is_none() {
            let label = object.label();
            let in_lane = lane_tools::with_matching(&object.comm, Matching::unexpected_keys);
            let in_base = object.comm.p2p().unreceived();
            for key in in_base.into_iter().chain(in_lane.unwrap_or_default()) {
                left.add(&label, key);
            }
        }
    }
    if let Some(sentence) = left.sentence() {
        printable::eprintln!("{}: MPI_Finalize is called, and {sentence}", this_rank());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_source_and_tag_are_counted_and_only_some_are_named() {
        let mut left = Unreceived::default();
        assert_eq!(left.sentence(), None);
        left.add("MPI_COMM_WORLD", Key::new(3, 7));
        let one =
            "1 message to this rank was never received: from rank 3 with tag 7 on MPI_COMM_WORLD";
        assert_eq!(left.sentence().as_deref(), Some(one));
        for tag in [7, 8, 9, 10, 11, 12] {
            left.add("MPI_COMM_WORLD", Key::new(3, tag));
        }
        let all = "7 messages to this rank were never received: 2 from rank 3 with tag 7 on MPI_COMM_WORLD; \
                   from rank 3 with tag 8 on MPI_COMM_WORLD; from rank 3 with tag 9 on MPI_COMM_WORLD; \
                   from rank 3 with tag 10 on MPI_COMM_WORLD; 2 others";
        assert_eq!(left.sentence().as_deref(), Some(all));
    }
}
