//! The state that all parts of ob1 share: the parameters, the peers, the requests, the losses, and the observer.
//!
//! The parts of ob1 hold no reference to this state. Each of their methods takes one, so the path of a short message has no extra indirection.

use super::config::Config;
use super::counts::Counts;
use super::described::Types;
use super::links::Links;
use super::losses::Losses;
use crate::bml::Bml;
use crate::observer::Observer;
use crate::pml::error::PmlError;
use crate::request::{Req, ReqId, Table};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// A protocol error: a message of a peer that this library never sends; the text describes the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProtocolError(pub(super) &'static str);

/// The result of handling an arriving message.
pub(super) type HandlerResult = Result<(), ProtocolError>;

pub(super) struct Core {
    config: Config,
    links: Links,
    requests: Table,
    losses: Losses,
    counts: Counts,
    /// The number of malformed messages, which are dropped.
    protocol_errors: Cell<u64>,
    observer: OnceCell<Rc<dyn Observer>>,
    /// The check of type signatures, usually `None`. It is set only together with an observer, so paths without an observer need not test it.
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

    #[inline]
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the observer of matching; usually none.
    #[inline]
    pub(super) fn observer(&self) -> Option<&dyn Observer> {
        self.observer.get().map(|observer| &**observer)
    }

    /// Returns the type signatures of messages, if they are compared.
    pub(super) fn types(&self) -> Option<&Types> {
        self.types.as_ref()
    }

    /// Sets the observer; only the first call has an effect.
    pub(super) fn set_observer(&self, observer: Rc<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    /// Returns the number of arriving messages that were dropped as malformed.
    pub(super) fn protocol_errors(&self) -> u64 {
        self.protocol_errors.get()
    }

    /// Counts a message about an unknown request. The message may be late and not wrong, because
    /// the request may have been abandoned.
    pub(super) fn protocol_error(&self) {
        self.protocol_errors.set(self.protocol_errors.get() + 1);
    }

    /// Handles a message about an unknown request: late if the request ever existed, otherwise a protocol error.
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

    /// Completes a request successfully, or with the error of a message that was too long.
    pub(super) fn end(&self, req: &Req, too_long: Option<PmlError>) {
        match too_long {
            None => self.requests.complete_ok(req),
            Some(error) => self.requests.complete(req, Err(error.into())),
        }
    }
}
