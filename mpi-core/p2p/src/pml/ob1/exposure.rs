//! The registration of a send's data for reads by the network; it ends when the value is dropped.

#![allow(unsafe_code)]

use crate::btl::{Btl, Exposed, Region, Rights};
use mpi_base::accelerator::twins;
use std::rc::Rc;

pub(super) struct Exposure {
    btl: Rc<dyn Btl>,
    exposed: Exposed,
}

impl Exposure {
    /// Registers the data of a send, if the network reads such messages.
    pub(super) fn of(btl: &Rc<dyn Btl>, data: &[u8]) -> Option<Exposure> {
        let reader = btl.capabilities().remote_memory?;
        // A network must not read the host copy of device data before it is filled; a transport that reads devices reads only device data.
        if reader.reads_devices() != twins::at(data.as_ptr()).is_some() {
            return None;
        }
        if data.len() < reader.shortest().max(1) {
            return None;
        }
        let region = Region {
            address: data.as_ptr().expose_provenance() as u64,
            len: data.len() as u64,
        };
        // SAFETY: the program leaves the buffer of a send in place until the send is complete, and every end of a send drops this value.
        let exposed = unsafe { reader.expose(region, Rights::Read) }?;
        let fits = 16 + exposed.key.len() <= btl.info().limits.max_send;
        let exposure = Exposure {
            btl: btl.clone(),
            exposed,
        };
        fits.then_some(exposure)
    }

    /// Returns the key that the receiver needs for its reads.
    pub(super) fn key(&self) -> &[u8] {
        &self.exposed.key
    }
}

impl Drop for Exposure {
    fn drop(&mut self) {
        if let Some(reader) = self.btl.capabilities().remote_memory {
            reader.withdraw(self.exposed.number);
        }
    }
}
