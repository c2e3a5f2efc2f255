//! Reduction operators: `inout[i] = in[i] op inout[i]`, in MPI's order (MPI 5.0, section 6.9).
//!
//! A predefined operator is a set of compiled loops,
//! one for each scalar type, found in one table (`table`).
//! Predefined operators are defined on predefined datatypes only, by the standard's table and the
//! additions in `table`; [`Op::check`] rejects all other combinations with an error text, before
//! any process communicates.
//! User operators are callbacks. They get complete elements of the datatype that the user passed.
//!
//! | file | subject |
//! |---|---|
//! | `table` | the loop of an operator on a type |
//! | `dense` | an operator and a type combined, for contiguous bytes |
//! | `fold` | the operators on single values |
//! | `kernel` | the loops, cloned for AVX2 and AVX-512 |
//! | `wide` | `long double` and `REAL*16` |

mod dense;
mod fold;
mod kernel;
mod table;
#[cfg(test)]
mod tests;
mod wide;

use std::fmt;
use std::rc::Rc;

pub use dense::DenseOp;
use kernel::{Kernel, Level};

use crate::datatype::{self, Datatype, RecvBuf, SendBuf};

/// A reduction operator.
#[derive(Clone)]
pub enum Op {
    Predefined(Predefined),
    User(Rc<UserOp>),
}

/// The predefined operators with the values of their handles in the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u32)]
pub enum Predefined {
    Sum = 0x21,
    Min = 0x22,
    Max = 0x23,
    Prod = 0x24,
    Band = 0x28,
    Bor = 0x29,
    Bxor = 0x2a,
    Land = 0x30,
    Lor = 0x31,
    Lxor = 0x32,
    Minloc = 0x38,
    Maxloc = 0x39,
    Replace = 0x3c,
    NoOp = 0x3d,
}

impl Predefined {
    /// The operators with a handle in the standard ABI, in the order of the handles.
    pub const ALL: [Predefined; 14] = {
        use Predefined::*;
        [
            Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc, Replace, NoOp,
        ]
    };

    /// The operator by the value of its handle.
    const BY_HANDLE: [Option<Predefined>; 0x40] = {
        let mut table = [None; 0x40];
        let mut i = 0;
        while i < Predefined::ALL.len() {
            let op = Predefined::ALL[i];
            table[op as usize] = Some(op);
            i += 1;
        }
        table
    };

    /// Returns the name in the standard, for error texts.
    pub fn name(self) -> &'static str {
        use Predefined::*;
        match self {
            Sum => "MPI_SUM",
            Min => "MPI_MIN",
            Max => "MPI_MAX",
            Prod => "MPI_PROD",
            Band => "MPI_BAND",
            Bor => "MPI_BOR",
            Bxor => "MPI_BXOR",
            Land => "MPI_LAND",
            Lor => "MPI_LOR",
            Lxor => "MPI_LXOR",
            Minloc => "MPI_MINLOC",
            Maxloc => "MPI_MAXLOC",
            Replace => "MPI_REPLACE",
            NoOp => "MPI_NO_OP",
        }
    }
}

/// The function of a user operator: `(invec, inoutvec, len, datatype)`.
pub type UserFunction = dyn Fn(*const u8, *mut u8, i64, &Datatype);

/// A user operator.
pub struct UserOp {
    function: Box<UserFunction>,
    commutes: bool,
}

/// The reason why an operator cannot be applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpError {
    /// The standard does not define the operator on this type.
    NotDefined { op: &'static str, datatype: String },
    /// The operator is defined on this type, but this build has no arithmetic for it.
    NotHere { op: &'static str, datatype: String },
    /// The two buffers have different datatypes.
    TypesDiffer { input: String, inout: String },
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpError::NotDefined { op, datatype } => {
                write!(f, "{op} is not defined for {datatype}")
            }
            OpError::NotHere { op, datatype } => write!(
                f,
                "{op} for {datatype} needs x87 or quad arithmetic, which this build does not have"
            ),
            OpError::TypesDiffer { input, inout } => write!(
                f,
                "a reduction cannot combine {input} with {inout}: both buffers need the same datatype"
            ),
        }
    }
}

impl std::error::Error for OpError {}

impl From<Predefined> for Op {
    fn from(op: Predefined) -> Op {
        Op::Predefined(op)
    }
}

impl Op {
    /// Returns the predefined operator with this handle value in the standard ABI.
    pub fn predefined(handle: usize) -> Option<Op> {
        Predefined::BY_HANDLE.get(handle)?.map(Op::Predefined)
    }

    /// Creates an operator that calls `function`.
    /// `function` must combine `len` elements at its two pointers and access no other memory.
    pub fn user(
        function: impl Fn(*const u8, *mut u8, i64, &Datatype) + 'static,
        commutes: bool,
    ) -> Op {
        Op::User(Rc::new(UserOp {
            function: Box::new(function),
            commutes,
        }))
    }

    /// Returns true if the operator is commutative.
    /// For a user operator, `MPI_Op_create` declares it.
    pub fn is_commutative(&self) -> bool {
        match self {
            // MPI_REPLACE and MPI_NO_OP depend on the order of the operands.
            Op::Predefined(op) => !matches!(op, Predefined::Replace | Predefined::NoOp),
            Op::User(user) => user.commutes,
        }
    }

    /// Returns the operator's name for error texts. All user operators have one name.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Predefined(op) => op.name(),
            Op::User(_) => "a user-defined operator",
        }
    }

    /// Returns an error if the operator cannot be applied to this datatype.
    pub fn check(&self, datatype: &Datatype) -> Result<(), OpError> {
        match self {
            Op::User(_) | Op::Predefined(Predefined::Replace | Predefined::NoOp) => Ok(()),
            Op::Predefined(op) => kernel_for(*op, datatype, Level::best()).map(|_| ()),
        }
    }

    /// Computes `inout = input op inout` for the elements of the smaller buffer.
    pub fn apply(&self, input: &SendBuf, inout: &mut RecvBuf) -> Result<(), OpError> {
        let datatype = inout.datatype();
        if !input.datatype().same(datatype) {
            return Err(OpError::TypesDiffer {
                input: input.datatype().to_string(),
                inout: datatype.to_string(),
            });
        }
        let count = input.count().min(inout.count()).max(0);
        match self {
            Op::User(user) => (user.function)(input.ptr(), inout.ptr(), count, datatype),
            Op::Predefined(Predefined::NoOp) => {}
            Op::Predefined(Predefined::Replace) => {
                datatype::copy(input, inout);
            }
            Op::Predefined(op) => {
                kernel_for(*op, datatype, Level::best())?.run(input, inout, count)
            }
        }
        Ok(())
    }

    /// Computes the same as [`Op::apply`], with packed input at an address of any alignment.
    /// Returns false, without an effect, for user operators and for elements with holes.
    pub fn apply_packed(&self, input: &[u8], inout: &mut RecvBuf) -> Result<bool, OpError> {
        if inout.contiguous().is_none() {
            return Ok(false);
        }
        let size = inout.datatype().size().max(1);
        match self {
            // A user function may expect operands that are aligned for their datatype.
            Op::User(_) => return Ok(false),
            Op::Predefined(Predefined::NoOp) => {}
            Op::Predefined(Predefined::Replace) => {
                inout.unpack_at(0, input);
            }
            Op::Predefined(op) => {
                let kernel = kernel_for(*op, inout.datatype(), Level::best())?;
                if let Some(inout) = inout.contiguous() {
                    kernel.run_dense(input, inout, size as usize);
                }
            }
        }
        Ok(true)
    }
}

fn kernel_for(op: Predefined, datatype: &Datatype, level: Level) -> Result<Kernel, OpError> {
    let error = |make: fn(&'static str, String) -> OpError| make(op.name(), datatype.to_string());
    let kind = datatype.as_basic().map(|named| named.info().kind);
    match kind.map(|kind| table::kernel(op, kind, level)) {
        Some(table::Found::Kernel(kernel)) => Ok(kernel),
        Some(table::Found::NotHere) => Err(error(|op, datatype| OpError::NotHere { op, datatype })),
        Some(table::Found::NotDefined) | None => {
            Err(error(|op, datatype| OpError::NotDefined { op, datatype }))
        }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
