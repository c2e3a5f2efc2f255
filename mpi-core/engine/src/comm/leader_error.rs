//! Leader errors: the program passed to a group's leader invalid arguments for the remote group.
//!
//! If the arguments for the remote side are significant only on the leader (MPI 5.0, sections 7.6.1 and 7.6.2),
//! only the leader detects invalid arguments.
//! The other members wait for the result of the leaders' exchange,
//! so the leader broadcasts the error instead of this result,
//! and all members fail with the same text.

use super::Comm;
use super::error::{CommError, LeaderError};
use super::u64_buf::U64Buf;
use crate::Error;
use crate::btl::ProcId;
use crate::fault::{FaultError, FaultKind, is_about_deaths};

/// Sent instead of the length of the leader's contribution; greater than any length.
pub(super) const LEADER_ERROR: u64 = u64::MAX;

/// Maximum length in bytes of an error text that is sent.
const LONGEST: usize = 1000;

const WORD: usize = size_of::<u64>();

/// Number of words of the message's header: the leader, the code, and the length of the text that follows.
const HEAD: usize = 3;
const MOST: usize = HEAD + LONGEST.div_ceil(WORD);

impl LeaderError {
    /// Code: the other leader cannot be reached.
    ///
    /// This code and the next two are for errors that the program did not cause;
    /// all other codes are the caller's error classes.
    pub const LOST: i32 = -1;
    /// Code: a process that the call needs has failed.
    pub const FAILED: i32 = -2;
    /// Code: a communicator that the call uses has been revoked.
    pub const REVOKED: i32 = -3;

    /// Returns the error if the other leader cannot be reached, at all or over this communicator;
    /// the program did not cause this error.
    pub(crate) fn lost(error: Error) -> LeaderError {
        LeaderError {
            code: LeaderError::code_of(&error) as i32,
            why: error.to_string(),
        }
    }

    /// Returns the code of an error that a leader sends to the other one.
    pub(super) fn code_of(error: &Error) -> u64 {
        let is_revoked = |error: &FaultError| error.kind() == FaultKind::Revoked;
        let code = match error.find::<FaultError>() {
            Some(error) if is_revoked(error) => LeaderError::REVOKED,
            _ if is_about_deaths(error) => LeaderError::FAILED,
            _ => LeaderError::LOST,
        };
        code as u64
    }

    /// Returns the error for a code by which the other leader reports a failure of its group.
    pub(super) fn of_other_leader(code: u64) -> LeaderError {
        let (code, why) = match code as i32 {
            LeaderError::REVOKED => (LeaderError::REVOKED, "has a communicator that is revoked"),
            LeaderError::FAILED => (LeaderError::FAILED, "has lost a process"),
            // No other code is ever sent.
            _ => (LeaderError::LOST, "cannot go on"),
        };
        LeaderError {
            code,
            why: format!("the other leader reports that its group {why}"),
        }
    }

    fn told(&self, leader: ProcId) -> U64Buf {
        let longest = LONGEST.min(self.why.len());
        let mut ends = (0..=longest).rev();
        let end = ends
            .find(|end| self.why.is_char_boundary(*end))
            .unwrap_or(0);
        let text = &self.why.as_bytes()[..end];
        let words = U64Buf::new(MOST);
        let head = [leader.into(), self.code as u64, end as u64];
        let text = text.chunks(WORD).map(|chunk| {
            let mut word = [0; WORD];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        for (i, word) in head.into_iter().chain(text).enumerate() {
            words.set(i, word);
        }
        words
    }
}

fn heard(words: &U64Buf) -> CommError {
    let len = (words.get(2) as usize).min(LONGEST);
    let text: Vec<u8> = (HEAD..MOST)
        .flat_map(|i| words.get(i).to_le_bytes())
        .take(len)
        .collect();
    CommError::LeaderError {
        leader: words.get(0) as ProcId,
        error: LeaderError {
            code: words.get(1) as i32,
            why: String::from_utf8_lossy(&text).into_owned(),
        },
    }
}

/// Returns the error with which all members of a group fail after their leader has sent [`LEADER_ERROR`]; the leader passes the error as `why`.
pub(super) async fn share(
    local: &Comm,
    leader: u32,
    why: Option<&LeaderError>,
) -> Result<CommError, Error> {
    let words = match why {
        Some(error) => error.told(local.engine().me()),
        None => U64Buf::new(MOST),
    };
    let (conversation, all) = (local.internal().conversation(), words.recv(0..MOST));
    local
        .engine()
        .process()
        .coll()?
        .bcast(&conversation, &all, leader)
        .await?;
    Ok(heard(&words))
}
