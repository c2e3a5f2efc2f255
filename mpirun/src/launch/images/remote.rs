//! The front end's connection with the guard of a daemon, during a checkpoint or a restart.

use crate::launch::wire::{self, Failure, Frames, FromDaemon, FromGuard, ToDaemon, ToGuard};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use std::fmt;

/// Another host, while the supervisor and the daemon are silent.
pub(super) struct Remote {
    pub number: u32,
    pub name: String,
    to: OwnedFd,
    from: OwnedFd,
    frames: Frames,
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

    /// Sends an order.
    pub(super) fn send(&self, order: ToGuard) -> Result<(), HostError> {
        let bytes = wire::frame(self.number, &ToDaemon::Guard(order));
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(&self.to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(&self.to, PollFlags::OUT),
                Err(_) => return Err(self.failed("mpirun's process has ended")),
            }
        }
        Ok(())
    }

    /// Waits for the answer to an order.
    pub(super) fn receive(&mut self) -> Result<FromGuard, HostError> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let next = self.frames.next_frame();
            let next = next.map_err(|error| self.failed(error.to_string()))?;
            if let Some((_, body)) = next {
                match wire::open(&body) {
                    Ok(FromDaemon::Guard(answer)) => return Ok(answer),
                    Ok(FromDaemon::Lost { why, .. }) => return Err(self.failed(why)),
                    Ok(_) => continue,
                    Err(error) => return Err(self.failed(error.to_string())),
                }
            }
            match rustix::io::read(&self.from, &mut buffer) {
                Ok(got @ 1..) => self.frames.push(&buffer[..got]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(&self.from, PollFlags::IN),
                _ if !self.frames.is_greeted() => {
                    return Err(self.failed("it was not reached, or mpirun is not there"));
                }
                _ => return Err(self.failed("mpirun's process has ended")),
            }
        }
    }

    /// Returns the inodes of the pipes to the host and from it.
    pub(super) fn inodes(&self) -> Result<[u64; 2], HostError> {
        let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_ino);
        let inodes = inode(&self.to).and_then(|to| Ok([to, inode(&self.from)?]));
        inodes.map_err(|error| self.failed(error.to_string()))
    }
}

fn wait(fd: &OwnedFd, events: PollFlags) {
    let _ = poll(&mut [PollFd::from_borrowed_fd(fd.as_fd(), events)], None);
}

/// Sends an order to all hosts, and returns their answers, or the worst error.
/// Waits for the answers of all hosts in each case.
///
/// If the processes of one host are damaged, the caller must know it, and if one error is permanent, a repetition is of no use.
pub(super) fn ask_all<T>(
    remotes: &mut [Remote],
    order: impl Fn(&Remote) -> ToGuard,
    meanwhile: impl FnOnce() -> Result<(), HostError>,
    mut read: impl FnMut(&Remote, FromGuard) -> Result<T, HostError>,
) -> Result<Vec<T>, HostError> {
    let sent: Vec<Result<(), HostError>> = remotes
        .iter()
        .map(|remote| remote.send(order(remote)))
        .collect();
    let here = meanwhile();
    let mut errors: Vec<HostError> = here.err().into_iter().collect();
    let mut answers = Vec::new();
    for (remote, sent) in remotes.iter_mut().zip(sent) {
        let answer = sent.and_then(|()| remote.receive());
        match answer.and_then(|answer| read(remote, answer)) {
            Ok(answer) => answers.push(answer),
            Err(error) => errors.push(error),
        }
    }
    let mildness = |error: &HostError| (!error.failure.is_damaged, error.failure.may_repeat);
    match errors.into_iter().min_by_key(mildness) {
        Some(worst) => Err(worst),
        None => Ok(answers),
    }
}

/// Returns the error about an answer that does not belong to the order.
pub(super) fn out_of_order(remote: &Remote) -> HostError {
    remote.failed("mpirun's process has answered another question")
}
