//! Server of `mpi-ctl`: answers requests immediately, a checkpoint request after the checkpoint.

use super::Supervisor;
use super::checkpoints::Asks;
use super::control::checkpoint_rounds;
use super::poller::Watch;
use crate::control::Command;
use crate::control::server::{Asked, ControlSocket};
use printable::name;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, getppid};

/// The maximum number of ranks that a status lists.
const LISTED: usize = 200;

/// The control socket, and the connections that wait for a checkpoint.
#[derive(Default)]
pub(super) struct RemoteControl {
    socket: Option<ControlSocket>,
    /// Waiting connections, each with the number of checkpoint outcomes at the time of the request.
    waiting: Vec<(usize, u64)>,
}

impl RemoteControl {
    /// Creates the control socket under the front end's pid, the pid of mpirun that users see.
    pub(super) fn listen() -> RemoteControl {
        RemoteControl {
            socket: getppid().and_then(ControlSocket::listen),
            waiting: Vec::new(),
        }
    }
}

/// Closes the control socket. Returns the connections that wait for a checkpoint.
pub(super) fn close(supervisor: &mut Supervisor<'_>) -> Vec<OwnedFd> {
    let waiting = std::mem::take(&mut supervisor.remote_control.waiting);
    let Some(socket) = supervisor.remote_control.socket.take() else {
        return Vec::new();
    };
    // A connection that is handed over stays open, so the epoll would keep it.
    for connection in socket.connections() {
        supervisor.poller.unwatch(connection);
    }
    let numbers: Vec<usize> = waiting.into_iter().map(|(number, _)| number).collect();
    socket.into_connections(&numbers)
}

/// Creates the control socket again, under the pid of the present front end.
pub(super) fn listen_again(supervisor: &mut Supervisor<'_>, front_end: Option<Pid>) {
    supervisor.remote_control.socket = front_end.and_then(ControlSocket::listen);
    watch(supervisor);
}

/// Adds the control socket to the epoll, if the socket exists.
pub(super) fn watch(supervisor: &mut Supervisor<'_>) {
    if let Some(socket) = &supervisor.remote_control.socket {
        supervisor.poller.watch(socket, Watch::Control);
    }
}

/// Accepts a connection of `mpi-ctl`.
pub(super) fn accept(supervisor: &mut Supervisor<'_>) {
    let Some(socket) = &mut supervisor.remote_control.socket else {
        return;
    };
    if let Some(number) = socket.accept()
        && let Some(connection) = socket.connection(number)
    {
        supervisor
            .poller
            .watch(connection, Watch::Controller(number));
    }
}

/// Reads a connection of `mpi-ctl` and serves its request.
pub(super) fn read(supervisor: &mut Supervisor<'_>, number: usize) {
    let Some(socket) = &mut supervisor.remote_control.socket else {
        return;
    };
    let command = match socket.read(number) {
        Asked::Nothing => return,
        Asked::Command(command) => command,
        Asked::Ended => {
            supervisor
                .remote_control
                .waiting
                .retain(|(waiting, _)| *waiting != number);
            return socket.close(number);
        }
    };
    let before = supervisor.control.checkpoints.outcomes();
    let reply = match command {
        Command::Status => Ok(status(supervisor)),
        Command::Hang => {
            let links = &mut supervisor.control.ranks.links;
            supervisor.hang_reports.request(links, false);
            Ok("mpirun prints the report".into())
        }
        Command::Stop => {
            supervisor.control.ending.note_user();
            supervisor.control.end(128 + libc::SIGTERM, libc::SIGTERM);
            Ok("the job is asked to end".into())
        }
        Command::Checkpoint { stop } => {
            match checkpoint_rounds::ask(&mut supervisor.control, &Asks::User { stop }) {
                Ok(()) => {
                    supervisor.remote_control.waiting.push((number, before));
                    return;
                }
                Err(why) => Err(format!("no checkpoint is taken: {why}")),
            }
        }
    };
    if let Some(socket) = &mut supervisor.remote_control.socket {
        socket.reply(number, &reply);
    }
}

/// Answers the connections whose checkpoint has an outcome.
pub(super) fn answer_waiting(supervisor: &mut Supervisor<'_>) {
    let RemoteControl { socket, waiting } = &mut supervisor.remote_control;
    let (Some(socket), false) = (socket, waiting.is_empty()) else {
        return;
    };
    let checkpoints = &supervisor.control.checkpoints;
    let outcomes = checkpoints.outcomes();
    waiting.retain(|(number, before)| {
        let is_over = outcomes > *before;
        if is_over {
            socket.reply(*number, &checkpoints.latest_outcome());
        }
        !is_over
    });
}

/// Describes the job for `mpi-ctl status`.
fn status(supervisor: &Supervisor<'_>) -> String {
    ranks(supervisor) + &supervisor.control.checkpoints.status()
}

/// Describes the ranks, each in a line.
pub(super) fn ranks(supervisor: &Supervisor<'_>) -> String {
    let jobs = &supervisor.control.ranks.jobs;
    let mut text = String::new();
    for (_, rank) in jobs.iter().take(LISTED) {
        let state = match rank.alive {
            true => "runs",
            false => "has ended",
        };
        let of = match rank.job.0 {
            0 => String::new(),
            job => format!(" of spawned job {job}"),
        };
        text += &format!(
            "rank {}{of} ({}, pid {}) on {} {state}\n",
            rank.rank,
            name(&rank.program),
            rank.pid,
            jobs.host_name(rank.host)
        );
    }
    let more = jobs.iter().count().saturating_sub(LISTED);
    if more > 0 {
        text += &format!("{more} more ranks\n");
    }
    text
}
