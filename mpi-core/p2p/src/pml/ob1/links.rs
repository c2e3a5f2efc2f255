//! The peers of this process, and the list of peers whose messages wait for space in a transport.
//!
//! A peer is looked up on first use. Peers of this job are kept; a peer of another job is removed
//! when no communicator contains it any longer.
//! A BTL delivers messages in the order in which it accepted them, and messages that the BTL did not accept wait
//! in the peer's queue. So matching sees messages in the order of sending.

use super::peer::{Peer, PeerRef, Queued};
use crate::bml::{Bml, Route};
use crate::btl::{Am, Header, Payload, ProcId, SendError};
use crate::pml::error::PmlError;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

pub(super) struct Links {
    bml: Bml,
    /// The number of ranks per core of the node.
    sharing: u32,
    job: Vec<OnceCell<Rc<Peer>>>,
    /// Peers that belong to other jobs.
    foreign: RefCell<HashMap<ProcId, Rc<Peer>>>,
    /// Peers whose queue is not empty.
    congested: RefCell<Vec<Rc<Peer>>>,
}

impl Links {
    /// Creates the links of a process in a job of `job_size` processes.
    /// Links to processes of other jobs are created on first use.
    pub(super) fn new(bml: Bml, job_size: u32, sharing: u32) -> Links {
        Links {
            bml,
            sharing,
            job: (0..job_size).map(|_| OnceCell::new()).collect(),
            foreign: RefCell::default(),
            congested: RefCell::default(),
        }
    }

    /// Returns the transports.
    #[inline]
    pub(super) fn bml(&self) -> &Bml {
        &self.bml
    }

    pub(super) fn me(&self) -> ProcId {
        self.bml.me()
    }

    /// Returns the number of processes in the job.
    pub(super) fn job_size(&self) -> usize {
        self.job.len()
    }

    /// Returns the state of a peer of this job if it exists; unlike `peer`, does not create it.
    #[inline]
    pub(super) fn known(&self, proc: ProcId) -> Option<&Rc<Peer>> {
        self.job.get(proc as usize).and_then(OnceCell::get)
    }

    #[inline]
    pub(super) fn peer(&self, proc: ProcId) -> Result<PeerRef<'_>, PmlError> {
        match self.known(proc) {
            Some(peer) => Ok(PeerRef::OfJob(peer)),
            None => self.meet(proc),
        }
    }

    #[cold]
    fn meet(&self, proc: ProcId) -> Result<PeerRef<'_>, PmlError> {
        let cell = self.job.get(proc as usize);
        if cell.is_none()
            && let Some(peer) = self.foreign.borrow().get(&proc)
        {
            return Ok(PeerRef::Foreign(peer.clone()));
        }
        match self.bml.route(proc) {
            Route::Via(btl, endpoint) => {
                let peer = || Rc::new(Peer::new(btl, endpoint, self.sharing));
                Ok(match cell {
                    Some(cell) => PeerRef::OfJob(cell.get_or_init(peer)),
                    None => {
                        let mut foreign = self.foreign.borrow_mut();
                        PeerRef::Foreign(foreign.entry(proc).or_insert_with(peer).clone())
                    }
                })
            }
            Route::None { reasons } => Err(PmlError::Unreachable {
                peer: proc,
                reasons,
            }),
        }
    }

    /// Removes a process of another job that is in no communicator any longer.
    pub(super) fn disconnect(&self, proc: ProcId) {
        self.foreign.borrow_mut().remove(&proc);
        self.bml.disconnect(proc);
    }

    /// Discards the queued messages to a lost peer.
    pub(super) fn clear_queue(&self, proc: ProcId) {
        if let Some(peer) = self.known(proc) {
            peer.queue().clear();
        } else if let Some(peer) = self.foreign.borrow().get(&proc) {
            peer.queue().clear();
        }
    }

    /// Closes the connection to a peer after a protocol error.
    pub(super) fn cut(&self, proc: ProcId) {
        if let Ok(peer) = self.peer(proc) {
            peer.btl().capabilities().cut(peer.endpoint());
        }
    }

    /// Sends a control message, immediately or as soon as the transport has space.
    pub(super) fn control(&self, peer: &Rc<Peer>, am: Am, header: Header, payload: [u8; 8]) {
        if peer.queue().is_empty() {
            match peer.send(am, header, Payload::Bytes(&payload)) {
                Ok(()) => return,
                Err(SendError::WouldBlock) => {}
                // A lost peer needs no control message. An operation that waits for the peer reports the loss.
                Err(SendError::PeerGone | SendError::TooLong { .. }) => return,
            }
        }
        self.enqueue(
            peer,
            Queued::Control {
                am,
                header,
                payload,
            },
        );
    }

    /// Appends a message to a peer's queue.
    pub(super) fn enqueue(&self, peer: &Rc<Peer>, item: Queued) {
        peer.queue().push(item);
        self.congest(peer);
    }

    /// Adds a peer to the list of peers with queued messages.
    pub(super) fn congest(&self, peer: &Rc<Peer>) {
        if !peer.queue().set_listed(true) {
            self.congested.borrow_mut().push(peer.clone());
        }
    }

    /// Returns true if some peer's queue is not empty.
    #[inline]
    pub(super) fn is_congested(&self) -> bool {
        !self.congested.borrow().is_empty()
    }

    /// Removes and returns the list of peers with queued messages. The caller adds those again whose queue is still not empty.
    pub(super) fn take_congested(&self) -> Vec<Rc<Peer>> {
        let peers = std::mem::take(&mut *self.congested.borrow_mut());
        for peer in &peers {
            peer.queue().set_listed(false);
        }
        peers
    }
}
