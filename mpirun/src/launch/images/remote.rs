//! The front end's connection with the guard of a daemon, during a checkpoint or a restart.

use super::attention::Attention;
use super::work::Work;
use crate::launch::hold::Go;
use crate::launch::wire::{self, Failure, Frames, FromDaemon, FromGuard, ToDaemon, ToGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::fmt;
use std::time::Instant;

/// The maximum wait for space in the pipe to a host.
const FULL: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

const ENDED: &str = "mpirun's process has ended";

/// The reason why no checkpoint is taken after a signal that ends the job.
pub(super) const ENDED_BY_USER: &str = "a signal ends the job";

/// Another host, while the supervisor and the daemon are silent.
pub(super) struct Remote {
    pub number: u32,
    pub name: String,
    to: OwnedFd,
    from: OwnedFd,
    frames: Frames,
    heard: Instant,
    /// The reason why this host was given up.
    lost: Option<String>,
}

/// An error on one of the hosts; displays as a sentence that names another host.
#[derive(Clone, Debug)]
pub(super) struct HostError {
    /// The name of another host; `None` for this host.
    pub host: Option<String>,
    pub failure: Failure,
}

impl HostError {
    /// An error on this host.
    pub(super) fn here(failure: Failure) -> HostError {
        HostError {
            host: None,
            failure,
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "on {}: {}", printable::name(host), self.failure.why),
            None => f.write_str(&self.failure.why),
        }
    }
}

impl Remote {
    /// `pipes` are those to the host and from it; `is_new` if the guard has yet to send its greeting.
    pub(super) fn new(
        (number, name): (u32, String),
        (to, from): (OwnedFd, OwnedFd),
        is_new: bool,
    ) -> Remote {
        Remote {
            number,
            name,
            to,
            from,
            frames: Frames::new(is_new),
            heard: Instant::now(),
            lost: None,
        }
    }

    pub(super) fn failed(&self, why: impl Into<String>) -> HostError {
        self.error(Failure::of(why))
    }

    pub(super) fn error(&self, failure: Failure) -> HostError {
        HostError {
            host: Some(self.name.clone()),
            failure,
        }
    }

    /// Sends an order. Another host reads each order before the next one, so the pipe has space.
    fn send_order(&mut self, order: ToGuard) -> Result<(), HostError> {
        if let Some(why) = &self.lost {
            return Err(self.failed(why.clone()));
        }
        let bytes = wire::frame(self.number, &ToDaemon::Guard(order));
        match self.write(&bytes) {
            true => Ok(()),
            false => Err(self.lose(ENDED)),
        }
    }

    /// Sends the order that has no answer.
    pub(super) fn send_go(&mut self, go: &Go) -> Result<(), HostError> {
        self.send_order(ToGuard::Go(go.clone()))
    }

    /// Shows that the front end lives. An error is found by the next order.
    fn show_life(&self) {
        if self.lost.is_none() {
            // A frame that is written in part would make the stream unreadable, and pipes write short frames whole.
            let _ = rustix::io::write(&self.to, &wire::frame(self.number, &ToDaemon::Heartbeat));
        }
    }

    fn write(&self, mut rest: &[u8]) -> bool {
        while !rest.is_empty() {
            match rustix::io::write(&self.to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&self.to, PollFlags::OUT)];
                    if !poll(&mut fds, Some(&FULL)).is_ok_and(|ready| ready > 0) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Reads an answer to an order. Returns `None` if it has not arrived yet.
    fn receive(&mut self) -> Result<Option<FromGuard>, HostError> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let next = self.frames.next_frame();
            let next = next.map_err(|error| self.lose(error.to_string()))?;
            if let Some((_, body)) = next {
                match wire::open(&body) {
                    Ok(FromDaemon::Guard(answer)) => return Ok(Some(answer)),
                    Ok(FromDaemon::Lost { why, .. }) => return Err(self.lose(why)),
                    Ok(_) => continue,
                    Err(error) => return Err(self.lose(error.to_string())),
                }
            }
            match rustix::io::read(&self.from, &mut buffer) {
                Ok(got @ 1..) => {
                    self.heard = Instant::now();
                    self.frames.push(&buffer[..got]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                _ if !self.frames.is_greeted() => {
                    return Err(self.lose("it was not reached, or mpirun is not there"));
                }
                _ => return Err(self.lose(ENDED)),
            }
        }
    }

    /// Gives the host up. Its late answers would be mistaken for those to later orders, so it gets no orders any more.
    fn lose(&mut self, why: impl Into<String>) -> HostError {
        let why = why.into();
        self.lost = Some(why.clone());
        self.failed(why)
    }

    /// Returns the number of the host and the reason, if the host was given up.
    pub(super) fn lost(&self) -> Option<(u32, String)> {
        self.lost.clone().map(|why| (self.number, why))
    }

    /// Returns the time of the last message; `None` if the guard has not sent its greeting.
    fn heard(&self) -> Option<Instant> {
        self.frames.is_greeted().then_some(self.heard)
    }

    /// Returns the inodes of the pipes to the host and from it.
    pub(super) fn inodes(&self) -> Result<[u64; 2], HostError> {
        let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_ino);
        let inodes = inode(&self.to).and_then(|to| Ok([to, inode(&self.from)?]));
        inodes.map_err(|error| self.failed(error.to_string()))
    }
}

/// Sends an order to all hosts unless a signal ends the job; see [`ask`].
pub(super) fn ask_all<H: 'static, T>(
    attention: &mut Attention,
    remotes: &mut [Remote],
    order: impl Fn(&Remote) -> ToGuard,
    here: impl FnOnce() -> Work<H>,
    read: impl FnMut(&Remote, FromGuard) -> Result<T, HostError>,
) -> Result<(H, Vec<T>), HostError> {
    match attention.end() {
        Some(_) => Err(HostError::here(Failure::of(ENDED_BY_USER))),
        None => ask(attention, remotes, order, here, read),
    }
}

/// Sends an order to all hosts while this host does its part, and returns the outcome here and the answers, or the worst error.
/// Waits for all hosts in each case, but no longer than their time limits.
///
/// If the processes of one host are damaged, the caller must know it, and if one error is permanent, a repetition is of no use.
pub(super) fn ask<H: 'static, T>(
    attention: &mut Attention,
    remotes: &mut [Remote],
    order: impl Fn(&Remote) -> ToGuard,
    here: impl FnOnce() -> Work<H>,
    mut read: impl FnMut(&Remote, FromGuard) -> Result<T, HostError>,
) -> Result<(H, Vec<T>), HostError> {
    let begun = Instant::now();
    let mut answers: Vec<Option<Result<T, HostError>>> = Vec::new();
    for remote in remotes.iter_mut() {
        let order = order(remote);
        answers.push(remote.send_order(order).err().map(Err));
    }
    let (mut work, mut done) = (Some(here()), None);
    loop {
        for (remote, answer) in remotes.iter_mut().zip(&mut answers) {
            if answer.is_some() {
                continue;
            }
            *answer = match remote.receive() {
                Ok(Some(found)) => Some(read(remote, found)),
                Ok(None) => {
                    let overdue = attention.overdue(remote.heard(), begun);
                    overdue.map(|why| Err(remote.lose(why)))
                }
                Err(error) => Some(Err(error)),
            };
        }
        if work.as_ref().is_some_and(Work::is_done) {
            done = work.take().map(Work::finish);
        } else if attention.is_overdue(begun) {
            let step = attention.step();
            done = work.take().map(|work| Err(work.give_up(step))).or(done);
        }
        let missing = remotes.iter().zip(&answers);
        let missing: Vec<&Remote> = missing
            .filter_map(|(remote, answer)| answer.is_none().then_some(remote))
            .collect();
        if work.is_none() && missing.is_empty() {
            break;
        }
        attention.waits_for(names(&missing, work.is_some()));
        if attention.takes_sign() {
            remotes.iter().for_each(Remote::show_life);
        }
        let pipes = missing.iter().map(|remote| remote.from.as_fd());
        let fds: Vec<BorrowedFd<'_>> = pipes.chain(work.iter().filter_map(Work::fd)).collect();
        attention.wait(&fds, begun);
    }
    let mut errors = Vec::new();
    let here = match done {
        Some(Ok(here)) => Some(here),
        Some(Err(failure)) => {
            errors.push(HostError::here(failure));
            None
        }
        None => None,
    };
    let mut all = Vec::new();
    for answer in answers.into_iter().flatten() {
        match answer {
            Ok(answer) => all.push(answer),
            Err(error) => errors.push(error),
        }
    }
    let mildness = |error: &HostError| (!error.failure.is_damaged, error.failure.may_repeat);
    match (errors.into_iter().min_by_key(mildness), here) {
        (None, Some(here)) => Ok((here, all)),
        (Some(worst), _) => Err(worst),
        (None, None) => Err(HostError::here(Failure::of(ENDED_BY_USER))),
    }
}

/// Completes work of this host while the other hosts wait for an order. The work has no limit.
pub(super) fn complete<T: 'static>(
    attention: &mut Attention,
    remotes: &[Remote],
    work: Work<T>,
) -> Result<T, Failure> {
    let begun = Instant::now();
    while !work.is_done() {
        if attention.takes_sign() {
            remotes.iter().for_each(Remote::show_life);
        }
        attention.wait(work.fd().as_slice(), begun);
    }
    work.finish()
}

/// Names the hosts that have not answered, for `mpi-ctl status`.
fn names(missing: &[&Remote], waits_here: bool) -> String {
    const MOST: usize = 5;
    let here = waits_here.then(|| "this host".to_owned());
    let others = missing
        .iter()
        .map(|remote| printable::name(&remote.name).to_string());
    let mut named: Vec<String> = here.into_iter().chain(others).collect();
    let more = named.len().saturating_sub(MOST);
    named.truncate(MOST);
    if more > 0 {
        named.push(format!("{more} more hosts"));
    }
    named.join(", ")
}

/// Returns the error about an answer that does not belong to the order.
pub(super) fn out_of_order(remote: &Remote) -> HostError {
    remote.failed("mpirun's process has answered another order")
}
