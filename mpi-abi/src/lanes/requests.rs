//! Requests of a lane: state, outcome, cancellation and release.
//!
//! The callers of these functions are in the lane of the request ([`within`](super::within)).

use super::objects::{self, Object, Pending, Persistent, Transfer};
use super::{Contents, Landing, Twin};
use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, wrong};
use crate::object::request::RequestState;
use crate::object::status::EMPTY;
use crate::registry::request::{c_status, failed_status, of_both_halves};
use mpi_core::datatype::RecvBytes;
use mpi_core::pml::Sent;
use mpi_core::request::{Outcome, Req, Status};
use std::any::Any;
use std::borrow::Cow;
use std::rc::Rc;

/// The outcome of a complete operation.
pub struct Taken {
    pub status: MPI_Status,
    pub failure: Option<Failure>,
    /// True if the handle has become null.
    pub gone: bool,
    /// A received message to be unpacked after the caller has left the lane.
    pub landing: Option<Landing>,
}

/// A received message of a derived datatype, and its length.
pub struct Arrived {
    landing: Landing,
    bytes: usize,
}

impl Arrived {
    /// Unpacks the message into the program's buffer. The caller is in no lane.
    pub fn unpack(self) {
        self.landing.unpack(self.bytes);
    }
}

/// What remains of a freed request, to be released after the caller has left the lane.
#[derive(Default)]
pub struct Remains {
    /// The buffer of a persistent operation.
    pub transfer: Option<Transfer>,
    pub arrived: Option<Arrived>,
    /// The failure of an operation whose request was freed earlier, or now.
    pub failure: Option<Failure>,
}

fn stale(handle: MPI_Request) -> Failure {
    wrong(Kind::Request, handle.0)
}

#[cold]
fn too_many() -> Failure {
    Failure::new(MPI_ERR_NO_MEM, "there are too many requests in this lane")
}

fn no_engine() -> Failure {
    crate::state::not_running()
}

impl Contents {
    /// Returns a handle for an operation without memory of its own.
    #[inline]
    pub fn running(&self, lane: usize, req: Req, twin: Rc<Twin>) -> Result<MPI_Request, Failure> {
        if let Some(handle) = objects::plain_handle(lane, &req) {
            req.hold(handle.0 as u32, Some(twin as Rc<dyn Any>));
            return Ok(handle);
        }
        let termination = twin.engine().clone();
        let pending = Pending {
            receive: Some(req.clone()),
            send: None,
            data: Vec::new(),
            landing: None,
        };
        let registered = self.register(lane, Object::Once(pending, twin));
        if registered.is_err() {
            // The memory is the program's, which may change it after the failure.
            termination.pml().termination().abandon(&req);
        }
        registered
    }

    /// Fails if the lane's table of requests is full.
    /// A call with memory of its own calls this function before it starts an operation on the memory.
    pub fn check_room(&self) -> Result<(), Failure> {
        match self.objects().borrow().has_room() {
            true => Ok(()),
            false => Err(too_many()),
        }
    }

    /// Returns a handle for another request.
    pub fn register(&self, lane: usize, object: Object) -> Result<MPI_Request, Failure> {
        let handle = self.objects().borrow_mut().insert_request(lane, object);
        handle.ok_or_else(too_many)
    }
}

impl Pending {
    fn is_complete(&self) -> bool {
        let ended = |req: &Option<Req>| req.as_ref().is_none_or(|req| req.is_complete());
        ended(&self.receive) && ended(&self.send)
    }

    /// Takes the message to be unpacked, if the operation is complete.
    fn arrived(&mut self) -> Option<Arrived> {
        let bytes = match self.receive.as_ref().filter(|_| self.is_complete())?.peek() {
            Ok(status) => Some(status.bytes),
            Err(error) => error.received().map(|status| status.bytes),
        };
        let landing = self.landing.take()?;
        Some(Arrived {
            landing,
            bytes: bytes.map_or(0, |bytes| bytes as usize),
        })
    }

    /// Takes the outcome and the message to be unpacked.
    fn finish(self, twin: &Twin) -> (Outcome, Option<Landing>) {
        let requests = twin.engine().pml().requests();
        let finish = |req: Option<Req>| req.map(|req| requests.finish(&req));
        let sent = finish(self.send);
        let outcome = match finish(self.receive) {
            Some(received) => of_both_halves(received, sent.unwrap_or(Ok(Status::EMPTY))),
            None => sent.unwrap_or(Ok(Status::EMPTY)),
        };
        (outcome, self.landing)
    }
}

/// Converts an outcome to a status and a failure.
fn taken(outcome: Outcome, twin: &Twin, gone: bool, landing: Option<Landing>) -> Taken {
    let (status, failure) = match outcome {
        Ok(status) => (c_status(status), None),
        Err(error) => {
            let seen = failed_status(&error);
            let failure = twin.blame(error.into());
            let status = MPI_Status {
                MPI_ERROR: failure.code(),
                ..seen
            };
            (status, Some(failure))
        }
    };
    Taken {
        status,
        failure,
        gone,
        landing,
    }
}

/// Returns the state of an operation.
#[inline]
pub fn look(contents: &Contents, handle: MPI_Request) -> Result<RequestState, Failure> {
    if let Some((index, name)) = objects::plain(handle) {
        let engine = contents.engine().ok_or_else(no_engine)?;
        return match engine.pml().requests().is_named_complete(index, name) {
            Some(true) => Ok(RequestState::Complete),
            Some(false) => Ok(RequestState::Running),
            None => Err(stale(handle)),
        };
    }
    let of = |pending: &Pending| match pending.is_complete() {
        true => RequestState::Complete,
        false => RequestState::Running,
    };
    match contents.objects().borrow_mut().get(handle.0) {
        Some(Object::Once(pending, _)) => Ok(of(pending)),
        Some(Object::Persistent(p)) => {
            let active = p.active.borrow();
            Ok(active.as_ref().map_or(RequestState::Inactive, of))
        }
        None => Err(stale(handle)),
    }
}

/// Waits until an operation is not running.
#[inline]
pub fn wait_for(contents: &Contents, handle: MPI_Request) -> Result<(), Failure> {
    let engine = contents.engine().ok_or_else(no_engine)?;
    let settled = || !matches!(look(contents, handle), Ok(RequestState::Running));
    if !settled() {
        engine.wait_for_messages(settled, || {});
    }
    Ok(())
}

/// Takes the outcome of a complete receive without memory of its own; `None` for all other requests.
#[inline]
pub fn take_light(contents: &Contents, handle: MPI_Request) -> Option<Status> {
    let (index, name) = objects::plain(handle)?;
    contents
        .engine()?
        .pml()
        .requests()
        .finish_named(index, name)
}

/// Takes the outcome of a complete operation, and releases its request unless it is persistent.
pub fn take(contents: &Contents, handle: MPI_Request) -> Result<Taken, Failure> {
    let engine = contents.engine().ok_or_else(no_engine)?;
    if let Some((req, twin)) = plain_request(contents, handle) {
        let outcome = engine.pml().requests().finish(&req);
        return Ok(taken(outcome, &twin, true, None));
    }
    let persistent = match contents.objects().borrow_mut().get(handle.0) {
        Some(Object::Persistent(p)) => Some(p.clone()),
        Some(Object::Once(..)) => None,
        None => return Err(stale(handle)),
    };
    if let Some(p) = persistent {
        let Some(active) = p.active.take() else {
            return Ok(taken(Ok(Status::EMPTY), &p.twin, false, None));
        };
        let (outcome, landing) = active.finish(&p.twin);
        return Ok(taken(outcome, &p.twin, false, landing));
    }
    let removed = contents.objects().borrow_mut().remove(handle.0);
    match removed {
        Some(Object::Once(pending, twin)) => {
            let (outcome, landing) = pending.finish(&twin);
            Ok(taken(outcome, &twin, true, landing))
        }
        _ => Err(stale(handle)),
    }
}

/// Returns the operation and the twin of a plain request.
fn plain_request(contents: &Contents, handle: MPI_Request) -> Option<(Req, Rc<Twin>)> {
    let (index, name) = objects::plain(handle)?;
    let req = contents.engine()?.pml().requests().named(index, name)?;
    let twin = req.held()?.downcast().ok()?;
    Some((req, twin))
}

/// Status and failure of a complete operation, and its message to be unpacked after the caller has left the lane.
pub type Peeked = (MPI_Status, Option<Failure>, Option<Arrived>);

/// Reads the outcome of a complete operation, and keeps the request.
///
/// The program may read its buffer after this, so the result includes a message of a derived datatype.
pub fn peek(contents: &Contents, handle: MPI_Request) -> Result<Peeked, Failure> {
    let of = |pending: &mut Pending, twin: &Twin| {
        let outcome = |req: &Option<Req>| req.as_ref().map(|req| req.peek());
        let sent = outcome(&pending.send).unwrap_or(Ok(Status::EMPTY));
        let both = match outcome(&pending.receive) {
            Some(received) => of_both_halves(received, sent),
            None => sent,
        };
        let Taken {
            status, failure, ..
        } = taken(both, twin, false, None);
        (status, failure, pending.arrived())
    };
    if let Some((req, twin)) = plain_request(contents, handle) {
        let Taken {
            status, failure, ..
        } = taken(req.peek(), &twin, false, None);
        return Ok((status, failure, None));
    }
    match contents.objects().borrow_mut().get(handle.0) {
        Some(Object::Once(pending, twin)) => Ok(of(pending, twin)),
        Some(Object::Persistent(p)) => {
            let mut active = p.active.borrow_mut();
            Ok(active
                .as_mut()
                .map_or((EMPTY, None, None), |pending| of(pending, &p.twin)))
        }
        None => Err(stale(handle)),
    }
}

/// Cancels an unmatched receive or send.
pub fn cancel(contents: &Contents, handle: MPI_Request) -> Result<(), Failure> {
    let engine = contents.engine().ok_or_else(no_engine)?;
    let of = |pending: &Pending| -> Vec<Req> {
        pending
            .receive
            .iter()
            .chain(&pending.send)
            .cloned()
            .collect()
    };
    let reqs = match plain_request(contents, handle) {
        Some((req, _)) => vec![req],
        None => match contents.objects().borrow_mut().get(handle.0) {
            Some(Object::Once(pending, _)) => of(pending),
            Some(Object::Persistent(p)) => p.active.borrow().as_ref().map_or(Vec::new(), of),
            None => return Err(stale(handle)),
        },
    };
    for req in reqs {
        if !engine.pml().cancel_send(&req) {
            engine.pml().cancel_recv(&req);
        }
    }
    Ok(())
}

/// Frees a request. An active operation continues until completion.
pub fn free(contents: &Contents, handle: MPI_Request) -> Result<Remains, Failure> {
    if let Some((req, twin)) = plain_request(contents, handle) {
        req.forget_name();
        let pending = Pending {
            receive: Some(req),
            send: None,
            data: Vec::new(),
            landing: None,
        };
        contents.buffered.adopt(pending, twin);
        return Ok(Remains {
            failure: contents.buffered.take_failure(),
            ..Remains::default()
        });
    }
    let is_typed = |pending: &Pending| pending.landing.is_some() && !pending.is_complete();
    let refused = match contents.objects().borrow_mut().get(handle.0) {
        Some(Object::Once(pending, twin)) => is_typed(pending).then(|| twin.target()),
        Some(Object::Persistent(p)) => {
            let refused = p.active.borrow().as_ref().is_some_and(is_typed);
            refused.then(|| p.twin.target())
        }
        None => return Err(stale(handle)),
    };
    if let Some(target) = refused {
        let failure = Failure::new(
            MPI_ERR_REQUEST,
            "with the parameter threads_lanes above 1, the request of an active receive of a derived datatype cannot be freed; complete it by MPI_Wait",
        );
        return Err(failure.on(target));
    }
    let removed = contents.objects().borrow_mut().remove(handle.0);
    let mut remains = Remains::default();
    match removed {
        Some(Object::Once(mut pending, twin)) => {
            remains.arrived = pending.arrived();
            contents.buffered.adopt(pending, twin);
        }
        Some(Object::Persistent(p)) => {
            if let Some(mut active) = p.active.take() {
                remains.arrived = active.arrived();
                contents.buffered.adopt(active, p.twin.clone());
            }
            remains.transfer = Rc::into_inner(p).map(|p| p.transfer);
        }
        None => return Err(stale(handle)),
    }
    remains.failure = contents.buffered.take_failure();
    Ok(remains)
}

/// Returns the persistent operation of a request, to be started.
/// The caller uses its buffer after it has left the lane, and drops the reference in the lane.
pub fn to_start(contents: &Contents, handle: MPI_Request) -> Result<Rc<Persistent>, Failure> {
    let not_persistent = || {
        Failure::new(
            MPI_ERR_REQUEST,
            "the request is not persistent and cannot be started",
        )
    };
    match contents.objects().borrow_mut().get(handle.0) {
        Some(Object::Persistent(p)) if p.active.borrow().is_some() => {
            let failure = Failure::new(MPI_ERR_REQUEST, "the request is active already");
            Err(p.twin.blame(failure))
        }
        Some(Object::Persistent(p)) => Ok(p.clone()),
        Some(Object::Once(..)) => Err(not_persistent()),
        None if objects::plain(handle).is_some() => Err(not_persistent()),
        None => Err(stale(handle)),
    }
}

/// Starts a persistent operation, with the data or the memory of its message.
pub fn start_persistent(
    contents: &Contents,
    p: &Persistent,
    data: Cow<'_, [u8]>,
    (bytes, landing): (RecvBytes, Option<Landing>),
) -> Result<(), Failure> {
    let mut pending = Pending {
        receive: None,
        send: None,
        data: Vec::new(),
        landing,
    };
    match &p.transfer {
        Transfer::Receive(_) => pending.receive = Some(p.twin.irecv(bytes, p.peer, p.tag)?),
        Transfer::Buffered { .. } => {
            contents
                .buffered
                .send(&p.twin, data.into_owned(), p.peer, p.tag)?;
        }
        Transfer::Send { mode, .. } => {
            if let Sent::Pending(req) = p.twin.isend(&data, p.peer, p.tag, *mode)? {
                pending.send = Some(req);
            }
            if let Cow::Owned(data) = data {
                pending.data = data;
            }
        }
    }
    *p.active.borrow_mut() = Some(pending);
    Ok(())
}
