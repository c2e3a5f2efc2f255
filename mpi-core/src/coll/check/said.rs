//! What a member says that it calls, as words that travel and as text.

use crate::coll::{Call, CallId};
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::{Op, Predefined};
use std::fmt;

/// One member's call, as far as all members have to agree on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    call: u64,
    /// One more than the root; zero if there is none.
    root: u64,
    /// The value of a predefined operator's handle, [`USER`] or [`USER_COMMUTES`]; zero if there is none.
    op: u64,
    /// One more than the bytes; zero if they may differ.
    bytes: u64,
    /// Condenses the counts of a call that has one for each rank.
    counts: u64,
}

const USER: u64 = u64::MAX;
const USER_COMMUTES: u64 = u64::MAX - 1;
const WORDS: usize = 5;

impl Said {
    /// What rank `me` calls.
    pub fn of(call: &Call, me: u32) -> Said {
        let id = call.id() as u64;
        let said = Said {
            call: id,
            ..Said::default()
        };
        let rooted = |root: &u32| Said {
            root: u64::from(*root) + 1,
            ..said
        };
        let block = |root: &u32, at_root: Option<i64>, elsewhere: Option<i64>| {
            let bytes = if *root == me {
                at_root.or(elsewhere)
            } else {
                elsewhere
            };
            rooted(root).bytes(bytes)
        };
        let of_send = |send: &Option<SendBuf>| send.as_ref().map(SendBuf::bytes);
        let of_recv = |recv: &Option<RecvBuf>| recv.as_ref().map(RecvBuf::bytes);
        match call {
            Call::Bcast { buf, root } => rooted(root).bytes(Some(buf.bytes())),
            Call::Gather { send, recv, root } => block(root, of_recv(recv), of_send(send)),
            Call::Scatter { send, recv, root } => block(root, of_send(send), of_recv(recv)),
            Call::Gatherv { root, .. } | Call::Scatterv { root, .. } => rooted(root),
            Call::Allgather { recv, .. } | Call::Alltoall { recv, .. } => {
                said.bytes(Some(recv.bytes()))
            }
            Call::Allgatherv { recv, .. } => said.counts(recv.iter().map(RecvBuf::bytes)),
            Call::Reduce {
                send,
                recv,
                op,
                root,
            } => rooted(root).bytes(of_send(send).or(of_recv(recv))).op(op),
            Call::Allreduce { recv, op, .. }
            | Call::Scan { recv, op, .. }
            | Call::Exscan { recv, op, .. }
            | Call::ReduceScatterBlock { recv, op, .. } => said.bytes(Some(recv.bytes())).op(op),
            Call::ReduceScatter {
                recv, counts, op, ..
            } => {
                let width = recv.datatype().size();
                said.counts(counts.iter().map(|count| count * width)).op(op)
            }
            Call::Barrier
            | Call::Alltoallv { .. }
            | Call::Alltoallw { .. }
            | Call::NeighborAllgather { .. }
            | Call::NeighborAllgatherv { .. }
            | Call::NeighborAlltoall { .. }
            | Call::NeighborAlltoallv { .. }
            | Call::NeighborAlltoallw { .. } => said,
        }
    }

    fn bytes(self, bytes: Option<i64>) -> Said {
        let bytes = bytes.map_or(0, |bytes| bytes as u64 + 1);
        Said { bytes, ..self }
    }

    fn op(self, op: &Op) -> Said {
        let op = match op {
            Op::Predefined(op) => *op as u64,
            Op::User(_) if op.is_commutative() => USER_COMMUTES,
            Op::User(_) => USER,
        };
        Said { op, ..self }
    }

    /// The sum of the counts, and a word that tells most vectors with that sum apart (FNV-1a).
    fn counts(self, bytes: impl Iterator<Item = i64> + Clone) -> Said {
        let total = bytes.clone().fold(0i64, i64::wrapping_add);
        let fold = |hash: u64, bytes: i64| (hash ^ bytes as u64).wrapping_mul(0x0100_0000_01b3);
        let counts = bytes.fold(0xcbf2_9ce4_8422_2325, fold);
        Said { counts, ..self }.bytes(Some(total))
    }

    fn words(&self) -> [u64; WORDS] {
        [self.call, self.root, self.op, self.bytes, self.counts]
    }

    pub fn to_bytes(self) -> [u8; WORDS * 8] {
        let mut bytes = [0; WORDS * 8];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words()) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// What is missing counts as zero.
    pub fn from_bytes(bytes: &[u8]) -> Said {
        let mut words = bytes.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w));
        let mut next = || words.next().unwrap_or(0);
        Said {
            call: next(),
            root: next(),
            op: next(),
            bytes: next(),
            counts: next(),
        }
    }
}

impl fmt::Display for Said {
    /// "MPI_Reduce to rank 2 of 400 bytes with MPI_SUM".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = CallId::ALL.into_iter().find(|c| *c as u64 == self.call);
        let Some(call) = call else {
            return write!(f, "an unknown operation");
        };
        let (first, rest) = call.name().split_at(1);
        write!(f, "MPI_{}{rest}", first.to_uppercase())?;
        if let Some(root) = self.root.checked_sub(1) {
            let way = match call {
                CallId::Bcast | CallId::Scatter | CallId::Scatterv => "from",
                _ => "to",
            };
            write!(f, " {way} rank {root}")?;
        }
        if let Some(bytes) = self.bytes.checked_sub(1) {
            write!(f, " of {bytes} bytes")?;
        }
        if self.counts != 0 {
            write!(f, " in counts of their own ({:04x})", self.counts & 0xffff)?;
        }
        match self.op {
            0 => Ok(()),
            USER => write!(f, " with a user's operator that does not commute"),
            USER_COMMUTES => write!(f, " with a user's operator that commutes"),
            value => {
                let op = Predefined::ALL.into_iter().find(|op| *op as u64 == value);
                write!(
                    f,
                    " with {}",
                    op.map_or("an unknown operator", Predefined::name)
                )
            }
        }
    }
}

/// Members that do not call the same operation: who calls what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    comm: String,
    /// Which of the communicator's collective calls, counted from one.
    number: u64,
    /// Ranks, ascending, and what they call; whoever has the lowest rank first.
    groups: Vec<(Vec<u32>, String)>,
}

impl Mismatch {
    /// `said` is by rank; `tag` counts the calls from zero.
    pub fn new(comm: String, tag: i32, said: &[Said]) -> Mismatch {
        let mut groups: Vec<(Said, Vec<u32>)> = Vec::new();
        for (rank, what) in (0..).zip(said) {
            match groups.iter_mut().find(|(other, _)| other == what) {
                Some((_, ranks)) => ranks.push(rank),
                None => groups.push((*what, vec![rank])),
            }
        }
        Mismatch {
            comm,
            number: tag as u64 + 1,
            groups: groups
                .into_iter()
                .map(|(what, ranks)| (ranks, what.to_string()))
                .collect(),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { comm, number, .. } = self;
        write!(
            f,
            "in collective call {number} on {comm} the members differ: "
        )?;
        for (i, (ranks, what)) in self.groups.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            let (noun, verb) = match ranks.len() {
                1 => ("rank", "calls"),
                _ => ("ranks", "call"),
            };
            write!(f, "{separator}{noun} {} {verb} {what}", Ranks(ranks))?;
        }
        Ok(())
    }
}

/// Ascending ranks as people write them: "0, 2 to 5, 9".
struct Ranks<'a>(&'a [u32]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (i, run) in runs.enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            match run {
                [first, .., last] if run.len() > 2 => write!(f, "{separator}{first} to {last}")?,
                _ => {
                    let ranks: Vec<String> = run.iter().map(u32::to_string).collect();
                    write!(f, "{separator}{}", ranks.join(", "))?;
                }
            }
        }
        Ok(())
    }
}
