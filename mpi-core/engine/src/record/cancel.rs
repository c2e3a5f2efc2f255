//! `MPI_Cancel` in a recorded or replayed run: it must have the same result as when recorded.
//!
//! In a replay, a cancellation that was too late in the recorded run waits until the receive has matched.
//! A receive that was cancelled must not match a message before its cancellation,
//! so it is posted with a key that matches no message.
//! For a receive with a wildcard, the recording contains the cancellation in place of the match.
//! For other receives, the decision of the cancellation contains the receive's number.

use super::{Asker, Decision, RecordError, Script};
use crate::engine::Engine;
use crate::request::{Body, Req};

impl Engine {
    /// `MPI_Cancel` of a receive: cancels the receive unless it has matched a message.
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

/// Returns true if a receive has matched its message; true for all other operations.
fn has_met(engine: &Engine, req: &Req) -> bool {
    let receives = matches!(&*req.body.borrow(), Body::Recv(_));
    !receives || req.is_complete() || engine.pml().incoming_from(req).is_some()
}
