//! The registration of a window's memory with a network, and the keys of all members.

#![allow(unsafe_code)]

use crate::btl::{Btl, Exposed, Region, Rights};
use std::cell::Cell;
use std::rc::Rc;

/// The network to all members on other nodes, and this process's memory registered with it.
pub(crate) struct Registration {
    btl: Rc<dyn Btl>,
    /// The registered memory; `None` if this process has no memory in the window.
    exposed: Option<Exposed>,
    is_withdrawn: Cell<bool>,
}

impl Registration {
    /// Registers a window's memory. Returns `None` if the network cannot register it.
    ///
    /// # Safety
    /// The memory stays allocated until [`Registration::withdraw`] or the drop of the value.
    pub unsafe fn of(btl: Rc<dyn Btl>, memory: Region) -> Option<Registration> {
        let exposed = match memory.len {
            0 => None,
            _ => {
                let network = btl.capabilities().remote_memory?;
                // SAFETY: the memory stays allocated by this function's contract.
                Some(unsafe { network.expose(memory, Rights::ReadWrite) }?)
            }
        };
        Some(Registration {
            btl,
            exposed,
            is_withdrawn: Cell::new(false),
        })
    }

    /// Returns the key for the other members; empty if this process has no memory in the window.
    pub fn key(&self) -> &[u8] {
        self.exposed.as_ref().map_or(&[], |exposed| &exposed.key)
    }

    /// Returns a hash of the network's name (upper half) and the key length (lower half); never 0.
    /// Window creation compares these words of all members.
    pub fn word(&self) -> u64 {
        let name = self.btl.info().name.bytes();
        let hash = name.fold(1u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
        u64::from(hash | 1) << 32 | self.key().len() as u64
    }

    /// Ends the registration. The caller guarantees that no member accesses the memory any more.
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

/// The keys of all members, by rank.
pub(crate) struct Keys(Box<[Box<[u8]>]>);

impl Keys {
    pub fn new(keys: Box<[Box<[u8]>]>) -> Keys {
        Keys(keys)
    }

    /// Returns the key of a member; empty if it has no memory in the window.
    pub fn of(&self, rank: u32) -> &[u8] {
        self.0.get(rank as usize).map_or(&[], |key| key)
    }
}
