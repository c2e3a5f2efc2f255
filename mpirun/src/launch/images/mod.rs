//! Checkpoints that are images of all processes of a job, taken with CRIU.
//!
//! Such a job has a different front end than other jobs: CRIU dumps the supervisor and all processes
//! below it, so these processes hold no terminal, no file and no socket of the user.
//! The front end forwards standard input and output by pipes, and runs CRIU.
//!
//! A checkpoint takes these steps:
//! 1. The supervisor has written what it has, closes the control socket, and asks for a checkpoint
//!    (`launch::hold`). It then reads only the answer.
//! 2. The front end empties the pipes of the output, so that no line is in an image and on the
//!    terminal. It stops the processes, and CRIU dumps them; they continue, or stay stopped if the job
//!    is to end.
//! 3. The front end syncs the images and commits the checkpoint by the rename of its folder.
//! 4. The front end answers with the outcome (`hold::Go`), or kills the processes.
//!
//! A restart has a front end too, and a process that is the first of a new PID namespace.
//! This process, the *keeper*, runs CRIU and becomes the parent of the restored supervisor, which
//! continues at step 4. If the front end dies, the kernel kills the keeper and with it the job.
//!
//! On each other host of a job the *guard* of the daemon has the part of the front end: it forwards the frames
//! of the link, and takes orders of the front end while the supervisor and the daemons are silent.
//! At step 2 all hosts stop their processes, wait until nothing is in flight between them, and dump.
//!
//! | module | subject |
//! |---|---|
//! | `front` | the front end of a new job |
//! | `restored` | the restart: checks, and the front end of a restored job |
//! | `keeper` | the first process of a restored job's PID namespace, which runs CRIU |
//! | `attend` | the loop of both front ends |
//! | `attention` | signals, time limits and signs of life while hosts work |
//! | `requests` | requests of `mpi-ctl` while the job is saved |
//! | `take` | the part of one host in a checkpoint, and the commit |
//! | `several` | one checkpoint of a job on one or several hosts |
//! | `work` | work that takes long, done by a process |
//! | `still` | the processes of this host, stopped |
//! | `guard` | the guard of a daemon |
//! | `remote` | the front end's connection with a guard |
//! | `relay` | the pipes between the user and the dumped processes |
//! | `run` | running CRIU; the trial dump before a job starts |

mod attend;
mod attention;
pub mod front;
pub mod guard;
mod keeper;
mod relay;
mod remote;
mod requests;
pub mod restored;
mod run;
mod several;
mod still;
mod take;
mod work;

pub(crate) use super::hold::HOSTS;
pub use keeper::serve_as_script;
pub(crate) use run::version;

/// The fan-out of a job with images: mpirun reaches each host itself.
pub(crate) const FANOUT: usize = usize::MAX;

use super::supervisor::STOPPED;
