//! The queue of failure messages that the transports have not accepted yet.
//!
//! Handlers only queue messages, which the next progress call sends,
//! because nothing may be sent inside a delivery.
//! Messages to dead processes are not sent.

use super::deaths::Deaths;
use crate::engine::WeakEngine;
use mpi_transport::bml::Route;
use mpi_transport::btl::{Am, Header, Payload, ProcId, SendError};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

type Unsent = (ProcId, Am, Header, Vec<u8>);

pub(super) struct Outbox {
    engine: WeakEngine,
    deaths: Rc<Deaths>,
    messages: RefCell<VecDeque<Unsent>>,
}

impl Outbox {
    pub(super) fn new(engine: WeakEngine, deaths: Rc<Deaths>) -> Outbox {
        Outbox {
            engine,
            deaths,
            messages: RefCell::default(),
        }
    }

    /// Queues a message for the next progress call.
    pub(super) fn say(&self, to: ProcId, am: Am, header: Header, payload: Vec<u8>) {
        let Some(engine) = self.engine.upgrade() else {
            return;
        };
        if to == engine.me() || self.deaths.is_dead(to) {
            return;
        }
        let mut messages = self.messages.borrow_mut();
        messages.push_back((to, am, header, payload));
        engine.pml().bml().handlers().ask_for_turns();
    }

    /// Returns true if the transports have accepted all messages.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.borrow().is_empty()
    }

    /// Sends the queued messages that the transports accept. Returns true if any were sent.
    pub(super) fn turn(&self) -> bool {
        let Some(engine) = self.engine.upgrade() else {
            return false;
        };
        let mut moved = false;
        let bml = engine.pml().bml();
        // Messages to a process whose transport has no space stay queued; messages to other processes overtake them.
        let mut waiting: VecDeque<Unsent> = VecDeque::new();
        let mut full: Vec<ProcId> = Vec::new();
        loop {
            let next = self.messages.borrow_mut().pop_front();
            let Some((to, am, header, payload)) = next else {
                break;
            };
            if full.contains(&to) {
                waiting.push_back((to, am, header, payload));
                continue;
            }
            let sent = match bml.route(to) {
                Route::Via(btl, endpoint) if !self.deaths.is_dead(to) => {
                    btl.send(endpoint, am, header, Payload::Bytes(&payload))
                }
                Route::Via(..) => Err(SendError::PeerGone),
                Route::None { .. } => Err(SendError::PeerGone),
            };
            match sent {
                Err(SendError::WouldBlock) => {
                    full.push(to);
                    waiting.push_back((to, am, header, payload));
                    continue;
                }
                // The transport itself reports that the destination is lost.
                Err(_) => {}
                Ok(()) => bml.attend(),
            }
            bml.handlers().end_turns();
            moved = true;
        }
        let mut messages = self.messages.borrow_mut();
        waiting.append(&mut messages);
        *messages = waiting;
        drop(messages);
        if moved {
            // An agreement does not return before its messages have been sent, so it must be polled again.
            engine.pml().requests().nudge();
        }
        moved
    }
}
