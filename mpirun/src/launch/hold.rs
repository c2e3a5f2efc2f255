//! Messages about checkpoints on the socket between the supervisor and the front end.
//!
//! Other bytes on this socket are signals (to the supervisor) or reports for debuggers.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The supervisor's request for a checkpoint, and for one after which the job ends.
const HOLD: u8 = b'C';
const HOLD_AND_STOP: u8 = b'S';

/// The front end's answer, followed by its length and a [`Go`]; the value is not a signal number.
pub(super) const GO: u8 = 0xff;

/// The maximum number of connections of `mpi-ctl` that the supervisor hands over.
const CONNECTIONS: usize = 16;

/// The maximum length of an encoded [`Go`], far above that of its message.
const LONGEST: usize = 1 << 20;

/// A request of the supervisor, which waits for the answer.
pub(super) struct Held {
    /// Whether the job ends after the checkpoint.
    pub stop: bool,
    /// The connections of `mpi-ctl` that wait for the outcome.
    pub waiting: Vec<OwnedFd>,
}

/// What the supervisor has sent.
pub(super) enum FromSupervisor {
    Nothing,
    Held(Held),
    Closed,
}

/// The answer to the supervisor.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Go {
    /// The message for the user; an error if no checkpoint was taken.
    pub outcome: Result<String, String>,
    /// The process number of the front end, and whether it is the one of a restart.
    pub front_end: i32,
    pub is_restored: bool,
}

/// Asks the front end for a checkpoint, and hands over connections that wait for the outcome.
pub(super) fn hold(
    front_end: impl AsFd,
    stop: bool,
    waiting: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let byte = [if stop { HOLD_AND_STOP } else { HOLD }];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CONNECTIONS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !waiting.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(waiting));
    }
    let bytes = [IoSlice::new(&byte)];
    sendmsg(front_end, &bytes, &mut control, SendFlags::NOSIGNAL).map(|_| ())
}

/// Reads one message of the supervisor, without blocking.
pub(super) fn receive(supervisor: impl AsFd) -> FromSupervisor {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CONNECTIONS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(
        supervisor,
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
    let waiting = messages.flatten().collect();
    match byte {
        [HOLD] | [HOLD_AND_STOP] => FromSupervisor::Held(Held {
            stop: byte == [HOLD_AND_STOP],
            waiting,
        }),
        _ => FromSupervisor::Nothing,
    }
}

/// Sends the answer. An error means that the supervisor has died, which SIGCHLD reports.
pub(super) fn go(supervisor: impl AsFd, go: &Go) {
    let Ok(body) = postcard::to_stdvec(go) else {
        return;
    };
    let mut bytes = vec![GO];
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match rustix::net::send(&supervisor, rest, SendFlags::NOSIGNAL) {
            Ok(sent) => rest = &rest[sent..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Reads the answer after its first byte; blocks. Returns `None` if the front end has died, or the answer is malformed.
pub(super) fn read_go(front_end: impl AsFd) -> Option<Go> {
    let length = exactly(&front_end, 4)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= LONGEST)?;
    let body = exactly(&front_end, length)?;
    postcard::from_bytes(&body).ok()
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
        hold(&supervisor, true, &[connection.as_fd()]).unwrap();
        drop(connection);
        let FromSupervisor::Held(held) = receive(&front) else {
            panic!("no request");
        };
        assert!(held.stop);
        rustix::io::write(&held.waiting[0], b"x").unwrap();
        assert_eq!(rustix::io::read(&client, &mut [0; 4]).unwrap(), 1);
        hold(&supervisor, false, &[]).unwrap();
        let plain = receive(&front);
        assert!(matches!(plain, FromSupervisor::Held(held) if held.waiting.is_empty()));
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
            };
            go(&front, &sent);
            let mut first = [0];
            assert_eq!(rustix::io::read(&supervisor, &mut first).unwrap(), 1);
            assert_eq!(first, [GO]);
            assert_eq!(read_go(&supervisor), Some(sent));
        }
    }
}
