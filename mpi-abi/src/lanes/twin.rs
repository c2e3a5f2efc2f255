//! The messages of one communicator in its lane.
//!
//! All members send and receive the program's point-to-point messages of the communicator here,
//! so their order is that of one engine. The context id is that of the communicator.

use super::typed::send_buf;
use crate::abi::*;
use crate::error::{Failure, Target};
use mpi_core::Engine;
use mpi_core::btl::ProcId;
use mpi_core::datatype::RecvBytes;
use mpi_core::group::Group;
use mpi_core::pml::{Context, Envelope, Key, Matching, Message, Mode, Plane, Sent};
use mpi_core::request::{Outcome, Req, Status};
use std::ffi::c_int;
use std::rc::Rc;

/// The messages of one communicator in its lane. Twins of different lanes share no cache line.
#[repr(align(128))]
pub struct Twin {
    engine: Engine,
    context: Context,
    rank: i32,
    procs: Box<[ProcId]>,
    matching: Rc<Matching>,
    handle: MPI_Comm,
}

impl Twin {
    /// Creates the twin of the communicator with this context, whose members are `procs` by rank.
    pub fn new(
        engine: Engine,
        context: Context,
        rank: u32,
        procs: Box<[ProcId]>,
        handle: MPI_Comm,
    ) -> Twin {
        let group = Group::from_procs(procs.to_vec());
        let context = context.plane(Plane::User);
        Twin {
            matching: engine.pml().matching_among(context, &group),
            engine,
            context,
            rank: rank as i32,
            procs,
            handle,
        }
    }

    /// Returns the lane's engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the object on which failures are raised: the communicator.
    pub fn target(&self) -> Target {
        Target::Comm(self.handle)
    }

    /// Assigns a failure to the communicator.
    pub fn blame(&self, failure: Failure) -> Failure {
        failure.on(self.target())
    }

    /// Returns a rank's process.
    fn proc(&self, rank: c_int) -> Result<ProcId, Failure> {
        let proc = usize::try_from(rank).ok().and_then(|at| self.procs.get(at));
        proc.copied().ok_or_else(|| self.no_rank(rank))
    }

    #[cold]
    fn no_rank(&self, rank: c_int) -> Failure {
        let size = self.procs.len();
        let text = format!("the rank is {rank}, but the communicator has {size} ranks");
        self.blame(Failure::new(MPI_ERR_RANK, text))
    }

    /// Fails if an operation cannot have this source.
    pub fn check_source(&self, source: c_int) -> Result<(), Failure> {
        match source {
            MPI_ANY_SOURCE | MPI_PROC_NULL => Ok(()),
            rank => self.proc(rank).map(drop),
        }
    }

    /// Fails if an operation cannot have this destination.
    pub fn check_dest(&self, dest: c_int) -> Result<(), Failure> {
        match dest {
            MPI_PROC_NULL => Ok(()),
            rank => self.proc(rank).map(drop),
        }
    }

    /// Starts a send. The bytes must stay in place until the send has completed.
    #[inline]
    pub fn isend(&self, data: &[u8], dest: c_int, tag: c_int, mode: Mode) -> Result<Sent, Failure> {
        if dest == MPI_PROC_NULL {
            return Ok(Sent::Done);
        }
        let (proc, pml) = (self.proc(dest)?, self.engine.pml());
        if mode == Mode::Standard && pml.try_send(self.context, self.rank, proc, tag, data) {
            return Ok(Sent::Done);
        }
        let envelope = Envelope {
            context: self.context,
            source: self.rank,
            dest,
            proc,
            tag,
        };
        let sent = pml.isend(envelope, send_buf(data), mode);
        sent.map_err(|error| self.blame(error.into()))
    }

    /// Sends a message, and waits until the bytes may change.
    #[inline]
    pub fn send(&self, data: &[u8], dest: c_int, tag: c_int, mode: Mode) -> Result<(), Failure> {
        match self.isend(data, dest, tag, mode)? {
            Sent::Done => Ok(()),
            Sent::Pending(req) => match self.engine.wait(&req) {
                Ok(_) => Ok(()),
                Err(error) => Err(self.blame(error.into())),
            },
        }
    }

    /// Starts a receive.
    #[inline]
    pub fn irecv(&self, bytes: RecvBytes, source: c_int, tag: c_int) -> Result<Req, Failure> {
        if source == MPI_PROC_NULL {
            return Ok(self.engine.operations().completed(Status::PROC_NULL));
        }
        self.check_source(source)?;
        let key = Key::new(source, tag);
        let pml = self.engine.pml();
        Ok(pml.irecv(&self.matching, self.rank, key, bytes))
    }

    /// Receives a message.
    #[inline]
    pub fn recv(&self, bytes: RecvBytes, source: c_int, tag: c_int) -> Result<Outcome, Failure> {
        if source != MPI_PROC_NULL {
            self.check_source(source)?;
            let (pml, key) = (self.engine.pml(), Key::new(source, tag));
            if pml.try_recv_here(&self.matching, self.rank, key, bytes) {
                self.engine.wait_for_messages(|| pml.is_here(), || {});
                return Ok(pml.end_here());
            }
        }
        let req = self.irecv(bytes, source, tag)?;
        Ok(self.engine.wait(&req))
    }

    /// Returns the status of the earliest matching message, if one has arrived.
    pub fn iprobe(&self, source: c_int, tag: c_int) -> Option<Status> {
        let key = Key::new(source, tag);
        self.find(|| self.engine.pml().iprobe(&self.matching, key))
    }

    /// Waits for a matching message.
    pub fn probe(&self, source: c_int, tag: c_int) -> Status {
        let key = Key::new(source, tag);
        self.await_message(|| self.engine.pml().iprobe(&self.matching, key))
    }

    /// Removes the earliest matching message, if one has arrived.
    pub fn improbe(&self, source: c_int, tag: c_int) -> Option<Message> {
        let key = Key::new(source, tag);
        self.find(|| self.engine.pml().improbe(&self.matching, key))
    }

    /// Waits for a matching message, and removes it.
    pub fn mprobe(&self, source: c_int, tag: c_int) -> Message {
        let key = Key::new(source, tag);
        self.await_message(|| self.engine.pml().improbe(&self.matching, key))
    }

    /// Starts the receive of a removed message.
    pub fn imrecv(&self, message: Message, bytes: RecvBytes) -> Req {
        self.engine.pml().imrecv(message, self.rank, bytes.into())
    }

    fn find<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        let found = look();
        if found.is_none() && self.engine.poll_once() {
            return look();
        }
        found
    }

    fn await_message<T>(&self, look: impl Fn() -> Option<T>) -> T {
        let mut found = None;
        loop {
            self.engine.wait_until(|| {
                found = found.take().or_else(&look);
                found.is_some()
            });
            if let Some(found) = found {
                return found;
            }
        }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.engine.pml().forget(self.context);
    }
}
