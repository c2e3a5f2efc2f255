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
    pub of: Option<(i64, Handle)>,
}

impl Round {
    pub fn new(call: CallId, comm: Handle) -> Round {
        Round {
            call,
            comm,
            root: None,
            op: None,
            of: None,
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
            of: Some((count, datatype)),
            ..self
        }
    }
}

/// A pointer to the program's handles of requests, messages or communicators.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: *mut c_void,
    is_fortran: bool,
}

// SAFETY: only an address; it is dereferenced by the thread that makes the call or completes the request.
unsafe impl Send for Place {}

/// The kind of handle at a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Comm,
    Request,
    Message,
}

impl Place {
    pub fn of_c(at: *mut c_void) -> Place {
        Place {
            at,
            is_fortran: false,
        }
    }

    pub fn of_fortran(at: *mut c_void) -> Place {
        Place {
            at,
            is_fortran: true,
        }
    }

    /// Returns handle `number` of the array, converted to C.
    pub fn read(&self, watch: &Watch, kind: Kind, number: usize) -> Handle {
        if self.at.is_null() {
            return 0;
        }
        if self.is_fortran {
            // SAFETY: by the MPI standard the program passes an array of Fortran handles; `number` is below its count argument.
            let integer = unsafe { self.at.cast::<c_int>().add(number).read() };
            return match kind {
                Kind::Comm => watch.fortran.comm(integer),
                Kind::Request => watch.fortran.request(integer),
                Kind::Message => watch.fortran.message(integer),
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
        if index == super::words::UNDEFINED {
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
    pub which: RequestSet,
    pub count: usize,
    pub place: Place,
    pub statuses: Statuses,
    /// The index, or the number of completed requests.
    pub out: Integers,
    pub indices: Integers,
}

impl Requests {
    pub fn one(place: Place, statuses: Statuses) -> Requests {
        Requests::all(1, place, statuses)
    }

    pub fn all(count: i64, place: Place, statuses: Statuses) -> Requests {
        Requests {
            which: RequestSet::All,
            count: usize::try_from(count).unwrap_or(0),
            place,
            statuses,
            out: Integers::none(),
            indices: Integers::none(),
        }
    }

    pub fn any(count: i64, place: Place, index: Integers, statuses: Statuses) -> Requests {
        Requests {
            which: RequestSet::Any,
            out: index,
            ..Requests::all(count, place, statuses)
        }
    }

    pub fn some(
        count: i64,
        place: Place,
        out: Integers,
        indices: Integers,
        statuses: Statuses,
    ) -> Requests {
        Requests {
            which: RequestSet::Some,
            out,
            indices,
            ..Requests::all(count, place, statuses)
        }
    }

    /// After the call: returns the completed requests as (number of the request, number of its status).
    pub fn completed(&self) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = match self.which {
            RequestSet::All => (0..self.count).map(|number| (number, number)).collect(),
            RequestSet::Any => self
                .out
                .index(0)
                .map(|number| (number, 0))
                .into_iter()
                .collect(),
            RequestSet::Some => {
                let out = usize::try_from(self.out.read(0)).unwrap_or(0);
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
    Started(Direction, Message, Place),
    /// A persistent request.
    Prepared(Direction, Message, Place),
    Starts(i64, Place),
    Probe(i64, i64, Handle),
    Mprobe(i64, i64, Handle, Place, Statuses),
    Iprobe(i64, i64, Handle, Integers),
    Improbe(i64, i64, Handle, Integers, Place, Statuses),
    Mrecv(Place),
    Imrecv(Place, Place),
    /// Waits for requests, or tests them if it has a flag.
    Completes(Requests, Option<Integers>),
    Forgets(Place),
    Round(Round, Option<Place>),
    /// A new communicator.
    Makes(Place),
    /// A communicator that exists once a request is complete: its parent, its place, and the request.
    MakesLater(Handle, Place, Place),
    /// Frees a communicator.
    Drops(Place),
}

impl CallArgs {
    /// Returns the pointer to the statuses, if the call has any, and their number.
    pub fn statuses(&self) -> Option<(Statuses, usize)> {
        match self {
            CallArgs::Recv(_, statuses)
            | CallArgs::Sendrecv(_, _, statuses)
            | CallArgs::Mprobe(.., statuses)
            | CallArgs::Improbe(.., statuses) => Some((*statuses, 1)),
            CallArgs::Completes(requests, _) => match requests.which {
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
