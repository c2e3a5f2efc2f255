//! Waits in a lane. A long wait is described for the hang report ([`thread_waits`](crate::thread_waits)).
//!
//! The callers are in the lane of the engine ([`within`](super::within)).

use crate::registry::request::number_of_beginner;
use crate::thread_waits::Wait;
use mpi_base::state::About;
use mpi_core::Engine;
use mpi_core::request::{Body, Outcome, Req};

/// A lane's number and its engine.
pub type Lane<'a> = (usize, &'a Engine);

/// Waits until `done` returns true, in a call of the function `call`. `about` describes the awaited event.
#[inline]
pub fn wait_until(
    (lane, engine): Lane<'_>,
    call: &'static str,
    mut done: impl FnMut() -> bool,
    about: impl Fn() -> About,
) {
    let wait = Wait::new(lane, call);
    engine.wait_publishing(|| done() || wait.note_false(&about), || {});
}

/// As [`wait_until`], if only a poll or a call of this process can make `done` return true.
/// Another thread that is in the lane may call `done` (`Engine::wait_for_messages`).
#[inline]
pub fn wait_for_messages(
    lane: Lane<'_>,
    call: &'static str,
    done: impl Fn() -> bool,
    about: impl Fn() -> About,
) {
    let (number, engine) = lane;
    let wait = Wait::new(number, call);
    engine.wait_for_messages(|| done() || wait.note_false(&about), || {});
}

/// Waits for an operation to complete, and frees its request.
#[inline]
pub fn wait(lane: Lane<'_>, call: &'static str, req: &Req) -> Outcome {
    if !req.is_complete() {
        wait_for_messages(lane, call, || req.is_complete(), || about(req));
    }
    lane.1.wait(req)
}

/// Describes the operation of a request.
#[cold]
pub fn about(req: &Req) -> About {
    let body = req.body.borrow();
    let about = match &*body {
        Body::Send(send) => send.about(),
        Body::Recv(recv) => recv.about(),
        _ => About::default(),
    };
    About {
        begun: number_of_beginner(&body),
        ..about
    }
}
