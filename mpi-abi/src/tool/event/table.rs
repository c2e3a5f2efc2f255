//! The table of event types, their elements and their source.

use super::super::pvar::Bound;
use crate::abi::*;

/// An event type of the library.
#[derive(Debug)]
pub struct Event {
    pub name: &'static str,
    /// The framework that raises the event, which is its category.
    pub category: &'static str,
    pub help: &'static str,
    pub bound: Bound,
    /// The names of the event's elements, in the order of `MPI_T_event_copy`.
    /// Each element has the type `MPI_COUNT`.
    pub elements: &'static [Element],
}

/// The name of an element, also used in the documents.
pub type Element = &'static str;

/// Maximum number of elements of an event.
pub(super) const MOST_ELEMENTS: usize = 4;

/// The source of events in the sense of section 15.3.8.
#[derive(Debug)]
pub struct Source {
    pub name: &'static str,
    pub help: &'static str,
    pub ticks_per_second: MPI_Count,
}

/// The only source. Its clock is the node's monotonic clock, which `MPI_Wtime` uses, too.
pub static SOURCE: Source = Source {
    name: "portcullis",
    help: "The progress of this process, in the order in which it happens; times are nanoseconds of the node's monotonic clock",
    ticks_per_second: 1_000_000_000,
};

/// Event types by their index in [`EVENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Which {
    LinkLost,
    RankLost,
    CommunicatorFreed,
    CommunicatorMade,
    MessageMatched,
    MessageUnexpected,
    RendezvousBegins,
    RendezvousEnds,
    RendezvousReceiveBegins,
    RendezvousReceiveEnds,
}

/// All event types, grouped by category. The categories are sorted by name.
pub static EVENTS: &[Event] = &[
    Event {
        name: "btl_base_link_lost",
        category: "btl",
        help: "One of several links to a process is lost, and the others carry its messages",
        bound: Bound::Process,
        elements: &["rank in the job"],
    },
    Event {
        name: "btl_base_rank_lost",
        category: "btl",
        help: "A process is unreachable from now on",
        bound: Bound::Process,
        elements: &["rank in the job"],
    },
    Event {
        name: "mpi_base_communicator_freed",
        category: "mpi",
        help: "The program has freed a communicator",
        bound: Bound::Process,
        elements: &["number of the communicator", "rank", "size"],
    },
    Event {
        name: "mpi_base_communicator_made",
        category: "mpi",
        help: "The program has made a communicator",
        bound: Bound::Process,
        elements: &["number of the communicator", "rank", "size", "handle"],
    },
    Event {
        name: "pml_ob1_message_matched",
        category: "pml",
        help: "A message has matched a receive of this process",
        bound: Bound::Comm,
        elements: &["source", "tag", "bytes"],
    },
    Event {
        name: "pml_ob1_message_unexpected",
        category: "pml",
        help: "A message has arrived that no receive has asked for",
        bound: Bound::Comm,
        elements: &["source", "tag", "bytes"],
    },
    Event {
        name: "pml_ob1_rendezvous_begins",
        category: "pml",
        help: "This process has announced a message, whose data wait for the receiver",
        bound: Bound::Comm,
        elements: &["destination", "tag", "bytes"],
    },
    Event {
        name: "pml_ob1_rendezvous_ends",
        category: "pml",
        help: "The data of an announced message have left this process",
        bound: Bound::Comm,
        elements: &["destination", "tag", "bytes"],
    },
    Event {
        name: "pml_ob1_rendezvous_receive_begins",
        category: "pml",
        help: "An announced message has matched a receive of this process, which requests its data",
        bound: Bound::Comm,
        elements: &["source", "tag", "bytes"],
    },
    Event {
        name: "pml_ob1_rendezvous_receive_ends",
        category: "pml",
        help: "The data of an announced message have arrived at this process",
        bound: Bound::Comm,
        elements: &["source", "tag", "bytes"],
    },
];

/// Returns the index of the first event of a category, and the number of its events.
pub fn of_category(category: &str) -> (usize, usize) {
    let first = EVENTS.iter().position(|event| event.category == category);
    let len = EVENTS
        .iter()
        .filter(|event| event.category == category)
        .count();
    (first.unwrap_or(0), len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_the_order_of_their_names_and_of_their_numbers() {
        let mut names: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
        names.sort_unstable();
        names.dedup();
        assert!(names.iter().eq(EVENTS.iter().map(|event| &event.name)));
        for (which, name) in [
            (Which::LinkLost, "btl_base_link_lost"),
            (Which::RankLost, "btl_base_rank_lost"),
            (Which::CommunicatorFreed, "mpi_base_communicator_freed"),
            (Which::CommunicatorMade, "mpi_base_communicator_made"),
            (Which::MessageMatched, "pml_ob1_message_matched"),
            (Which::MessageUnexpected, "pml_ob1_message_unexpected"),
            (Which::RendezvousBegins, "pml_ob1_rendezvous_begins"),
            (Which::RendezvousEnds, "pml_ob1_rendezvous_ends"),
            (
                Which::RendezvousReceiveBegins,
                "pml_ob1_rendezvous_receive_begins",
            ),
            (
                Which::RendezvousReceiveEnds,
                "pml_ob1_rendezvous_receive_ends",
            ),
        ] {
            assert_eq!(EVENTS[which as usize].name, name);
        }
        for event in EVENTS {
            assert!(event.elements.len() <= MOST_ELEMENTS);
            let (first, len) = of_category(event.category);
            let all = &EVENTS[first..first + len];
            assert!(all.iter().all(|other| other.category == event.category));
            assert!(event.name.starts_with(event.category));
        }
    }
}
