//! The board over TCP: one process serves it, and nodes on any host drive and read its wires (`sim:tcp://host:port`).
//!
//! # The promise
//!
//! A node's wires are embedded-hal pins, as those of the board in shared memory, and keep the same suite of claims.
//! A write returns when the server has set the wire and let the machine settle, so a node that reads afterwards, anywhere, sees what it did.
//! Whatever a peer sends, the server keeps running, the other nodes' wires keep their levels, and its memory stays bounded.
//!
//! # The protocol, version 1
//!
//! Both sides begin with eight bytes that are the same in every version: `HWBARR`, the version, and one more byte,
//! from the server its number of nodes, from the client what it wants to be (see [`frame`]).
//! Then the client sends requests of 16 bytes, one at a time, and the server answers each with a reply of 48 bytes.
//! Every reply holds the whole board, so there is one kind of answer.
//! The server also sends one reply unasked to each other node when it releases the barrier.
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
//! Goodbye              -->                            frees the node; its wire stays as it is
//!                      <-- Farewell, and the end
//! ```
//!
//! # Version 2
//!
//! A board of version 2 is served by the same frames under the version 2: `Drive` writes all eight lines of a node at once,
//! and in an answer the second word is the node's own lines, eight outward and above them five inward,
//! and the third word the channels' counters of releases, twelve bits each, which `Drive` gives back:
//! an arrival whose channel has released since is not withdrawn, as with `Withdraw`.
//! An onlooker hears of the releases of all channels, and which nodes are connected.
//! The machine has one serial receiver. A `Drive` that raises select while another node's is high is answered when that one has ended,
//! so no node has to try again; one that holds it for three seconds without a word, while others wait, is cut off.
//!
//! # When a read may be served from memory
//!
//! A node that waits in a barrier polls, and 60 nodes that ask a server about it would keep it from serving.
//! While its wire differs from the barrier's the node needs no question: the next thing it can hear of is the release, and that comes by itself.
//! At any other time others may have changed the board without a word, so a read asks.
//! A release that is still on its way makes a remembered level late, never wrong, except for one use: a node that gives up
//! reads a level, writes it back, and would enter the next barrier by that if the release had come in between.
//! Hence `Withdraw`, which the server ignores if the arrival has been used already.
//!
//! # The end of a connection
//!
//! * `Goodbye` frees the node when it is answered. The wire keeps its level, as at a real port whose program ends.
//! * A connection that ends without it is a node that died. Its wire returns to idle, that is to the barrier's level,
//!   so that the dead neither arrive nor, by a reboot, arrive early; its wire to the eureka line falls, and what it had
//!   found stays found until the release; the server's log names the node.
//!   The kernel notices a dead host after about ten seconds.
//! * A server that is stopped keeps its connections and answers nothing. A client that was given a limit (`notice_within`) sends a
//!   `Look` after a quarter of it without a word, and takes the server for lost when half of it has passed without an answer.
//! * A client whose connection is gone says so at every later access and does not connect again by itself:
//!   between its two connections the barrier has lost its arrival, and only the program knows what that means.
//!
//! # Which peers are trusted
//!
//! None with the bytes and all with the wires: every process that reaches the port may take a free node.
//! So the server listens on the loopback address unless it is told otherwise, and belongs into a network of friends.
//! A stranger that sends rubbish, floods, or says nothing costs a connection slot for the time of a hello, and slots that wait for
//! a hello are given to newcomers when all are in use.
//!
//! | file | what it is |
//! |---|---|
//! | `address` | `sim:tcp://host:port` |
//! | `frame` | every byte of the protocol, decoded by total functions |
//! | `board` | the machine of either version, and what a write does with it |
//! | `hub` | the server without its sockets: which guests are there, the machine, what to answer |
//! | `server` | its sockets |
//! | `line` | a client's connection |
//! | `wires` | a node's wires as pins |
//! | `lines` | a node's lines of version 2 |

mod address;
mod board;
mod error;
mod frame;
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
pub use line::Onlooker;
pub use lines::ChannelLines;
pub use notice::{Ended, Notice};
pub use server::{ServeError, Server};
pub use wires::{EurekaWires, InWire, Lookout, OutWire, SaysWire, ToldWire, Wires};
