//! The state of a send: its data, its envelope, and its progress if the data are sent in fragments.

use super::exposure::Exposure;
use super::stream::Stream;
use super::wire::{self, Place, Rendezvous};
use crate::btl::{Header, ProcId, Region};
use crate::datatype::SendBuf;
use crate::pml::envelope::{Context, Envelope, Mode};
use mpi_base::state::{About, Waits};

/// An active send.
pub struct SendBody {
    buf: SendBuf,
    envelope: Envelope,
    mode: Mode,
    stream: Option<Box<Stream>>,
    /// The registration of the message's data for remote reads by the network.
    exposure: Option<Box<Exposure>>,
}

impl SendBody {
    #[inline(always)]
    pub(super) fn new(buf: SendBuf, envelope: Envelope, mode: Mode) -> SendBody {
        SendBody {
            buf,
            envelope,
            mode,
            stream: None,
            exposure: None,
        }
    }

    /// Returns the key with which the network can read the message's data, if the data are registered.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.exposure.as_ref().map(|exposure| exposure.key())
    }

    /// Stores the registration of the message's data. `None` ends the registration.
    pub(super) fn expose(&mut self, exposure: Option<Exposure>) {
        self.exposure = exposure.map(Box::new);
    }

    /// Creates a send with the same envelope and mode from another buffer that contains the same data.
    pub(super) fn with_data_in(&self, buf: SendBuf) -> SendBody {
        SendBody::new(buf, self.envelope, self.mode)
    }

    /// Calls `f` with the contiguous segments of the data's first `len` bytes in the send buffer. Returns `None`
    /// without a call if the segments are many or short, or the send is in fragments.
    pub(super) fn in_runs<R>(&self, len: u64, f: impl FnOnce(&[&[u8]]) -> R) -> Option<R> {
        match &self.stream {
            None => self.buf.in_runs(len, f),
            Some(_) => None,
        }
    }

    /// Returns the addresses of the message's data for the announcement, so that the receiver can read the data directly.
    /// Returns `Scattered` if the announcement would exceed `most` bytes or the segments are many or short.
    pub(super) fn place(&self, most: usize) -> Place {
        let place = self.buf.in_runs(self.buf.bytes() as u64, |runs| {
            Place::new(runs.iter().map(|run| Region {
                address: run.as_ptr().expose_provenance() as u64,
                len: run.len() as u64,
            }))
        });
        let short = |place: &Place| Rendezvous::bytes_with(place) <= most;
        place.filter(short).unwrap_or(Place::Scattered)
    }

    pub(super) fn buf(&self) -> &SendBuf {
        &self.buf
    }

    pub(super) fn bytes(&self) -> u64 {
        self.buf.bytes() as u64
    }

    pub(super) fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns true if the message has the standard mode (also a ready message). A long one waits for its receive nevertheless.
    /// With `pml_ob1_check_buffering` all messages are synchronous.
    pub fn is_standard(&self) -> bool {
        self.mode == Mode::Standard
    }

    pub(super) fn header(&self) -> Header {
        wire::match_header(
            self.envelope.context,
            self.envelope.source,
            self.envelope.tag,
        )
    }

    /// Returns the receiver's rank in the job.
    pub(super) fn proc(&self) -> ProcId {
        self.envelope.proc
    }

    /// Continues the send in fragments.
    pub(super) fn begin(&mut self, stream: Stream) {
        self.stream = Some(Box::new(stream));
    }

    /// Returns true if the message's data are sent in fragments.
    pub(super) fn is_streaming(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns the progress of the send if the message's data are sent in fragments.
    pub(super) fn stream(&self) -> Option<&Stream> {
        self.stream.as_deref()
    }

    /// Returns the progress as [`SendBody::stream`] does, mutable, and the data.
    pub(super) fn stream_mut(&mut self) -> Option<(&mut Stream, &SendBuf)> {
        Some((self.stream.as_deref_mut()?, &self.buf))
    }

    /// Returns the context of the message.
    pub fn context(&self) -> Context {
        self.envelope.context
    }

    /// Returns the send's destination, tag and length in bytes, for the state page.
    pub fn about(&self) -> About {
        About {
            waits: Waits::Send,
            comm: self.envelope.context.number(),
            peer: self.envelope.dest,
            proc: self.envelope.proc as i32,
            tag: self.envelope.tag,
            bytes: self.buf.bytes() as u64,
            requests: 1,
            begun: 0,
        }
    }
}
