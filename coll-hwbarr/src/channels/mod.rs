//! Version 2: any intracommunicator may get a channel of the board, as long as one is free.
//!
//! # Nodes, leaders, channels
//!
//! A *node* is a port of the board; its number is that of its lines there,
//! which the leader finds out from the board (see `node_port`).
//! The ranks of a node synchronise by a shared-memory barrier (see `node_barrier`), and the *leader* of the node drives the lines.
//! The leader is the lowest rank of the host in `MPI_COMM_WORLD`: one process, because only one can claim a port.
//! With the simulator, or if `{rank}` in the port's text gives each rank its own port,
//! every rank is a node and its leader.
//!
//! # The life cycle of a communicator's channel
//!
//! 1. The members agree on the participating nodes. A node whose leader is not a member, or a single node, refuses with a reason.
//! 2. The first leader searches for a free channel and takes it for the members' nodes while all their lines are idle.
//!    If another communicator was faster, it tries the next channel; if all are taken, the next component serves.
//! 3. The channel is tested like a wire pair of version 1; then the program's barriers use it.
//! 4. At free each leader enters a last barrier, the *farewell*, without waiting:
//!    `MPI_Comm_free` does not synchronise,
//!    but the release of that barrier proves that every node has left the channel. A leader that sees the release gives the channel back.
//!
//! A communicator that has left the hardware after a timeout or a port failure keeps its channel until the job ends.
//! The next job on one of these nodes releases the channels of a dead job: it holds the claim on the port, so the owner is dead.
//!
//! | module | what it is |
//! |---|---|
//! | `node_port` | this process's node, its lines, the channels it uses, farewells |
//! | `lines` | opening the lines: simulator, port of this machine, served board |
//! | `setup` | the participating nodes, and a channel for them |
//! | `node_barrier` | the shared-memory barrier of a node's ranks |

mod lines;
mod node_barrier;
mod node_port;
mod setup;

pub use node_port::NodePort;
#[cfg(test)]
pub(crate) use setup::chosen;
pub use setup::{bring_up, suits};
