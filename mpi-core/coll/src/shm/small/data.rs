//! Operand traits of short calls: buffers of any datatype, or slices of bytes.
//!
//! The algorithms in this folder are generic over these traits;
//! for slices of bytes, as in fast calls, the compiler reduces them to a few loads and stores.
//! Offsets and lengths are in packed bytes, at element boundaries.

use crate::Error;
use crate::algo;
use crate::datatype::{Datatype, RecvBuf, RecvBytes, SendBuf};
use crate::op::{DenseOp, Op};
use mpi_base::cells::lay;

/// Data that a call reads: a buffer of any datatype, or a slice of bytes.
pub trait Given {
    fn bytes(&self) -> usize;

    /// Writes the packed data to `buffer`, a cell or a part of a cell, which has exactly their length.
    fn pack(&self, buffer: &mut [u8]);

    /// Returns the data without a copy, if they are contiguous.
    fn run(&self) -> Option<&[u8]>;

    /// Returns `len` bytes of the data from byte `at` on.
    fn part(&self, at: usize, len: usize) -> Self;
}

/// A buffer to write; it is also readable, for operands with MPI_IN_PLACE.
pub trait Target: Given {
    fn take(&self, data: &[u8]);
}

/// Data that can be copied to `R`.
pub trait CopyTo<R>: Given {
    fn copy_to(&self, buffer: &R);
}

/// An operator on operands `G` and results `R`.
pub trait Combine<G, R> {
    /// Computes `sum = given op sum`.
    fn apply(&self, given: &G, sum: &R) -> Result<(), Error>;

    /// Computes `sum = data op sum` for packed data;
    /// `spare` is a buffer for operators that need unpacked data.
    fn apply_packed(&self, data: &[u8], sum: &R, spare: &mut Option<R>) -> Result<(), Error>;

    /// Returns an equivalent loop over dense elements of the type of `like`, if there is one.
    /// The result is the same on all members.
    fn dense(&self, like: &R) -> Option<DenseOp>;
}

impl Given for &[u8] {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn pack(&self, buffer: &mut [u8]) {
        lay(self, buffer);
    }

    #[inline(always)]
    fn run(&self) -> Option<&[u8]> {
        Some(self)
    }

    #[inline(always)]
    fn part(&self, at: usize, len: usize) -> Self {
        self.get(at..at + len).unwrap_or(&[])
    }
}

impl CopyTo<RecvBytes> for &[u8] {
    #[inline(always)]
    fn copy_to(&self, buffer: &RecvBytes) {
        buffer.fill(self);
    }
}

impl Given for RecvBytes {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn pack(&self, buffer: &mut [u8]) {
        self.with(|data| lay(data, buffer));
    }

    fn run(&self) -> Option<&[u8]> {
        None
    }

    #[inline(always)]
    fn part(&self, at: usize, len: usize) -> Self {
        RecvBytes::part(*self, at, len)
    }
}

impl Target for RecvBytes {
    #[inline(always)]
    fn take(&self, data: &[u8]) {
        self.fill(data);
    }
}

impl Combine<&[u8], RecvBytes> for DenseOp {
    #[inline(always)]
    fn apply(&self, given: &&[u8], sum: &RecvBytes) -> Result<(), Error> {
        DenseOp::apply(self, given, *sum);
        Ok(())
    }

    #[inline(always)]
    fn apply_packed(
        &self,
        data: &[u8],
        sum: &RecvBytes,
        _: &mut Option<RecvBytes>,
    ) -> Result<(), Error> {
        DenseOp::apply(self, data, *sum);
        Ok(())
    }

    #[inline(always)]
    fn dense(&self, _: &RecvBytes) -> Option<DenseOp> {
        Some(*self)
    }
}

/// Returns the range of elements that `len` packed bytes from byte `at` on contain.
fn elements(datatype: &Datatype, at: usize, len: usize) -> std::ops::Range<i64> {
    let size = datatype.size().max(1);
    at as i64 / size..(at + len) as i64 / size
}

impl Given for SendBuf {
    #[inline]
    fn bytes(&self) -> usize {
        SendBuf::bytes(self) as usize
    }

    #[inline]
    fn pack(&self, buffer: &mut [u8]) {
        match self.contiguous() {
            Some(data) => lay(data, buffer),
            None => {
                self.pack_at(0, buffer);
            }
        }
    }

    #[inline]
    fn run(&self) -> Option<&[u8]> {
        self.contiguous()
    }

    fn part(&self, at: usize, len: usize) -> Self {
        self.slice(elements(self.datatype(), at, len))
    }
}

impl CopyTo<RecvBuf> for SendBuf {
    #[inline]
    fn copy_to(&self, buffer: &RecvBuf) {
        algo::copy(self, buffer);
    }
}

impl Given for RecvBuf {
    #[inline]
    fn bytes(&self) -> usize {
        RecvBuf::bytes(self) as usize
    }

    #[inline]
    fn pack(&self, buffer: &mut [u8]) {
        self.as_send().pack(buffer);
    }

    fn run(&self) -> Option<&[u8]> {
        None
    }

    fn part(&self, at: usize, len: usize) -> Self {
        self.slice(elements(self.datatype(), at, len))
    }
}

impl Target for RecvBuf {
    #[inline]
    fn take(&self, data: &[u8]) {
        self.clone().unpack_at(0, data);
    }
}

impl Combine<SendBuf, RecvBuf> for Op {
    #[inline]
    fn apply(&self, given: &SendBuf, sum: &RecvBuf) -> Result<(), Error> {
        Ok(Op::apply(self, given, &mut sum.clone())?)
    }

    #[inline]
    fn apply_packed(
        &self,
        data: &[u8],
        sum: &RecvBuf,
        spare: &mut Option<RecvBuf>,
    ) -> Result<(), Error> {
        if Op::apply_packed(self, data, &mut sum.clone())? {
            return Ok(());
        }
        let operand = match spare {
            Some(operand) => operand,
            None => spare.insert(algo::elements(sum.count(), sum.datatype())?.all()),
        };
        operand.take(data);
        Combine::apply(self, &operand.as_send(), sum)
    }

    fn dense(&self, like: &RecvBuf) -> Option<DenseOp> {
        DenseOp::new(self, like.datatype())
    }
}
