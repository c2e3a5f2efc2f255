//! Requests of `mpi-ctl` while the job is saved and the supervisor has no control socket.
//!
//! The front end has the socket for this time. A request for a checkpoint gets the outcome of the present one.

use crate::control::Command;
use crate::control::server::{Asked, ControlSocket, reply_on};
use crate::launch::hold::HANG;
use crate::launch::sys::Signal;
use printable::name;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

pub(super) struct Requests {
    /// `None` if the socket's name is taken.
    socket: Option<ControlSocket>,
    /// The connections of the supervisor that wait for the outcome.
    before: Vec<OwnedFd>,
    /// The connections of `socket` that wait for the outcome.
    waiting: Vec<usize>,
    /// The supervisor's description of the ranks.
    ranks: String,
    dir: String,
    waits_for: String,
    /// Whether the job ends after the checkpoint.
    stops: bool,
    begun: Instant,
}

/// A request that is served as this signal to mpirun, or as [`HANG`].
pub(super) struct Wants(pub Signal);

impl Requests {
    /// Makes the socket. `before` are the connections that wait for the outcome already.
    pub(super) fn open(
        dir: &Path,
        (ranks, stops): (String, bool),
        before: Vec<OwnedFd>,
    ) -> Requests {
        Requests {
            socket: ControlSocket::listen(rustix::process::getpid()),
            before,
            waiting: Vec::new(),
            ranks,
            dir: name(dir).to_string(),
            waits_for: String::new(),
            stops,
            begun: Instant::now(),
        }
    }

    pub(super) fn waits_for(&mut self, what: String) {
        self.waits_for = what;
    }

    /// Returns the descriptors to poll.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let sockets = self.socket.iter();
        sockets.flat_map(|socket| std::iter::once(socket.as_fd()).chain(socket.connections()))
    }

    /// Serves the requests that have arrived. Returns those that are signals to mpirun.
    pub(super) fn serve(&mut self) -> Vec<Wants> {
        let mut wants = Vec::new();
        let Some(mut socket) = self.socket.take() else {
            return wants;
        };
        while socket.accept().is_some() {}
        for number in socket.numbers() {
            let command = match socket.read(number) {
                Asked::Nothing => continue,
                Asked::Ended => {
                    self.waiting.retain(|waiting| *waiting != number);
                    socket.close(number);
                    continue;
                }
                Asked::Command(command) => command,
            };
            match command {
                Command::Status => socket.reply(number, &Ok(self.status())),
                Command::Hang => {
                    wants.push(Wants(HANG));
                    socket.reply(
                        number,
                        &Ok("mpirun prints the report after the checkpoint".into()),
                    );
                }
                Command::Stop => {
                    wants.push(Wants(libc::SIGTERM));
                    socket.reply(number, &Ok("the job is asked to end".into()));
                }
                Command::Checkpoint { stop } if stop && !self.stops => {
                    // The job goes on after the present checkpoint. Without a reply, mpi-ctl asks again.
                }
                Command::Checkpoint { .. } => self.waiting.push(number),
            }
        }
        self.socket = Some(socket);
        wants
    }

    fn status(&self) -> String {
        let waits = match self.waits_for.as_str() {
            "" => String::new(),
            what => format!(", and mpirun waits for {what}"),
        };
        let seconds = self.begun.elapsed().as_secs_f64();
        format!(
            "{}checkpoints in {}: one is being taken since {seconds:.1} s{waits}",
            self.ranks, self.dir
        )
    }

    /// Replies to all connections that wait for the outcome, and closes the socket.
    pub(super) fn close(self, outcome: &Result<String, String>) {
        for connection in &self.before {
            reply_on(connection.as_fd(), outcome);
        }
        if let Some(mut socket) = self.socket {
            for number in self.waiting {
                socket.reply(number, outcome);
            }
        }
    }
}
