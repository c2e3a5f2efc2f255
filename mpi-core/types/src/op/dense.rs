//! An operator on one predefined type whose elements have no holes, looked up once and for all: what is left to do is one loop over bytes.

use super::kernel::{Kernel, Level};
use super::{Op, Predefined, kernel_for};
use crate::datatype::{Datatype, RecvBytes};

/// The loop of an operator on a type, and the size of an element.
#[derive(Clone, Copy)]
pub struct DenseOp {
    op: Predefined,
    kernel: Kernel,
    size: usize,
}

impl DenseOp {
    /// None where there is more to an element than a loop over its bytes; why, [`Op::check`] says if it is an error.
    pub fn new(op: &Op, datatype: &Datatype) -> Option<DenseOp> {
        let Op::Predefined(op) = op else {
            return None;
        };
        datatype.as_named()?;
        let (_, size) = datatype.contiguous_bytes(1)?;
        // Of two in a row the second begins where the first ends.
        (datatype.contiguous_bytes(2)? == (0, 2 * size)).then_some(())?;
        Some(DenseOp {
            op: *op,
            kernel: kernel_for(*op, datatype, Level::best()).ok()?,
            size: usize::try_from(size).ok().filter(|size| *size > 0)?,
        })
    }

    /// Which operator it is.
    pub fn operator(&self) -> Predefined {
        self.op
    }

    /// `inout = input op inout`, for as many elements as both have.
    #[inline]
    pub fn apply(&self, input: &[u8], inout: RecvBytes) {
        inout.with(|inout| self.combine(input, inout));
    }

    /// The same where the bytes are ours.
    #[inline]
    pub fn combine(&self, input: &[u8], inout: &mut [u8]) {
        self.kernel.run_dense(input, inout, self.size);
    }
}
