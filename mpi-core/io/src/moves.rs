//! What an access does with its buffer: fill it from the file, or write it there.
//!
//! Each kind of access (by one process, by all, in the order of ranks) is written once, for a [`Moves`];
//! what reading and writing do differently is here and nowhere else.

use super::error::IoError;
use super::file::File;
use super::hints::{Switch, Tuning};
use super::plan::Plan;
use super::staged::{self, Stages};
use super::two_phase;
use super::view::View;
use crate::Error;
use crate::datatype::{Datatype, RecvBuf, SendBuf};

/// A buffer and where its bytes go.
pub(super) enum Moves<'a> {
    Read(&'a mut RecvBuf),
    Write(&'a SendBuf),
}

impl Moves<'_> {
    pub(super) fn writes(&self) -> bool {
        matches!(self, Moves::Write(_))
    }

    pub(super) fn datatype(&self) -> &Datatype {
        match self {
            Moves::Read(buf) => buf.datatype(),
            Moves::Write(buf) => buf.datatype(),
        }
    }

    /// How long the buffer is.
    pub(super) fn bytes(&self) -> i64 {
        match self {
            Moves::Read(buf) => buf.bytes(),
            Moves::Write(buf) => buf.bytes(),
        }
    }

    /// Whether the file is open for it.
    pub(super) fn allowed_in(&self, file: &File) -> Result<(), IoError> {
        match self {
            Moves::Read(_) => file.may_read(),
            Moves::Write(_) => file.may_write(),
        }
    }

    /// Whether the view's representation changes the bytes on the way.
    pub(super) fn converts(&self, view: &View) -> bool {
        match self {
            Moves::Read(_) => view.representation.converts_reads(),
            Moves::Write(_) => view.representation.converts_writes(),
        }
    }

    /// Whether members are to work together, by their hints.
    pub(super) fn together_by(&self, tuning: &Tuning) -> Switch {
        match self {
            Moves::Read(_) => tuning.cb_read,
            Moves::Write(_) => tuning.cb_write,
        }
    }

    /// Moves the whole buffer, from byte `from` of the stream on; the bytes that were moved.
    pub(super) fn alone(&mut self, file: &File, from: i64) -> Result<i64, IoError> {
        match self {
            Moves::Read(buf) => file.read_from(from, buf),
            Moves::Write(buf) => file.write_from(from, buf),
        }
    }

    /// Moves it with the other members, through the memory of the node if there are stages, else by messages;
    /// a member whose part is `done` comes with an empty buffer.
    pub(super) fn together(
        self,
        file: &File,
        (plan, stages): (&Plan, Option<&Stages>),
        (view, at): (&View, i64),
        done: bool,
    ) -> Result<Result<i64, IoError>, Error> {
        let (comm, disk, part) = (&file.comm, &file.disk, (view, at));
        match self {
            Moves::Read(buf) => {
                let mut empty = RecvBuf::empty();
                let left = if done { &mut empty } else { buf };
                match stages {
                    Some(stages) => staged::read(comm, (plan, stages), disk, part, left),
                    None => two_phase::read(comm, plan, disk, part, left),
                }
            }
            Moves::Write(buf) => {
                let empty = SendBuf::empty();
                let left = if done { &empty } else { buf };
                match stages {
                    Some(stages) => staged::write(comm, (plan, stages), disk, part, left),
                    None => two_phase::write(comm, plan, disk, part, left),
                }
            }
        }
    }
}
