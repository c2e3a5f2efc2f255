//! Sender of one connection.
//!
//! If the queue is empty, a frame is written to the socket immediately, header and payload in one system call.
//! A short payload is first copied behind its header, because the kernel handles one buffer faster than two.
//! Bytes that the socket does not accept are copied to a queue, so the caller may reuse its memory.
//! The queue is bounded, and is written before any new frame.
//! Only a lent frame ([`Lending`](crate::btl::Lending)) is not copied:
//! its sender retains the bytes that the socket has not accepted, and sends the frame again.
//! After the socket was full, the next write waits for EPOLLOUT, which Linux reports when a third of the socket buffer is free.
//! So in a stream of long frames, few frames are copied.

use super::super::Payload;
use super::frame::{Frame, HEADER};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

/// Maximum length in bytes of a payload that is copied behind its header: the copy costs less than a second buffer in the system call.
const SHORT: usize = 8 << 10;

/// A frame is refused if at least this number of bytes is queued.
pub const ENOUGH: usize = 256 << 10;

#[derive(Default)]
pub struct Outgoing {
    queue: Vec<u8>,
    /// Number of bytes of the queue that have been written.
    written: usize,
    /// True if the socket was full at the latest write.
    stuck: bool,
    /// A lent frame of which the socket has accepted a part; the rest must be written before the queue.
    begun: Option<Begun>,
    /// The kind of the latest refused frame, until `has_room_again` has reported space.
    denied: Option<Denied>,
    /// Buffer for a short frame: header and payload.
    short: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Denied {
    Frame,
    Loan,
}

#[derive(Clone, Copy)]
struct Begun {
    frame: Frame,
    /// Number of bytes of the frame that the socket has accepted, including the header.
    sent: usize,
}

/// The reason why a frame was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Full,
    System(Errno),
}

impl Outgoing {
    /// Returns true if no bytes are queued and no lent frame is incomplete.
    pub fn is_empty(&self) -> bool {
        self.written == self.queue.len() && self.begun.is_none()
    }

    /// Returns true if queued bytes only wait for space in the socket.
    pub fn is_on_its_way(&self) -> bool {
        self.written < self.queue.len() && self.begun.is_none()
    }

    /// Returns true if a refused frame would now be accepted. Returns true only once per refusal.
    pub fn has_room_again(&mut self) -> bool {
        let (queued, stuck) = (self.queued(), self.stuck);
        let would_be_taken = |denied: &mut Denied| match denied {
            Denied::Frame => queued < ENOUGH,
            Denied::Loan => !stuck,
        };
        self.denied.take_if(would_be_taken).is_some()
    }

    fn queued(&self) -> usize {
        self.queue.len() - self.written
    }

    /// Returns true if the socket was full, so the owner must wait for EPOLLOUT.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Accepts a frame. If there is no connection yet, the frame is queued.
    #[inline]
    pub fn send(
        &mut self,
        socket: Option<BorrowedFd<'_>>,
        header: &[u8; HEADER],
        payload: Payload<'_>,
    ) -> Result<(), Refused> {
        let (first, second) = match payload {
            Payload::Bytes(bytes) => (bytes, &[][..]),
            Payload::Joined(first, second) => (first, second),
            Payload::Fill { .. } => return self.send_later(socket, header, payload),
        };
        match socket {
            Some(socket) if self.is_empty() => {
                let sent = self.write_frame(socket, header, first, second)?;
                if sent < HEADER + first.len() + second.len() {
                    self.keep([header, first, second], sent);
                }
                Ok(())
            }
            _ => self.send_later(socket, header, payload),
        }
    }

    /// Writes a lent frame. If the frame is refused, its payload remains with the sender, which sends the frame again.
    pub fn lend(
        &mut self,
        socket: Option<BorrowedFd<'_>>,
        frame: Frame,
        data: &[u8],
    ) -> Result<(), Refused> {
        let sent = match self.begun {
            Some(begun) if begun.frame == frame => Some(begun.sent),
            Some(_) => None,
            None => self.is_empty().then_some(0),
        };
        self.denied = Some(Denied::Loan);
        let (Some(sent), Some(socket), false) = (sent, socket, self.stuck) else {
            return Err(Refused::Full);
        };
        let header = &frame.encode();
        let sent = sent
            + match sent.checked_sub(HEADER) {
                None if sent == 0 => self.write_frame(socket, header, data, &[])?,
                None => write(|flags| send(socket, &header[sent..], flags))?,
                Some(done) => write(|flags| send(socket, &data[done..], flags))?,
            };
        if sent < HEADER + data.len() {
            self.stuck = true;
            self.begun = (sent > 0).then_some(Begun { frame, sent });
            return Err(Refused::Full);
        }
        self.begun = None;
        self.flush(socket).map_err(Refused::System)
    }

    /// Copies the rest of a lent frame that its sender will not send again. Returns true if the socket had accepted a part of the frame.
    pub fn keep_rest(&mut self, frame: Frame, data: &[u8]) -> bool {
        let begun = self.begun.take_if(|begun| begun.frame == frame);
        if let Some(begun) = begun {
            let header = frame.encode();
            let left = header.iter().chain(data).skip(begun.sent);
            self.queue.splice(self.written..self.written, left.copied());
        }
        begun.is_some()
    }

    /// Writes as much of a frame as the socket accepts. Returns the number of bytes.
    #[inline]
    fn write_frame(
        &mut self,
        socket: BorrowedFd<'_>,
        header: &[u8; HEADER],
        first: &[u8],
        second: &[u8],
    ) -> Result<usize, Refused> {
        if first.len() + second.len() <= SHORT {
            let frame = &mut self.short;
            frame.clear();
            frame.extend_from_slice(header);
            frame.extend_from_slice(first);
            frame.extend_from_slice(second);
            return write(|flags| send(socket, frame, flags));
        }
        let all = [&header[..], first, second].map(IoSlice::new);
        let runs = &all[..if second.is_empty() { 2 } else { 3 }];
        write(|flags| sendmsg(socket, runs, &mut SendAncillaryBuffer::default(), flags))
    }

    /// Queues the rest of a frame of which the socket has accepted `sent` bytes.
    #[cold]
    fn keep(&mut self, runs: [&[u8]; 3], mut sent: usize) {
        self.stuck = true;
        for run in runs {
            let (_, left) = run.split_at(sent.min(run.len()));
            self.queue.extend_from_slice(left);
            sent = sent.saturating_sub(run.len());
        }
    }

    fn send_later(
        &mut self,
        socket: Option<BorrowedFd<'_>>,
        header: &[u8],
        mut payload: Payload<'_>,
    ) -> Result<(), Refused> {
        if self.queued() >= ENOUGH {
            self.denied = Some(Denied::Frame);
            return Err(Refused::Full);
        }
        self.queue.extend_from_slice(header);
        let at = self.queue.len();
        self.queue.resize(at + payload.len(), 0);
        payload.put(&mut self.queue[at..]);
        match socket {
            Some(socket) if !self.stuck => self.flush(socket).map_err(Refused::System),
            _ => Ok(()),
        }
    }

    /// Writes as much of the queue as the socket accepts. Writes nothing while a lent frame is incomplete.
    pub fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        self.stuck = false;
        while self.is_on_its_way() {
            match write(|flags| send(socket, &self.queue[self.written..], flags)) {
                Ok(0) => {
                    self.stuck = true;
                    break;
                }
                Ok(sent) => self.written += sent,
                Err(Refused::System(error)) => return Err(error),
                Err(Refused::Full) => {}
            }
        }
        // The rest is moved to the front only after half of the queue was written, because each move costs a copy.
        if self.queued() == 0 {
            self.queue.clear();
            self.written = 0;
        } else if self.written >= self.queue.len() / 2 {
            self.queue.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }
}

/// Writes once. Returns the number of bytes written; 0 if the socket is full.
#[inline]
fn write(send: impl Fn(SendFlags) -> Result<usize, Errno>) -> Result<usize, Refused> {
    // Without NOSIGNAL, a peer's end would raise SIGPIPE in the application.
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match send(flags) {
            Ok(sent) => return Ok(sent),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(0),
            Err(error) => return Err(Refused::System(error)),
        }
    }
}
