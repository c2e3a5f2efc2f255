//! Recording of an MPI call: its arguments before the call, its results afterwards.
#![allow(unsafe_code)]

use super::call_args::{CallArgs, HandleKind, Round};
use super::comms::Communicator;
use super::event_log::Arrived;
use super::{Watch, depth, get, thread};
use coll_hwbarr_foreign::library::{Family, Handle};
use mpi_base::clock::now_ns;
use mpi_core::coll::{CallSignature, Form};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Calls `next` with a pointer to the statuses, and records the call unless the call is nested.
///
/// # Safety
/// `statuses` and the pointers in `args` are the program's arguments.
pub unsafe fn around(
    call: u16,
    statuses: *mut c_void,
    args: impl FnOnce(&Watch) -> CallArgs,
    next: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    let Some(watch) = get() else {
        return next(statuses);
    };
    let Some(_inside) = depth::enter() else {
        return next(statuses);
    };
    let args = args(watch);
    let began = now_ns();
    let before = Before::of(watch, &args);
    watch
        .state()
        .publish_wait(call, &args, &before.handles, began);
    if let CallArgs::Round(round, request) = &args {
        watch.begins(round, request.is_none(), began);
    }
    if let CallArgs::Completes(requests, None) = &args {
        watch.state().publish_states(requests, &before.handles);
    }
    let mut spare = Spare::of(watch, &args);
    let statuses = spare.as_mut().map_or(statuses, Spare::place);
    let code = next(statuses);
    let found = args.flag().is_none_or(|flag| flag.is_set());
    if code == 0 && found {
        watch.completed_call(&args, &before, statuses, began);
    }
    if let Some(mut event_log) = watch.event_log() {
        match found {
            true => event_log.call(call, thread(), began, now_ns()),
            false => event_log.poll(call, thread(), began, now_ns()),
        }
    }
    watch
        .state()
        .clear_wait(call, &args, &before.handles, found);
    code
}

/// Values read from the program's memory before the call.
pub struct Before {
    /// The requests that the call may complete or start, or the message that it receives,
    /// or the communicator that the call frees.
    pub handles: Vec<Handle>,
    /// The numbers of those handles that are requests.
    pub numbers: Vec<u64>,
    /// The message that an `MPI_Mrecv` receives, as found by the probe.
    pub matched: Option<(Arc<Communicator>, Arrived)>,
}

impl Before {
    fn of(watch: &Watch, args: &CallArgs) -> Before {
        let handles = match args {
            CallArgs::Completes(requests, _) => (0..requests.count)
                .map(|number| requests.handles.read(watch, HandleKind::Request, number))
                .collect(),
            CallArgs::Starts(count, handle) => (0..usize::try_from(*count).unwrap_or(0))
                .map(|number| handle.read(watch, HandleKind::Request, number))
                .collect(),
            CallArgs::Forgets(handle) => vec![handle.read(watch, HandleKind::Request, 0)],
            CallArgs::Mrecv(handle) | CallArgs::Imrecv(handle, _) => {
                vec![handle.read(watch, HandleKind::Message, 0)]
            }
            CallArgs::Drops(handle) => vec![handle.read(watch, HandleKind::Comm, 0)],
            _ => Vec::new(),
        };
        let (mut numbers, mut matched) = (Vec::new(), None);
        // Handles are looked up now: another thread may get equal handles before the call returns.
        match args {
            CallArgs::Drops(_) => handles.iter().for_each(|comm| watch.comms().forgets(*comm)),
            CallArgs::Mrecv(_) | CallArgs::Imrecv(..) => {
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

/// Statuses for the trace if the program ignores the statuses.
struct Spare(Vec<u64>);

impl Spare {
    fn of(watch: &Watch, args: &CallArgs) -> Option<Spare> {
        watch.event_log.as_ref()?;
        let (statuses, count) = args.statuses()?;
        let bytes = watch.constants.status_bytes * count;
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
        let form = match waits {
            true => Form::Blocking,
            false => Form::Nonblocking,
        };
        let (number, args) = (comm.next_round(), self.signature(round).in_form(form));
        self.state()
            .publish_round(&comm, number, args.words(), waits);
        if let Some(mut event_log) = self.event_log() {
            event_log.rounds(&comm, number, &args, began);
        }
    }

    /// Returns the arguments that must be equal at all members, in the report's encoding.
    fn signature(&self, round: &Round) -> CallSignature {
        let one_more = |number: u64| number + 1;
        let root = round.root.and_then(|root| u64::try_from(root).ok());
        let bytes = round
            .elements
            .map(|(count, datatype)| self.bytes(count, datatype));
        CallSignature::from_words(&[
            round.call as u64,
            root.map_or(0, one_more),
            round.op.map_or(0, |op| self.operator(op)),
            bytes.map_or(0, one_more),
        ])
    }

    /// Returns the standard ABI's value of a predefined operator; 0 for any other operator.
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
        // SAFETY: the program must pass a valid `datatype`; `size` is a live local.
        let code = unsafe { (self.functions.type_size)(datatype, &raw mut size) };
        match code {
            0 => u64::try_from(count.saturating_mul(size.into())).unwrap_or(0),
            _ => 0,
        }
    }
}
