//! `MPI_Cancel` of a run that is recorded or replayed: whether it came before the message.
//!
//! On replay one that came too late waits for its message. One that came in time is a receive that no message may meet before, so it is posted
//! for no message: with a wildcard its own decision says so, without one the decision of its cancellation, which names it by its number.

use super::{Asker, Decision, RecordError, Script};
use crate::engine::Engine;
use crate::request::{Body, Req};

impl Engine {
    /// `MPI_Cancel` of a receive: takes it back unless a message has met it.
    pub fn cancel_recv(&self, req: &Req) -> Result<(), RecordError> {
        match self.script() {
            Some(script) => script.cancel(self, req),
            None => {
                self.pml().cancel_recv(req);
                Ok(())
            }
        }
    }
}

impl Script {
    /// Takes a receive back, if that was possible when this was recorded.
    fn cancel(&self, engine: &Engine, req: &Req) -> Result<(), RecordError> {
        if !self.is_replay() {
            let found = match engine.pml().cancel_recv(req) {
                true => Decision::Cancelled {
                    plain: self.plain_number(req.id()),
                },
                false => Decision::TooLate,
            };
            return self.write(Asker::Cancel, found).map(drop);
        }
        match self.next(Asker::Cancel)? {
            Decision::Cancelled { .. } if engine.pml().cancel_recv(req) => Ok(()),
            Decision::TooLate => {
                engine.wait_until(|| has_met(engine, req));
                Ok(())
            }
            recorded => Err(self.impossible(
                Asker::Cancel,
                recorded,
                "this time the message was there before".into(),
            )),
        }
    }
}

/// Whether a receive has met its message; what is no receive waits for none.
fn has_met(engine: &Engine, req: &Req) -> bool {
    let receives = matches!(&*req.body.borrow(), Body::Recv(_));
    !receives || req.is_complete() || engine.pml().incoming_from(req).is_some()
}
