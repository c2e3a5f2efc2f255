//! How two groups make each other's acquaintance when there are processes of several jobs among them.
//!
//! All members of each group show their cards to their leader, the leaders swap them, and each tells its group those of the other.
//! Then every process can name and reach every other. A process that hears of another one later than that one calls is let in,
//! since the caller has proved that it has the card ([`Universe`](mpi_transport::universe::Universe)).

use super::u64_buf::U64Buf;
use super::{Comm, CommError, Conversation};
use crate::Error;
use crate::btl::ProcId;
use crate::engine::Engine;
use mpi_transport::universe::{Card, Name};

const WORD: usize = size_of::<u64>();

/// No card is longer, in bytes.
const LONGEST: usize = 4096;

/// More words of cards are nonsense: a million processes of 64 words each.
const MOST_WORDS: u64 = 64 << 20;

/// Bytes as words, their number in front.
fn to_words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks(WORD).map(|chunk| {
        let mut word = [0; WORD];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    [bytes.len() as u64].into_iter().chain(words).collect()
}

/// What [`to_words`] made, at the front of `words`, which move behind it.
fn from_words(words: &mut &[u64]) -> Option<Vec<u8>> {
    let (&len, rest) = words.split_first()?;
    let len = usize::try_from(len).ok().filter(|len| *len <= LONGEST)?;
    let (mine, rest) = rest.split_at_checked(len.div_ceil(WORD))?;
    *words = rest;
    let mut bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(len);
    Some(bytes)
}

/// Processes that are known as long as this lives, until a communicator names them.
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
        self.engine.part_from(&self.procs);
    }
}

/// Both groups learn the names and cards of each other; `across` is the way between the leaders, at the leaders.
pub(super) async fn show_cards(
    local: &Comm,
    leader: u32,
    across: Option<&(Conversation, u32)>,
) -> Result<Introduced, Error> {
    let engine = local.engine();
    // One that cannot be reached shows an empty card, so that no process waits for it; it fails when it is spoken to.
    let reachable = engine.reach_other_jobs();
    let own = to_words(&engine.universe().own_card().encode());
    let lens = local.share(&[own.len() as u64]).await?;
    let longest = lens.iter().copied().max().unwrap_or(0) as usize;
    let mut padded = own;
    padded.resize(longest, 0);
    let all = local.share(&padded).await?;
    let mut mine = Vec::new();
    if across.is_some() {
        let cards = all.chunks_exact(longest.max(1));
        for ((proc, card), len) in local.group().iter().zip(cards).zip(&lens) {
            mine.push(engine.name_of(proc));
            mine.extend(&card[..*len as usize]);
        }
    }
    let theirs = swap_words(local, leader, across, &mine).await?;
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

/// The other leader's words at every member of a group.
async fn swap_words(
    local: &Comm,
    leader: u32,
    across: Option<&(Conversation, u32)>,
    mine: &[u64],
) -> Result<Vec<u64>, Error> {
    let here = local.hidden();
    let lens = U64Buf::of(&[mine.len() as u64, 0]);
    if let Some((across, peer)) = across {
        let (send, recv) = (lens.send(0..1), lens.recv(1..2));
        across.sendrecv(send, *peer, recv, *peer).await?;
    }
    let coll = local.engine().coll()?;
    coll.bcast(&here, &lens.recv(0..2), leader).await?;
    let words = lens.get(1);
    if words > MOST_WORDS {
        return Err(CommError::Strange { words }.into());
    }
    let theirs = U64Buf::new(words as usize);
    if let Some((across, peer)) = across {
        let send = U64Buf::of(mine);
        let (send, recv) = (send.send(0..mine.len()), theirs.recv(0..words as usize));
        across.sendrecv(send, *peer, recv, *peer).await?;
    }
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

        #[test]
        fn any_words_are_bytes_or_not(words in proptest::collection::vec(any::<u64>(), 0..9)) {
            let _ = from_words(&mut &words[..]);
        }
    }
}
