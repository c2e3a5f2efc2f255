//! Launcher: the front end that users see, the supervisor of the ranks, and daemons on other hosts.
//!
//! `mpirun` forks once. The parent is the *front end* ([`frontend`]): it forwards signals and
//! terminal input, and exits with the supervisor's exit code.
//! The child is the *supervisor* (`supervisor`): it starts and ends ranks, serves PMI-1 and
//! forwards output.
//! A socket connects both processes and carries one byte per signal.
//! The socket closes when one of the processes dies.
//!
//! On each other host, a [`daemon`] starts that host's ranks.
//! The daemon is the same program, reached by ssh (`link`, `wire`).
//! A parent process guards the daemon as the front end guards the supervisor.
//! Supervisor and daemon share `local_ranks` and `starter` for ranks, and `links` for links.
//! The supervisor decides what an event means; the daemon only reports events.
//!
//! Promise: if any of these processes dies, all processes of the job end.
//! * A rank dies: the supervisor ends the other ranks, or with `--with-ft` notifies them.
//! * The front end dies: the supervisor's socket closes, and the supervisor ends all ranks.
//! * The supervisor dies: the kernel kills each rank by its parent-death signal.
//!   The front end inherits and kills the orphans.
//! * A daemon or its host dies: the link closes or falls silent.
//!   The supervisor ends the job or counts the daemon's ranks as dead.
//! * A link closes: the daemon ends all its processes.
//! * Children of ranks: the supervisor is a subreaper (`PR_SET_CHILD_SUBREAPER`).
//!   It kills all descendants before it exits.
//!
//! If checkpoints are images of all processes, the front end is another one ([`images`]).
//!
//! Inside a Slurm allocation this process replaces itself by [`srun`] if ranks run on other hosts.
//! For ranks on Open MPI's library this process replaces itself by Open MPI's launcher
//! ([`foreign_launcher`]).
//!
//! Once the job runs, each process returns memory that only the start needed (`trim_memory`).
//!
//! Each wait for the end of a pipe has a time limit, as an orphan may hold the pipe's other end.

mod affinity;
pub mod again;
pub(crate) mod binding;
pub mod daemon;
pub(crate) mod descendants;
pub(crate) mod ending;
mod failed_starts;
pub mod foreign_launcher;
pub mod frontend;
mod hold;
pub mod images;
pub(crate) mod limits;
pub(crate) mod link;
pub(crate) mod links;
pub(crate) mod local_ranks;
mod mpir;
pub(crate) mod output;
mod outside;
pub(crate) mod pmi_socket;
pub mod program;
mod rseq;
pub(crate) mod spawned;
pub mod srun;
pub(crate) mod starter;
pub(crate) mod stdin_fanout;
pub(crate) mod supervisor;
pub(crate) mod sys;
pub(crate) mod term_signals;
pub(crate) mod trim_memory;
pub mod under;
pub(crate) mod wire;

pub use sys::{STACK_MIN, on_a_long_stack, stack_left, survive_file_limit, wait_for_children};

/// Signals that mpirun forwards to the ranks.
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

/// Returns true if a forwarded signal requests the end of the job.
pub fn ends_the_job(signal: sys::Signal) -> bool {
    matches!(
        signal,
        libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT
    )
}
