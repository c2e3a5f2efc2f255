//! Collective buffering: a few ranks, the aggregators, perform the interleaved accesses of all ranks.
//!
//! | file | subject |
//! |---|---|
//! | [`plan`] | the agreement of the members whether accesses are individual or aggregated |
//! | [`node_map`] | the map of members to nodes |
//! | [`two_phase`] | two-phase collective I/O by messages |
//! | [`shm_aggregation`] | two-phase collective I/O through shared memory of a node |
//! | [`shm_buffer`] | the buffer of one aggregator in shared memory |
//! | [`two_level`] | aggregation between nodes, after each node has merged the accesses of its members |
//! | [`piece_iter`] | iteration over a member's pieces of a round |
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
