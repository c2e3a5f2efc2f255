//! Point-to-point calls in lanes (module `lanes`): the functions that execute a call without the global lock.
//!
//! `lane_X` returns `None` if the call belongs to lane 0; the call then takes the normal path.
//! Arguments are checked as in the normal path.
//! Buffers of derived datatypes are packed before, and unpacked after, the call is in its lane.

pub mod completion;
mod mixed;
pub mod p2p;
pub mod persistent;
pub mod probe;
pub mod requests;
pub mod sendrecv;
