//! The socket through which processes of other jobs receive segments. Its name is abstract, so it has no file and disappears with its process.
//!
//! ```text
//! card, key "sm":   machine u64 | name u64 | secret u64
//! caller -> socket: secret u64 | caller's name u64, and the memory's descriptor
//! either -> other:  GOODBYE, the last message to this segment has been written
//! either -> other:  end of the stream, all messages in this segment have been read
//! ```
//!
//! The caller (the connecting process) does not wait: its first message fits into the socket's buffer, and the segment may contain messages before the first message is read.
//! A process ends its direction of the stream when both processes have sent their disconnect message and it has read the other process's messages.
//! If the stream ends without a disconnect message, the process at the other end has died.
//!
//! Only callers of the same user that know the secret are accepted.
//! A caller that sends nothing is dropped after [`PATIENCE`], and does not block other callers.
//! Any user can see the socket's name and fill its queue of connections. The owner rejects processes of other users in its next poll; until then a caller waits behind them.

use mpi_base::fdpass::{self, Key};
use rustix::event::epoll;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recv, send, shutdown, socket_with,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time limit for a caller's first message.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of callers whose first message has not arrived; if one more connects, the oldest is dropped.
const GUESTS: usize = 64;
const BACKLOG: i32 = 128;
/// Maximum number of connections accepted or rejected per poll,
/// so that many connections cannot block this process.
const ACCEPTED: usize = 2 * BACKLOG as usize;
/// Maximum time that a caller waits for space in a full queue; it makes no other progress during this time.
const QUEUE: Duration = Duration::from_secs(2);
const GOODBYE: u8 = b'G';

/// The address of a process's socket, from its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The machine's ID; see [`crate::rte::machine`].
    pub machine: u64,
    name: u64,
    secret: u64,
}

impl Entry {
    fn random() -> io::Result<Entry> {
        let key = Key::random().map_err(io::Error::other)?;
        let [name, secret] = [0, 8].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&key.bytes()[at..at + 8]);
            u64::from_le_bytes(word)
        });
        Ok(Entry {
            machine: crate::rte::machine(),
            name,
            secret,
        })
    }

    pub fn encode(self) -> [u8; 24] {
        let mut out = [0; 24];
        for (place, word) in (out.chunks_mut(8)).zip([self.machine, self.name, self.secret]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Entry> {
        let bytes: &[u8; 24] = bytes.try_into().ok()?;
        Some(Entry {
            machine: word(bytes, 0),
            name: word(bytes, 8),
            secret: word(bytes, 16),
        })
    }

    fn address(self) -> io::Result<SocketAddrUnix> {
        let name = format!("portcullis-meeting-{:016x}", self.name);
        Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Connects to the process at `entry` and passes a segment to it. Returns the connected socket.
pub(super) fn call(entry: Entry, name: u64, memory: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let socket = socket()?;
    reach(&socket, entry)?;
    fdpass::same_user(&socket)?;
    let mut greeting = [0; 16];
    greeting[..8].copy_from_slice(&entry.secret.to_le_bytes());
    greeting[8..].copy_from_slice(&name.to_le_bytes());
    fdpass::send(socket.as_fd(), &greeting, memory)?;
    Ok(socket)
}

/// Connects. If the queue is full, waits for space; the kernel serves waiting callers in order.
fn reach(socket: &OwnedFd, entry: Entry) -> io::Result<()> {
    let address = entry.address()?;
    match connect(socket, &address) {
        Err(Errno::AGAIN) => {}
        other => return Ok(other?),
    }
    set_socket_timeout(socket, Timeout::Send, Some(QUEUE))?;
    ioctl_fionbio(socket, false)?;
    let found = connect(socket, &address);
    ioctl_fionbio(socket, true)?;
    match found {
        Err(Errno::AGAIN) => Err(io::Error::other(format!(
            "the queue of its socket @portcullis-meeting-{:016x} has been full for {} s, by callers that it has not answered yet, or by processes of other users",
            entry.name,
            QUEUE.as_secs()
        ))),
        other => Ok(other?),
    }
}

/// A caller that has been accepted because it knows the secret.
pub(super) struct Caller {
    pub name: u64,
    pub memory: OwnedFd,
    pub socket: OwnedFd,
}

/// How the other process has ended its use of the segment, as received on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The other process writes no more messages to this segment, but still reads it.
    Goodbye,
    /// The other process reads the segment no more.
    /// If its disconnect message arrived before, it has read all messages or has left MPI; otherwise it has died.
    Closed,
}

/// Polls the socket, and returns how the other process has ended its use of the segment; `None` if it still uses it.
pub(super) fn end(socket: BorrowedFd<'_>) -> Option<End> {
    let mut byte = [0];
    match recv(socket, &mut byte, RecvFlags::DONTWAIT) {
        Ok((_, 1)) if byte == [GOODBYE] => Some(End::Goodbye),
        Err(error) if error == rustix::io::Errno::AGAIN || error == rustix::io::Errno::INTR => None,
        _ => Some(End::Closed),
    }
}

/// Sends the disconnect message: this process writes no more messages to the segment.
/// It continues to read until the other process's disconnect message arrives.
pub(super) fn say_goodbye(socket: BorrowedFd<'_>) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = send(socket, &[GOODBYE], flags);
}

/// Ends this process's direction of the stream: this process has read all messages of the other process,
/// whose disconnect message has arrived.
pub(super) fn confirm(socket: BorrowedFd<'_>) {
    let _ = shutdown(socket, Shutdown::Write);
}

/// The socket on which this process accepts processes of other jobs.
pub(super) struct Meeting {
    entry: Entry,
    listener: Option<OwnedFd>,
    guests: Vec<(OwnedFd, Instant)>,
}

impl Meeting {
    pub fn open(epoll: BorrowedFd<'_>) -> io::Result<Meeting> {
        let mut meeting = Meeting {
            entry: Entry::random()?,
            listener: None,
            guests: Vec::new(),
        };
        meeting.listen(epoll)?;
        Ok(meeting)
    }

    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Listens under the name on the card. Also used to listen again after [`Meeting::close`].
    pub fn listen(&mut self, epoll: BorrowedFd<'_>) -> io::Result<()> {
        let listener = socket()?;
        bind(&listener, &self.entry.address()?)?;
        listen(&listener, BACKLOG)?;
        watch(epoll, listener.as_fd())?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Stops listening and drops the callers whose first message has not arrived.
    pub fn close(&mut self) {
        self.listener = None;
        self.guests.clear();
    }

    /// Accepts connections, and returns the callers whose first message has arrived with the secret.
    pub fn callers(&mut self, epoll: BorrowedFd<'_>) -> Vec<Caller> {
        for _ in 0..ACCEPTED {
            let Some(listener) = &self.listener else {
                break;
            };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(guest) = accept_with(listener, flags) else {
                break;
            };
            if fdpass::same_user(&guest).is_ok() && watch(epoll, guest.as_fd()).is_ok() {
                if self.guests.len() == GUESTS {
                    self.guests.remove(0);
                }
                self.guests.push((guest, Instant::now() + PATIENCE));
            }
        }
        let mut callers = Vec::new();
        for (socket, until) in std::mem::take(&mut self.guests) {
            let mut greeting = [0; 16];
            match fdpass::receive(socket.as_fd(), &mut greeting) {
                Ok((16, Some(memory))) if word(&greeting, 0) == self.entry.secret => {
                    callers.push(Caller {
                        name: word(&greeting, 8),
                        memory,
                        socket,
                    });
                }
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until =>
                {
                    self.guests.push((socket, until));
                }
                // The caller does not know the secret, has disconnected, or has sent nothing for too long.
                _ => {}
            }
        }
        callers
    }
}

/// Registers a socket with epoll. All sockets have the same token, because the owner polls all of them after an event.
pub(super) fn watch(epoll: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> io::Result<()> {
    let token = epoll::EventData::new_u64(0);
    Ok(epoll::add(epoll, socket, token, epoll::EventFlags::IN)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_base::mem::memfd;

    fn poller() -> OwnedFd {
        epoll::create(epoll::CreateFlags::CLOEXEC).unwrap()
    }

    /// Connects callers that send nothing until the queue is full.
    fn fill(entry: Entry) -> Vec<OwnedFd> {
        let mut strangers = Vec::new();
        loop {
            let stranger = socket().unwrap();
            match connect(&stranger, &entry.address().unwrap()) {
                Ok(()) => strangers.push(stranger),
                Err(error) => {
                    assert_eq!(error, Errno::AGAIN);
                    return strangers;
                }
            }
        }
    }

    #[test]
    fn a_caller_waits_for_its_place_in_a_full_queue() {
        let epoll = poller();
        let mut meeting = Meeting::open(epoll.as_fd()).unwrap();
        let entry = meeting.entry();
        let strangers = fill(entry);
        assert!(strangers.len() > BACKLOG as usize);
        let memory = memfd("test", 4096).unwrap();
        std::thread::scope(|s| {
            let caller = s.spawn(|| call(entry, 7, memory.as_fd()));
            // By now the caller has normally found the queue full; the first poll follows.
            std::thread::sleep(Duration::from_millis(50));
            let mut polls = 0;
            let come = loop {
                // When `call` has returned, the first message has been sent.
                polls += u32::from(caller.is_finished());
                if let Some(caller) = meeting.callers(epoll.as_fd()).pop() {
                    break caller;
                }
                assert!(polls < 100, "the caller has given up");
                std::thread::yield_now();
            };
            assert_eq!(come.name, 7);
            caller.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_queue_that_stays_full_is_named() {
        let epoll = poller();
        let meeting = Meeting::open(epoll.as_fd()).unwrap();
        let entry = meeting.entry();
        let _strangers = fill(entry);
        let memory = memfd("test", 4096).unwrap();
        let said = call(entry, 7, memory.as_fd()).unwrap_err().to_string();
        assert!(
            said.contains("@portcullis-meeting-") && said.contains("has been full for 2 s"),
            "{said}"
        );
    }

    #[test]
    fn one_poll_ends_although_strangers_keep_calling() {
        let epoll = poller();
        let mut meeting = Meeting::open(epoll.as_fd()).unwrap();
        let entry = meeting.entry();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = connect(socket().unwrap(), &entry.address().unwrap());
                }
            });
            for _ in 0..20 {
                assert!(meeting.callers(epoll.as_fd()).is_empty());
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
