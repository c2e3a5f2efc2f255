//! Events (section 15.3.8): occurrences in the library that are reported to callbacks of tools.
//!
//! An event is raised within the progress loop, with its time, and queued (`queue`).
//! Callbacks run later, at points where no lock is held and no state of the library is borrowed.
//! At the end of an MPI call all callbacks run, also those that call MPI (`MPI_T_CB_REQUIRE_NONE`).
//! Before each sleep of a long wait, only callbacks with `MPI_T_CB_REQUIRE_MPI_RESTRICTED` run.
//! Such callbacks call only functions of the tool interface.
//! The queue has a maximum length. Further events are dropped and counted for each registration.
//! The registration's handler for dropped events receives their number.
//!
//! All events have one source, which is ordered: each registration gets its events in time order.
//! Messages are reported by an observer of the engine,
//! which exists after the first registration of a callback.
//! Until then messages have no overhead.
//! Only messages of the program raise events, not those within collective operations.

mod delivery;
mod handles;
mod queue;
mod raised;
mod registration;
mod table;

pub use delivery::{copy_of, deliver_in_wait, instance};
pub use handles::{allocate, exists, free, has_callback, register, set_dropped_handler};
pub use queue::Instance;
pub use raised::{attach, communicator_freed, communicator_made};
pub use table::{EVENTS, Element, Event, SOURCE, Source, of_category};
