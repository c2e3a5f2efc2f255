//! The registration of a window's memory, and the exchange of keys.

#![allow(unsafe_code)]

use crate::Error;
use crate::am::Service;
use crate::btl::{Btl, Exposed, Region, Rights};
use crate::comm::Comm;
use crate::engine::Engine;
use std::cell::Cell;
use std::rc::Rc;

/// Longest key in bytes.
const LONGEST: usize = 1024;

/// This process's part: the network of all members on other nodes, and the registration of the window's memory with it.
pub(crate) struct Registration {
    btl: Rc<dyn Btl>,
    /// `None` if the window has no memory here.
    exposed: Option<Exposed>,
    is_withdrawn: Cell<bool>,
}

impl Registration {
    /// Registers a window's memory, if one network with registered memory reaches all members that are not in `here`.
    ///
    /// # Safety
    /// The memory stays until [`Registration::withdraw`], or the value is dropped before it.
    pub unsafe fn of(
        engine: &Engine,
        comm: &Comm,
        here: &[(u32, u32)],
        memory: Region,
    ) -> Option<Registration> {
        let btl = network_of(engine, comm, here)?;
        let exposed = match memory.len {
            0 => None,
            // SAFETY: the caller promises that the memory stays.
            _ => Some(unsafe {
                btl.capabilities()
                    .remote_memory?
                    .expose(memory, Rights::ReadWrite)
            }?),
        };
        let registration = Registration {
            btl,
            exposed,
            is_withdrawn: Cell::new(false),
        };
        (registration.key().len() <= LONGEST).then_some(registration)
    }

    fn key(&self) -> &[u8] {
        self.exposed.as_ref().map_or(&[], |exposed| &exposed.key)
    }

    /// Returns the word that all members compare: the length of the key and the network's name; never 0.
    pub fn word(&self) -> u64 {
        let name = self.btl.info().name.bytes();
        let hash = name.fold(1u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
        u64::from(hash | 1) << 32 | self.key().len() as u64
    }

    /// Ends the registration: no member accesses the memory any more.
    pub fn withdraw(&self) {
        if let (Some(exposed), false) = (&self.exposed, self.is_withdrawn.replace(true))
            && let Some(memory) = self.btl.capabilities().remote_memory
        {
            memory.withdraw(exposed.number);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Returns the transport to all members that are not in `here`, if there are such, it is the same for all, and it can access their memory.
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

/// The keys of all members.
pub(crate) struct Keys(Box<[Box<[u8]>]>);

impl Keys {
    /// Exchanges the keys of all members, if all have registered their memory with the same network; `words` are theirs ([`Registration::word`]).
    pub async fn exchange(
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
        // All members have read the same words, so all leave here, or none.
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
        let all = comm.internal().share(&own).await?;
        let keys = all.chunks(each).zip(lengths()).map(|(words, len)| {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            bytes.take(len).collect()
        });
        Ok(Some(Keys(keys.collect())))
    }

    /// Returns the key of a member; empty if it has no memory in the window.
    pub fn of(&self, rank: u32) -> &[u8] {
        self.0.get(rank as usize).map_or(&[], |key| key)
    }
}
