//! The choice of the reduction to one rank, binomial or linear, with which some other algorithms begin.

use super::{reduce_binomial, reduce_linear};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Binomial,
    /// The linear reduction, whose order of operations is fixed.
    Linear,
}

impl Reduction {
    pub async fn run(
        self,
        invocation: &Invocation,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: u32,
    ) -> Result<(), Error> {
        match self {
            Reduction::Binomial => reduce_binomial::reduce(invocation, send, recv, op, root).await,
            Reduction::Linear => reduce_linear::reduce(invocation, send, recv, op, root).await,
        }
    }
}
