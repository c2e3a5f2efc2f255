//! The registration of a window's memory with a network, and the exchange of keys.

#![allow(unsafe_code)]

use crate::Error;
use crate::am::Service;
use crate::btl::{Btl, Region};
use crate::comm::Comm;
use crate::engine::Engine;
use crate::state::registration::{Keys, Registration};
use std::rc::Rc;

/// The maximum length of a key in bytes.
const LONGEST: usize = 1024;

/// Registers a window's memory with the network that reaches all members outside of `here`.
/// Returns `None` unless one such network exists and supports remote memory access.
///
/// # Safety
/// The contract is that of [`Registration::of`].
pub(crate) unsafe fn register(
    engine: &Engine,
    comm: &Comm,
    here: &[(u32, u32)],
    memory: Region,
) -> Option<Registration> {
    let btl = network_of(engine, comm, here)?;
    // SAFETY: the memory stays allocated while it is registered, by this function's contract.
    let registration = unsafe { Registration::of(btl, memory) }?;
    (registration.key().len() <= LONGEST).then_some(registration)
}

/// Returns the transport to all members that are not in `here`. Returns `None` if there are no such
/// members, if they have different transports, or if a transport cannot access remote memory.
fn network_of(engine: &Engine, comm: &Comm, here: &[(u32, u32)]) -> Option<Rc<dyn Btl>> {
    let service = Service::of(engine);
    let mut found: Option<Rc<dyn Btl>> = None;
    for rank in (0..comm.size()).filter(|rank| here.iter().all(|(member, _)| member != rank)) {
        let peer = service.peer(comm.group().proc(rank)?).ok()?;
        let btl = peer.btl();
        btl.capabilities().remote_memory?;
        match &found {
            None => found = Some(btl.clone()),
            Some(known) if Rc::ptr_eq(known, btl) => {}
            Some(_) => return None,
        }
    }
    found
}

/// Exchanges the keys of all members, if all have registered their memory with the same network.
/// `words` has each member's network and key length ([`Registration::word`]).
pub(crate) fn exchange(
    comm: &Comm,
    mine: Option<&Registration>,
    words: &[u64],
) -> Result<Option<Keys>, Error> {
    let name = |word: &u64| word >> 32;
    let lengths = || words.iter().map(|word| *word as u32 as usize);
    let agreed = words
        .iter()
        .all(|word| *word != 0 && name(word) == name(&words[0]));
    let longest = lengths().max().unwrap_or(0);
    // All members have received the same words, so either all return here or none.
    let (true, Some(mine), 1..=LONGEST) = (agreed, mine, longest) else {
        return Ok(None);
    };
    let each = longest.div_ceil(8);
    let mut own = vec![0; each];
    for (word, bytes) in own.iter_mut().zip(mine.key().chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let all = comm.internal().share_now(&own)?;
    let keys = all.chunks(each).zip(lengths()).map(|(words, len)| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.take(len).collect()
    });
    Ok(Some(Keys::new(keys.collect())))
}
