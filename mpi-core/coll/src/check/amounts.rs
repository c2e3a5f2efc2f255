//! Pairwise check of byte counts:
//! compares the number of bytes that each member sends to each other member with the number that the receiver expects.
//! The check covers calls whose counts may differ between members,
//! and calls with separate send and receive counts.
//!
//! MPI 5.0, sections 6.5 to 6.10:
//! the data that rank i sends to rank j must have the length that rank j expects from rank i.
//! Every member sends its send counts to the others,
//! compares the received counts with those that it expects, and broadcasts the differences.
//! So the call fails on every member with the same error, which lists the differing pairs.
//! In neighbourhood collectives ([`edges`](super::edges)) every block is compared separately.

use super::difference::{Difference, WORDS, exchange, share};
use super::edges::Edges;
use crate::Error;
use crate::datatype::{RecvBuf, SendBuf};
use crate::{Call, CallId, Form, Invocation};
use mpi_engine::coll::function;
use std::fmt;

/// The number of bytes that this member sends to, and expects from, each member.
struct Amounts {
    sends: Vec<u64>,
    expects: Vec<u64>,
}

impl Amounts {
    /// Returns the byte counts of a call, or `None` if the comparison of call signatures is sufficient for it.
    fn of(call: &Call, me: u32, size: u32) -> Option<Amounts> {
        let none = || vec![0; size as usize];
        let only = |to: u32, bytes: i64| {
            let mut amounts = none();
            amounts[to as usize] = bytes as u64;
            amounts
        };
        let of_send = |bufs: &[SendBuf]| bufs.iter().map(|b| b.bytes() as u64).collect();
        let of_recv = |bufs: &[RecvBuf]| bufs.iter().map(|b| b.bytes() as u64).collect();
        let each = |bytes: i64| vec![bytes as u64; size as usize];
        // With MPI_IN_PLACE a rank's own block counts as sent from the rank to itself.
        let gathered = |send: &Option<SendBuf>, expects: Vec<u64>, root: u32| {
            let own = expects[me as usize] as i64;
            Amounts {
                sends: only(root, send.as_ref().map_or(own, SendBuf::bytes)),
                expects,
            }
        };
        let scattered = |sends: Vec<u64>, recv: &Option<RecvBuf>, root: u32| {
            let own = sends[me as usize] as i64;
            Amounts {
                expects: only(root, recv.as_ref().map_or(own, RecvBuf::bytes)),
                sends,
            }
        };
        Some(match call {
            Call::Gather { send, recv, root } => {
                let recv = recv.as_ref().filter(|_| *root == me);
                let expects = recv.map_or_else(none, |recv| each(recv.bytes()));
                gathered(send, expects, *root)
            }
            Call::Gatherv { send, recv, root } => {
                let recv = recv.as_ref().filter(|_| *root == me);
                gathered(send, recv.map_or_else(none, |recv| of_recv(recv)), *root)
            }
            Call::Scatter { send, recv, root } => {
                let send = send.as_ref().filter(|_| *root == me);
                let sends = send.map_or_else(none, |send| each(send.bytes()));
                scattered(sends, recv, *root)
            }
            Call::Scatterv { send, recv, root } => {
                let send = send.as_ref().filter(|_| *root == me);
                scattered(send.map_or_else(none, |send| of_send(send)), recv, *root)
            }
            Call::Allgather { send, recv } => Amounts {
                sends: each(send.as_ref().map_or(recv.bytes(), SendBuf::bytes)),
                expects: each(recv.bytes()),
            },
            Call::Allgatherv { send, recv } => {
                let own = recv[me as usize].bytes();
                Amounts {
                    sends: each(send.as_ref().map_or(own, SendBuf::bytes)),
                    expects: of_recv(recv),
                }
            }
            Call::Alltoall { send, recv } => Amounts {
                sends: each(send.as_ref().map_or(recv.bytes(), SendBuf::bytes)),
                expects: each(recv.bytes()),
            },
            Call::Alltoallv { send, recv } | Call::Alltoallw { send, recv } => Amounts {
                // With MPI_IN_PLACE the data sent to a member have the same length as the data received from it.
                sends: send
                    .as_ref()
                    .map_or_else(|| of_recv(recv), |send| of_send(send)),
                expects: of_recv(recv),
            },
            Call::ReduceScatter { recv, counts, .. } => {
                let of = |count: &i64| recv.datatype().bytes(*count) as u64;
                let mine = counts.get(me as usize).map_or(0, of);
                Amounts {
                    sends: counts.iter().map(of).collect(),
                    expects: vec![mine; size as usize],
                }
            }
            _ => return None,
        })
    }

    /// Returns the senders whose number of bytes for this member
    /// differs from the number that this member expects.
    async fn differences(self, invocation: &Invocation) -> Result<Vec<Difference>, Error> {
        let told = exchange(invocation, &self.sends).await?;
        let pairs = (0..).zip(told.into_iter().zip(self.expects));
        let differ = pairs.filter(|(_, (sent, expected))| sent != expected);
        let difference = |(from, (sent, expected))| Difference {
            from,
            to: invocation.rank(),
            sent,
            expected,
        };
        Ok(differ.map(difference).collect())
    }
}

/// The pairs of members in which the sender sends another number of bytes than the receiver expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    call: CallId,
    form: Form,
    pairs: Vec<Difference>,
    /// The number of further such pairs of members, which are not listed in `pairs`.
    more: u64,
}

impl fmt::Display for Disagreement {
    /// Example: "MPI_Alltoallv: rank 2 sends 12 bytes to rank 0, which expects 8".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", function(self.call, self.form))?;
        for (i, pair) in self.pairs.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            let Difference {
                from,
                to,
                sent,
                expected,
            } = pair;
            match self.call {
                CallId::ReduceScatter => write!(
                    f,
                    "{separator}rank {from} gives {sent} bytes to rank {to}, which takes {expected}"
                )?,
                _ => write!(
                    f,
                    "{separator}rank {from} sends {sent} bytes to rank {to}, which expects {expected}"
                )?,
            }
        }
        match self.more {
            0 => Ok(()),
            1 => write!(f, "; and another pair"),
            more => write!(f, "; and {more} other pairs"),
        }
    }
}

const NAMED: usize = 4;

/// Compares the byte counts of all pairs of members; returns `None` if all are equal.
pub async fn compare(
    invocation: &Invocation,
    call: &Call,
    form: Form,
) -> Result<Option<Disagreement>, Error> {
    let found = match (
        Edges::of(call),
        Amounts::of(call, invocation.rank(), invocation.size()),
    ) {
        (Some(edges), _) => edges.differences(invocation).await?,
        (None, Some(amounts)) => amounts.differences(invocation).await?,
        (None, None) => return Ok(None),
    };
    let all = share(invocation, &Difference::words(&found)).await?;
    let told: Vec<_> = all.chunks(WORDS).filter_map(Difference::told).collect();
    if told.is_empty() {
        return Ok(None);
    }
    let unnamed = told.len().saturating_sub(NAMED) as u64;
    Ok(Some(Disagreement {
        call: call.id(),
        form,
        more: told
            .iter()
            .fold(unnamed, |sum, (_, more)| sum.saturating_add(*more)),
        pairs: told.into_iter().take(NAMED).map(|(pair, _)| pair).collect(),
    }))
}
