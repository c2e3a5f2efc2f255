//! One decision as one word of 64 bits: `decision: 4, call: 4, source: 24, value: 32`, the lowest first.

use std::fmt;

/// A call whose outcome depends on which process was faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Asker {
    /// A receive with a wildcard, blocking or not.
    Recv = 0,
    Probe = 1,
    Iprobe = 2,
    Test = 3,
    Testall = 4,
    Testany = 5,
    Testsome = 6,
    Waitany = 7,
    Waitsome = 8,
    GetStatus = 9,
    Cancel = 10,
    WinTest = 11,
    /// A lock of a member of a window: its ticket.
    Lock = 12,
    /// An access to a member of a window: its turn.
    Access = 13,
}

impl Asker {
    const ALL: [(Asker, &'static str); 14] = [
        (Asker::Recv, "a receive with a wildcard"),
        (Asker::Probe, "MPI_Probe or MPI_Mprobe with a wildcard"),
        (Asker::Iprobe, "MPI_Iprobe or MPI_Improbe"),
        (Asker::Test, "MPI_Test"),
        (Asker::Testall, "MPI_Testall"),
        (Asker::Testany, "MPI_Testany"),
        (Asker::Testsome, "MPI_Testsome"),
        (Asker::Waitany, "MPI_Waitany"),
        (Asker::Waitsome, "MPI_Waitsome"),
        (Asker::GetStatus, "MPI_Request_get_status or one of its kin"),
        (Asker::Cancel, "MPI_Cancel"),
        (Asker::WinTest, "MPI_Win_test"),
        (Asker::Lock, "MPI_Win_lock or MPI_Win_lock_all"),
        (Asker::Access, "an access to a window"),
    ];
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Asker::ALL.iter().find(|(asker, _)| asker == self);
        f.write_str(found.map_or("a call", |(_, name)| name))
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A receive that has not met a message, or never did.
    Open,
    /// The message of this rank of the communicator, with this tag.
    From { source: u32, tag: i32 },
    /// Nothing was there yet, so many times in a row.
    Nothing { times: u32 },
    /// The request at this place of the array, or, for calls about all, all of them.
    Place(u32),
    /// So many [`Decision::Place`]s follow.
    Several(u32),
    /// The receive was taken back. One without a wildcard is named: it was the one posted with this number, from 1; 0 is one with a wildcard.
    Cancelled { plain: u32 },
    /// The operation could not be taken back any more.
    TooLate,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Open => write!(f, "no message"),
            Decision::From { source, tag } => {
                write!(f, "the message from rank {source}, tag {tag}")
            }
            Decision::Nothing { .. } => write!(f, "nothing yet"),
            Decision::Place(place) => write!(f, "request {place}"),
            Decision::Several(count) => write!(f, "{count} requests"),
            Decision::Cancelled { .. } => write!(f, "a receive that no message had met"),
            Decision::TooLate => write!(f, "that it came too late"),
        }
    }
}

/// Communicators of more ranks are recorded only as far as this.
pub(super) const MOST_RANKS: u32 = 1 << 24;

pub(super) fn encode(asker: Asker, decision: Decision) -> u64 {
    let (code, source, value) = match decision {
        Decision::Open => (1, 0, 0),
        Decision::From { source, tag } => (2, source % MOST_RANKS, tag as u32),
        Decision::Nothing { times } => (3, 0, times),
        Decision::Place(place) => (4, 0, place),
        Decision::Several(count) => (5, 0, count),
        Decision::Cancelled { plain } => (6, 0, plain),
        Decision::TooLate => (7, 0, 0),
    };
    code | (asker as u64) << 4 | u64::from(source) << 8 | u64::from(value) << 32
}

/// `None` for a word that is none, as those after the end are.
pub(super) fn decode(word: u64) -> Option<(Asker, Decision)> {
    let (asker, _) = *Asker::ALL.get((word >> 4 & 15) as usize)?;
    let (source, value) = ((word >> 8) as u32 & (MOST_RANKS - 1), (word >> 32) as u32);
    let decision = match word & 15 {
        1 => Decision::Open,
        2 => Decision::From {
            source,
            tag: value as i32,
        },
        3 => Decision::Nothing { times: value },
        4 => Decision::Place(value),
        5 => Decision::Several(value),
        6 => Decision::Cancelled { plain: value },
        7 => Decision::TooLate,
        _ => return None,
    };
    Some((asker, decision))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decision() -> impl Strategy<Value = Decision> {
        prop_oneof![
            Just(Decision::Open),
            (0..MOST_RANKS, 0..i32::MAX).prop_map(|(source, tag)| Decision::From { source, tag }),
            any::<u32>().prop_map(|times| Decision::Nothing { times }),
            any::<u32>().prop_map(Decision::Place),
            any::<u32>().prop_map(Decision::Several),
            any::<u32>().prop_map(|plain| Decision::Cancelled { plain }),
            Just(Decision::TooLate),
        ]
    }

    proptest! {
        #[test]
        fn a_word_says_what_was_decided(at in 0..Asker::ALL.len(), decision in decision()) {
            let (asker, _) = Asker::ALL[at];
            prop_assert_eq!(decode(encode(asker, decision)), Some((asker, decision)));
        }

        #[test]
        fn no_word_is_too_strange(word in any::<u64>()) {
            let _ = decode(word);
        }
    }

    #[test]
    fn what_comes_after_the_end_is_no_decision() {
        assert_eq!(decode(0), None);
        for (at, (asker, _)) in Asker::ALL.iter().enumerate() {
            assert_eq!(*asker as usize, at);
        }
    }
}
