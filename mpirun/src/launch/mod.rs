//! The launcher: a front end that the user sees, a supervisor that owns the ranks, and a daemon on every other host.
//!
//! `mpirun` forks once. The parent, the *front end* ([`frontend`]), forwards signals, feeds a terminal's input to rank 0,
//! and exits with the supervisor's exit code.
//! The child, the *supervisor* (`supervisor`), starts the ranks, serves PMI-1 to them, forwards their output and ends them.
//! A socket joins the two. It carries one byte for each signal; its closing means that the other side has died.
//!
//! A [`daemon`] on each other host starts the ranks there. It is the same program, reached by ssh (`link`, `wire`),
//! and a parent of its own guards it as the front end guards the supervisor.
//! Supervisor and daemon have the same parts for the ranks of their host (`local_ranks`, `starter`) and for the links to other hosts
//! (`links`); they differ in what they do with the news: the supervisor decides, the daemon reports.
//!
//! Promise: whichever process dies, by whatever signal, everything that the launcher started ends within a moment.
//! * A rank dies: the supervisor reaps it and ends the others; if the job survives deaths (`--with-ft`), it notifies the others instead.
//! * The front end dies: the supervisor sees the socket close and ends all ranks.
//! * The supervisor dies: each rank has asked the kernel to die with it, and the front end inherits and kills the orphans below.
//! * A daemon or its host dies: its link closes or falls silent, and the supervisor ends the job, or counts its ranks as dead.
//! * A link closes: the daemon ends everything it has.
//! * Children of ranks: the supervisor is their reaper (`PR_SET_CHILD_SUBREAPER`), and before it ends it kills every descendant it has.
//!
//! Inside a Slurm allocation Slurm starts the ranks of other hosts: the process becomes [`srun`].
//! Open MPI's own launcher starts ranks that use Open MPI's library: the process becomes that launcher ([`foreign_launcher`]).
//!
//! Once the job runs, each of these processes returns the memory that only the start needed (`trim_memory`).
//!
//! No launcher waits for the end of a pipe without a limit, as a stray process may hold its other end.

pub(crate) mod binding;
pub mod daemon;
pub(crate) mod descendants;
pub(crate) mod ending;
mod failed_starts;
pub mod foreign_launcher;
pub mod frontend;
pub(crate) mod limits;
pub(crate) mod link;
pub(crate) mod links;
pub(crate) mod local_ranks;
mod mpir;
pub(crate) mod output;
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

pub use sys::{STACK_MIN, on_a_long_stack, stack_left, survive_file_limit};

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

/// Returns true if a forwarded signal means that the job must end.
pub fn ends_the_job(signal: sys::Signal) -> bool {
    matches!(
        signal,
        libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT
    )
}
