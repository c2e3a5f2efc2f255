//! Events (section 15.3.8): what happens in the library, shown to the callbacks of tools.
//!
//! An event is raised where it happens, inside the progress loop, with its time, and put into a queue (`queue`).
//! Callbacks run later, where no lock is held and nothing of the library is borrowed: at the end of the MPI call, where a callback may call MPI
//! as the program may (`MPI_T_CB_REQUIRE_NONE`), and before each sleep of a long wait, where it may only call functions of this interface
//! (`MPI_T_CB_REQUIRE_MPI_RESTRICTED`).
//! A registration keeps a bounded number of events; those beyond are counted, and its handler of dropped events learns their number.
//!
//! All events come from one source, which is ordered: a registration receives its events in the order of their times.
//! Messages are shown to the engine's observer, which exists from the first registration of such an event on; before, no message pays for it.
//! Only messages of the program raise events, not those inside collective operations.

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
