//! The arguments of an MPI call that the report and the trace need.
//!
//! Pointers point into the program's memory. They are read while their contents are valid:
//! before or after the call, as the argument requires.
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

/// The arguments of a message; peer, tag and handles have the library's values.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub count: i64,
    pub datatype: Handle,
    pub peer: c_int,
    pub tag: c_int,
    pub comm: Handle,
}

/// The arguments of a collective operation.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub call: CallId,
    pub comm: Handle,
    pub root: Option<i64>,
    pub op: Option<Handle>,
    /// Element count and datatype that must be the same at all members.
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

// SAFETY: only two threads dereference the address: the thread that makes the call,
// and the thread that completes the request.
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

    /// Returns the handle at index `number` of the program's array, as a C handle.
    pub fn read(&self, watch: &Watch, kind: HandleKind, number: usize) -> Handle {
        if self.at.is_null() {
            return 0;
        }
        if self.is_fortran {
            // SAFETY: by the MPI standard the program passes an array of Fortran handles;
            // `number` is below the array's count argument.
            let integer = unsafe { self.at.cast::<c_int>().add(number).read() };
            return match kind {
                HandleKind::Comm => watch.fortran.comm(integer),
                HandleKind::Request => watch.fortran.request(integer),
                HandleKind::Message => watch.fortran.message(integer),
            };
        }
        match watch.constants.handle_bytes {
            // SAFETY: by the MPI standard the program passes an array of handles;
            // `number` is below the array's count argument.
            4 => unsafe { self.at.cast::<u32>().add(number).read() as Handle },
            // SAFETY: by the MPI standard the program passes an array of handles;
            // `number` is below the array's count argument.
            _ => unsafe { self.at.cast::<Handle>().add(number).read() },
        }
    }
}

/// The program's pointer to statuses, or the constant `MPI_STATUS(ES)_IGNORE`.
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

    /// Returns true if the program passed `MPI_STATUS(ES)_IGNORE`.
    pub fn is_ignored(&self, watch: &Watch) -> bool {
        match self.is_fortran {
            true => watch.fortran.is_ignored(self.at.addr()),
            false => self.at.addr() == watch.constants.statuses_ignore,
        }
    }
}

/// A pointer to output integers of a call.
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
        // SAFETY: the library has written at least `number + 1` integers to this address.
        unsafe { self.at.add(number).read() }
    }

    /// Returns true if a flag is nonzero; Fortran compilers differ in the value of `.true.`.
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

/// The requests that a call completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSet {
    /// All requests of the array, or the single request.
    All,
    Any,
    Some,
}

/// The requests of a call such as `MPI_Waitall` or `MPI_Testany`.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    pub set: RequestSet,
    pub count: usize,
    pub handles: HandlePtr,
    pub statuses: Statuses,
    /// The index of the completed request, or the number of completed requests.
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

    /// Returns the completed requests after the call, as pairs (request index, status index).
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

/// An MPI call with its recorded arguments.
#[derive(Clone, Copy, Debug)]
pub enum CallArgs {
    /// A call whose arguments are not recorded.
    Plain,
    Send(Message),
    Recv(Message, Statuses),
    Sendrecv(Message, Message, Statuses),
    /// A nonblocking send or receive, with its request.
    Started(Direction, Message, HandlePtr),
    /// The creation of a persistent request.
    Prepared(Direction, Message, HandlePtr),
    Starts(i64, HandlePtr),
    Probe(i64, i64, Handle),
    Mprobe(i64, i64, Handle, HandlePtr, Statuses),
    Iprobe(i64, i64, Handle, Integers),
    Improbe(i64, i64, Handle, Integers, HandlePtr, Statuses),
    Mrecv(HandlePtr),
    Imrecv(HandlePtr, HandlePtr),
    /// A wait for requests, or a test of requests if the call has a flag.
    Completes(Requests, Option<Integers>),
    Forgets(HandlePtr),
    Round(Round, Option<HandlePtr>),
    /// The creation of a communicator.
    Makes(HandlePtr),
    /// A nonblocking duplication: the parent, the new communicator's handle, and the request.
    MakesLater(Handle, HandlePtr, HandlePtr),
    /// The release of a communicator.
    Drops(HandlePtr),
}

impl CallArgs {
    /// Returns the pointer to the call's statuses and their number, if the call has statuses.
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

    /// Returns the flag of a test or of a nonblocking probe.
    pub fn flag(&self) -> Option<Integers> {
        match self {
            CallArgs::Iprobe(.., flag) | CallArgs::Improbe(_, _, _, flag, ..) => Some(*flag),
            CallArgs::Completes(_, flag) => *flag,
            _ => None,
        }
    }
}
