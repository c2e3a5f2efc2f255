//! An operator on a predefined type without holes. The pair is looked up once;
//! applying the operator is then one loop over bytes.

use super::kernel::{Kernel, Level};
use super::{Op, Predefined, kernel_for};
use crate::datatype::{Datatype, RecvBytes};

/// The loop of an operator on a type, with the operator and the size of an element in bytes.
#[derive(Clone, Copy)]
pub struct DenseOp {
    op: Predefined,
    kernel: Kernel,
    size: usize,
}

impl DenseOp {
    /// Looks up the loop. Returns `None` for user operators, for elements with holes, and for
    /// operators that are not defined on the type. [`Op::check`] reports the latter.
    pub fn new(op: &Op, datatype: &Datatype) -> Option<DenseOp> {
        let Op::Predefined(op) = op else {
            return None;
        };
        datatype.as_named()?;
        let (_, size) = datatype.contiguous_bytes(1)?;
        // The check for holes: the second of two elements must begin where the first ends.
        (datatype.contiguous_bytes(2)? == (0, 2 * size)).then_some(())?;
        Some(DenseOp {
            op: *op,
            kernel: kernel_for(*op, datatype, Level::best()).ok()?,
            size: usize::try_from(size).ok().filter(|size| *size > 0)?,
        })
    }

    /// Returns the operator.
    pub fn operator(&self) -> Predefined {
        self.op
    }

    /// Computes `inout = input op inout` for the elements of the shorter operand.
    #[inline]
    pub fn apply(&self, input: &[u8], inout: RecvBytes) {
        inout.with(|inout| self.combine(input, inout));
    }

    /// Computes the same as [`DenseOp::apply`], if the result is in memory of the library.
    #[inline]
    pub fn combine(&self, input: &[u8], inout: &mut [u8]) {
        self.kernel.run_dense(input, inout, self.size);
    }
}
