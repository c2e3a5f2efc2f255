//! The direction of an access (a read or a write), together with its buffer.
//!
//! Each type of access (individual, collective, ordered) has one implementation, for a [`Transfer`].
//! Only this file distinguishes reads from writes.

use crate::Error;
use crate::collective::plan::Plan;
use crate::collective::shm_aggregation::{self, ShmBuffers};
use crate::collective::two_phase;
use crate::datatype::{Datatype, RecvBuf, SendBuf};
use crate::error::IoError;
use crate::file::File;
use crate::hints::{Switch, Tuning};
use crate::view::View;

/// The buffer of an access, and the direction of the transfer.
pub(crate) enum Transfer<'a> {
    Read(&'a mut RecvBuf),
    Write(&'a SendBuf),
}

impl Transfer<'_> {
    pub(crate) fn writes(&self) -> bool {
        matches!(self, Transfer::Write(_))
    }

    pub(crate) fn datatype(&self) -> &Datatype {
        match self {
            Transfer::Read(buf) => buf.datatype(),
            Transfer::Write(buf) => buf.datatype(),
        }
    }

    /// Returns the length of the buffer in bytes.
    pub(crate) fn bytes(&self) -> i64 {
        match self {
            Transfer::Read(buf) => buf.bytes(),
            Transfer::Write(buf) => buf.bytes(),
        }
    }

    /// Returns an error if the access mode of the file does not allow this direction.
    pub(crate) fn allowed_in(&self, file: &File) -> Result<(), IoError> {
        match self {
            Transfer::Read(_) => file.accesses().may_read(),
            Transfer::Write(_) => file.accesses().may_write(),
        }
    }

    /// Returns true if the view's representation converts the data.
    pub(crate) fn converts(&self, view: &View) -> bool {
        match self {
            Transfer::Read(_) => view.representation.converts_reads(),
            Transfer::Write(_) => view.representation.converts_writes(),
        }
    }

    /// Returns the hint for collective buffering in this direction.
    pub(crate) fn together_by(&self, tuning: &Tuning) -> Switch {
        match self {
            Transfer::Read(_) => tuning.cb_read,
            Transfer::Write(_) => tuning.cb_write,
        }
    }

    /// Transfers the entire buffer by an individual access at stream byte `from`.
    /// Returns the number of bytes transferred.
    pub(crate) fn alone(&mut self, file: &File, from: i64) -> Result<i64, IoError> {
        match self {
            Transfer::Read(buf) => file.accesses().read_from(from, buf),
            Transfer::Write(buf) => file.accesses().write_from(from, buf),
        }
    }

    /// Transfers the buffer by a collective access: through shared memory if `buffers` is given,
    /// otherwise by messages. If this member's access is `done`, it participates with an empty buffer.
    pub(crate) fn together(
        self,
        file: &File,
        (plan, buffers): (&Plan, Option<&ShmBuffers>),
        (view, at): (&View, i64),
        done: bool,
    ) -> Result<Result<i64, IoError>, Error> {
        let (comm, disk, part) = (&file.comm, &file.disk, (view, at));
        match self {
            Transfer::Read(buf) => {
                let mut empty = RecvBuf::empty();
                let left = if done { &mut empty } else { buf };
                match buffers {
                    Some(buffers) => shm_aggregation::read(comm, (plan, buffers), disk, part, left),
                    None => two_phase::read(comm, plan, disk, part, left),
                }
            }
            Transfer::Write(buf) => {
                let empty = SendBuf::empty();
                let left = if done { &empty } else { buf };
                match buffers {
                    Some(buffers) => {
                        shm_aggregation::write(comm, (plan, buffers), disk, part, left)
                    }
                    None => two_phase::write(comm, plan, disk, part, left),
                }
            }
        }
    }
}
