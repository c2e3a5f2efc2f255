//! Recording of a call: its arguments before it, its results after it.
#![allow(unsafe_code)]

use super::comms::Communicator;
use super::said::{Kind, Round, Said};
use super::tape::Arrived;
use super::{Watch, depth, get, now, thread};
use coll_hwbarr_foreign::library::{Family, Handle};
use mpi_core::coll::CallSignature;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Calls `next`, and records the call unless it is nested in another one; `next` receives the pointer to the statuses.
///
/// # Safety
/// `statuses` is the program's argument; the pointers in `said` are the program's arguments.
pub unsafe fn around(
    call: u16,
    statuses: *mut c_void,
    said: impl FnOnce(&Watch) -> Said,
    next: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    let Some(watch) = get() else {
        return next(statuses);
    };
    let Some(_inside) = depth::enter() else {
        return next(statuses);
    };
    let said = said(watch);
    let began = now();
    let before = Before::of(watch, &said);
    watch.shows(call, &said, &before.handles, began);
    if let Said::Round(round, request) = &said {
        watch.begins(round, request.is_none(), began);
    }
    if let Said::Completes(requests, None) = &said {
        watch.sees_each(requests, &before.handles);
    }
    let mut spare = Spare::of(watch, &said);
    let statuses = spare.as_mut().map_or(statuses, Spare::place);
    let code = next(statuses);
    let found = said.flag().is_none_or(|flag| flag.is_set());
    if code == 0 && found {
        watch.has_come(&said, &before, statuses, began);
    }
    if let Some(mut tape) = watch.tape() {
        match found {
            true => tape.call(call, thread(), began, now()),
            false => tape.poll(call, thread(), began, now()),
        }
    }
    watch.hides(call, &said, &before.handles, found);
    code
}

/// The program's memory before the call.
pub struct Before {
    /// The requests that the call may complete or start, the message that it receives, or the communicator that it frees.
    pub handles: Vec<Handle>,
    /// The numbers of the requests among them.
    pub numbers: Vec<u64>,
    /// The message that the call receives, as found by the probe.
    pub matched: Option<(Arc<Communicator>, Arrived)>,
}

impl Before {
    fn of(watch: &Watch, said: &Said) -> Before {
        let handles = match said {
            Said::Completes(requests, _) => (0..requests.count)
                .map(|number| requests.place.read(watch, Kind::Request, number))
                .collect(),
            Said::Starts(count, place) => (0..usize::try_from(*count).unwrap_or(0))
                .map(|number| place.read(watch, Kind::Request, number))
                .collect(),
            Said::Forgets(place) => vec![place.read(watch, Kind::Request, 0)],
            Said::Mrecv(place) | Said::Imrecv(place, _) => {
                vec![place.read(watch, Kind::Message, 0)]
            }
            Said::Drops(place) => vec![place.read(watch, Kind::Comm, 0)],
            _ => Vec::new(),
        };
        let (mut numbers, mut matched) = (Vec::new(), None);
        // A freed handle may be reused by another thread before the call has returned to this thread.
        match said {
            Said::Drops(_) => handles.iter().for_each(|comm| watch.comms().forgets(*comm)),
            Said::Mrecv(_) | Said::Imrecv(..) => {
                let message = handles.first().copied().unwrap_or(0);
                matched = watch.pendings().take_matched(message);
            }
            _ => {
                let pendings = watch.pendings();
                numbers.extend(handles.iter().map(|request| pendings.number(*request)));
            }
        }
        Before {
            handles,
            numbers,
            matched,
        }
    }
}

/// Statuses for the trace if the program passes none.
struct Spare(Vec<u64>);

impl Spare {
    fn of(watch: &Watch, said: &Said) -> Option<Spare> {
        watch.tape.as_ref()?;
        let (statuses, count) = said.statuses()?;
        let bytes = watch.words.status_bytes * count;
        let wanted = statuses.is_ignored(watch) && count > 0;
        wanted.then(|| Spare(vec![0; bytes.div_ceil(size_of::<u64>())]))
    }

    fn place(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

impl Watch {
    /// Records the start of a collective operation.
    fn begins(&self, round: &Round, waits: bool, began: u64) {
        let Some(comm) = self.communicator(round.comm) else {
            return;
        };
        let (number, said) = (comm.next_round(), self.signature(round));
        self.shows_round(&comm, number, said.words(), waits);
        if let Some(mut tape) = self.tape() {
            tape.rounds(&comm, number, &said, began);
        }
    }

    /// Returns the arguments on which all members must agree, in the values of the report.
    fn signature(&self, round: &Round) -> CallSignature {
        let one_more = |number: u64| number + 1;
        let root = round.root.and_then(|root| u64::try_from(root).ok());
        let bytes = round
            .of
            .map(|(count, datatype)| self.bytes(count, datatype));
        CallSignature::from_words(&[
            round.call as u64,
            root.map_or(0, one_more),
            round.op.map_or(0, |op| self.operator(op)),
            bytes.map_or(0, one_more),
        ])
    }

    /// Returns the standard's value of a predefined operator; 0 for any other.
    fn operator(&self, op: Handle) -> u64 {
        let all = crate::names::OPERATORS.iter();
        let is_it = |(standard, mpich, symbol): &&(u64, usize, &std::ffi::CStr)| match self
            .library
            .family
        {
            Family::Standard => *standard == op as u64,
            Family::Mpich => *mpich == op,
            Family::OpenMpi => self.library.object(symbol).is_ok_and(|object| object == op),
        };
        all.clone()
            .find(is_it)
            .map_or(0, |(standard, ..)| *standard)
    }

    /// Returns the size of `count` elements of a datatype, in bytes.
    pub(super) fn bytes(&self, count: i64, datatype: Handle) -> u64 {
        let mut size: c_int = 0;
        // SAFETY: a datatype that the program has passed, and `size` is a live local.
        let code = unsafe { (self.functions.type_size)(datatype, &raw mut size) };
        match code {
            0 => u64::try_from(count.saturating_mul(size.into())).unwrap_or(0),
            _ => 0,
        }
    }
}
