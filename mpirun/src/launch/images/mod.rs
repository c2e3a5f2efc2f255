//! Checkpoints that are images of all processes of a job on this host, taken with CRIU.
//!
//! Such a job has a different front end than other jobs: CRIU dumps the supervisor and all processes
//! below it, so these processes hold no terminal, no file and no socket of the user.
//! The front end forwards standard input and output by pipes, and runs CRIU.
//!
//! A checkpoint takes these steps:
//! 1. The supervisor has written what it has, closes the control socket, and asks for a checkpoint
//!    ([`hold`](super::hold)). It then reads only the answer.
//! 2. The front end empties the pipes of the output, so that no line is in an image and on the
//!    terminal. CRIU freezes and dumps the processes; they continue, or stay stopped if the job
//!    is to end.
//! 3. The front end syncs the images and commits the checkpoint by the rename of its folder.
//! 4. The front end answers with the outcome ([`Go`](super::hold::Go)), or kills the processes.
//!
//! A restart has a front end too, and a process that is the first of a new PID namespace.
//! This process, the *keeper*, runs CRIU and becomes the parent of the restored supervisor, which
//! continues at step 4. If the front end dies, the kernel kills the keeper and with it the job.
//!
//! | module | subject |
//! |---|---|
//! | [`front`] | the front end of a new job |
//! | [`restored`] | the restart: the keeper, and the front end of a restored job |
//! | [`attend`] | the loop of both front ends |
//! | [`take`] | one checkpoint, from the dump to the commit |
//! | [`relay`] | the pipes between the user and the dumped processes |
//! | [`run`] | running CRIU; the trial dump before a job starts |

mod attend;
pub mod front;
mod relay;
pub mod restored;
mod run;
mod take;

pub(crate) use run::version;

use super::supervisor::STOPPED;
