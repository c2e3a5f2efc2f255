//! What a send remembers: its data, its envelope, and how far it is if its data go in fragments.

use super::stream::Stream;
use super::wire::{self, Place, Rendezvous};
use crate::btl::{Header, ProcId, Region};
use crate::datatype::SendBuf;
use crate::pml::envelope::{Envelope, Mode};
use mpi_base::state::{About, Waits};

/// A send under way.
pub struct SendBody {
    buf: SendBuf,
    envelope: Envelope,
    mode: Mode,
    stream: Option<Box<Stream>>,
}

impl SendBody {
    #[inline(always)]
    pub(super) fn new(buf: SendBuf, envelope: Envelope, mode: Mode) -> SendBody {
        SendBody {
            buf,
            envelope,
            mode,
            stream: None,
        }
    }

    /// Another send of the same message, from other memory that holds the same data.
    pub(super) fn with_data_in(&self, buf: SendBuf) -> SendBody {
        SendBody::new(buf, self.envelope, self.mode)
    }

    /// Shows the first `len` bytes of the data where they lie, if they are in few and long runs and no fragments of them are sent.
    pub(super) fn in_runs<R>(&self, len: u64, f: impl FnOnce(&[&[u8]]) -> R) -> Option<R> {
        match &self.stream {
            None => self.buf.in_runs(len, f),
            Some(_) => None,
        }
    }

    /// Where its data lie, for a peer that can read them there, if that fits into an announcement of so many bytes.
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

    pub(super) fn header(&self) -> Header {
        wire::match_header(
            self.envelope.context,
            self.envelope.source,
            self.envelope.tag,
        )
    }

    /// The receiver's rank in the job.
    pub(super) fn proc(&self) -> ProcId {
        self.envelope.proc
    }

    /// From here on its data go in fragments.
    pub(super) fn begin(&mut self, stream: Stream) {
        self.stream = Some(Box::new(stream));
    }

    /// Whether its data go in fragments or pieces.
    pub(super) fn is_streaming(&self) -> bool {
        self.stream.is_some()
    }

    /// How far it is, if they do.
    pub(super) fn stream(&self) -> Option<&Stream> {
        self.stream.as_deref()
    }

    /// The same, to go on, with the data.
    pub(super) fn stream_mut(&mut self) -> Option<(&mut Stream, &SendBuf)> {
        Some((self.stream.as_deref_mut()?, &self.buf))
    }

    /// Where to, with which tag, how many bytes: what the state page tells.
    pub fn about(&self) -> About {
        About {
            waits: Waits::Send,
            comm: self.envelope.context.number(),
            peer: self.envelope.dest,
            proc: self.envelope.proc as i32,
            tag: self.envelope.tag,
            bytes: self.buf.bytes() as u64,
            requests: 1,
        }
    }
}
