//! Hierarchical collectives in which every member has data of the same length: barrier, broadcast, reduction.

use super::levels::Way;
use crate::Error;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use crate::{Call, algo};

/// A barrier within the node, one between the leaders, and another within the node.
pub async fn barrier(way: &Way<'_>) -> Result<(), Error> {
    way.local(Call::Barrier).await?;
    way.among_leaders(|| Call::Barrier).await?;
    way.local_last(Call::Barrier).await
}

/// Broadcasts first on the root's node, so that the node's leader has the data,
/// then among the leaders, then on the other nodes.
pub async fn bcast(way: &Way<'_>, buf: &RecvBuf, root: u32) -> Result<(), Error> {
    let from = |root| Call::Bcast {
        buf: buf.clone(),
        root,
    };
    let to = way.node_rank(root);
    if way.here().node == to.node {
        way.local(from(to.place)).await?;
        return way.among_leaders(|| from(to.node)).await;
    }
    way.among_leaders(|| from(to.node)).await?;
    way.local_last(from(0)).await
}

/// Every node reduces to its leader, then the leaders reduce to the leader of the root's node.
pub async fn reduce(
    way: &Way<'_>,
    send: Option<SendBuf>,
    recv: Option<RecvBuf>,
    op: Op,
    root: u32,
) -> Result<(), Error> {
    let me = way.me();
    let recv = recv.filter(|_| me == root);
    let Some(own) = send.or_else(|| recv.as_ref().map(RecvBuf::as_send)) else {
        return Ok(());
    };
    let scratch = || Ok::<_, Error>(algo::elements(own.count(), own.datatype())?.all());
    let partial = way.leads().then(scratch).transpose()?;
    way.local(Call::Reduce {
        send: Some(own.clone()),
        recv: partial.clone(),
        op: op.clone(),
        root: 0,
    })
    .await?;
    let to = way.node_rank(root);
    let total = match &recv {
        Some(recv) if way.leads() => Some(recv.clone()),
        _ if way.leads() && way.here().node == to.node => Some(scratch()?),
        _ => None,
    };
    way.among_leaders(|| Call::Reduce {
        send: partial.map(|partial| partial.as_send()),
        recv: total.clone(),
        op,
        root: to.node,
    })
    .await?;
    if to.place == 0 {
        return Ok(());
    }
    // The leader of the root's node sends the result to the root.
    match (&total, &recv) {
        (Some(total), _) => {
            way.message(way.invocation.isend(&total.as_send(), root))
                .await
        }
        (None, Some(recv)) => {
            let leader = way.levels.node_ranks.leader(to.node);
            way.message(way.invocation.irecv(recv, leader)).await
        }
        (None, None) => Ok(()),
    }
}

pub async fn allreduce(
    way: &Way<'_>,
    send: Option<SendBuf>,
    recv: &RecvBuf,
    op: Op,
) -> Result<(), Error> {
    let (send, at_leader) = match way.leads() {
        true => (send, Some(recv.clone())),
        false => (Some(send.unwrap_or_else(|| recv.as_send())), None),
    };
    way.local(Call::Reduce {
        send,
        recv: at_leader,
        op: op.clone(),
        root: 0,
    })
    .await?;
    way.among_leaders(|| Call::Allreduce {
        send: None,
        recv: recv.clone(),
        op,
    })
    .await?;
    way.local_last(Call::Bcast {
        buf: recv.clone(),
        root: 0,
    })
    .await
}
