//! The state that all modules of ob1 share: the parameters, the peers, the requests, the losses, the deliveries in place, and the observer.
//!
//! The modules of ob1 store no reference to this state.
//! Each of their methods takes a reference to it as an argument, so the path of a short message has no extra indirection.

use super::config::Config;
use super::counts::Counts;
use super::described::Types;
use super::links::Links;
use super::losses::Losses;
use super::transfers::Transfers;
use crate::bml::Bml;
use crate::observer::Observer;
use crate::pml::error::PmlError;
use crate::request::{Req, ReqId, Table};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// A protocol error: a peer sent a message that this library never sends. The text describes the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProtocolError(pub(super) &'static str);

/// The result of handling an arriving message.
pub(super) type HandlerResult = Result<(), ProtocolError>;

pub(super) struct Core {
    config: Config,
    links: Links,
    requests: Table,
    losses: Losses,
    transfers: Transfers,
    counts: Counts,
    /// The number of malformed or late messages, which are dropped.
    protocol_errors: Cell<u64>,
    observer: OnceCell<Rc<dyn Observer>>,
    /// The received type signatures; `None` unless signatures are compared.
    /// It is set only together with an observer, so paths without an observer need not test it.
    types: Option<Types>,
}

impl Core {
    pub(super) fn new(bml: Bml, job_size: u32, config: Config) -> Core {
        Core {
            types: config.check_types.then(Types::default),
            config,
            links: Links::new(bml, job_size, config.sharing),
            requests: Table::default(),
            losses: Losses::default(),
            transfers: Transfers::default(),
            counts: Counts::default(),
            protocol_errors: Cell::new(0),
            observer: OnceCell::new(),
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    #[inline]
    pub(super) fn links(&self) -> &Links {
        &self.links
    }

    #[inline]
    pub(super) fn requests(&self) -> &Table {
        &self.requests
    }

    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the active deliveries in place.
    #[inline]
    pub(super) fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    #[inline]
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the observer of messages, if one is set.
    #[inline]
    pub(super) fn observer(&self) -> Option<&dyn Observer> {
        self.observer.get().map(|observer| &**observer)
    }

    /// Returns the received type signatures; `None` unless signatures are compared.
    pub(super) fn types(&self) -> Option<&Types> {
        self.types.as_ref()
    }

    /// Sets the observer; only the first call has an effect.
    pub(super) fn set_observer(&self, observer: Rc<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    /// Returns the number of arriving messages that were dropped as malformed or late.
    pub(super) fn protocol_errors(&self) -> u64 {
        self.protocol_errors.get()
    }

    /// Counts a malformed message, or a message for a request that no longer exists.
    /// The latter can be correct but late, because the request was abandoned.
    pub(super) fn protocol_error(&self) {
        self.protocol_errors.set(self.protocol_errors.get() + 1);
    }

    /// Handles a message for an unknown request: counts the message as late if the request once existed, otherwise returns a protocol error.
    #[cold]
    pub(super) fn late(&self, request: u64) -> HandlerResult {
        match self.requests.was_issued(ReqId(request)) {
            true => {
                self.protocol_error();
                Ok(())
            }
            false => Err(ProtocolError(
                "an answer about a request that was never made",
            )),
        }
    }

    /// Completes a request successfully, or with the error `too_long` if the message was longer than the buffer.
    pub(super) fn end(&self, req: &Req, too_long: Option<PmlError>) {
        match too_long {
            None => self.requests.complete_ok(req),
            Some(error) => self.requests.complete(req, Err(error.into())),
        }
    }
}
