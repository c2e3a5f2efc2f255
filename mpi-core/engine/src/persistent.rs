//! Persistent operations (MPI 5.0, sections 3.9, 4.2 and 6.13): the arguments are stored once, and the operation is started many times.
//!
//! Each start of a persistent collective creates the nonblocking operation from its [`Call`],
//! so each collective has only one implementation.

use crate::Error;
use crate::buffered::Buffer;
use crate::coll::Call;
use crate::comm::Comm;
use crate::datatype::{RecvBuf, SendBuf};
use crate::partitioned::Partitioned;
use crate::pml::Mode;
use crate::pml::Sent;
use crate::request::{Outcome, Req, Status};
use mpi_base::state::About;
use std::any::Any;
use std::rc::Rc;

/// An operation that can be started repeatedly; at most one start is in progress.
pub struct Persistent {
    comm: Comm,
    operation: Operation,
    /// The state that a component keeps between the starts of a collective operation.
    plan: Option<Rc<dyn Any>>,
    active: Option<Active>,
}

/// The kinds of persistent operations.
pub enum Operation {
    Send {
        buf: SendBuf,
        dest: i32,
        tag: i32,
        mode: Mode,
    },
    /// A send through the attached buffer that is passed to [`Persistent::start`].
    Buffered {
        buf: SendBuf,
        dest: i32,
        tag: i32,
    },
    Recv {
        buf: RecvBuf,
        source: i32,
        tag: i32,
    },
    Collective(Call),
    Partitioned(Partitioned),
}

enum Active {
    /// The operation has completed during its start.
    Done,
    Pending(Req),
    /// The operation is partitioned, and stores its state itself.
    Partitioned,
}

impl Persistent {
    /// Creates an inactive operation, as `MPI_Send_init` and the other init functions do.
    pub fn new(comm: &Comm, operation: Operation) -> Persistent {
        let plan = match &operation {
            Operation::Collective(call) => comm.collectives().plan(call),
            _ => None,
        };
        Persistent {
            comm: comm.clone(),
            operation,
            plan,
            active: None,
        }
    }

    /// Returns the operation's communicator, whose error handler is called for the operation's errors.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Returns true between `MPI_Start` and the call that completes the operation.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// `MPI_Start`; the caller has checked that the operation is inactive.
    /// A buffered send is copied to `buffer`.
    pub fn start(&mut self, buffer: &Buffer) -> Result<(), Error> {
        let comm = &self.comm;
        self.active = Some(match &mut self.operation {
            Operation::Send {
                buf,
                dest,
                tag,
                mode,
            } => match comm.p2p().isend(buf.clone(), *dest, *tag, *mode)? {
                Sent::Done => Active::Done,
                Sent::Pending(req) => Active::Pending(req),
            },
            Operation::Buffered { buf, dest, tag } => {
                buffer.send(comm, buf, *dest, *tag)?;
                Active::Done
            }
            Operation::Recv { buf, source, tag } => {
                Active::Pending(comm.p2p().irecv(buf.clone(), *source, *tag)?)
            }
            Operation::Collective(call) => {
                let calls = comm.collectives();
                Active::Pending(calls.begin_persistent(call.clone(), self.plan.as_ref())?)
            }
            Operation::Partitioned(partitioned) => {
                partitioned.start();
                Active::Partitioned
            }
        });
        Ok(())
    }

    /// Returns true if the last start has completed, or if the operation is inactive.
    pub fn is_complete(&self) -> bool {
        match &self.active {
            Some(Active::Pending(req)) => req.is_complete(),
            Some(Active::Partitioned) => self.partitioned().is_none_or(Partitioned::is_complete),
            Some(Active::Done) | None => true,
        }
    }

    /// Returns the partitioned operation, if it is one.
    pub fn partitioned(&self) -> Option<&Partitioned> {
        match &self.operation {
            Operation::Partitioned(partitioned) => Some(partitioned),
            _ => None,
        }
    }

    /// Returns true if this is a collective operation.
    pub fn is_collective(&self) -> bool {
        matches!(self.operation, Operation::Collective(_))
    }

    /// Returns what the state page shows while a process waits for this operation, if it has no single request.
    pub fn about(&self) -> Option<About> {
        match &self.active {
            Some(Active::Partitioned) => self.partitioned().map(Partitioned::about),
            _ => None,
        }
    }

    /// Returns the name of the function that creates such an operation; `None` for collective operations.
    /// A ready send is a standard send, so it is named like one.
    pub fn created_by(&self) -> Option<&'static str> {
        match &self.operation {
            Operation::Send {
                mode: Mode::Synchronous,
                ..
            } => Some("MPI_Ssend_init"),
            Operation::Send { .. } => Some("MPI_Send_init"),
            Operation::Buffered { .. } => Some("MPI_Bsend_init"),
            Operation::Recv { .. } => Some("MPI_Recv_init"),
            Operation::Collective(_) => None,
            Operation::Partitioned(Partitioned::Send(_)) => Some("MPI_Psend_init"),
            Operation::Partitioned(Partitioned::Recv(..)) => Some("MPI_Precv_init"),
        }
    }

    /// Returns the request of the last start, if it has one.
    pub fn request(&self) -> Option<&Req> {
        match &self.active {
            Some(Active::Pending(req)) => Some(req),
            _ => None,
        }
    }

    /// Returns the outcome of a completed operation, which stays active.
    pub fn peek(&self) -> Outcome {
        match &self.active {
            Some(Active::Pending(req)) => req.peek(),
            Some(Active::Partitioned) => self
                .partitioned()
                .map_or(Ok(Status::EMPTY), Partitioned::peek),
            Some(Active::Done) | None => Ok(Status::EMPTY),
        }
    }

    /// Returns the outcome of a completed operation and makes it inactive.
    pub fn finish(&mut self) -> Outcome {
        match self.active.take() {
            Some(Active::Pending(req)) => self.comm.engine().pml().requests().finish(&req),
            Some(Active::Partitioned) => match &mut self.operation {
                Operation::Partitioned(partitioned) => partitioned.finish(),
                _ => Ok(Status::EMPTY),
            },
            Some(Active::Done) | None => Ok(Status::EMPTY),
        }
    }
}
