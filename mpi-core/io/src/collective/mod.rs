//! Collective buffering: aggregators perform interleaved accesses by long reads and writes.
//!
//! | file | subject |
//! |---|---|
//! | [`plan`] | the agreement of the members on individual or aggregated access |
//! | [`node_map`] | the map of members to nodes |
//! | [`two_phase`] | two-phase collective I/O by messages |
//! | [`shm_aggregation`] | two-phase collective I/O through shared memory of a node |
//! | [`shm_buffer`] | the buffer of one aggregator in shared memory |
//! | [`two_level`] | aggregation between nodes, after each node has merged its pieces |
//! | [`piece_iter`] | iteration over the pieces of a member in a round |
//! | [`bitmap`] | the bitmap of the used bytes in a part of the file |
//! | [`extent_codec`] | the encoding of the used ranges in a message |
//! | [`exchange`] | concurrent nonblocking messages of a collective access |

mod bitmap;
mod exchange;
pub(crate) mod extent_codec;
pub(crate) mod node_map;
mod piece_iter;
pub(crate) mod plan;
pub(crate) mod shm_aggregation;
mod shm_buffer;
mod two_level;
pub(crate) mod two_phase;
