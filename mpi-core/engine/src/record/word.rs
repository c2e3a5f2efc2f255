//! The encoding of decisions as words of 64 bits: from the lowest bits on, 4 bits `decision`, 4 `call`, 32 `value`, 8 zero bits, 16 `check`.
//!
//! A decision about a message has two words, of which the second contains the message's tag; any other decision has one word.
//! The check bits are a CRC of the word's other bits and of its index in the file, so a changed, moved or overwritten word is detected.
//! Each word has a check of its own, since a rank may be killed between any two of them.

use std::fmt;

/// A call whose result is nondeterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Asker {
    /// A receive with a wildcard, blocking or nonblocking.
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
    /// A lock of a member's window: the number in the order of locks.
    Lock = 12,
    /// An access to a member's window: the number in the order of accesses.
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

/// The result of a call that is nondeterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The receive has not matched a message yet, or never matched one.
    Open,
    /// The message from this rank of the communicator, with this tag.
    From { source: u32, tag: i32 },
    /// No request was complete, or there was no message, in this number of consecutive calls.
    Nothing { times: u32 },
    /// The request at this index of the array was complete; for calls on all requests, all were.
    /// For a lock or an access to a window: its number in the order of locks or accesses.
    Place(u32),
    /// Several requests were complete: this number of [`Decision::Place`]s follows.
    Several(u32),
    /// The receive was cancelled. `plain` is the number (from 1) of a receive without a wildcard, or 0 for a receive with a wildcard.
    Cancelled { plain: u32 },
    /// The operation could not be cancelled any more.
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

/// The code in the second word of a decision about a message.
const TAG: u64 = 8;

/// Returns true if a decision has a second word, which contains a tag.
pub(super) fn is_about_a_message(decision: Decision) -> bool {
    matches!(decision, Decision::Open | Decision::From { .. })
}

/// Encodes the first word of a decision; `at` is the index of this word in the file.
pub(super) fn encode(asker: Asker, decision: Decision, at: usize) -> u64 {
    let (code, value) = match decision {
        Decision::Open => (1, 0),
        Decision::From { source, .. } => (2, source),
        Decision::Nothing { times } => (3, times),
        Decision::Place(place) => (4, place),
        Decision::Several(count) => (5, count),
        Decision::Cancelled { plain } => (6, plain),
        Decision::TooLate => (7, 0),
    };
    checked(code | (asker as u64) << 4 | u64::from(value) << 8, at)
}

/// Encodes the second word of a decision about a message; `at` is the index of this word in the file.
/// The tag is 0 if there is no message.
pub(super) fn encode_tag(asker: Asker, decision: Decision, at: usize) -> u64 {
    let tag = match decision {
        Decision::From { tag, .. } => tag as u32,
        _ => 0,
    };
    checked(TAG | (asker as u64) << 4 | u64::from(tag) << 8, at)
}

/// Decodes the words of a file; `first` is the index of the first of them in the file. On failure, returns the index of the damaged word.
///
/// Zeroes at the end are not part of the recording.
/// If the last decision lacks its second word, it is dropped, since the program has not got its result.
pub(crate) fn decode(words: &[u64], first: usize) -> Result<Vec<(Asker, Decision)>, usize> {
    let end = words.iter().rposition(|&word| word != 0);
    let mut words = (first..).zip(&words[..end.map_or(0, |last| last + 1)]);
    let mut decisions = Vec::new();
    while let Some((at, &word)) = words.next() {
        let (asker, decision) = unchecked(word, at).and_then(first_word).ok_or(at)?;
        if !is_about_a_message(decision) {
            decisions.push((asker, decision));
            continue;
        }
        let Some((at, &word)) = words.next() else {
            break;
        };
        let tag = unchecked(word, at).and_then(|payload| tag_of(payload, asker));
        let tag = tag.ok_or(at)?;
        let decision = match decision {
            Decision::From { source, .. } => Decision::From { source, tag },
            other => other,
        };
        decisions.push((asker, decision));
    }
    Ok(decisions)
}

fn first_word(payload: u64) -> Option<(Asker, Decision)> {
    let value = (payload >> 8) as u32;
    let decision = match payload & 15 {
        1 => Decision::Open,
        2 => Decision::From {
            source: value,
            tag: 0,
        },
        3 => Decision::Nothing { times: value },
        4 => Decision::Place(value),
        5 => Decision::Several(value),
        6 => Decision::Cancelled { plain: value },
        7 => Decision::TooLate,
        _ => return None,
    };
    Some((asker_of(payload)?, decision))
}

fn tag_of(payload: u64, asker: Asker) -> Option<i32> {
    let fits = payload & 15 == TAG && asker_of(payload) == Some(asker);
    fits.then_some((payload >> 8) as u32 as i32)
}

fn asker_of(payload: u64) -> Option<Asker> {
    let known = Asker::ALL.get((payload >> 4 & 15) as usize);
    known.map(|(asker, _)| *asker)
}

const CHECK: u32 = 48;

fn checked(payload: u64, at: usize) -> u64 {
    payload | u64::from(check(payload, at)) << CHECK
}

/// Returns a word without its check bits, if these are right.
fn unchecked(word: u64, at: usize) -> Option<u64> {
    let payload = word & ((1 << CHECK) - 1);
    (u64::from(check(payload, at)) == word >> CHECK).then_some(payload)
}

/// Returns the CRC-16/CCITT of a word without check bits and of its index.
fn check(payload: u64, at: usize) -> u16 {
    let place = (at as u64).to_le_bytes();
    let bytes = payload.to_le_bytes().into_iter().take(6).chain(place);
    bytes.fold(0xffff, |crc, byte| {
        crc << 8 ^ CRC[usize::from(byte ^ (crc >> 8) as u8)]
    })
}

static CRC: [u16; 256] = crc_table();

const fn crc_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = match crc & 0x8000 {
                0 => crc << 1,
                _ => crc << 1 ^ 0x1021,
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decision() -> impl Strategy<Value = Decision> {
        prop_oneof![
            Just(Decision::Open),
            (any::<u32>(), 0..i32::MAX).prop_map(|(source, tag)| Decision::From { source, tag }),
            any::<u32>().prop_map(|times| Decision::Nothing { times }),
            any::<u32>().prop_map(Decision::Place),
            any::<u32>().prop_map(Decision::Several),
            any::<u32>().prop_map(|plain| Decision::Cancelled { plain }),
            Just(Decision::TooLate),
        ]
    }

    fn encoded(decisions: &[(Asker, Decision)]) -> Vec<u64> {
        let mut words = Vec::new();
        for &(asker, decision) in decisions {
            words.push(encode(asker, decision, words.len()));
            if is_about_a_message(decision) {
                words.push(encode_tag(asker, decision, words.len()));
            }
        }
        words
    }

    proptest! {
        #[test]
        fn words_say_what_was_decided(
            decisions in proptest::collection::vec((0..Asker::ALL.len(), decision()), 0..20),
            zeroes in 0usize..3,
        ) {
            let decisions: Vec<_> = decisions.into_iter().map(|(at, decision)| (Asker::ALL[at].0, decision)).collect();
            let mut words = encoded(&decisions);
            words.extend(std::iter::repeat_n(0, zeroes));
            prop_assert_eq!(decode(&words, 0), Ok(decisions));
        }
    }

    #[test]
    fn a_word_in_another_place_is_damage() {
        let decisions = [
            (Asker::Test, Decision::Place(3)),
            (Asker::Test, Decision::Place(4)),
        ];
        let mut words = encoded(&decisions);
        words.swap(0, 1);
        assert_eq!(decode(&words, 0), Err(0));
        let mut words = encoded(&decisions);
        words.remove(0);
        assert_eq!(decode(&words, 0), Err(0));
    }

    #[test]
    fn askers_are_numbered_in_their_order() {
        for (at, (asker, _)) in Asker::ALL.iter().enumerate() {
            assert_eq!(*asker as usize, at);
        }
    }
}
