//! Buffered sends (MPI 5.0, sections 3.4 and 3.6): the message is copied and the call returns.
//!
//! The copy is in the library's own memory; the attached buffer only limits the size of the copies.
//! The library stores no bookkeeping in the user's buffer, where a program could corrupt it.

use crate::Error;
use crate::comm::Comm;
use crate::datatype::{NoMemory, Scratch, SendBuf};
use crate::engine::Engine;
use crate::pml::Sent;
use crate::pml::{Mode, Plane};
use crate::request::{PROC_NULL, Req};
use std::cell::RefCell;
use std::fmt;

/// Overhead of a message in bytes: the smallest `MPI_BSEND_OVERHEAD` of all supported ABIs (MPICH 96, Open MPI 128, the standard 512).
/// The copy is not in the buffer, so a program that adds a larger overhead attaches more than it needs.
pub const OVERHEAD: u64 = 96;

/// The error of a buffered send or of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferError {
    /// A buffer is attached already.
    Attached { bytes: u64 },
    /// No buffer is attached, so none can be detached or flushed.
    Absent,
    /// The attached buffer is too full for another message.
    Full {
        dest: i32,
        tag: i32,
        needed: u64,
        free: u64,
    },
    /// The attached buffer is large enough, but there is no memory for the copy.
    NoMemory { dest: i32, tag: i32, bytes: i64 },
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferError::Attached { bytes } => {
                write!(
                    f,
                    "a buffer of {bytes} bytes is attached already; detach it first"
                )
            }
            BufferError::Absent => write!(f, "no buffer is attached for buffered sends"),
            BufferError::Full {
                dest,
                tag,
                needed,
                free,
            } => write!(
                f,
                "the buffered message to {dest}, tag {tag}, needs {needed} bytes with its overhead of {OVERHEAD}, the attached buffer has {free} free"
            ),
            BufferError::NoMemory { dest, tag, bytes } => write!(
                f,
                "there is no memory for a copy of the buffered message to {dest}, tag {tag}, which has {bytes} bytes"
            ),
        }
    }
}

impl std::error::Error for BufferError {}

impl crate::Failure for BufferError {}

impl Engine {
    /// Returns the process's buffer for buffered sends, to which `MPI_Buffer_attach` refers.
    pub fn buffer(&self) -> &Buffer {
        self.extension_of_type()
    }
}

/// The state of the buffer for buffered sends of a process, communicator or session.
#[derive(Default)]
pub struct Buffer {
    attached: RefCell<Option<Attached>>,
}

struct Attached {
    /// The size limit in bytes; `None` for `MPI_BUFFER_AUTOMATIC` (no limit).
    limit: Option<u64>,
    held: Vec<Held>,
}

/// A message that its transport has not accepted yet.
struct Held {
    req: Req,
    bytes: u64,
}

impl Buffer {
    /// Allows buffered sends of `limit` bytes in total, or without limit.
    pub fn attach(&self, limit: Option<u64>) -> Result<(), BufferError> {
        let mut attached = self.attached.borrow_mut();
        match &*attached {
            Some(a) => Err(BufferError::Attached {
                bytes: a.limit.unwrap_or(u64::MAX),
            }),
            None => {
                *attached = Some(Attached {
                    limit,
                    held: Vec::new(),
                });
                Ok(())
            }
        }
    }

    /// Returns true if a buffer is attached (MPI 5.0, section 3.6).
    pub fn is_attached(&self) -> bool {
        self.attached.borrow().is_some()
    }

    /// `MPI_Bsend`: returns as soon as the data are copied.
    pub fn send(&self, comm: &Comm, buf: &SendBuf, dest: i32, tag: i32) -> Result<(), Error> {
        if dest == PROC_NULL {
            // No message is sent to `MPI_PROC_NULL`, so no buffer is needed.
            return Ok(());
        }
        let engine = comm.engine();
        let bytes = buf.bytes() as u64 + OVERHEAD;
        self.reap(engine);
        if !self.has_room(bytes)? {
            // A progress call may complete sends and so free enough space.
            engine.progress();
            self.reap(engine);
        }
        let free = self.free()?;
        if free < bytes {
            return Err(BufferError::Full {
                dest,
                tag,
                needed: bytes,
                free,
            }
            .into());
        }
        let no_memory = |NoMemory { bytes }| BufferError::NoMemory { dest, tag, bytes };
        let copy = Scratch::packed(buf.bytes()).map_err(no_memory)?;
        if let Some(target) = copy.all().contiguous() {
            buf.pack_at(0, target);
        }
        let sent = comm.p2p().isend_on(
            Plane::User,
            copy.all().as_send(),
            dest as u32,
            tag,
            Mode::Standard,
        )?;
        if let (Sent::Pending(req), Some(attached)) = (sent, &mut *self.attached.borrow_mut()) {
            attached.held.push(Held { req, bytes });
        }
        Ok(())
    }

    /// `MPI_Buffer_flush`: waits until every buffered message has been sent.
    pub fn flush(&self, engine: &Engine) -> Result<(), BufferError> {
        if !self.is_attached() {
            return Err(BufferError::Absent);
        }
        engine.wait_until(|| {
            self.reap(engine);
            self.is_empty()
        });
        Ok(())
    }

    /// `MPI_Buffer_detach`: waits until every buffered message has been sent, then removes the buffer.
    pub fn detach(&self, engine: &Engine) -> Result<(), BufferError> {
        self.flush(engine)?;
        self.attached.borrow_mut().take();
        Ok(())
    }

    /// Returns true if all buffered messages have been sent; the condition of `MPI_Buffer_iflush`.
    pub fn is_empty(&self) -> bool {
        self.attached
            .borrow()
            .as_ref()
            .is_none_or(|a| a.held.is_empty())
    }

    /// Drops the messages that have been sent.
    pub fn reap(&self, engine: &Engine) {
        if let Some(attached) = &mut *self.attached.borrow_mut() {
            attached.held.retain(|held| {
                let left = held.req.is_complete();
                if left {
                    // An error of the send is ignored: the call that could have reported it has returned.
                    let _ = engine.pml().requests().finish(&held.req);
                }
                !left
            });
        }
    }

    fn has_room(&self, bytes: u64) -> Result<bool, BufferError> {
        self.free().map(|free| free >= bytes)
    }

    fn free(&self) -> Result<u64, BufferError> {
        match &*self.attached.borrow() {
            None => Err(BufferError::Absent),
            Some(Attached { limit: None, .. }) => Ok(u64::MAX),
            Some(Attached {
                limit: Some(limit),
                held,
            }) => Ok(limit.saturating_sub(held.iter().map(|h| h.bytes).sum())),
        }
    }
}
