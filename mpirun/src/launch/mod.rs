//! Launching: a front end that the user sees, a supervisor that owns the ranks, and a daemon on every other host.
//!
//! `mpirun` forks once. The parent, the *front end* ([`frontend`]), does little: it passes signals on, feeds a terminal's input to rank 0,
//! and ends with the supervisor's exit code.
//! The child, the *supervisor* (`supervisor`), starts the ranks, serves PMI-1 to them, forwards their output and ends them.
//! The two are joined by a socket, which has no messages but one byte for a signal; its closing means that the other side has died.
//!
//! Ranks of another host are started by a [`daemon`] there, which is the same program, reached by ssh (`link`, `wire`)
//! and guarded by a parent of its own as the supervisor is by the front end.
//!
//! Promise: whichever process dies, by whatever signal, everything that was started is gone within a moment.
//! * A rank dies: the supervisor reaps it and ends the others, or, where the job survives deaths (`--with-ft`), tells the others.
//! * The front end dies: the supervisor sees the socket close and ends all.
//! * The supervisor dies: each rank has asked the kernel to die with it, and orphans below come to the front end, which kills them.
//! * A daemon dies, or its host: its link closes or falls silent, and the supervisor ends all, or takes its ranks for dead.
//! * A link closes: the daemon ends everything it has.
//! * Children of ranks: the supervisor is their reaper (`PR_SET_CHILD_SUBREAPER`), and before it ends it kills every descendant it has.
//!
//! Inside a Slurm allocation other hosts are Slurm's business: the process becomes [`srun`].
//! Ranks on Open MPI's library are that launcher's business: the process becomes it ([`theirs`]).
//!
//! Once the job runs, each of these processes gives back what only the start needed (`slim`).
//!
//! No launcher ever waits for the end of a pipe, as a stray process may hold its other end.

pub(crate) mod asking;
pub(crate) mod binding;
pub mod daemon;
pub(crate) mod descendants;
pub(crate) mod ending;
pub mod frontend;
pub(crate) mod limits;
pub(crate) mod link;
pub(crate) mod output;
pub(crate) mod pmi_socket;
pub mod program;
pub(crate) mod ranks;
mod rseq;
pub mod srun;
pub(crate) mod stdin_fanout;
pub(crate) mod supervisor;
pub(crate) mod sys;
pub mod theirs;
pub(crate) mod trim_memory;
pub(crate) mod wire;

pub use sys::{STACK_MIN, on_a_long_stack, stack_left, survive_file_limit};

/// Signals that mpirun passes on to the ranks.
pub const FORWARDED: [sys::Signal; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// Whether a forwarded signal means that the job is to end.
pub fn ends_the_job(signal: sys::Signal) -> bool {
    matches!(
        signal,
        libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT
    )
}
