//! Check of the byte counts along each edge of a topology, for neighbourhood collectives (MPI 5.0, section 8.6).
//!
//! A block sent to a neighbour must be as long as the block that the neighbour expects;
//! parallel edges between two members match in the order in which the topology lists them.
//! Only the two ends of an edge know the edge.
//! So every member broadcasts its outgoing edges, and compares the edges that lead to itself with its incoming edges.
//! Asymmetric topologies are detected too: if one end does not list an edge, the edge counts there as zero bytes.

use super::difference::{Difference, share};
use crate::Error;
use crate::datatype::{RecvBuf, SendBuf};
use crate::topo::Neighbours;
use crate::{Call, Invocation};

/// The rank of the other end of an edge, and the number of bytes sent along the edge.
type Edge = (u32, u64);

/// A member's edges, in the order in which parallel edges match.
pub(super) struct Edges {
    outgoing: Vec<Edge>,
    incoming: Vec<Edge>,
}

impl Edges {
    /// Returns the edges of a call, or `None` if the call is not a neighbourhood collective.
    pub fn of(call: &Call) -> Option<Edges> {
        let edges =
            |neighbours: &Neighbours, send: &dyn Fn(usize) -> i64, recv: &dyn Fn(usize) -> i64| {
                let along = |(block, end), bytes: &dyn Fn(usize) -> i64| (end, bytes(block) as u64);
                Edges {
                    outgoing: neighbours
                        .departures()
                        .map(|edge| along(edge, send))
                        .collect(),
                    incoming: neighbours
                        .arrivals()
                        .map(|edge| along(edge, recv))
                        .collect(),
                }
            };
        let sent = |bufs: &[SendBuf], block: usize| bufs.get(block).map_or(0, SendBuf::bytes);
        let taken = |bufs: &[RecvBuf], block: usize| bufs.get(block).map_or(0, RecvBuf::bytes);
        Some(match call {
            Call::NeighborAllgather {
                neighbours,
                send,
                recv,
            }
            | Call::NeighborAlltoall {
                neighbours,
                send,
                recv,
            } => edges(neighbours, &|_| send.bytes(), &|_| recv.bytes()),
            Call::NeighborAllgatherv {
                neighbours,
                send,
                recv,
            } => edges(neighbours, &|_| send.bytes(), &|block| taken(recv, block)),
            Call::NeighborAlltoallv {
                neighbours,
                send,
                recv,
            }
            | Call::NeighborAlltoallw {
                neighbours,
                send,
                recv,
            } => edges(neighbours, &|block| sent(send, block), &|block| {
                taken(recv, block)
            }),
            _ => return None,
        })
    }

    /// Returns the incoming edges on which the sender sends another number of bytes than this member expects.
    pub async fn differences(self, invocation: &Invocation) -> Result<Vec<Difference>, Error> {
        let degrees = share(invocation, &[self.outgoing.len() as u64]).await?;
        let most = degrees.iter().copied().max().unwrap_or(0) as usize;
        // All members send the same number of pairs (rank, bytes): the maximum out-degree of a member.
        // Unused pairs hold `NO_RANK`.
        const NO_RANK: u64 = u64::MAX;
        let mut mine = vec![NO_RANK; 2 * most];
        for (place, (to, bytes)) in mine.chunks_exact_mut(2).zip(&self.outgoing) {
            place.copy_from_slice(&[u64::from(*to), *bytes]);
        }
        let all = share(invocation, &mine).await?;
        let me = invocation.rank();
        let mut found = Vec::new();
        for from in 0..invocation.size() {
            let theirs = from as usize * mine.len()..(from as usize + 1) * mine.len();
            let theirs = all.get(theirs).unwrap_or(&[]);
            let to_me = theirs
                .chunks_exact(2)
                .filter(|edge| edge[0] == u64::from(me));
            let mut sent = to_me.map(|edge| edge[1]);
            let from_it = self.incoming.iter().filter(|(end, _)| *end == from);
            let mut expected = from_it.map(|(_, bytes)| *bytes);
            loop {
                let (sent, expected) = match (sent.next(), expected.next()) {
                    (None, None) => break,
                    (sent, expected) => (sent.unwrap_or(0), expected.unwrap_or(0)),
                };
                if sent != expected {
                    found.push(Difference {
                        from,
                        to: me,
                        sent,
                        expected,
                    });
                }
            }
        }
        Ok(found)
    }
}
