//! Control socket of a running mpirun, and its client `mpi-ctl`.
//!
//! The socket's abstract name is `portcullis-control-UID-PID`; PID is the front end's process id.
//! An abstract name has no file, so a killed mpirun leaves nothing behind.
//! Each side checks by `SO_PEERCRED` that the peer process belongs to the same user or to root.
//!
//! A request is one line, [`Command`]. The reply is text until the end of the stream;
//! the reply's first line is `ok` or `no`.

pub mod client;
mod command;
pub(crate) mod peer;
mod running;
pub(crate) mod server;

pub use command::{Command, Options};

use rustix::net::SocketAddrUnix;
use rustix::process::{Pid, getuid};

/// The prefix of all socket names.
const NAME: &str = "portcullis-control";

/// The user number of root.
const ROOT: u32 = 0;

/// The maximum length of a request in bytes.
const LONGEST: usize = 256;

/// The first line of a reply to a request that succeeded.
const DONE: &str = "ok";
const REFUSED: &str = "no";

/// Returns the socket address of an mpirun of this user.
fn address(mpirun: Pid) -> Result<SocketAddrUnix, rustix::io::Errno> {
    let name = format!("{NAME}-{}-{}", getuid().as_raw(), mpirun.as_raw_nonzero());
    SocketAddrUnix::new_abstract_name(name.as_bytes())
}

/// Returns true if the process at the other end of a connection may control this user's jobs.
fn is_trusted(socket: &rustix::fd::OwnedFd) -> bool {
    let user = peer::user(socket);
    user.is_some_and(|user| user == getuid().as_raw() || user == ROOT)
}
