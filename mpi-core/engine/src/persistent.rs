//! Persistent operations (MPI 5.0, sections 3.9, 4.2 and 6.13): arguments kept, started many times.
//!
//! A collective is made anew from its [`Call`] at each start, so it has no second implementation.

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

/// An operation that can be started again and again; at most once at a time.
pub struct Persistent {
    comm: Comm,
    operation: Operation,
    active: Option<Active>,
}

/// What is started.
pub enum Operation {
    Send {
        buf: SendBuf,
        dest: i32,
        tag: i32,
        mode: Mode,
    },
    /// A send through the buffer that is attached for the communicator when it is started.
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
    /// The start completed it.
    Done,
    Pending(Req),
    /// The operation itself knows.
    Partitioned,
}

impl Persistent {
    /// Not active yet: `MPI_Send_init` and its relatives only remember.
    pub fn new(comm: &Comm, operation: Operation) -> Persistent {
        Persistent {
            comm: comm.clone(),
            operation,
            active: None,
        }
    }

    /// Where it takes place, and where its failures are heard.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Between its start and the call that completes it.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// `MPI_Start`; the caller has made sure that it is not active.
    /// A buffered send goes through `buffer`.
    pub fn start(&mut self, buffer: &Buffer) -> Result<(), Error> {
        let comm = &self.comm;
        self.active = Some(match &mut self.operation {
            Operation::Send {
                buf,
                dest,
                tag,
                mode,
            } => match comm.isend(buf.clone(), *dest, *tag, *mode)? {
                Sent::Done => Active::Done,
                Sent::Pending(req) => Active::Pending(req),
            },
            Operation::Buffered { buf, dest, tag } => {
                buffer.send(comm, buf, *dest, *tag)?;
                Active::Done
            }
            Operation::Recv { buf, source, tag } => {
                Active::Pending(comm.irecv(buf.clone(), *source, *tag)?)
            }
            Operation::Collective(call) => Active::Pending(comm.icollective(call.clone())?),
            Operation::Partitioned(partitioned) => {
                partitioned.start();
                Active::Partitioned
            }
        });
        Ok(())
    }

    /// Whether a started operation has ended, or none was started.
    pub fn is_complete(&self) -> bool {
        match &self.active {
            Some(Active::Pending(req)) => req.is_complete(),
            Some(Active::Partitioned) => self.partitioned().is_none_or(Partitioned::is_complete),
            Some(Active::Done) | None => true,
        }
    }

    /// The operation as a partitioned one, if it is one.
    pub fn partitioned(&self) -> Option<&Partitioned> {
        match &self.operation {
            Operation::Partitioned(partitioned) => Some(partitioned),
            _ => None,
        }
    }

    /// What the state page says while a process waits for an operation that has no request of its own.
    pub fn about(&self) -> Option<About> {
        match &self.active {
            Some(Active::Partitioned) => self.partitioned().map(Partitioned::about),
            _ => None,
        }
    }

    /// The request under way, if there is one.
    pub fn request(&self) -> Option<&Req> {
        match &self.active {
            Some(Active::Pending(req)) => Some(req),
            _ => None,
        }
    }

    /// Looks at the outcome of what has ended without ending it.
    pub fn peek(&self) -> Outcome {
        match &self.active {
            Some(Active::Pending(req)) => req.peek(),
            Some(Active::Partitioned) => self
                .partitioned()
                .map_or(Ok(Status::EMPTY), Partitioned::peek),
            Some(Active::Done) | None => Ok(Status::EMPTY),
        }
    }

    /// Takes the outcome of what has ended and becomes inactive.
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
