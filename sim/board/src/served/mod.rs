//! The board over TCP: one process serves it, and nodes on any host drive and read its wires (`sim:tcp://host:port`).
//!
//! # Guarantees
//!
//! A node's wires are embedded-hal pins, like those of the board in shared memory,
//! and pass the same test suite. A write returns when the server has set the wire and the machine
//! is stable, so any node that reads afterwards sees the effect of the write.
//! Whatever a peer sends, the server keeps running, other nodes' wires keep their levels,
//! and the server's memory stays bounded.
//!
//! # The protocol, version 1
//!
//! Both sides start with eight bytes that are the same in every version: `HWBARR`, the version,
//! and one more byte: from the server the number of nodes, from the client the role (see `frame`).
//! Then the client sends requests of 16 bytes, one at a time, and the server answers each with a reply of 48 bytes.
//! Every reply contains the state of the whole board, so one reply format serves all requests.
//! The server also sends one unsolicited reply to each other node when it releases the barrier.
//!
//! ```text
//! client                          server
//!                      <-- greeting: version, nodes
//! hello: version, node n -->
//!                      <-- Welcome(board)             or Refused(why), and the end
//! Write(level)         -->                            sets the wire, steps the machine until it is settled
//!                      <-- Answer(board)              to the writer
//!                      <-- Released(board)            to every other node, if the write released them
//! Look                 -->
//!                      <-- Answer(board)
//! Withdraw(level,seen) -->                            as Write, unless there was a release after the `seen`-th
//!                      <-- Answer(board)
//! Say(level)           -->                            sets the wire to the eureka line, steps the machines until they are settled
//!                      <-- Eureka(found, first)
//! Hear                 -->
//!                      <-- Eureka(found, first)
//! ReadChannel(number)  -->                            of a board of version 2
//!                      <-- Channel(members, arrived, late, releases, counts)
//! Disconnect           -->                            frees the node; its wire stays as it is
//!                      <-- Disconnected, and the end
//! ```
//!
//! # Version 2
//!
//! A board of version 2 is served by the same frames with version number 2: `Drive` writes all eight lines of a node at once,
//! and in an answer the second word has the node's own lines: the low eight bits are outward,
//! the next five inward. The third word has the channels' counters of releases, twelve bits each.
//! `Drive` sends these counters back: as with `Withdraw`, an arrival is not withdrawn
//! if its channel has released since.
//! An observer receives the releases of all channels and the mask of connected nodes.
//! It requests each channel's state by `ReadChannel`.
//! The machine has one serial receiver. If a `Drive` raises select while another node's select is
//! high, the server answers when that session has ended, so no node has to retry.
//! A node that holds the receiver for six seconds without activity, while others wait,
//! is disconnected.
//!
//! # Reads from memory
//!
//! A waiting node polls.
//! If each of 60 nodes sent a request per poll, the server would be overloaded.
//! While a node's wire differs from the barrier's output, the node needs no request:
//! the next change that it can see is the release, of which the server notifies it.
//! At any other time other nodes may have changed the board without a notification, so a read sends a request.
//! A stored level may be outdated while a release is in flight; this only delays a waiting node.
//! The exception is a node that withdraws: it reads a level and writes it to its wire.
//! If the release is in flight then, the write would be an arrival in the next barrier.
//! Hence `Withdraw`: the server ignores it if a release has already consumed the arrival.
//!
//! # The end of a connection
//!
//! * `Disconnect` frees the node before the server confirms it.
//!   The wire keeps its level, as at a real port whose program ends.
//! * If a connection ends without `Disconnect`, its node has died.
//!   Its wire returns to the barrier's level (idle), so a dead node neither arrives nor,
//!   after a reboot, arrives early.
//!   The node's wire to the eureka line falls; if the node had raised the line,
//!   the line stays high until the release. The server's log names the node.
//!   The kernel notices a dead host after about ten seconds.
//! * A stopped server keeps its connections and answers nothing. A client with a limit
//!   (`detect_loss_within`) sends a `Look` after a quarter of the limit without data,
//!   and reports the server as lost when half of the limit has passed without an answer.
//! * A client whose connection is lost fails at every later access and does not reconnect by itself:
//!   the server has dropped the node's arrival, and only the program knows the consequences.
//!
//! # Trust
//!
//! Peers may send invalid bytes, but the wires are not protected:
//! every process that reaches the port may claim a free node.
//! There is no authentication, so the server listens on the loopback address by default; listen on trusted networks only.
//! A client that sends invalid bytes, floods the server or sends
//! nothing occupies a connection until its greeting is overdue.
//! If all connections are in use, a new client replaces one without a role.
//!
//! | file | contents |
//! |---|---|
//! | `address` | `sim:tcp://host:port` |
//! | `frame` | the frames of the protocol, decoded by total functions |
//! | `board` | the machine of each board version, and the effect of a write |
//! | `hub` | the server without its sockets: the clients, the machine, the answers |
//! | `server` | the sockets of the server |
//! | `line` | a client's connection |
//! | `wires` | a node's wires as pins |
//! | `lines` | a node's lines of version 2 |
//! | `notice` | notices for the log |
//! | `error` | errors of a client |

mod address;
mod board;
mod error;
pub(crate) mod frame;
mod hub;
mod line;
mod lines;
mod notice;
mod server;
#[cfg(test)]
mod tests;
mod wires;

pub use address::{Address, AddressError, SCHEME};
pub use error::{ConnectError, LineError};
pub use frame::{Refusal, Role, View};
pub use line::BoardObserver;
pub use lines::ChannelLines;
pub use notice::{Ended, Notice};
pub use server::{ServeError, Server};
pub use wires::{BoardReader, EurekaInput, EurekaWires, InWire, OutWire, RaiseWire, Wires};
