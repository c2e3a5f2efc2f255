//! Version 2: channels of the board for any intracommunicator, as long as one is free.
//!
//! # Nodes, leaders, channels
//!
//! A *node* is a port of the board; its number is the number of its lines on the board,
//! which the leader determines by requests to the board (see `node_port`).
//! The ranks of a node synchronise in shared memory (see `node_barrier`), and their *leader* drives the lines.
//! The leader is the host's lowest rank in `MPI_COMM_WORLD`: one process, as only one can claim a port.
//! With the simulator, or if `{rank}` in the port's text gives each rank a port of its own,
//! every rank is a node and the leader of that node.
//!
//! # The life cycle of a communicator's channel
//!
//! 1. The members agree on the participating nodes.
//!    A node whose leader is not a member, or a single node, refuses with a reason.
//! 2. The first leader takes a free channel for the members' nodes while all their lines are idle.
//!    If another communicator has taken it first, the leader tries the next channel;
//!    if all are taken, the next component performs the communicator's barriers.
//! 3. The channel is tested like a wire pair of version 1; then it performs the program's barriers.
//! 4. When the communicator is freed, each leader enters a last barrier, the *farewell*, without a wait:
//!    `MPI_Comm_free` does not synchronise,
//!    but the release of that barrier proves that every node has left the channel.
//!    A leader that sees the release frees the channel.
//!
//! After a timeout or a port failure, a communicator keeps its channel until the job ends.
//! The next job on one of these nodes frees the channels of a dead job:
//! it holds the claim on the port, so the process that took them is dead.
//!
//! | module | content |
//! |---|---|
//! | `node_port` | this process's node, its lines, the channels it uses, and their farewells |
//! | `lines` | opening the lines: simulator, port of this machine, served board |
//! | `setup` | the choice of the participating nodes, and of a channel for them |
//! | `node_barrier` | the shared-memory barrier of a node's ranks |

mod lines;
mod node_barrier;
mod node_port;
mod setup;

pub use node_port::NodePort;
#[cfg(test)]
pub(crate) use setup::chosen;
pub use setup::{bring_up, suits};
