//! The reduction inside of what reduces to one rank first.

use super::{reduce_binomial, reduce_linear};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Binomial,
    /// The operations are always the same ones, in the same order.
    Linear,
}

impl Reduction {
    pub async fn run(
        self,
        cx: &Invocation,
        send: Option<&SendBuf>,
        recv: Option<&RecvBuf>,
        op: &Op,
        root: u32,
    ) -> Result<(), Error> {
        match self {
            Reduction::Binomial => reduce_binomial::reduce(cx, send, recv, op, root).await,
            Reduction::Linear => reduce_linear::reduce(cx, send, recv, op, root).await,
        }
    }
}
