//! Reproducible reductions: the bits of a result depend on the operands only.
//!
//! A floating-point sum depends on the order of its additions, which differs between algorithms.
//! Which algorithm is chosen depends on lengths,
//! on the placement of ranks on nodes and cores, and on the decision table.
//! With `coll_base_reproducible`, all algorithms compute the same expression, a0 op (a1 op (a2 op ...)), with the operands in the order of ranks:
//! `shm` computes this expression within a node, and the algorithms called "linear" compute it between nodes.
//! Operators whose results have the same bits in every order are not affected.
//! For each scan there is only one algorithm between nodes; its expression depends only on the ranks, and `shm` computes another one.
//! So with the parameter set, `shm` does not implement scans.

use super::Call;
use crate::datatype::{Datatype, Kind, RecvBuf};
use crate::op::{Op, Predefined};
use mpi_base::param::{Level, Param};

/// Parameter `coll_base_reproducible`: reductions give the same bits for every placement of ranks.
pub static REPRODUCIBLE: Param<bool> = Param::new(
    "coll",
    "base",
    "reproducible",
    "false",
    Level::USER,
    "Combine floating-point operands, and operands of user-defined operators, in a fixed order, so that results depend neither on timing nor on the placement of ranks",
);

/// Returns true if the bits of a call's result depend on the order of operations.
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

/// Returns true if an operator rounds its results for a type; user-defined operators are assumed to do so.
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
