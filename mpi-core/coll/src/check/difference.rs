//! Messages of the check of byte counts: differences, encoded as `u64` words.

use crate::Error;
use crate::Invocation;
use crate::algo::{Blocks, allgather_bruck, alltoall_bruck, bytes};
use crate::datatype::RecvBuf;

/// A pair of members whose byte counts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub from: u32,
    pub to: u32,
    pub sent: u64,
    pub expected: u64,
}

/// The number of words of a member's report: a flag, the number of further differences,
/// and the first difference in three words (the two ranks, the bytes sent, the bytes expected).
pub const WORDS: usize = 5;

impl Difference {
    pub fn words(found: &[Difference]) -> [u64; WORDS] {
        found.first().map_or([0; WORDS], |first| {
            let pair = u64::from(first.from) << 32 | u64::from(first.to);
            [1, found.len() as u64 - 1, pair, first.sent, first.expected]
        })
    }

    /// Decodes a member's report: returns its first difference and the number of further differences, or `None` if it has none.
    pub fn told(words: &[u64]) -> Option<(Difference, u64)> {
        match words {
            [1, more, pair, sent, expected] => Some((
                Difference {
                    from: (pair >> 32) as u32,
                    to: *pair as u32,
                    sent: *sent,
                    expected: *expected,
                },
                *more,
            )),
            _ => None,
        }
    }
}

const WORD: i64 = size_of::<u64>() as i64;

fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words_of(buf: &RecvBuf) -> Vec<u64> {
    let bytes = buf.as_send().to_vec();
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|w| u64::from_le_bytes(*w))
        .collect()
}

/// Sends `words[i]` to member `i`; returns the received words, indexed by sender.
pub async fn exchange(invocation: &Invocation, words: &[u64]) -> Result<Vec<u64>, Error> {
    let all = bytes(words.len() as i64 * WORD)?;
    all.all().unpack_at(0, &to_bytes(words));
    alltoall_bruck::alltoall(invocation, None, &all.recv(0..WORD)).await?;
    Ok(words_of(&all.all()))
}

/// Sends `words` to every member; returns the words of all members in the order of ranks.
pub async fn share(invocation: &Invocation, words: &[u64]) -> Result<Vec<u64>, Error> {
    let each = words.len() as i64 * WORD;
    let all = bytes(each * i64::from(invocation.size()))?;
    let blocks = Blocks::equal(&all.recv(0..each), invocation.size());
    blocks.of(invocation.rank()).unpack_at(0, &to_bytes(words));
    allgather_bruck::allgather(invocation, None, &blocks).await?;
    Ok(words_of(&all.all()))
}
