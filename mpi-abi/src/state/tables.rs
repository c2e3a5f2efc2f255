//! The object tables of the process, indexed by handle.

use crate::handle::{Kind, Table};
use crate::object::comm::CommObject;
use crate::object::datatype::TypeObject;
use crate::object::file::FileObject;
use crate::object::request::RequestObject;
use crate::object::session::SessionObject;
use crate::object::window::WinObject;
use mpi_core::group::Group;
use mpi_core::op::Op;
use mpi_core::pml::Message;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// A group, and the session from which it derives.
pub(crate) type GroupOfSession = (Group, Option<Rc<SessionObject>>);

/// The object tables of the process, indexed by handle.
pub(crate) struct Tables {
    world: RefCell<Option<Rc<CommObject>>>,
    myself: RefCell<Option<Rc<CommObject>>>,
    comms: RefCell<Table<Rc<CommObject>>>,
    freed_comms: RefCell<Vec<Weak<CommObject>>>,
    groups: RefCell<Table<GroupOfSession>>,
    sessions: RefCell<Table<Rc<SessionObject>>>,
    requests: RefCell<Table<RequestObject>>,
    messages: RefCell<Table<(Message, Rc<CommObject>)>>,
    types: RefCell<Table<Rc<TypeObject>>>,
    named_types: RefCell<Vec<(usize, Rc<TypeObject>)>>,
    ops: RefCell<Table<Op>>,
    wins: RefCell<Table<Rc<WinObject>>>,
    files: RefCell<Table<Rc<FileObject>>>,
}

impl Tables {
    pub(super) const fn new() -> Tables {
        Tables {
            world: RefCell::new(None),
            myself: RefCell::new(None),
            comms: RefCell::new(Table::new(Kind::Comm)),
            freed_comms: RefCell::new(Vec::new()),
            groups: RefCell::new(Table::new(Kind::Group)),
            sessions: RefCell::new(Table::new(Kind::Session)),
            requests: RefCell::new(Table::new(Kind::Request)),
            messages: RefCell::new(Table::new(Kind::Message)),
            types: RefCell::new(Table::new(Kind::Datatype)),
            named_types: RefCell::new(Vec::new()),
            ops: RefCell::new(Table::new(Kind::Op)),
            wins: RefCell::new(Table::new(Kind::Win)),
            files: RefCell::new(Table::new(Kind::File)),
        }
    }

    /// Returns `MPI_COMM_WORLD`, which exists from initialization to finalization.
    #[inline(always)]
    pub fn world(&self) -> &RefCell<Option<Rc<CommObject>>> {
        &self.world
    }

    /// Returns `MPI_COMM_SELF`, which exists from initialization to finalization.
    #[inline(always)]
    pub fn myself(&self) -> &RefCell<Option<Rc<CommObject>>> {
        &self.myself
    }

    /// Returns the table of communicators, without the predefined ones.
    #[inline(always)]
    pub fn comms(&self) -> &RefCell<Table<Rc<CommObject>>> {
        &self.comms
    }

    /// Returns the freed communicators that active operations keep alive.
    /// Failures of these operations call the error handlers of these communicators.
    #[inline(always)]
    pub fn freed_comms(&self) -> &RefCell<Vec<Weak<CommObject>>> {
        &self.freed_comms
    }

    /// Returns the table of groups, each with the session from which it derives.
    #[inline(always)]
    pub fn groups(&self) -> &RefCell<Table<GroupOfSession>> {
        &self.groups
    }

    /// Returns the table of sessions.
    #[inline(always)]
    pub fn sessions(&self) -> &RefCell<Table<Rc<SessionObject>>> {
        &self.sessions
    }

    /// Returns the table of requests, without those in the engine's table.
    #[inline(always)]
    pub fn requests(&self) -> &RefCell<Table<RequestObject>> {
        &self.requests
    }

    /// Returns the table of messages matched by a probe.
    #[inline(always)]
    pub fn messages(&self) -> &RefCell<Table<(Message, Rc<CommObject>)>> {
        &self.messages
    }

    /// Returns the table of derived datatypes.
    #[inline(always)]
    pub fn types(&self) -> &RefCell<Table<Rc<TypeObject>>> {
        &self.types
    }

    /// Returns the predefined datatypes with attached names or attributes, by handle.
    #[inline(always)]
    pub fn named_types(&self) -> &RefCell<Vec<(usize, Rc<TypeObject>)>> {
        &self.named_types
    }

    /// Returns the table of the program's operators.
    #[inline(always)]
    pub fn ops(&self) -> &RefCell<Table<Op>> {
        &self.ops
    }

    /// Returns the table of windows.
    #[inline(always)]
    pub fn wins(&self) -> &RefCell<Table<Rc<WinObject>>> {
        &self.wins
    }

    /// Returns the table of files.
    #[inline(always)]
    pub fn files(&self) -> &RefCell<Table<Rc<FileObject>>> {
        &self.files
    }
}
