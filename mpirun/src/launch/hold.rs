//! Messages about checkpoints on the socket between the supervisor and the front end,
//! and on the socket between a daemon and its guard.
//!
//! Other bytes on this socket are signals (to the supervisor) or reports for debuggers.

use super::sys::Signal;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The supervisor's request for a checkpoint, and for one after which the job ends.
const HOLD: u8 = b'C';
const HOLD_AND_STOP: u8 = b'S';

/// The supervisor's report, at its end, that the job ends because a rank was killed or its host is lost.
pub(super) const DEATH: u8 = b'D';

/// The supervisor's report, at its end, that ranks may still run on a host that is lost.
pub(super) const HOST_LOST: u8 = b'L';

/// The front end's request for a report about all ranks, which `mpi-ctl` has asked for; the value is not a signal number.
pub(super) const HANG: Signal = b'H' as Signal;

/// The front end's answer, followed by its length and a [`Go`]; the value is not a signal number.
const GO: u8 = 0xff;

/// The supervisor's request to start the command that reaches a host.
const REACH: u8 = b'R';

/// The maximum number of descriptors in one message; the kernel's limit is 253.
const DESCRIPTORS: usize = 250;

/// The maximum number of connections of `mpi-ctl` that the supervisor hands over.
const CONNECTIONS: usize = 16;

/// The maximum number of other hosts of a job with images.
pub(crate) const HOSTS: usize = (DESCRIPTORS - CONNECTIONS) / 2;

/// The maximum length of an encoded body, far above those that are sent.
const LONGEST: usize = 1 << 20;

/// A host with its number and name.
pub(super) type NamedHost = (u32, String);

/// A request of the supervisor, which waits for the answer.
pub(super) struct Held {
    /// Whether the job ends after the checkpoint.
    pub stop: bool,
    /// The connections of `mpi-ctl` that wait for the outcome.
    pub waiting: Vec<OwnedFd>,
    /// The other hosts, each with the pipes to it and from it.
    /// For a daemon: its own host, without pipes.
    pub hosts: Vec<(NamedHost, Option<(OwnedFd, OwnedFd)>)>,
    /// The number of each rank's host.
    pub placement: Vec<u32>,
    /// The description of the ranks for `mpi-ctl status`.
    pub ranks: String,
    /// The signal that is a request for a checkpoint.
    pub signal: Option<Signal>,
}

/// The job of a request, for the front end. New fields are added at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Described {
    /// The other hosts; for a daemon its own host.
    pub hosts: Vec<NamedHost>,
    pub placement: Vec<u32>,
    pub ranks: String,
    pub signal: Option<Signal>,
}

/// A request to start a command with these standard files.
pub(super) struct Reach {
    pub command: Vec<OsString>,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
}

/// What the supervisor has sent.
pub(super) enum FromSupervisor {
    Nothing,
    Held(Held),
    /// A request for a checkpoint by a process of another version, which waits for the answer.
    Unreadable,
    Reach(Reach),
    /// The job ends because of the death of a rank.
    Death,
    /// Ranks may still run on a host that is lost.
    HostLost,
    Closed,
}

/// The answer to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Go {
    /// The message for the user; an error if no checkpoint was taken.
    pub outcome: Result<String, String>,
    /// The process number of the front end, and whether it is the one of a restart.
    pub front_end: i32,
    pub is_restored: bool,
    /// The hosts that were given up meanwhile, with the reasons.
    pub lost: Vec<(u32, String)>,
}

/// Asks the front end for a checkpoint. Hands over the connections that wait for the outcome,
/// and for each of `hosts` the pipe to it and the pipe from it.
///
/// The front end may stop this process as soon as it has the whole request.
/// So this process closes the connections before it sends the rest: they must not be in its image.
pub(super) fn hold(
    front_end: impl AsFd,
    stop: bool,
    waiting: Vec<OwnedFd>,
    (job, pipes): (&Described, &[BorrowedFd<'_>]),
) -> io::Result<()> {
    let kind = if stop { HOLD_AND_STOP } else { HOLD };
    let connections = waiting.iter().take(CONNECTIONS).map(AsFd::as_fd);
    let descriptors: Vec<_> = connections.chain(pipes.iter().copied()).collect();
    send_first(&front_end, kind, &descriptors)?;
    drop(descriptors);
    drop(waiting);
    write_body(front_end, job)
}

/// Asks the front end to start a command, which is then not among the dumped processes.
pub(super) fn reach(
    front_end: impl AsFd,
    command: &[OsString],
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
) -> io::Result<()> {
    send_first(&front_end, REACH, &[stdin, stdout])?;
    write_body(front_end, &command)
}

/// Sends the kind of a request with its descriptors; the body follows.
fn send_first(front_end: impl AsFd, kind: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let first = [kind];
    let bytes = [IoSlice::new(&first)];
    sendmsg(front_end, &bytes, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Sends a length and a body, which [`read_body`] reads.
pub(super) fn write_body(socket: impl AsFd, body: &impl Serialize) -> io::Result<()> {
    let body = postcard::to_stdvec(body).map_err(io::Error::other)?;
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend(body);
    send_all(socket, &bytes)
}

fn send_all(socket: impl AsFd, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match rustix::net::send(&socket, rest, SendFlags::NOSIGNAL) {
            Ok(sent) => rest = &rest[sent..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads one message of the supervisor. Does not block if there is none.
pub(super) fn receive(supervisor: impl AsFd) -> FromSupervisor {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(
        &supervisor,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    );
    match received {
        Ok(received) if received.bytes == 1 => {}
        Err(Errno::AGAIN | Errno::INTR) => return FromSupervisor::Nothing,
        _ => return FromSupervisor::Closed,
    }
    let messages = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors: Vec<OwnedFd> = messages.flatten().collect();
    let request = match byte {
        [HOLD] | [HOLD_AND_STOP] => held(&supervisor, byte == [HOLD_AND_STOP], descriptors),
        [DEATH] => Some(FromSupervisor::Death),
        [HOST_LOST] => Some(FromSupervisor::HostLost),
        [REACH] => reached(&supervisor, descriptors),
        _ => return FromSupervisor::Nothing,
    };
    request.unwrap_or(FromSupervisor::Closed)
}

fn held(supervisor: impl AsFd, stop: bool, mut waiting: Vec<OwnedFd>) -> Option<FromSupervisor> {
    let Described {
        hosts,
        placement,
        ranks,
        signal,
    } = match read_bytes(supervisor).map(|body| postcard::from_bytes(&body))? {
        Ok(described) => described,
        Err(_) => return Some(FromSupervisor::Unreadable),
    };
    // The supervisor hands over either two pipes for each host, or none.
    let pipes = match waiting.len().checked_sub(2 * hosts.len()) {
        Some(before) => waiting.split_off(before),
        None => Vec::new(),
    };
    let mut pipes = pipes.into_iter();
    let hosts = hosts
        .into_iter()
        .map(|host| (host, pipes.next().zip(pipes.next())));
    Some(FromSupervisor::Held(Held {
        stop,
        hosts: hosts.collect(),
        waiting,
        placement,
        ranks,
        signal,
    }))
}

fn reached(supervisor: impl AsFd, descriptors: Vec<OwnedFd>) -> Option<FromSupervisor> {
    let command = read_body(supervisor)?;
    let [stdin, stdout] = <[OwnedFd; 2]>::try_from(descriptors).ok()?;
    Some(FromSupervisor::Reach(Reach {
        command,
        stdin,
        stdout,
    }))
}

/// Sends the answer. An error means that the supervisor has died, which SIGCHLD reports.
pub(super) fn go(supervisor: impl AsFd, go: &Go) {
    let Ok(body) = postcard::to_stdvec(go) else {
        return;
    };
    let mut bytes = vec![GO];
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    let _ = send_all(supervisor, &bytes);
}

/// Waits for the answer. Returns `None` if the front end has died.
/// Signals that arrive before the answer are added to `early`.
pub(super) fn wait_for_go(front_end: impl AsFd, early: &mut Vec<Signal>) -> Option<Go> {
    let mut byte = [0; 1];
    loop {
        match rustix::net::recv(&front_end, &mut byte, RecvFlags::empty()) {
            Ok((1, _)) if byte == [GO] => return read_body(&front_end),
            Ok((1, _)) => early.push(Signal::from(byte[0])),
            Err(Errno::INTR) => {}
            _ => return None,
        }
    }
}

/// Reads a length and a body; blocks. Returns `None` if the other side has died, or the body is malformed.
pub(super) fn read_body<T: DeserializeOwned>(socket: impl AsFd) -> Option<T> {
    postcard::from_bytes(&read_bytes(socket)?).ok()
}

/// Reads a length and as many bytes; blocks. Returns `None` if the other side has died, or the length is too large.
fn read_bytes(socket: impl AsFd) -> Option<Vec<u8>> {
    let length = exactly(&socket, 4)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= LONGEST)?;
    exactly(&socket, length)
}

fn exactly(socket: impl AsFd, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match rustix::io::read(&socket, &mut bytes[filled..]) {
            Ok(got @ 1..) => filled += got,
            Err(Errno::INTR) => {}
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    }

    #[test]
    fn a_request_brings_the_connections_that_wait() {
        let (supervisor, front) = pair();
        let (client, connection) = pair();
        assert!(matches!(receive(&front), FromSupervisor::Nothing));
        let described = Described {
            hosts: vec![(4, "far".to_owned())],
            placement: vec![0, 4],
            ranks: "rank 0".into(),
            signal: Some(libc::SIGHUP),
        };
        let (to, from) = pair();
        let pipes = (&described, &[to.as_fd(), from.as_fd()][..]);
        hold(&supervisor, true, vec![connection], pipes).unwrap();
        let FromSupervisor::Held(held) = receive(&front) else {
            panic!("no request");
        };
        assert!(held.stop);
        assert_eq!(held.signal, Some(libc::SIGHUP));
        assert_eq!(
            (held.placement, held.ranks.as_str()),
            (vec![0, 4], "rank 0")
        );
        assert!(matches!(&held.hosts[..], [((4, name), Some(_))] if name == "far"));
        rustix::io::write(&held.waiting[0], b"x").unwrap();
        assert_eq!(rustix::io::read(&client, &mut [0; 4]).unwrap(), 1);
        let alone = (&Described::default(), &[][..]);
        hold(&supervisor, false, Vec::new(), alone).unwrap();
        let plain = receive(&front);
        assert!(matches!(plain, FromSupervisor::Held(held) if held.waiting.is_empty()));
        hold(&supervisor, false, Vec::new(), (&described, &[])).unwrap();
        let daemon = receive(&front);
        assert!(matches!(daemon, FromSupervisor::Held(held) if held.hosts[0].1.is_none()));
        reach(&supervisor, &["ssh".into()], to.as_fd(), from.as_fd()).unwrap();
        let asked = receive(&front);
        assert!(matches!(asked, FromSupervisor::Reach(reach) if reach.command == ["ssh"]));
        drop(supervisor);
        assert!(matches!(receive(&front), FromSupervisor::Closed));
    }

    #[test]
    fn a_request_of_another_version_is_told_apart_from_the_end_of_its_sender() {
        let (supervisor, front) = pair();
        send_first(&supervisor, HOLD, &[]).unwrap();
        write_body(&supervisor, &vec![(1_u32, "far")]).unwrap();
        assert!(matches!(receive(&front), FromSupervisor::Unreadable));
        hold(&supervisor, false, Vec::new(), (&Described::default(), &[])).unwrap();
        assert!(matches!(receive(&front), FromSupervisor::Held(_)));
        drop(supervisor);
        assert!(matches!(receive(&front), FromSupervisor::Closed));
    }

    #[test]
    fn an_answer_of_any_length_arrives_whole() {
        let (supervisor, front) = pair();
        for outcome in [Ok("taken".into()), Err("no ".repeat(3000))] {
            let sent = Go {
                outcome,
                front_end: 7,
                is_restored: true,
                lost: vec![(1, "silent".into())],
            };
            rustix::io::write(&front, &[1]).unwrap();
            go(&front, &sent);
            let mut early = Vec::new();
            assert_eq!(wait_for_go(&supervisor, &mut early), Some(sent));
            assert_eq!(early, [1]);
        }
    }
}
