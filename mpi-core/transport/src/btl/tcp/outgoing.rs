//! Sending side of one connection.
//!
//! A frame is written to the socket at once, header and payload in one call, if the queue is empty;
//! a short payload is copied behind its header first, since one run of bytes is faster than two in the kernel.
//! The rest that the socket does not take is copied to a queue; the caller may reuse its memory.
//! The queue is bounded, and is written before any other frame.
//! Only a lent frame is not copied.
//! Its sender keeps the bytes that the socket has not taken, and offers them again.
//! After a full socket the next write waits for EPOLLOUT, which Linux reports when a third of the buffer is free,
//! so few frames of a stream of long ones are copied.

use super::super::Payload;
use super::frame::{Frame, HEADER};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

/// Payloads up to this length are copied behind their header: the copy costs less than a second run.
const SHORT: usize = 8 << 10;

/// A frame is refused while this number of bytes is queued.
pub const ENOUGH: usize = 256 << 10;

#[derive(Default)]
pub struct Outgoing {
    queue: Vec<u8>,
    /// Number of bytes of the queue that have been written.
    written: usize,
    /// True if the socket was full at the last write.
    stuck: bool,
    /// A lent frame of which the socket has taken a part; it goes before the queue.
    begun: Option<Begun>,
    /// The kind of the last refused frame, until its sender has been notified of free space.
    denied: Option<Denied>,
    /// Buffer for a short frame.
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
    /// Bytes that the socket has taken, header included.
    sent: usize,
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Full,
    System(Errno),
}

impl Outgoing {
    /// Returns true if nothing is queued and no frame is incomplete.
    pub fn is_empty(&self) -> bool {
        self.written == self.queue.len() && self.begun.is_none()
    }

    /// Returns true if there are queued bytes that wait only for socket space.
    pub fn is_on_its_way(&self) -> bool {
        self.written < self.queue.len() && self.begun.is_none()
    }

    /// Returns true, once, if a frame was refused that would be accepted now.
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

    /// Returns true if the owner must watch for EPOLLOUT.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Accepts a frame; it is queued if there is no connection yet.
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

    /// Accepts a frame whose payload stays with its sender while it is refused.
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

    /// Copies the rest of a lent frame whose sender will not offer it again. Returns true if the socket had taken a part of it.
    pub fn keep_rest(&mut self, frame: Frame, data: &[u8]) -> bool {
        let begun = self.begun.take_if(|begun| begun.frame == frame);
        if let Some(begun) = begun {
            let header = frame.encode();
            let left = header.iter().chain(data).skip(begun.sent);
            self.queue.splice(self.written..self.written, left.copied());
        }
        begun.is_some()
    }

    /// Writes as much of a frame as the socket takes.
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

    /// Queues the rest of a frame of which the socket has taken `sent` bytes.
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

    /// Writes the queue as far as the socket takes it; nothing while a lent frame is incomplete.
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
        // Moving the rest to the front is worth its cost once half of the queue has been written.
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

/// Writes once; returns 0 if the socket is full.
#[inline]
fn write(send: impl Fn(SendFlags) -> Result<usize, Errno>) -> Result<usize, Refused> {
    // No SIGPIPE if the peer has ended: the application must not see it.
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
