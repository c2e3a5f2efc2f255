//! Transfer of a file descriptor to other processes of the same user, through an abstract socket.
//!
//! Launchers need this transfer if their ranks do not inherit descriptors:
//! the first process of a node (the giver) creates the segment,
//! listens on an abstract socket (a name without a file, which disappears with the process),
//! and sends the descriptor to each process that connects.
//! A process that receives the descriptor (taker) runs as the same user (`SO_PEERCRED`) and sends half of
//! a random key that the launcher has distributed.
//! The giver sends the other half first, so that the taker detects an impostor under that name.
//! Every wait has a deadline.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The reason why a descriptor was not passed.
#[derive(Debug)]
pub enum PassError {
    /// The kernel refused an operation.
    System {
        /// The operation, as the subject of "… failed": "listening on an abstract socket".
        doing: &'static str,
        /// The error that the kernel reported.
        error: io::Error,
    },
    /// Only `served` of `takers` processes connected before the deadline.
    TooFewCame {
        /// The number of processes that have received the descriptor.
        served: usize,
        /// The number of processes that were expected.
        takers: usize,
    },
    /// No process passed a descriptor under this name before the deadline.
    NotGiven {
        /// The abstract socket's name, without the zero byte that the system puts in front.
        name: String,
        /// The error of the last attempt: no process listened, or the listener did not have the key.
        last: String,
    },
}

impl std::fmt::Display for PassError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PassError::System { doing, error } => write!(f, "{doing} failed: {error}"),
            PassError::TooFewCame { served, takers } => write!(
                f,
                "only {served} of {takers} processes of this node came for the shared memory in time"
            ),
            PassError::NotGiven { name, last } => write!(
                f,
                "the first process of this node did not give its shared memory at \"{name}\" in time: {last}"
            ),
        }
    }
}

impl std::error::Error for PassError {}

fn system(doing: &'static str) -> impl FnOnce(io::Error) -> PassError {
    move |error| PassError::System { doing, error }
}

/// A secret shared by giver and takers: the giver sends the first half, the taker the second.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 32]);

const HALF: usize = 16;

impl Key {
    /// Returns a new random key.
    pub fn random() -> Result<Key, PassError> {
        let mut bytes = [0; 32];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut f| f.read_exact(&mut bytes))
            .map_err(system("reading /dev/urandom"))?;
        Ok(Key(bytes))
    }

    /// Returns the key that consists of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// Returns the bytes of the key, for code that derives other values from them.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the key in hexadecimal digits, for a launcher's key-value store.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Parses a key from the hexadecimal digits of [`Key::to_hex`].
    pub fn from_hex(text: &str) -> Option<Key> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Key(bytes))
    }

    fn halves(&self) -> (&[u8], &[u8]) {
        self.0.split_at(HALF)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// Timeout of one read or write, so that a stalled peer cannot use up the common deadline.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process that listens on the abstract socket and sends the descriptor.
#[derive(Debug)]
pub struct Giver {
    listener: UnixListener,
}

impl Giver {
    /// Listens on the abstract socket `name`; takers can connect when the call has returned.
    pub fn bind(name: &str) -> Result<Giver, PassError> {
        let address = SocketAddr::from_abstract_name(name)
            .map_err(system("making an abstract socket name"))?;
        let listener =
            UnixListener::bind_addr(&address).map_err(system("listening on an abstract socket"))?;
        listener
            .set_nonblocking(true)
            .map_err(system("listening on an abstract socket"))?;
        Ok(Giver { listener })
    }

    /// Sends `fd` to `takers` processes that know the key; fails after the deadline.
    pub fn give(
        self,
        fd: BorrowedFd<'_>,
        key: &Key,
        takers: usize,
        deadline: Instant,
    ) -> Result<(), PassError> {
        let mut served = 0;
        while served < takers {
            // The clock is checked for each connection,
            // so unauthorised connections cannot extend the deadline.
            if !readable(self.listener.as_fd(), deadline) || Instant::now() >= deadline {
                return Err(PassError::TooFewCame { served, takers });
            }
            // Unauthorised processes, and those that disconnect early,
            // are not counted and do not fail the job.
            if let Ok((mut stream, _)) = self.listener.accept()
                && give_one(&mut stream, fd, key, deadline).is_ok()
            {
                served += 1;
            }
        }
        Ok(())
    }
}

fn give_one(
    stream: &mut UnixStream,
    fd: BorrowedFd<'_>,
    key: &Key,
    deadline: Instant,
) -> io::Result<()> {
    prepare(stream, deadline)?;
    let (ours, theirs) = key.halves();
    stream.write_all(ours)?;
    expect(stream, theirs)?;
    send(stream.as_fd(), &[1], fd)?;
    // The taker sends a byte as acknowledgement; a taker that died before is not counted.
    expect(stream, &[1])
}

/// Receives the descriptor that a giver sends under `name`; retries until the deadline.
pub fn take(name: &str, key: &Key, deadline: Instant) -> Result<OwnedFd, PassError> {
    let address =
        SocketAddr::from_abstract_name(name).map_err(system("making an abstract socket name"))?;
    let mut pause = Duration::from_micros(200);
    loop {
        let last = match take_once(&address, key, deadline) {
            Ok(fd) => return Ok(fd),
            Err(error) => error,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(PassError::NotGiven {
                name: name.to_string(),
                last: last.to_string(),
            });
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn take_once(address: &SocketAddr, key: &Key, deadline: Instant) -> io::Result<OwnedFd> {
    let mut stream = UnixStream::connect_addr(address)?;
    // The giver serves one taker at a time, so a taker may wait until its deadline.
    stream.set_read_timeout(Some(remaining(deadline)))?;
    let (theirs, ours) = key.halves();
    same_user(&stream)?;
    expect(&mut stream, theirs)?;
    prepare(&stream, deadline)?;
    stream.write_all(ours)?;
    let (_, fd) = receive(stream.as_fd(), &mut [0])?;
    let fd = fd.ok_or_else(|| io::Error::other("the answer carried no descriptor"))?;
    stream.write_all(&[1])?;
    Ok(fd)
}

/// Sends a descriptor together with bytes, which must fit into the socket's buffer.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<()> {
    send_with(socket, bytes, fd, SendFlags::NOSIGNAL).map(drop)
}

/// Sends a descriptor with as many of the bytes as the socket accepts without blocking; returns their number.
/// The descriptor is sent if at least one byte is.
pub fn send_now(socket: BorrowedFd<'_>, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    send_with(socket, bytes, fd, flags)
}

fn send_with(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fd: BorrowedFd<'_>,
    flags: SendFlags,
) -> io::Result<usize> {
    let fds = [fd];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        flags,
    )?)
}

/// Receives bytes and the descriptor sent with them, if any; also returns the number of bytes.
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok((received.bytes, fd))
}

fn remaining(deadline: Instant) -> Duration {
    deadline
        .saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}

fn prepare(stream: &UnixStream, deadline: Instant) -> io::Result<()> {
    same_user(stream)?;
    let limit = Some(remaining(deadline).min(PATIENCE));
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(limit)?;
    stream.set_write_timeout(limit)
}

/// Returns an error if the process at the other end does not run as the same user.
pub fn same_user(stream: impl AsFd) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn expect(stream: &mut UnixStream, what: &[u8]) -> io::Result<()> {
    let mut received = [0; HALF];
    let received = &mut received[..what.len()];
    stream.read_exact(received)?;
    if received == what {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the key is wrong",
        ))
    }
}

fn readable(fd: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)) {
            Ok(n) if n > 0 => return true,
            _ if left.is_zero() => return false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::memfd;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn name(key: &Key) -> String {
        format!("portcullis-test-{}", &key.to_hex()[..16])
    }

    #[test]
    fn every_taker_gets_the_same_file_even_if_it_comes_first() {
        let key = Key::random().unwrap();
        let fd = memfd("test", 4096).unwrap();
        let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_ino;
        std::thread::scope(|s| {
            let takers: Vec<_> = (0..5)
                .map(|_| s.spawn(|| take(&name(&key), &key, soon()).unwrap()))
                .collect();
            let giver = Giver::bind(&name(&key)).unwrap();
            giver.give(fd.as_fd(), &key, 5, soon()).unwrap();
            for taker in takers {
                assert_eq!(inode(&taker.join().unwrap()), inode(&fd));
            }
        });
    }

    #[test]
    fn a_stranger_gets_nothing_and_does_not_count() {
        let key = Key::random().unwrap();
        let fd = memfd("test", 4096).unwrap();
        std::thread::scope(|s| {
            let giver = Giver::bind(&name(&key)).unwrap();
            let stranger = s.spawn(|| {
                let wrong = Key::random().unwrap();
                let limit = Instant::now() + Duration::from_millis(100);
                take(&name(&key), &wrong, limit).is_err()
            });
            let taker = s.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                take(&name(&key), &key, soon()).is_ok()
            });
            giver.give(fd.as_fd(), &key, 1, soon()).unwrap();
            assert!(taker.join().unwrap());
            assert!(stranger.join().unwrap());
        });
    }

    #[test]
    fn strangers_who_keep_coming_do_not_move_the_deadline() {
        let key = Key::random().unwrap();
        let fd = memfd("test", 4096).unwrap();
        let giver = Giver::bind(&name(&key)).unwrap();
        let limit = Instant::now() + Duration::from_millis(100);
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                let address = SocketAddr::from_abstract_name(name(&key)).unwrap();
                let end = soon();
                while !over.load(std::sync::atomic::Ordering::Relaxed) && Instant::now() < end {
                    let _ = UnixStream::connect_addr(&address);
                }
            });
            let given = giver.give(fd.as_fd(), &key, 1, limit);
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(matches!(
                given,
                Err(PassError::TooFewCame { served: 0, .. })
            ));
        });
    }

    #[test]
    fn both_sides_give_up_at_their_deadline_with_a_sentence() {
        let key = Key::random().unwrap();
        let past = Instant::now();
        let error = take(&name(&key), &key, past).unwrap_err();
        assert!(error.to_string().contains("did not give"));
        let fd = memfd("test", 4096).unwrap();
        let giver = Giver::bind(&name(&key)).unwrap();
        let error = giver.give(fd.as_fd(), &key, 2, past).unwrap_err();
        assert!(error.to_string().contains("only 0 of 2"));
    }

    #[test]
    fn a_key_survives_its_text() {
        let key = Key::random().unwrap();
        assert_eq!(Key::from_hex(&key.to_hex()), Some(key));
        assert_eq!(Key::from_hex("zz"), None);
    }
}
