//! Version 2: any intracommunicator may get a channel of the board, while channels last.
//!
//! # Nodes, leaders, channels
//!
//! A *node* is a port at the board; its number is that of its lines there, which the board tells a port that asks (see `station`).
//! The ranks of a node meet in shared memory (see `meeting`), and its *leader* drives the lines.
//! The leader is one process, because a port belongs to one: the lowest rank of the host in `MPI_COMM_WORLD`.
//! With the simulator, and where `{rank}` in the port's text gives each rank a port of its own, every rank is a node and its leader.
//!
//! # The life of a communicator's channel
//!
//! 1. The members agree on which nodes take part; nodes whose leader is no member, or a single node, refuse with a sentence.
//! 2. The first leader looks for a free channel and takes it for the members' nodes, while all their lines rest.
//!    If others were faster it is the next one's turn; when all are taken, the next component serves.
//! 3. The channel is tested as a wire pair of version 1 is, then the program's barriers go over it.
//! 4. At free each leader enters a last barrier, the *farewell*, and waits for nothing: `MPI_Comm_free` tells members nothing of each other,
//!    but when that barrier is released, every node has left the channel. A leader that sees it gives the channel back.
//!
//! A communicator that has left the hardware, because it did not release in time or a port failed, keeps its channel until the job ends.
//! What a job leaves behind at its death the next job with one of these nodes gives back: its port is claimed, so the owner is dead.
//!
//! | module | what it is |
//! |---|---|
//! | `station` | this process's lines: whose node it is, which channels it uses, farewells |
//! | `lines` | where lines come from: the simulator, a port of this machine |
//! | `setup` | which nodes take part, and a channel for them |
//! | `meeting` | the ranks of a node in shared memory |

mod lines;
mod node_barrier;
mod node_port;
mod setup;

pub use node_port::NodePort;
pub use setup::{bring_up, suits};
