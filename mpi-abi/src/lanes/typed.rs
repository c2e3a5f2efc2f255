//! Buffers of messages in lanes.
//!
//! Contiguous data of predefined types are used in place.
//! A derived datatype is an object of lane 0, and its reference count must not change in another lane.
//! So data of a derived datatype are packed before the call enters its lane,
//! and received data are unpacked after the call has left it, both under lock 0.

use crate::error::Failure;
use crate::state;
use mpi_core::datatype::{Named, RecvBuf, RecvBytes, SendBuf};
use std::borrow::Cow;
use std::mem::ManuallyDrop;

/// A value with reference counts of lane 0, used only under lock 0.
///
/// Dropping it without [`OfBase::release`] leaks the value, because the caller may be in another lane.
struct OfBase<T>(ManuallyDrop<T>);

impl<T> OfBase<T> {
    fn new(value: T) -> OfBase<T> {
        OfBase(ManuallyDrop::new(value))
    }

    /// Drops the value. The caller is in no lane.
    fn release(self) {
        state::locked(|| drop(ManuallyDrop::into_inner(self.0)));
    }
}

/// The data of a send.
pub struct Outgoing(Source);

enum Source {
    Bytes(*const u8, usize),
    Typed(OfBase<SendBuf>),
}

impl Outgoing {
    /// Returns contiguous data of the program, which stay in place until the operation completes.
    pub fn of_bytes(bytes: &[u8]) -> Outgoing {
        Outgoing(Source::Bytes(bytes.as_ptr(), bytes.len()))
    }

    /// Returns the data of the buffer that `buffer` returns under lock 0. The caller is in no lane.
    pub fn of_type(buffer: impl FnOnce() -> Result<SendBuf, Failure>) -> Result<Outgoing, Failure> {
        let typed = state::locked(|| buffer().map(OfBase::new))?;
        Ok(Outgoing(Source::Typed(typed)))
    }

    /// Returns the data, packed if they are of a derived datatype. The caller is in no lane.
    ///
    /// The data of the program are borrowed for as long as the operation of the call uses them.
    pub fn data<'a>(&self) -> Cow<'a, [u8]> {
        match &self.0 {
            Source::Bytes(_, 0) => Cow::Borrowed(&[]),
            Source::Bytes(start, len) => {
                // SAFETY: `of_bytes` got the range from a buffer argument,
                // which is readable until the operation of the call completes.
                Cow::Borrowed(unsafe { std::slice::from_raw_parts(*start, *len) })
            }
            Source::Typed(buf) => Cow::Owned(state::locked(|| buf.0.to_vec())),
        }
    }

    /// Frees the buffer's reference to a derived datatype. The caller is in no lane.
    pub fn release(self) {
        if let Source::Typed(buf) = self.0 {
            buf.release();
        }
    }
}

/// Returns a send buffer of the engine for bytes that stay in place until the operation completes.
pub(super) fn send_buf(data: &[u8]) -> SendBuf {
    // SAFETY: the callers keep the bytes until the operation of the buffer has completed:
    // they are the program's, or those of a `Pending` or `Sends` that is dropped later.
    unsafe { SendBuf::new(data.as_ptr(), data.len() as i64, Named::BYTE.into()) }
}

/// The buffer of a receive.
pub struct Place(Target);

enum Target {
    Bytes(RecvBytes),
    Typed(OfBase<RecvBuf>),
}

impl Place {
    /// Returns contiguous memory of the program.
    pub fn of_bytes(bytes: RecvBytes) -> Place {
        Place(Target::Bytes(bytes))
    }

    /// Returns the memory of the buffer that `buffer` returns under lock 0. The caller is in no lane.
    pub fn of_type(buffer: impl FnOnce() -> Result<RecvBuf, Failure>) -> Result<Place, Failure> {
        let typed = state::locked(|| buffer().map(OfBase::new))?;
        Ok(Place(Target::Typed(typed)))
    }

    /// Frees the buffer's reference to a derived datatype. The caller is in no lane.
    pub fn release(self) {
        if let Target::Typed(buf) = self.0 {
            buf.release();
        }
    }
}

/// Returns the memory for one message, and the [`Landing`] if it must be unpacked. The caller is in no lane.
pub fn ready_place(place: &Place) -> (RecvBytes, Option<Landing>) {
    match &place.0 {
        Target::Bytes(bytes) => (*bytes, None),
        Target::Typed(buf) => {
            let buf = state::locked(|| RecvBuf::clone(&buf.0));
            let mut packed = vec![0; usize::try_from(buf.bytes()).unwrap_or(0)];
            // SAFETY: the vector keeps its memory until the landing is dropped,
            // after the operation has completed.
            let bytes = unsafe { RecvBytes::new(packed.as_mut_ptr(), packed.len()) };
            let buf = OfBase::new(buf);
            (bytes, Some(Landing(Box::new(Packed { packed, buf }))))
        }
    }
}

/// A received message of a derived datatype, to be unpacked. Boxed, since most messages have none.
pub struct Landing(Box<Packed>);

struct Packed {
    packed: Vec<u8>,
    buf: OfBase<RecvBuf>,
}

impl Landing {
    /// Unpacks the first `len` bytes into the program's buffer. The caller is in no lane.
    pub fn unpack(self, len: usize) {
        let Packed { packed, mut buf } = *self.0;
        let len = len.min(packed.len());
        state::locked(|| {
            buf.0.unpack_at(0, &packed[..len]);
        });
        buf.release();
    }
}
