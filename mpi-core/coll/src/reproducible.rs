//! Reductions whose bits depend on the operands alone.
//!
//! A floating-point sum depends on the order of its additions, and algorithms differ in it: which one runs follows from lengths,
//! from how ranks lie on nodes and cores, and from the decision table.
//! With `coll_base_reproducible` all of them compute the same expression, a0 op (a1 op (a2 op ...)), operands in the order of ranks:
//! one node's memory always does (`shm`), and between nodes the algorithms called "linear" do.
//! Operators that give the same bits in every order are not slowed down.
//! Scans between nodes have one algorithm each, whose expression follows from the ranks alone; one node's memory leaves them to it then.

use super::Call;
use crate::datatype::{Datatype, Kind, RecvBuf};
use crate::op::{Op, Predefined};
use mpi_base::param::{Level, Param};

/// Whether reductions give the same bits wherever their ranks lie.
pub static REPRODUCIBLE: Param<bool> = Param::new(
    "coll",
    "base",
    "reproducible",
    "false",
    Level::USER,
    "Combine floating-point operands, and those of users' operators, in one fixed order, so that results depend neither on timing nor on where ranks run.",
);

/// Whether the result of a call depends on the order of operations.
pub fn is_sensitive(call: &Call) -> bool {
    match call {
        Call::Allreduce { recv, op, .. }
        | Call::ReduceScatter { recv, op, .. }
        | Call::ReduceScatterBlock { recv, op, .. } => rounds(op, recv.datatype()),
        Call::Reduce { send, recv, op, .. } => {
            let of_send = send.as_ref().map(|send| send.datatype());
            let datatype = of_send.or(recv.as_ref().map(RecvBuf::datatype));
            datatype.is_some_and(|datatype| rounds(op, datatype))
        }
        _ => false,
    }
}

/// Whether an operator rounds on a type; of users' operators nothing is known.
fn rounds(op: &Op, datatype: &Datatype) -> bool {
    match op {
        Op::User(_) => true,
        Op::Predefined(Predefined::Sum | Predefined::Prod) => {
            let kind = datatype.as_basic().map(|named| named.info().kind);
            matches!(kind, Some(Kind::Float(_) | Kind::Complex(_)))
        }
        Op::Predefined(_) => false,
    }
}
