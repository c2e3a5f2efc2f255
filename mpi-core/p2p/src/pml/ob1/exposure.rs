//! The registration of a send's data for reads by the network; it ends when the value is dropped.

#![allow(unsafe_code)]

use super::peer::Peer;
use super::send_body::SendBody;
use crate::btl::{Exposed, Region};
use std::rc::Rc;

pub(super) struct Exposure {
    peer: Rc<Peer>,
    exposed: Exposed,
}

impl Exposure {
    /// Registers the data of a send, if the network reads such messages.
    pub(super) fn of(peer: &Rc<Peer>, send: &SendBody) -> Option<Exposure> {
        let reader = peer.btl().capabilities().remote_read?;
        let data = send.buf().contiguous()?;
        if data.len() < reader.shortest().max(1) {
            return None;
        }
        let region = Region {
            address: data.as_ptr().expose_provenance() as u64,
            len: data.len() as u64,
        };
        // SAFETY: the program leaves the buffer of a send in place until the send is complete, and every end of a send drops this value.
        let exposed = unsafe { reader.expose(region) }?;
        let fits = 16 + exposed.key.len() <= peer.limits().max_send;
        let exposure = Exposure {
            peer: peer.clone(),
            exposed,
        };
        fits.then_some(exposure)
    }

    /// The key for the receiver.
    pub(super) fn key(&self) -> &[u8] {
        &self.exposed.key
    }
}

impl Drop for Exposure {
    fn drop(&mut self) {
        if let Some(reader) = self.peer.btl().capabilities().remote_read {
            reader.withdraw(self.exposed.number);
        }
    }
}
