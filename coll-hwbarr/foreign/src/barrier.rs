//! The life of the component in this process: set up by the first barrier, used by all, ended by `MPI_Finalize`.
//!
//! All of it is in one lock. Several communicators of the world's processes share the wires: a process that calls MPI from one
//! thread is in one barrier at a time, and all are in the same one, or their barriers would deadlock without hardware, too.
//! A program whose threads may call MPI together is served on the world alone, where the standard allows one barrier at a time.
#![allow(unsafe_code)]

use crate::library::{Deleted, Handle, Library, address, done};
use crate::seat::{self, Seat};
use crate::services::HOST;
use mpi_core::plugin::abi::{self, DONE, FAILED, ModuleTable, NEXT, Param, Why};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, slice_from_raw_parts, without_provenance_mut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// What has carried out a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The hardware: it is over.
    Here,
    /// Nothing yet: the library's own is to be called, by every member.
    Software,
}

enum State {
    /// No barrier has been called.
    Fresh,
    /// Members have met, and the component serves or has refused.
    Met {
        seat: Box<Seat>,
        module: Option<Module>,
    },
    /// They could not even meet.
    Failed,
}

struct Module {
    table: ModuleTable,
    this: *mut c_void,
}

/// All of it; the lock makes it one thread's at a time.
struct Whole {
    state: State,
    /// Times that the library's engine has asked.
    asked: u32,
}

// SAFETY: pointers to memory of this process, which no thread owns; the component asks for one thread at a time, and the lock gives that.
unsafe impl Send for Whole {}

static WHOLE: Mutex<Whole> = Mutex::new(Whole {
    state: State::Fresh,
    asked: 0,
});

/// The engine asks often, and the component need not look each time.
const SELDOM: u32 = 64;

fn whole() -> MutexGuard<'static, Whole> {
    WHOLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the user has asked for the hardware; local.
pub fn is_wanted() -> bool {
    seat::set("port").is_some_and(|port| !port.is_empty() && port != "none")
}

/// The component's priority, as the user wants it.
pub fn priority() -> i32 {
    // SAFETY: the component's table is constant.
    let default = unsafe { (*coll_hwbarr::TABLE.as_ptr()).priority };
    let set = seat::set("priority").and_then(|priority| priority.to_str()?.parse().ok());
    set.unwrap_or(default)
}

/// A barrier of the world's processes; every one of them calls.
pub fn pass(library: &'static Library) -> Result<Passed, String> {
    let mut whole = whole();
    if matches!(whole.state, State::Fresh) {
        whole.state = State::Failed;
        let (seat, module) = set_up(library)?;
        if module.is_some() {
            see_the_end(library)?;
            if let Some(engine) = &library.engine {
                // SAFETY: the function stays, for this file is never unloaded.
                unsafe { (engine.register)(attend) };
            }
        }
        whole.state = State::Met { seat, module };
    }
    let State::Met { module, .. } = &whole.state else {
        return Ok(Passed::Software);
    };
    let Some(module) = module else {
        return Ok(Passed::Software);
    };
    module.barrier()
}

/// The library's own barrier of a duplicate of the world, if members have met; then every one of them has it.
pub fn software() -> Option<Result<(), String>> {
    match &whole().state {
        State::Met { seat, .. } => Some(seat.fence()),
        State::Fresh | State::Failed => None,
    }
}

/// Whether a communicator has the world's processes in the world's order, so that its barriers can be the world's; every member finds the same.
///
/// Found once for each communicator, and kept as an attribute of it.
pub fn is_like_world(library: &'static Library, comm: Handle) -> bool {
    static KEYVAL: OnceLock<Option<c_int>> = OnceLock::new();
    if comm == library.constants.comm_world {
        return true;
    }
    // A keyval is made once MPI has started, and so it has where a communicator other than the world is.
    let Some(keyval) = *KEYVAL.get_or_init(|| keyval(library, deleted).ok()) else {
        return false;
    };
    let functions = &library.functions;
    let (mut known, mut found) = (address(), 0);
    // SAFETY: places for the answers.
    let code =
        unsafe { (functions.comm_get_attr)(comm, keyval, (&raw mut known).cast(), &raw mut found) };
    if code == 0 && found != 0 {
        return !known.is_null();
    }
    let mut alike: c_int = 0;
    // SAFETY: a place for the answer.
    let code =
        unsafe { (functions.comm_compare)(library.constants.comm_world, comm, &raw mut alike) };
    let alike = code == 0 && alike == library.constants.congruent && !is_threaded(library);
    // What cannot be kept is found again.
    // SAFETY: the value is no address of anything.
    unsafe { (functions.comm_set_attr)(comm, keyval, without_provenance_mut(alike.into())) };
    alike
}

/// Members meet, and agree on the component or on doing without.
fn set_up(library: &'static Library) -> Result<(Box<Seat>, Option<Module>), String> {
    // SAFETY: the component's table is constant.
    let component = unsafe { abi::read(coll_hwbarr::TABLE.as_ptr()) };
    // SAFETY: as many constant parameters as the table says.
    let params: &[Param] =
        unsafe { &*slice_from_raw_parts(component.params, component.param_count) };
    let seat = Box::new(Seat::new(library, params)?);
    let asked = Module::ask(&component, &seat);
    if !agree(&seat, "refuses", asked.as_ref().err())? {
        if let Ok(module) = asked {
            module.free();
        }
        return Ok((seat, None));
    }
    let module = asked?;
    let enabled = module.enable();
    if !agree(&seat, "is not enabled", enabled.as_ref().err())? {
        module.disable();
        module.free();
        seat.give_back();
        return Ok((seat, None));
    }
    Ok((seat, Some(module)))
}

/// Whether no member has a reason against it; the first that has one tells the user.
///
/// Where the user requires the hardware it is an error of the barrier, at every member.
fn agree(seat: &Seat, what: &str, reason: Option<&String>) -> Result<bool, String> {
    let all = seat.gather(reason.is_some().into())?;
    let first = all.iter().position(|against| *against != 0);
    if let Some(reason) = reason
        && first == Some(seat.rank() as usize)
    {
        printable::eprintln!(
            "portcullis: hwbarr {what} at rank {}: {reason}{}",
            seat.rank(),
            match seat::is_set("required") {
                true => "",
                false => "; barriers stay in software",
            }
        );
    }
    match first {
        Some(first) if seat::is_set("required") => Err(format!(
            "hwbarr {what} at rank {first}, and coll_hwbarr_required is true"
        )),
        first => Ok(first.is_none()),
    }
}

impl Module {
    fn ask(component: &abi::ComponentTable, seat: &Seat) -> Result<Module, String> {
        let query = component.query.ok_or("the component cannot be asked")?;
        let (mut this, mut why) = (null_mut(), Why::new());
        let comm = std::ptr::from_ref(seat).cast_mut().cast();
        // SAFETY: the table of services stays, the seat outlives the module, and there are places for the answers.
        let table = unsafe { query(&raw const HOST, comm, &raw mut this, &raw mut why) };
        if table.is_null() {
            return Err(why.sentence());
        }
        // SAFETY: a table that begins with its size.
        let table = unsafe { abi::read(table) };
        Ok(Module { table, this })
    }

    fn enable(&self) -> Result<(), String> {
        let Some(enable) = self.table.enable else {
            return Ok(());
        };
        let mut why = Why::new();
        // SAFETY: the module has not been freed.
        match unsafe { enable(self.this, &raw mut why) } {
            FAILED => Err(why.sentence()),
            _ => Ok(()),
        }
    }

    fn barrier(&self) -> Result<Passed, String> {
        let Some(barrier) = self.table.barrier else {
            return Ok(Passed::Software);
        };
        let mut why = Why::new();
        // SAFETY: as above; the component does not look at the call.
        match unsafe { barrier(self.this, null_mut(), &raw mut why) } {
            DONE => Ok(Passed::Here),
            NEXT => Ok(Passed::Software),
            _ => Err(why.sentence()),
        }
    }

    fn attend(&self) {
        if let Some(attend) = self.table.attend {
            // SAFETY: as above.
            unsafe { attend(self.this) };
        }
    }

    fn disable(&self) {
        if let Some(disable) = self.table.disable {
            // SAFETY: as above.
            unsafe { disable(self.this) };
        }
    }

    fn free(self) {
        if let Some(free) = self.table.free {
            // SAFETY: the last call of this module.
            unsafe { free(self.this) };
        }
    }
}

/// An attribute of `MPI_COMM_SELF`, which goes when MPI is about to end.
fn see_the_end(library: &Library) -> Result<(), String> {
    let ending = keyval(library, end)?;
    // SAFETY: a keyval that was just made.
    let code = unsafe {
        (library.functions.comm_set_attr)(library.constants.comm_self, ending, null_mut())
    };
    done(code, "MPI_Comm_set_attr")
}

/// A kind of attribute that no duplicate inherits.
fn keyval(library: &Library, deleted: Deleted) -> Result<c_int, String> {
    let mut keyval: c_int = 0;
    // SAFETY: functions that stay, and a place for the number.
    let code = unsafe {
        (library.functions.comm_create_keyval)(not_copied, deleted, &raw mut keyval, null_mut())
    };
    done(code, "MPI_Comm_create_keyval").map(|()| keyval)
}

/// Whether several threads may call MPI at a time.
fn is_threaded(library: &Library) -> bool {
    let mut level: c_int = 0;
    // SAFETY: a place for the number.
    unsafe { (library.functions.query_thread)(&raw mut level) };
    level >= library.constants.thread_multiple
}

unsafe extern "C" fn not_copied(
    _: Handle,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library gives a place for it.
    unsafe { flag.write(0) };
    0
}

unsafe extern "C" fn deleted(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// MPI is about to end: the wire goes back to idle, files are written, and barriers that still come are software's.
unsafe extern "C" fn end(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    let Ok(library) = crate::library::library() else {
        return 0;
    };
    let mut whole = whole();
    let State::Met { seat, module } = &mut whole.state else {
        return 0;
    };
    if let Some(module) = module.take() {
        if let Some(engine) = &library.engine {
            // SAFETY: it was registered.
            unsafe { (engine.unregister)(attend) };
        }
        module.disable();
        module.free();
        seat.give_back();
    }
    0
}

/// Open MPI's engine asks from wherever this process waits: a member answers what others ask it.
unsafe extern "C" fn attend() -> c_int {
    // In a barrier the component looks by itself.
    let mut whole = match WHOLE.try_lock() {
        Ok(whole) => whole,
        Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return 0,
    };
    whole.asked = whole.asked.wrapping_add(1);
    if whole.asked.is_multiple_of(SELDOM)
        && let State::Met {
            module: Some(module),
            ..
        } = &whole.state
    {
        module.attend();
    }
    0
}
