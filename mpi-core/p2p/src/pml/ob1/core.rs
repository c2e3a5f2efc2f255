//! What every part of ob1 works with: the parameters, the peers, the requests, the losses, and the observer.
//!
//! A part holds no reference to it; each of its methods is handed one, so that nothing lies behind a pointer on the way of a short message.

use super::config::Config;
use super::links::Links;
use super::losses::Losses;
use crate::bml::Bml;
use crate::observer::Observer;
use crate::pml::error::PmlError;
use crate::request::{Req, ReqId, Table};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// A peer has sent what no message layer of this library sends: what that was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nonsense(pub(super) &'static str);

/// What has come of a message that arrived.
pub(super) type Handled = Result<(), Nonsense>;

pub(super) struct Core {
    config: Config,
    links: Links,
    requests: Table,
    losses: Losses,
    /// Messages that made no sense; counted, never obeyed.
    protocol_errors: Cell<u64>,
    observer: OnceCell<Rc<dyn Observer>>,
}

impl Core {
    pub(super) fn new(bml: Bml, job_size: u32, config: Config) -> Core {
        Core {
            config,
            links: Links::new(bml, job_size, config.sharing),
            requests: Table::default(),
            losses: Losses::default(),
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

    /// The observer that looks on while messages are matched; nearly always none.
    #[inline]
    pub(super) fn observer(&self) -> Option<&dyn Observer> {
        self.observer.get().map(|observer| &**observer)
    }

    /// From now on the observer looks on; the first one stays.
    pub(super) fn set_observer(&self, observer: Rc<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    /// How many arriving messages were dropped because they made no sense.
    pub(super) fn protocol_errors(&self) -> u64 {
        self.protocol_errors.get()
    }

    /// Counts a message about a request that is not there; it may be late rather than wrong, because the request may have been given up.
    pub(super) fn protocol_error(&self) {
        self.protocol_errors.set(self.protocol_errors.get() + 1);
    }

    /// A message names a request that is not there: it is late, unless there has never been such a request.
    #[cold]
    pub(super) fn late(&self, request: u64) -> Handled {
        match self.requests.was_issued(ReqId(request)) {
            true => {
                self.protocol_error();
                Ok(())
            }
            false => Err(Nonsense("an answer about a request that was never made")),
        }
    }

    /// Ends a request well, or with the error of a message that was too long.
    pub(super) fn end(&self, req: &Req, too_long: Option<PmlError>) {
        match too_long {
            None => self.requests.complete_ok(req),
            Some(error) => self.requests.complete(req, Err(error.into())),
        }
    }
}
