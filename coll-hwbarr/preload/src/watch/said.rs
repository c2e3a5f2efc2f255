//! What a call says of itself: its arguments, as far as they matter for the report and the trace.
//!
//! Places are the program's memory; they are read when they mean something, before the call or behind it.
#![allow(unsafe_code)]

use super::Watch;
use coll_hwbarr_foreign::library::Handle;
use mpi_core::coll::CallId;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Send,
    Recv,
}

/// A message in the words of the library.
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
    /// What all members give alike: a count of elements, and their datatype.
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

/// Where the program has handles of requests, messages or communicators.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: *mut c_void,
    is_fortran: bool,
}

// SAFETY: an address, which is used by the thread that makes the call or completes the request.
unsafe impl Send for Place {}

/// What a handle at a [`Place`] is of.
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

    /// The handle of C in the place with this number.
    pub fn read(&self, watch: &Watch, kind: Kind, number: usize) -> Handle {
        if self.at.is_null() {
            return 0;
        }
        if self.is_fortran {
            // SAFETY: the program has an array of integers there, as long as its count argument says.
            let integer = unsafe { self.at.cast::<c_int>().add(number).read() };
            return match kind {
                Kind::Comm => watch.fortran.comm(integer),
                Kind::Request => watch.fortran.request(integer),
                Kind::Message => watch.fortran.message(integer),
            };
        }
        match watch.words.handle_bytes {
            // SAFETY: the program has an array of handles there, as long as its count argument says.
            4 => unsafe { self.at.cast::<u32>().add(number).read() as Handle },
            // SAFETY: as above.
            _ => unsafe { self.at.cast::<Handle>().add(number).read() },
        }
    }
}

/// Where the library writes statuses, or a word that says that it writes none.
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

    /// Whether the program does not want any.
    pub fn is_ignored(&self, watch: &Watch) -> bool {
        match self.is_fortran {
            true => watch.fortran.is_ignored(self.at.addr()),
            false => self.at.addr() == watch.words.statuses_ignore,
        }
    }
}

/// Integers that a function writes.
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
        // SAFETY: the library has written as many there.
        unsafe { self.at.add(number).read() }
    }

    /// Whether a flag is set; Fortran compilers have several words for that.
    pub fn is_set(&self) -> bool {
        self.read(0) != 0
    }

    /// An index counted from 0, which Fortran counts from 1; nothing if it is none.
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
pub enum Which {
    /// All of them, or the only one.
    All,
    Any,
    Some,
}

/// The requests of a call that completes some of them.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    pub which: Which,
    pub count: usize,
    pub place: Place,
    pub statuses: Statuses,
    /// The index, or how many.
    pub out: Integers,
    pub indices: Integers,
}

impl Requests {
    pub fn one(place: Place, statuses: Statuses) -> Requests {
        Requests::all(1, place, statuses)
    }

    pub fn all(count: i64, place: Place, statuses: Statuses) -> Requests {
        Requests {
            which: Which::All,
            count: usize::try_from(count).unwrap_or(0),
            place,
            statuses,
            out: Integers::none(),
            indices: Integers::none(),
        }
    }

    pub fn any(count: i64, place: Place, index: Integers, statuses: Statuses) -> Requests {
        Requests {
            which: Which::Any,
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
            which: Which::Some,
            out,
            indices,
            ..Requests::all(count, place, statuses)
        }
    }

    /// Behind the call: which are complete, as (number of the request, number of its status).
    pub fn completed(&self) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = match self.which {
            Which::All => (0..self.count).map(|number| (number, number)).collect(),
            Which::Any => self
                .out
                .index(0)
                .map(|number| (number, 0))
                .into_iter()
                .collect(),
            Which::Some => {
                let out = usize::try_from(self.out.read(0)).unwrap_or(0);
                let of = |number| Some((self.indices.index(number)?, number));
                (0..out.min(self.count)).filter_map(of).collect()
            }
        };
        found.retain(|(number, _)| *number < self.count);
        found
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub enum Said {
    /// There is nothing to say but that it is called.
    Plain,
    Send(Message),
    Recv(Message, Statuses),
    Sendrecv(Message, Message, Statuses),
    /// A message with a request.
    Started(Way, Message, Place),
    /// A request that can be started again and again.
    Prepared(Way, Message, Place),
    Starts(i64, Place),
    Probe(i64, i64, Handle),
    Mprobe(i64, i64, Handle, Place, Statuses),
    Iprobe(i64, i64, Handle, Integers),
    Improbe(i64, i64, Handle, Integers, Place, Statuses),
    Mrecv(Place),
    Imrecv(Place, Place),
    /// Waits for requests, or with a flag looks at them.
    Completes(Requests, Option<Integers>),
    Forgets(Place),
    Round(Round, Option<Place>),
    /// A new communicator.
    Makes(Place),
    /// A new one when a request is complete; of which, where, and the request.
    MakesLater(Handle, Place, Place),
    /// A communicator goes.
    Drops(Place),
}

impl Said {
    /// Where the call writes what it has received, if it tells that.
    pub fn statuses(&self) -> Option<(Statuses, usize)> {
        match self {
            Said::Recv(_, statuses)
            | Said::Sendrecv(_, _, statuses)
            | Said::Mprobe(.., statuses)
            | Said::Improbe(.., statuses) => Some((*statuses, 1)),
            Said::Completes(requests, _) => match requests.which {
                Which::Any => Some((requests.statuses, 1)),
                _ => Some((requests.statuses, requests.count)),
            },
            _ => None,
        }
    }

    /// The flag of a call that looks and does not wait.
    pub fn flag(&self) -> Option<Integers> {
        match self {
            Said::Iprobe(.., flag) | Said::Improbe(_, _, _, flag, ..) => Some(*flag),
            Said::Completes(_, flag) => *flag,
            _ => None,
        }
    }
}
