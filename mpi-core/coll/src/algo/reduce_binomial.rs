//! Binomial reduction: partial results flow up a binomial tree.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.4.
//! For an operator that does not commute, the tree's root is rank 0,
//! where subtrees are ranges of ranks, so operands keep their order.
//! The result then takes one more message to the operation's root.

use super::elements;
use super::tree::Knomial;
use super::{combine, copy, twin};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

pub async fn reduce(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    op: &Op,
    root: u32,
) -> Result<(), Error> {
    let me = invocation.rank();
    let top = if op.is_commutative() { root } else { 0 };
    let tree = Knomial::binomial(me, top, invocation.size());
    let acc = match (send, recv) {
        // A leaf has nothing to combine and sends its own data.
        (Some(send), _) if me != top && tree.subtree() == 1 => {
            invocation.send(send, tree.parent().unwrap_or(top)).await?;
            return receive_result(invocation, recv, top, root).await;
        }
        (None, Some(recv)) if me == top => recv.clone(),
        (Some(send), Some(recv)) if me == top => {
            copy(send, recv);
            recv.clone()
        }
        (Some(send), _) => {
            let acc = elements(send.count(), send.datatype())?.all();
            copy(send, &acc);
            acc
        }
        // This rank is the root but not the tree's top, and its operand is in `recv` (MPI_IN_PLACE):
        // `recv` must not be overwritten before the operand has been sent up.
        (None, Some(recv)) => {
            let acc = twin(recv)?;
            copy(&recv.as_send(), &acc);
            acc
        }
        (None, None) => return Ok(()),
    };

    let mut result = acc.clone();
    let mut fresh = twin(&acc)?;
    // Children with small subtrees come first, because these contain the ranks directly after this one.
    for child in tree.children().rev() {
        invocation.recv(&fresh, child.rank).await?;
        // The ranks combined in `result` are before those in `fresh`.
        combine(op, &result.as_send(), &fresh)?;
        std::mem::swap(&mut result, &mut fresh);
    }
    if let Some(parent) = tree.parent() {
        invocation.send(&result.as_send(), parent).await?;
    } else if me != root {
        invocation.send(&result.as_send(), root).await?;
    } else if let Some(recv) = recv
        && result.ptr() != recv.ptr()
    {
        copy(&result.as_send(), recv);
    }
    receive_result(invocation, recv, top, root).await
}

/// If the tree's top is not the root, receives the result from the top.
async fn receive_result(
    invocation: &Invocation,
    recv: Option<&RecvBuf>,
    top: u32,
    root: u32,
) -> Result<(), Error> {
    match recv {
        Some(recv) if invocation.rank() == root && top != root => invocation.recv(recv, top).await,
        _ => Ok(()),
    }
}
