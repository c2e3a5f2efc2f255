//! Exchange of endpoint addresses ("cards") between two groups with processes of several jobs.
//!
//! The leader of each group gathers its members' cards, the leaders exchange them, and each broadcasts the cards from the other group to its own.
//! Afterwards every process can name and reach every other process.
//! A process also accepts connections from a process whose card it does not have,
//! since the connecting process proves that it has the card
//! of the accepting one ([`Universe`](mpi_transport::universe::Universe)).

use super::leader_error::{self, LEADER_ERROR};
use super::u64_buf::U64Buf;
use super::{Comm, CommError, Conversation, LeaderError};
use crate::Error;
use crate::btl::ProcId;
use crate::engine::Engine;
use mpi_transport::universe::{Card, Name};

const WORD: usize = size_of::<u64>();

/// Maximum length of a card in bytes.
const LONGEST: usize = 4096;

/// Maximum number of words of all cards: for a million processes with 64 words of 8 bytes each.
const MOST_WORDS: u64 = 64 << 20;

/// Encodes bytes as words: the number of bytes, then the bytes.
fn to_words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks(WORD).map(|chunk| {
        let mut word = [0; WORD];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    [bytes.len() as u64].into_iter().chain(words).collect()
}

/// Decodes the bytes at the front of `words` that [`to_words`] has encoded, and advances `words` past them.
pub(crate) fn from_words(words: &mut &[u64]) -> Option<Vec<u8>> {
    let (&len, rest) = words.split_first()?;
    let len = usize::try_from(len).ok().filter(|len| *len <= LONGEST)?;
    let (mine, rest) = rest.split_at_checked(len.div_ceil(WORD))?;
    *words = rest;
    let mut bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(len);
    Some(bytes)
}

/// A guard that keeps processes known to this process until a communicator refers to them.
pub(super) struct Introduced {
    engine: Engine,
    procs: Vec<ProcId>,
}

impl Introduced {
    fn add(&mut self, name: u64, card: Card) -> Result<(), CommError> {
        let universe = self.engine.universe();
        let proc = universe.introduce(Name(name), card);
        let proc = proc.ok_or(CommError::Unknown { name })?;
        universe.hold([proc].into_iter());
        self.procs.push(proc);
        Ok(())
    }
}

impl Drop for Introduced {
    fn drop(&mut self) {
        self.engine.peers().disconnect(&self.procs);
    }
}

/// Exchanges the names and cards of both groups; `across` is the conversation between the leaders, on the leaders.
/// `ready` is the outcome of the group's earlier steps; the leader reports an error to the other leader.
pub(super) async fn show_cards(
    local: &Comm,
    leader: u32,
    across: Option<&(Conversation, u32)>,
    ready: Result<(), Error>,
) -> Result<Introduced, Error> {
    let engine = local.engine();
    // A process that cannot be reached sends an empty card, so that no process waits for it.
    // Connections to such a process fail.
    let reachable = engine.ports().reach_other_jobs();
    let gathered = match ready {
        Ok(()) => gather(local, across.is_some()).await,
        Err(error) => Err(error),
    };
    let theirs = swap_words(local, leader, across, gathered).await?;
    let mut introduced = Introduced {
        engine: engine.clone(),
        procs: Vec::new(),
    };
    let mut rest = &theirs[..];
    while let Some((&name, after)) = rest.split_first() {
        rest = after;
        let card = from_words(&mut rest).and_then(|bytes| Card::decode(&bytes));
        let card = card.ok_or(CommError::Unknown { name })?;
        introduced.add(name, card)?;
    }
    reachable?;
    Ok(introduced)
}

async fn gather(local: &Comm, leads: bool) -> Result<Vec<u64>, Error> {
    let engine = local.engine();
    let own = to_words(&engine.universe().own_card().encode());
    let lens = local.internal().share(&[own.len() as u64]).await?;
    let longest = lens.iter().copied().max().unwrap_or(0) as usize;
    let mut padded = own;
    padded.resize(longest, 0);
    let all = local.internal().share(&padded).await?;
    let mut mine = Vec::new();
    if leads {
        let cards = all.chunks_exact(longest.max(1));
        for ((proc, card), len) in local.group().iter().zip(cards).zip(&lens) {
            mine.push(engine.peers().name_of(proc));
            mine.extend(&card[..*len as usize]);
        }
    }
    Ok(mine)
}

/// Notifies the other leader, which waits for cards, that this leader's group has failed.
pub(super) async fn refuse(across: &Conversation, peer: u32, code: u64) -> Result<(), Error> {
    let lens = U64Buf::of(&[LEADER_ERROR, code, 0, 0]);
    let (send, recv) = (lens.send(0..2), lens.recv(2..4));
    across.sendrecv(send, peer, recv, peer).await
}

async fn exchange(
    (across, peer): &(Conversation, u32),
    mine: &[u64],
) -> Result<(u64, U64Buf), LeaderError> {
    let (peer, lost) = (*peer, LeaderError::lost);
    let lens = U64Buf::of(&[mine.len() as u64, 0, 0, 0]);
    let (send, recv) = (lens.send(0..2), lens.recv(2..4));
    (across.sendrecv(send, peer, recv, peer).await).map_err(lost)?;
    let len = lens.get(2);
    if len == LEADER_ERROR {
        return Err(LeaderError::of_other_leader(lens.get(3)));
    }
    if len > MOST_WORDS {
        return Ok((len, U64Buf::new(0)));
    }
    let (ours, theirs) = (U64Buf::of(mine), U64Buf::new(len as usize));
    let (send, recv) = (ours.send(0..mine.len()), theirs.recv(0..len as usize));
    (across.sendrecv(send, peer, recv, peer).await).map_err(lost)?;
    Ok((len, theirs))
}

/// Returns the words from the other leader on every member of the group.
async fn swap_words(
    local: &Comm,
    leader: u32,
    across: Option<&(Conversation, u32)>,
    gathered: Result<Vec<u64>, Error>,
) -> Result<Vec<u64>, Error> {
    let mine = match (gathered, across) {
        (Ok(mine), _) => mine,
        (Err(error), None) => return Err(error),
        (Err(error), Some((across, peer))) => {
            // The other leader may arrive late, so the message is sent in the background.
            let (across, peer, code) = (across.clone(), *peer, LeaderError::code_of(&error));
            let told = async move { refuse(&across, peer, code).await };
            local
                .engine()
                .operations()
                .run_in_background(Box::pin(told));
            return Err(error);
        }
    };
    let met = match across {
        Some(across) => Some(exchange(across, &mine).await),
        None => None,
    };
    let len = U64Buf::new(1);
    match &met {
        Some(Ok((words, _))) => len.set(0, *words),
        Some(Err(_)) => len.set(0, LEADER_ERROR),
        None => {}
    }
    let here = local.internal().conversation();
    let coll = local.engine().process().coll()?;
    coll.bcast(&here, &len.recv(0..1), leader).await?;
    let words = len.get(0);
    if words == LEADER_ERROR {
        let why = met.as_ref().and_then(|met| met.as_ref().err());
        return Err(leader_error::share(local, leader, why).await?.into());
    }
    if words > MOST_WORDS {
        return Err(CommError::Strange { words }.into());
    }
    let theirs = match met {
        Some(Ok((_, theirs))) => theirs,
        _ => U64Buf::new(words as usize),
    };
    coll.bcast(&here, &theirs.recv(0..words as usize), leader)
        .await?;
    Ok((0..words as usize).map(|i| theirs.get(i)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_survive_as_words(first in proptest::collection::vec(any::<u8>(), 0..40), second in proptest::collection::vec(any::<u8>(), 0..40)) {
            let words = [to_words(&first), to_words(&second)].concat();
            let mut rest = &words[..];
            prop_assert_eq!(from_words(&mut rest), Some(first));
            prop_assert_eq!(from_words(&mut rest), Some(second));
            prop_assert!(rest.is_empty());
        }
    }
}
