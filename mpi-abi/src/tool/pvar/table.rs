//! The table of performance variables, with their read functions.

use super::super::enumeration::{OCCUPANCY, THREAD_LEVEL};
use super::{Pvar, Read};
use crate::abi::*;
use crate::lane_tools;
use crate::phase;
use crate::state::state;
use mpi_core::Engine;
use mpi_core::btl::Traffic;
use mpi_core::comm::Comm;
use mpi_core::matrix::Kind;
use mpi_core::pml::Matching;
use std::ffi::c_int;

/// Reads a value of the engine. Returns 0 without an engine.
fn of_engine(look: impl FnOnce(&Engine) -> u64) -> u64 {
    let engine = state().engines().engine().try_borrow();
    let engine = engine.ok().and_then(|engine| engine.clone());
    engine.map_or(0, |engine| look(&engine))
}

/// Reads the sum of a value of the engines of all lanes.
fn of_engines(look: impl Fn(&Engine) -> u64) -> u64 {
    of_engine(&look) + lane_tools::sum(&look)
}

/// Reads the queue lengths of a communicator: receives without a message, and messages without a receive.
fn queue_lengths(comm: &Comm) -> (usize, usize) {
    let (posted, unexpected) = comm.p2p().queue_lengths();
    let in_lane = lane_tools::with_matching(comm, Matching::lengths).unwrap_or_default();
    (posted + in_lane.0, unexpected + in_lane.1)
}

/// Reads the message counts of transports: messages accepted and delivered.
fn of_traffic(look: fn(u64, u64) -> u64) -> u64 {
    of_engine(|engine| match engine.pml().bml().traffic() {
        Traffic::Counted { sent, received } => look(sent, received),
        Traffic::InMemory | Traffic::Uncounted => 0,
    })
}

/// Expands to a function that returns the number of the program's handles of one kind.
macro_rules! handles {
    ($table:ident) => {
        || {
            state()
                .tables()
                .$table()
                .try_borrow()
                .map_or(0, |table| table.iter().count() as u64)
        }
    };
}

/// Returns the occupancy of this process's node, an item of [`OCCUPANCY`].
fn occupancy() -> c_int {
    // The discriminants of the Rust enum begin with 1.
    of_engine(|engine| engine.waiting().occupancy() as u64) as c_int
}

/// All performance variables, grouped by category. The categories are sorted by name.
pub static PVARS: &[Pvar] = &[
    Pvar {
        name: "btl_base_foreign_processes",
        category: "btl",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Processes of other jobs that some communicator of this process names",
        read: Read::Process(|| of_engine(|engine| engine.universe().foreign() as u64)),
    },
    Pvar {
        name: "btl_base_links_lost",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Links that were lost while other links to the same process carried on",
        read: Read::Process(|| of_engine(|engine| engine.pml().counts().links_lost())),
    },
    Pvar {
        name: "btl_base_messages_received",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that transports between hosts have delivered",
        read: Read::Process(|| of_traffic(|_, received| received)),
    },
    Pvar {
        name: "btl_base_messages_sent",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that transports between hosts have accepted",
        read: Read::Process(|| of_traffic(|sent, _| sent)),
    },
    Pvar {
        name: "btl_base_peers_lost",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Processes that became unreachable",
        read: Read::Process(|| of_engine(|engine| engine.pml().counts().peers_lost())),
    },
    Pvar {
        name: "btl_base_stray_messages",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Active messages that came for a layer that has not asked for any",
        read: Read::Process(|| of_engines(|engine| engine.pml().bml().handlers().strays())),
    },
    Pvar {
        name: "btl_sm_kept_bytes",
        category: "btl",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Bytes of this rank's freed shared memory that stay for its next use",
        read: Read::Process(|| of_engine(|engine| engine.node().kept_bytes() as u64)),
    },
    Pvar {
        name: "btl_sm_ring_span",
        category: "btl",
        class: MPI_T_PVAR_CLASS_SIZE,
        help: "Bytes of each ring in shared memory that senders use at first",
        read: Read::Process(|| of_engine(|engine| engine.node().ring_span() as u64)),
    },
    Pvar {
        name: "io_base_bytes_read",
        category: "io",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that calls of this process have read from a file",
        read: Read::File(|file| file.file.moved().0),
    },
    Pvar {
        name: "io_base_bytes_written",
        category: "io",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that calls of this process have written to a file",
        read: Read::File(|file| file.file.moved().1),
    },
    Pvar {
        name: "mpi_base_asleep_ns",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_TIMER,
        help: "Nanoseconds that waits have slept",
        read: Read::Process(|| of_engines(|engine| engine.waiting().asleep().1)),
    },
    Pvar {
        name: "mpi_base_calls",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Calls of MPI that have begun, without those that only return what is known",
        read: Read::Process(|| of_engine(|engine| engine.state().calls().div_ceil(2))),
    },
    Pvar {
        name: "mpi_base_collective_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that collective operations bring to all other ranks",
        read: Read::Total(Kind::Collective, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_collective_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what collective operations bring to all other ranks",
        read: Read::Total(Kind::Collective, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_communicators",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Communicators that the program has made and not freed",
        read: Read::Process(handles!(comms)),
    },
    Pvar {
        name: "mpi_base_datatypes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Datatypes that the program has made and not freed",
        read: Read::Process(handles!(types)),
    },
    Pvar {
        name: "mpi_base_files",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Files that are open",
        read: Read::Process(handles!(files)),
    },
    Pvar {
        name: "mpi_base_groups",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Groups that the program has made and not freed",
        read: Read::Process(handles!(groups)),
    },
    Pvar {
        name: "mpi_base_late_sleeps",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Sleeps that ended by timeout although an event was pending",
        read: Read::Process(|| of_engines(|engine| engine.waiting().late_sleeps())),
    },
    Pvar {
        name: "mpi_base_matrix_collective_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that collective operations bring to each rank of a communicator",
        read: Read::Peers(Kind::Collective, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_matrix_collective_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what collective operations bring to each rank of a communicator",
        read: Read::Peers(Kind::Collective, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_matrix_one_sided_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that one-sided accesses write to each rank of a communicator",
        read: Read::Peers(Kind::OneSided, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_matrix_one_sided_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what one-sided accesses write to each rank of a communicator",
        read: Read::Peers(Kind::OneSided, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_matrix_p2p_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that messages bring to each rank of a communicator",
        read: Read::Peers(Kind::P2p, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_matrix_p2p_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what messages bring to each rank of a communicator",
        read: Read::Peers(Kind::P2p, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_occupancy",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_STATE,
        help: "Whether each rank of this node has a core of its own",
        read: Read::State(occupancy, &OCCUPANCY),
    },
    Pvar {
        name: "mpi_base_one_sided_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that one-sided accesses write to all other ranks",
        read: Read::Total(Kind::OneSided, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_one_sided_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what one-sided accesses write to all other ranks",
        read: Read::Total(Kind::OneSided, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_p2p_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that messages bring to all other ranks",
        read: Read::Total(Kind::P2p, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_p2p_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what messages bring to all other ranks",
        read: Read::Total(Kind::P2p, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_progress_steps",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Polls that have found something during a wait that they did not end",
        read: Read::Process(|| of_engines(|engine| engine.state().snapshot().progress)),
    },
    Pvar {
        name: "mpi_base_requests",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Request handles that the program holds",
        // Requests of a single engine operation have their handles in the engine's own table.
        read: Read::Process(|| {
            let direct = of_engine(|engine| engine.pml().requests().all_named().len() as u64);
            direct + lane_tools::left_requests().len() as u64 + handles!(requests)()
        }),
    },
    Pvar {
        name: "mpi_base_sleeps",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Sleeps of waits, each ended by a message or after 10 ms",
        read: Read::Process(|| of_engines(|engine| engine.waiting().asleep().0)),
    },
    Pvar {
        name: "mpi_base_thread_level",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_STATE,
        help: "The thread level that MPI_Init has chosen",
        read: Read::State(phase::thread_level, &THREAD_LEVEL),
    },
    Pvar {
        name: "mpi_base_waits_asleep",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Waits that lasted so long that the rank has slept",
        read: Read::Process(|| of_engines(|engine| engine.state().snapshot().quiet.waits)),
    },
    Pvar {
        name: "mpi_base_waits_beside_load",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Waits from now on that sleep without a yield, because another process computes on this core",
        read: Read::Process(|| of_engine(|engine| engine.waiting().waits_beside_load().into())),
    },
    Pvar {
        name: "mpi_base_windows",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Windows that the program has made and not freed",
        read: Read::Process(handles!(wins)),
    },
    Pvar {
        name: "osc_base_memory",
        category: "osc",
        class: MPI_T_PVAR_CLASS_SIZE,
        help: "Bytes of memory that this process gives to a window",
        read: Read::Win(|win| win.win.memory().own_bytes()),
    },
    Pvar {
        name: "pml_ob1_eager_sent",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that were sent with their data, without an announcement",
        read: Read::Observed(|engine| engine.pml().counts().eager_observed()),
    },
    Pvar {
        name: "pml_ob1_posted_receives",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Receives on a communicator that no message has matched",
        read: Read::Comm(|comm| queue_lengths(comm).0 as u64),
    },
    Pvar {
        name: "pml_ob1_protocol_errors",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that were dropped because they were late or made no sense",
        read: Read::Process(|| of_engines(|engine| engine.pml().protocol_errors())),
    },
    Pvar {
        name: "pml_ob1_rendezvous_received",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages announced by rendezvous that have matched a receive",
        read: Read::Process(|| of_engines(|engine| engine.pml().counts().rendezvous_received())),
    },
    Pvar {
        name: "pml_ob1_rendezvous_sent",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that were announced by rendezvous, since their data wait for the receiver",
        read: Read::Process(|| of_engines(|engine| engine.pml().counts().rendezvous_sent())),
    },
    Pvar {
        name: "pml_ob1_requests_under_way",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Operations that have not completed, those inside collective operations too",
        read: Read::Process(|| {
            of_engines(|engine| engine.pml().requests().under_way().len() as u64)
        }),
    },
    Pvar {
        name: "pml_ob1_sends_queued",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that had to wait in this process because a ring or a socket had no space",
        read: Read::Process(|| of_engines(|engine| engine.pml().counts().queued())),
    },
    Pvar {
        name: "pml_ob1_unexpected_arrivals",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that have arrived before their receives",
        read: Read::Process(|| of_engines(|engine| engine.pml().counts().unexpected())),
    },
    Pvar {
        name: "pml_ob1_unexpected_bytes",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Bytes that messages of other processes take which no receive has asked for",
        read: Read::Process(|| of_engines(|engine| engine.pml().unexpected_bytes().0)),
    },
    Pvar {
        name: "pml_ob1_unexpected_bytes_max",
        category: "pml",
        class: MPI_T_PVAR_CLASS_HIGHWATERMARK,
        help: "The most bytes that such messages have ever taken; with lanes the sum of the maxima of the lanes",
        read: Read::Process(|| of_engines(|engine| engine.pml().unexpected_bytes().1)),
    },
    Pvar {
        name: "pml_ob1_unexpected_comm_bytes",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Bytes of the messages on a communicator that no receive has asked for",
        read: Read::Comm(|comm| {
            let mut messages = comm.p2p().unexpected();
            messages
                .extend(lane_tools::with_matching(comm, Matching::unexpected).unwrap_or_default());
            messages.iter().map(|(_, bytes)| bytes).sum()
        }),
    },
    Pvar {
        name: "pml_ob1_unexpected_messages",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Messages on a communicator that no receive has asked for",
        read: Read::Comm(|comm| queue_lengths(comm).1 as u64),
    },
];
