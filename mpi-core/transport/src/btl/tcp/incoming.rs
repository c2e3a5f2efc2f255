//! Receiver of one connection.
//!
//! Frames are read into a buffer, which can take many short frames in one read.
//! A long payload is read directly to the destination that the sink provides ([`Sink::begin`]), or into a separate buffer.
//! Each such read also takes the next frame's header, so a stream of long frames costs one system call per arrival.
//!
//! No input is used before [`Frame::decode`] has checked it, and no allocation exceeds the maximum payload.

use super::super::{BEGUN, ProcId, Sink};
use super::frame::{Frame, FrameError, HEADER, Kind};
use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, recv};
use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

/// Length in bytes of the buffer for short frames.
const BUFFER: usize = 64 << 10;
/// Payloads longer than this number of bytes are not collected in the buffer.
const LONG: usize = 16 << 10;
/// Number of bytes that may be read behind a long payload in the same call: the next header, and a short message.
const AHEAD: usize = 512;
/// Maximum number of reads per call, so that a peer that sends fast does not delay the other peers.
const READS: usize = 16;

pub struct Incoming {
    buffer: Box<[u8]>,
    /// The range of the buffer that contains bytes that were read but not parsed.
    start: usize,
    end: usize,
    /// The long frame that is being received.
    body: Option<Body>,
    /// Buffer for a long payload without a destination; grows to the longest such payload.
    spare: Vec<u8>,
    /// The maximum payload that the peer may send, in bytes.
    max: usize,
    /// True if the last frame was long. The next one may be long, too, so only its beginning is read into the buffer.
    wary: bool,
}

struct Body {
    frame: Frame,
    done: usize,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The payload is read to the destination that the sink provides.
    Landing,
    Spare,
    /// The sink has abandoned the message, so the payload is dropped.
    Nowhere,
}

/// The reason why the stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer's disconnect message has arrived.
    Goodbye,
    /// The stream ended without a disconnect message.
    Closed,
    Garbled(FrameError),
    System(Errno),
}

/// The result of one call of [`Incoming::progress`].
#[derive(Debug, Default)]
pub struct Turn {
    pub delivered: usize,
    pub end: Option<End>,
}

impl Incoming {
    pub fn new(max: usize) -> Incoming {
        Incoming {
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            body: None,
            spare: Vec::new(),
            max,
            wary: false,
        }
    }

    /// Reads the bytes that have arrived and delivers the complete frames.
    #[inline]
    pub fn progress(&mut self, socket: BorrowedFd<'_>, from: ProcId, sink: &dyn Sink) -> Turn {
        let mut turn = Turn::default();
        for _ in 0..READS {
            let (room, read) = match &mut self.body {
                None => self.read(socket),
                Some(_) => self.read_body(socket, from, sink),
            };
            let read = match read {
                Ok(0) => {
                    turn.end = Some(End::Closed);
                    break;
                }
                Ok(read) => read,
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(error) => {
                    turn.end = Some(End::System(error));
                    break;
                }
            };
            if let Err(end) = self.parse(from, sink, &mut turn.delivered) {
                turn.end = Some(end);
                break;
            }
            // A read that did not fill the space has emptied the socket; another read would find no data.
            if read < room {
                break;
            }
        }
        turn
    }

    /// Reads into the buffer. Returns the number of bytes requested and the number of bytes read.
    #[inline]
    fn read(&mut self, socket: BorrowedFd<'_>) -> (usize, Result<usize, Errno>) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let upto = match self.wary {
            true => self.buffer.len().min(self.end + AHEAD),
            false => self.buffer.len(),
        };
        let room = &mut self.buffer[self.end..upto];
        let len = room.len();
        let read = recv(socket, room, RecvFlags::DONTWAIT).map(|(_, read)| read);
        self.end += *read.as_ref().unwrap_or(&0);
        (len, read)
    }

    /// Reads more bytes of a long payload, and up to [`AHEAD`] bytes behind it.
    /// Returns the number of bytes requested and the number of bytes read.
    fn read_body(
        &mut self,
        socket: BorrowedFd<'_>,
        from: ProcId,
        sink: &dyn Sink,
    ) -> (usize, Result<usize, Errno>) {
        let Some(body) = &mut self.body else {
            return (0, Err(Errno::AGAIN));
        };
        let Frame {
            am, header, len, ..
        } = body.frame;
        let ahead = &mut self.buffer[..AHEAD];
        let missing = len - body.done;
        let mut read = Err(Errno::AGAIN);
        let mut fill = |place: &mut [u8]| {
            read = readv(
                socket,
                &mut [IoSliceMut::new(place), IoSliceMut::new(&mut *ahead)],
            );
        };
        if body.place == Place::Landing && !sink.land(from, am, header, body.done..len, &mut fill) {
            body.place = Place::Nowhere;
        }
        if body.place != Place::Landing {
            if self.spare.len() < len {
                self.spare.resize(len, 0);
            }
            fill(&mut self.spare[body.done..len]);
        }
        let came = *read.as_ref().unwrap_or(&0);
        body.done += came.min(missing);
        (self.start, self.end) = (0, came.saturating_sub(missing));
        (missing + AHEAD, read)
    }

    /// Delivers the complete frames, and begins to receive a long frame that is incomplete.
    #[inline]
    fn parse(&mut self, from: ProcId, sink: &dyn Sink, delivered: &mut usize) -> Result<(), End> {
        if let Some(body) = &self.body {
            if body.done < body.frame.len {
                return Ok(());
            }
            let Frame {
                am, header, len, ..
            } = body.frame;
            match body.place {
                Place::Landing => sink.landed(from, am, header, len),
                Place::Spare => sink.deliver(from, am, header, &self.spare[..len]),
                Place::Nowhere => {}
            }
            self.body = None;
            *delivered += 1;
        }
        loop {
            let ready = &self.buffer[self.start..self.end];
            let Some((header, rest)) = ready.split_first_chunk::<HEADER>() else {
                return Ok(());
            };
            let frame = Frame::decode(header, self.max).map_err(End::Garbled)?;
            if frame.kind == Kind::Goodbye {
                return Err(End::Goodbye);
            }
            let Frame {
                am, header, len, ..
            } = frame;
            self.wary = len > LONG;
            if let Some(payload) = rest.get(..len) {
                self.start += HEADER + len;
                sink.deliver(from, am, header, payload);
                *delivered += 1;
                continue;
            }
            if len <= LONG || rest.len() < BEGUN {
                return Ok(());
            }
            let done = rest.len();
            let place = if sink.begin(from, am, header, len, rest) {
                Place::Landing
            } else {
                if self.spare.len() < len {
                    self.spare.resize(len, 0);
                }
                self.spare[..done].copy_from_slice(rest);
                Place::Spare
            };
            (self.start, self.end) = (0, 0);
            self.body = Some(Body { frame, done, place });
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::suite::Keep;
    use super::*;
    use proptest::prelude::*;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
    use std::os::fd::AsFd;

    const MAX: usize = 64 << 10;

    /// Passes the bytes in pieces of `piece` bytes to a receiver. Returns the number of delivered frames and the reason why the stream ended.
    fn read_all(bytes: &[u8], piece: usize) -> (usize, Option<End>) {
        let kind = SocketType::STREAM;
        let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::NONBLOCK, None);
        let (ours, theirs) = pair.expect("a pair of sockets");
        let (mut reader, sink, mut end) = (Incoming::new(MAX), Keep::default(), None);
        let mut pieces = bytes.chunks(piece.max(1));
        let mut writer = Some(theirs);
        while end.is_none() {
            match pieces.next() {
                Some(piece) => {
                    let writer = writer.as_ref().expect("it is open");
                    let sent = send(writer, piece, SendFlags::NOSIGNAL);
                    assert_eq!(sent, Ok(piece.len()));
                }
                None => drop(writer.take()),
            }
            end = reader.progress(ours.as_fd(), 1, &sink).end;
        }
        (sink.len(), end)
    }

    fn frame(kind: Kind, len: usize) -> Vec<u8> {
        let header = [7, 9];
        let mut bytes = Frame {
            kind,
            am: 3,
            header,
            len,
        }
        .encode()
        .to_vec();
        bytes.extend((0..len).map(|at| at as u8));
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// For every division of the stream into pieces, the frames before the damaged one are delivered and none after it.
        #[test]
        fn a_damaged_stream_is_believed_up_to_the_damage(
            lens in prop::collection::vec(prop::sample::select(vec![0, 1, 100, LONG, LONG + 1, 40_000]), 1..8),
            at in any::<prop::sample::Index>(),
            piece in prop::sample::select(vec![1000, 4096, 30_000, 200_000]),
        ) {
            let whole = at.index(lens.len());
            let mut bytes = Vec::new();
            for (number, len) in lens.iter().enumerate() {
                let start = bytes.len();
                bytes.extend(frame(Kind::Message, *len));
                if number == whole {
                    // Byte 5 of a frame is the kind; 9 is invalid.
                    bytes[start + 5] = 9;
                }
            }
            let (frames, end) = read_all(&bytes, piece);
            prop_assert_eq!((frames, end), (whole, Some(End::Garbled(FrameError::Kind(9)))));
        }
    }
}
