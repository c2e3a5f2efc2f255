//! The arguments of a call, as far as the report and the trace need them.
//!
//! Pointers are into the program's memory; they are read while their contents are valid, before or after the call.
#![allow(unsafe_code)]

use super::Watch;
use coll_hwbarr_foreign::library::Handle;
use mpi_core::coll::CallId;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Send,
    Recv,
}

/// A message, with the library's values.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub count: i64,
    pub datatype: Handle,
    pub peer: c_int,
    pub tag: c_int,
    pub comm: Handle,
}

/// A collective operation.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub call: CallId,
    pub comm: Handle,
    pub root: Option<i64>,
    pub op: Option<Handle>,
    /// A count of elements and their datatype, which must be the same at all members.
    pub elements: Option<(i64, Handle)>,
}

impl Round {
    pub fn new(call: CallId, comm: Handle) -> Round {
        Round {
            call,
            comm,
            root: None,
            op: None,
            elements: None,
        }
    }

    pub fn root(self, root: i64) -> Round {
        Round {
            root: Some(root),
            ..self
        }
    }

    pub fn op(self, op: Handle) -> Round {
        Round {
            op: Some(op),
            ..self
        }
    }

    pub fn of(self, count: i64, datatype: Handle) -> Round {
        Round {
            elements: Some((count, datatype)),
            ..self
        }
    }
}

/// A pointer to the program's handles of requests, messages or communicators.
#[derive(Clone, Copy, Debug)]
pub struct HandlePtr {
    at: *mut c_void,
    is_fortran: bool,
}

// SAFETY: only an address; it is dereferenced by the thread that makes the call or completes the request.
unsafe impl Send for HandlePtr {}

/// The kind of handle at a [`HandlePtr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    Comm,
    Request,
    Message,
}

impl HandlePtr {
    pub fn of_c(at: *mut c_void) -> HandlePtr {
        HandlePtr {
            at,
            is_fortran: false,
        }
    }

    pub fn of_fortran(at: *mut c_void) -> HandlePtr {
        HandlePtr {
            at,
            is_fortran: true,
        }
    }

    /// Returns handle `number` of the array, converted to C.
    pub fn read(&self, watch: &Watch, kind: HandleKind, number: usize) -> Handle {
        if self.at.is_null() {
            return 0;
        }
        if self.is_fortran {
            // SAFETY: by the MPI standard the program passes an array of Fortran handles; `number` is below its count argument.
            let integer = unsafe { self.at.cast::<c_int>().add(number).read() };
            return match kind {
                HandleKind::Comm => watch.fortran.comm(integer),
                HandleKind::Request => watch.fortran.request(integer),
                HandleKind::Message => watch.fortran.message(integer),
            };
        }
        match watch.constants.handle_bytes {
            // SAFETY: by the MPI standard the program passes an array of handles; `number` is below its count argument.
            4 => unsafe { self.at.cast::<u32>().add(number).read() as Handle },
            // SAFETY: by the MPI standard the program passes an array of handles; `number` is below its count argument.
            _ => unsafe { self.at.cast::<Handle>().add(number).read() },
        }
    }
}

/// The program's pointer to statuses, or the constant for "no status".
#[derive(Clone, Copy, Debug)]
pub struct Statuses {
    at: *mut c_void,
    is_fortran: bool,
}

impl Statuses {
    pub fn of_c(at: *mut c_void) -> Statuses {
        Statuses {
            at,
            is_fortran: false,
        }
    }

    pub fn of_fortran(at: *mut c_void) -> Statuses {
        Statuses {
            at,
            is_fortran: true,
        }
    }

    /// Returns true if the program passed the constant for "no status".
    pub fn is_ignored(&self, watch: &Watch) -> bool {
        match self.is_fortran {
            true => watch.fortran.is_ignored(self.at.addr()),
            false => self.at.addr() == watch.constants.statuses_ignore,
        }
    }
}

/// A pointer to integers that a function writes.
#[derive(Clone, Copy, Debug)]
pub struct Integers {
    at: *mut c_int,
    is_fortran: bool,
}

impl Integers {
    pub fn of_c(at: *mut c_int) -> Integers {
        Integers {
            at,
            is_fortran: false,
        }
    }

    pub fn of_fortran(at: *mut c_int) -> Integers {
        Integers {
            at,
            is_fortran: true,
        }
    }

    fn none() -> Integers {
        Integers::of_c(null_mut())
    }

    pub fn read(&self, number: usize) -> c_int {
        if self.at.is_null() {
            return 0;
        }
        // SAFETY: the library has written more than `number` integers there.
        unsafe { self.at.add(number).read() }
    }

    /// Returns true if a flag is set; Fortran compilers differ in the value of `.true.`.
    pub fn is_set(&self) -> bool {
        self.read(0) != 0
    }

    /// Returns an index counted from 0 (Fortran counts from 1); `None` for `MPI_UNDEFINED`.
    pub fn index(&self, number: usize) -> Option<usize> {
        let index = self.read(number);
        if index == super::constants::UNDEFINED {
            return None;
        }
        usize::try_from(index - c_int::from(self.is_fortran)).ok()
    }
}

/// Which of its requests a call completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSet {
    /// All of them, or the only one.
    All,
    Any,
    Some,
}

/// The requests of a completing call.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    pub set: RequestSet,
    pub count: usize,
    pub handles: HandlePtr,
    pub statuses: Statuses,
    /// The index, or the number of completed requests.
    pub index_or_count: Integers,
    pub indices: Integers,
}

impl Requests {
    pub fn one(handles: HandlePtr, statuses: Statuses) -> Requests {
        Requests::all(1, handles, statuses)
    }

    pub fn all(count: i64, handles: HandlePtr, statuses: Statuses) -> Requests {
        Requests {
            set: RequestSet::All,
            count: usize::try_from(count).unwrap_or(0),
            handles,
            statuses,
            index_or_count: Integers::none(),
            indices: Integers::none(),
        }
    }

    pub fn any(count: i64, handles: HandlePtr, index: Integers, statuses: Statuses) -> Requests {
        Requests {
            set: RequestSet::Any,
            index_or_count: index,
            ..Requests::all(count, handles, statuses)
        }
    }

    pub fn some(
        count: i64,
        handles: HandlePtr,
        index_or_count: Integers,
        indices: Integers,
        statuses: Statuses,
    ) -> Requests {
        Requests {
            set: RequestSet::Some,
            index_or_count,
            indices,
            ..Requests::all(count, handles, statuses)
        }
    }

    /// After the call: returns the completed requests as (number of the request, number of its status).
    pub fn completed(&self) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = match self.set {
            RequestSet::All => (0..self.count).map(|number| (number, number)).collect(),
            RequestSet::Any => self
                .index_or_count
                .index(0)
                .map(|number| (number, 0))
                .into_iter()
                .collect(),
            RequestSet::Some => {
                let out = usize::try_from(self.index_or_count.read(0)).unwrap_or(0);
                let of = |number| Some((self.indices.index(number)?, number));
                (0..out.min(self.count)).filter_map(of).collect()
            }
        };
        found.retain(|(number, _)| *number < self.count);
        found
    }
}

/// A call with its arguments.
#[derive(Clone, Copy, Debug)]
pub enum CallArgs {
    /// Only the name of the call matters.
    Plain,
    Send(Message),
    Recv(Message, Statuses),
    Sendrecv(Message, Message, Statuses),
    /// A message with a request.
    Started(Direction, Message, HandlePtr),
    /// A persistent request.
    Prepared(Direction, Message, HandlePtr),
    Starts(i64, HandlePtr),
    Probe(i64, i64, Handle),
    Mprobe(i64, i64, Handle, HandlePtr, Statuses),
    Iprobe(i64, i64, Handle, Integers),
    Improbe(i64, i64, Handle, Integers, HandlePtr, Statuses),
    Mrecv(HandlePtr),
    Imrecv(HandlePtr, HandlePtr),
    /// Waits for requests, or tests them if it has a flag.
    Completes(Requests, Option<Integers>),
    Forgets(HandlePtr),
    Round(Round, Option<HandlePtr>),
    /// A new communicator.
    Makes(HandlePtr),
    /// A communicator that exists once a request is complete: its parent, its handles, and the request.
    MakesLater(Handle, HandlePtr, HandlePtr),
    /// Frees a communicator.
    Drops(HandlePtr),
}

impl CallArgs {
    /// Returns the pointer to the statuses, if the call has any, and their number.
    pub fn statuses(&self) -> Option<(Statuses, usize)> {
        match self {
            CallArgs::Recv(_, statuses)
            | CallArgs::Sendrecv(_, _, statuses)
            | CallArgs::Mprobe(.., statuses)
            | CallArgs::Improbe(.., statuses) => Some((*statuses, 1)),
            CallArgs::Completes(requests, _) => match requests.set {
                RequestSet::Any => Some((requests.statuses, 1)),
                _ => Some((requests.statuses, requests.count)),
            },
            _ => None,
        }
    }

    /// Returns the flag of a call that tests and does not wait.
    pub fn flag(&self) -> Option<Integers> {
        match self {
            CallArgs::Iprobe(.., flag) | CallArgs::Improbe(_, _, _, flag, ..) => Some(*flag),
            CallArgs::Completes(_, flag) => *flag,
            _ => None,
        }
    }
}
