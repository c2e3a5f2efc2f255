//! Hierarchical collectives with a block per member: gather, scatter, allgather, all-to-all.
//!
//! Gather and scatter as in J. L. Träff, "Hierarchical gather/scatter algorithms with graceful degradation", IPDPS 2004;
//! all-to-all as in S. Kumar, R. Mamidala, D. K. Panda, "Scaling alltoall collective on multi-core systems", IPDPS 2008.
//! The blocks of a node are sent in one message between leaders, in the order of the node's ranks.

use super::levels::Way;
use super::node_ranks::Packed;
use crate::Call;
use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use std::rc::Rc;

/// Returns the first block of a row, because a `Call` contains only the first of its contiguous blocks.
fn first_of(row: &RecvBuf, block: i64) -> RecvBuf {
    row.slice(0..block)
}

/// Members gather their blocks at their node's leader.
/// The leaders gather all blocks at the leader of the root's node, which sends them to the root.
pub async fn gather(
    way: &Way<'_>,
    send: Option<SendBuf>,
    recv: Option<RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    let node_ranks = &way.levels.node_ranks;
    let (me, to) = (way.me(), way.node_rank(root));
    let recv = recv.filter(|_| me == root);
    let recv = recv.map(|recv| Blocks::equal(&recv, way.invocation.size()));
    let in_place = send.is_none();
    let Some(own) = send.or_else(|| recv.as_ref().map(|recv| recv.of(me).as_send())) else {
        return Ok(());
    };
    let block = own.bytes();
    let all = match &recv {
        Some(recv) => Some(Packed::for_blocks(node_ranks, recv)?),
        None if way.leads() && way.here().node == to.node => {
            Some(Packed::scratch(node_ranks, |_| block)?)
        }
        None => None,
    };
    let node = match &all {
        Some(all) if way.leads() => Some(all.of_node(node_ranks, way.here().node)),
        None if way.leads() => {
            let members = node_ranks.on(way.here().node).len() as i64;
            Some(algo::bytes(members * block)?.all())
        }
        _ => None,
    };
    let is_there = in_place && way.leads() && all.as_ref().is_some_and(|all| all.is_home);
    way.local(Call::Gather {
        send: (!is_there).then_some(own),
        recv: node.as_ref().map(|node| first_of(node, block)),
        root: 0,
    })
    .await?;
    way.among_leaders(|| Call::Gatherv {
        // On the root's node, the leader's own row already contains the node's blocks.
        send: node
            .filter(|_| way.here().node != to.node)
            .map(|node| node.as_send()),
        recv: all.as_ref().map(|all| all.by_node(node_ranks)),
        root: to.node,
    })
    .await?;
    if to.place > 0 {
        match (&all, &recv) {
            (Some(all), Some(_)) => {
                let leader = node_ranks.leader(to.node);
                way.message(way.invocation.irecv(&all.all, leader)).await?;
            }
            (Some(all), None) => {
                way.message(way.invocation.isend(&all.all.as_send(), root))
                    .await?
            }
            (None, _) => {}
        }
    }
    if let (Some(all), Some(recv)) = (&all, &recv) {
        all.deliver(node_ranks, recv, |rank| in_place && rank == me);
    }
    Ok(())
}

/// Scatters the root's blocks to all members: the steps of [`gather`] in reverse.
pub async fn scatter(
    way: &Way<'_>,
    send: Option<SendBuf>,
    recv: Option<RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    let node_ranks = &way.levels.node_ranks;
    let (me, from) = (way.me(), way.node_rank(root));
    let send = send.filter(|_| me == root);
    let send = send.map(|send| Blocks::equal(&send, way.invocation.size()));
    let block = match (&recv, &send) {
        (Some(recv), _) => recv.bytes(),
        (None, Some(send)) => send.of(me).bytes(),
        (None, None) => return Ok(()),
    };
    let has_all = me == root || (way.leads() && way.here().node == from.node);
    let all = has_all
        .then(|| Packed::scratch(node_ranks, |_| block))
        .transpose()?;
    if let Some(all) = &all {
        if let Some(send) = &send {
            all.fill(node_ranks, |rank| send.of(rank));
        }
        if from.place > 0 {
            match me == root {
                true => {
                    let leader = node_ranks.leader(from.node);
                    way.message(way.invocation.isend(&all.all.as_send(), leader))
                        .await?;
                }
                false => way.message(way.invocation.irecv(&all.all, root)).await?,
            }
        }
    }
    let node = match &all {
        Some(all) if way.leads() => Some(all.of_node(node_ranks, way.here().node)),
        None if way.leads() => {
            let members = node_ranks.on(way.here().node).len() as i64;
            Some(algo::bytes(members * block)?.all())
        }
        _ => None,
    };
    way.among_leaders(|| Call::Scatterv {
        send: all.as_ref().map(|all| {
            let nodes = all.by_node(node_ranks);
            nodes.iter().map(RecvBuf::as_send).collect()
        }),
        recv: node.clone().filter(|_| way.here().node != from.node),
        root: from.node,
    })
    .await?;
    let buf = match recv {
        Some(recv) => Some(recv),
        // At the root with MPI_IN_PLACE, the root's own block stays where it is.
        // A leader that is the root receives its block from no member.
        None if way.leads() => None,
        None => Some(algo::bytes(block)?.all()),
    };
    way.local_last(Call::Scatter {
        send: node.map(|node| first_of(&node, block).as_send()),
        recv: buf,
        root: 0,
    })
    .await
}

/// Members gather at their node's leader, the leaders allgather,
/// and each leader broadcasts all blocks on its node.
pub async fn allgather(
    way: &Way<'_>,
    send: Option<SendBuf>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    let node_ranks = &way.levels.node_ranks;
    let me = way.me();
    let in_place = send.is_none();
    let own = send.unwrap_or_else(|| recv.of(me).as_send());
    let all = Packed::for_blocks(node_ranks, recv)?;
    let node = all.of_node(node_ranks, way.here().node);
    let is_there = in_place && way.leads() && all.is_home;
    let own = (!is_there).then_some(own);
    let gathering = match recv {
        Blocks::Equal { first, .. } => Call::Gather {
            send: own,
            recv: way.leads().then(|| first_of(&node, first.bytes())),
            root: 0,
        },
        Blocks::Each(_) => Call::Gatherv {
            send: own,
            recv: way.leads().then(|| {
                let mut at = 0;
                let places = node_ranks.on(way.here().node).iter().map(|rank| {
                    let start = at;
                    at += recv.of(*rank).bytes();
                    node.slice(start..at)
                });
                places.collect()
            }),
            root: 0,
        },
    };
    way.local(gathering).await?;
    way.among_leaders(|| Call::Allgatherv {
        send: None,
        recv: all.by_node(node_ranks),
    })
    .await?;
    way.local_last(Call::Bcast {
        buf: all.all.clone(),
        root: 0,
    })
    .await?;
    all.deliver(node_ranks, recv, |rank| in_place && rank == me);
    Ok(())
}

/// The leader gathers all data of its node's members and sorts them by destination node.
/// It sorts the data that arrive from other leaders by destination member.
///
/// Best for short blocks: each pair of nodes exchanges only one message in each direction,
/// and the data pass through the leaders' memory twice.
pub async fn alltoall(way: &Way<'_>, send: Option<SendBuf>, recv: &RecvBuf) -> Result<(), Error> {
    let node_ranks = &way.levels.node_ranks;
    let size = way.invocation.size();
    let (block, everything) = (recv.bytes(), recv.bytes() * i64::from(size));
    let recv = Blocks::equal(recv, size);
    let send = send.map(|send| Blocks::equal(&send, size));
    let mine = Packed::scratch(node_ranks, |_| block)?;
    mine.fill(node_ranks, |rank| match &send {
        Some(send) => send.of(rank),
        None => recv.of(rank).as_send(),
    });
    let members = node_ranks.on(way.here().node).len() as i64;
    // On a leader: one row for each member of the node. A row contains one block for each rank.
    let rows = way.leads().then(|| algo::bytes(members * everything));
    let rows = rows.transpose()?.map(|rows| rows.all());
    let row = |rows: &RecvBuf| first_of(rows, everything);
    way.local(Call::Gather {
        send: Some(mine.all.as_send()),
        recv: rows.as_ref().map(row),
        root: 0,
    })
    .await?;
    if let Some(rows) = &rows {
        among_nodes(way, rows, block).await?;
    }
    way.local_last(Call::Scatter {
        send: rows.as_ref().map(|rows| row(rows).as_send()),
        recv: Some(mine.all.clone()),
        root: 0,
    })
    .await?;
    mine.deliver(node_ranks, &recv, |_| false);
    Ok(())
}

/// Exchanges blocks among the leaders: turns rows of sent data into rows of received data.
async fn among_nodes(way: &Way<'_>, rows: &RecvBuf, block: i64) -> Result<(), Error> {
    let node_ranks = &way.levels.node_ranks;
    let members = node_ranks.on(way.here().node).len() as i64;
    let sizes = || (0..node_ranks.nodes()).map(|node| node_ranks.on(node).len() as i64);
    let width = i64::from(node_ranks.size()) * block;
    let each = |all: &RecvBuf| -> Rc<[RecvBuf]> {
        let mut at = 0;
        let pieces = sizes().map(|others| {
            let start = at;
            at += members * others * block;
            all.slice(start..at)
        });
        pieces.collect()
    };
    let (out, fresh) = (
        algo::bytes(members * width)?.all(),
        algo::bytes(members * width)?.all(),
    );
    let (going, coming) = (each(&out), each(&fresh));
    // The message to a node has the blocks from this node's first member,
    // then those from its second member, and so on.
    // Each member's blocks for that node are contiguous in the member's row.
    let mut column = 0;
    for (others, piece) in sizes().zip(going.iter()) {
        for member in 0..members {
            let from = member * width + column;
            let run = others * block;
            let part = rows.slice(from..from + run);
            algo::copy(
                &part.as_send(),
                &piece.slice(member * run..(member + 1) * run),
            );
        }
        column += others * block;
    }
    let going: Rc<[SendBuf]> = going.iter().map(RecvBuf::as_send).collect();
    way.among_leaders(|| Call::Alltoallv {
        send: Some(going),
        recv: coming.clone(),
    })
    .await?;
    // The message from a node has the blocks from that node's first member for all members of this node, then those from its second member.
    let mut column = 0;
    for (others, piece) in sizes().zip(coming.iter()) {
        for (other, member) in (0..others).flat_map(|o| (0..members).map(move |m| (o, m))) {
            let from = (other * members + member) * block;
            let to = member * width + column + other * block;
            algo::copy(
                &piece.slice(from..from + block).as_send(),
                &rows.slice(to..to + block),
            );
        }
        column += others * block;
    }
    Ok(())
}
