//! An operator on a predefined type without holes, looked up once: applying it is one loop over bytes.

use super::kernel::{Kernel, Level};
use super::{Op, Predefined, kernel_for};
use crate::datatype::{Datatype, RecvBytes};

/// The loop of an operator on a type, and the size of an element in bytes.
#[derive(Clone, Copy)]
pub struct DenseOp {
    op: Predefined,
    kernel: Kernel,
    size: usize,
}

impl DenseOp {
    /// Looks up the loop. Returns `None` for user operators, for elements with holes, and if the
    /// operator is not defined on the type, which [`Op::check`] reports.
    pub fn new(op: &Op, datatype: &Datatype) -> Option<DenseOp> {
        let Op::Predefined(op) = op else {
            return None;
        };
        datatype.as_named()?;
        let (_, size) = datatype.contiguous_bytes(1)?;
        // The second of two elements begins where the first ends.
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

    /// Computes `inout = input op inout`, for the number of elements in the shorter operand.
    #[inline]
    pub fn apply(&self, input: &[u8], inout: RecvBytes) {
        inout.with(|inout| self.combine(input, inout));
    }

    /// Combines the operands like [`DenseOp::apply`], with the result in memory of the library.
    #[inline]
    pub fn combine(&self, input: &[u8], inout: &mut [u8]) {
        self.kernel.run_dense(input, inout, self.size);
    }
}
