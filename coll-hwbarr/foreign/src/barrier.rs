//! Hardware barriers of a process that uses another MPI library:
//! the first barrier sets up the component, all barriers use it, and `MPI_Finalize` closes it.
//!
//! One lock protects all state, because several communicators share the wires:
//! `MPI_COMM_WORLD` and those with the same processes in the same order.
//! If every process calls MPI from one thread, all processes are in the same barrier at a time.
//! Otherwise their barriers would deadlock even without the hardware.
//! If several threads may call MPI concurrently, the component serves only `MPI_COMM_WORLD`,
//! on which the MPI standard allows only one barrier at a time.
#![allow(unsafe_code)]

use crate::foreign_comm::{self, ForeignComm};
use crate::library::{Deleted, Handle, Library, address, done};
use crate::services::HOST;
use mpi_core::plugin::abi::{self, DONE, FAILED, ModuleTable, NEXT, Param, Why};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, slice_from_raw_parts, without_provenance_mut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// The result of a barrier: performed by the hardware, or not performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The hardware has performed the barrier; it is complete.
    Here,
    /// The barrier was not performed: every member must call the library's own barrier.
    Software,
}

enum State {
    /// No barrier has been called in this process yet.
    Fresh,
    /// The members have agreed on the component (`module` is `Some`)
    /// or on software barriers (`None`).
    Met {
        foreign_comm: Box<ForeignComm>,
        module: Option<Module>,
    },
    /// The exchange of setup messages failed; all barriers use software.
    Failed,
}

struct Module {
    table: ModuleTable,
    this: *mut c_void,
}

/// The process-wide state, protected by the lock `WHOLE`.
struct Whole {
    state: State,
    /// Number of calls of [`attend`] by the progress engine of the MPI library.
    asked: u32,
}

// SAFETY: the pointers refer to process memory that belongs to no thread.
// The component allows only one thread at a time, which the lock ensures.
unsafe impl Send for Whole {}

static WHOLE: Mutex<Whole> = Mutex::new(Whole {
    state: State::Fresh,
    asked: 0,
});

/// Number of calls of [`attend`] for each poll of the component;
/// the progress engine calls very often.
const SELDOM: u32 = 64;

fn whole() -> MutexGuard<'static, Whole> {
    WHOLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if the user has configured a port for the hardware; needs no communication.
pub fn is_wanted() -> bool {
    foreign_comm::set("port").is_some_and(|port| !port.is_empty() && port != "none")
}

/// Returns the component's priority: the user's setting or the default.
pub fn priority() -> i32 {
    // SAFETY: `TABLE` points to the component's static table.
    let default = unsafe { (*coll_hwbarr::TABLE.as_ptr()).priority };
    let set = foreign_comm::set("priority").and_then(|priority| priority.to_str()?.parse().ok());
    set.unwrap_or(default)
}

/// Performs a barrier of all processes of `MPI_COMM_WORLD`; every process must call this.
pub fn pass(library: &'static Library) -> Result<Passed, String> {
    let mut whole = whole();
    if matches!(whole.state, State::Fresh) {
        whole.state = State::Failed;
        let (foreign_comm, module) = set_up(library)?;
        if module.is_some() {
            watch_finalize(library)?;
            if let Some(engine) = &library.engine {
                // SAFETY: `attend` has the registered signature and stays mapped, because this file is never unloaded.
                unsafe { (engine.register)(attend) };
            }
        }
        whole.state = State::Met {
            foreign_comm,
            module,
        };
    }
    let State::Met { module, .. } = &whole.state else {
        return Ok(Passed::Software);
    };
    let Some(module) = module else {
        return Ok(Passed::Software);
    };
    module.barrier()
}

/// Performs the library's own barrier on the duplicate of `MPI_COMM_WORLD`.
/// Returns `None` if the duplicate does not exist; the result is the same at every member.
pub fn software() -> Option<Result<(), String>> {
    match &whole().state {
        State::Met { foreign_comm, .. } => Some(foreign_comm.fence()),
        State::Fresh | State::Failed => None,
    }
}

/// Returns true if a communicator has the same processes as `MPI_COMM_WORLD` in the same order,
/// so that its barriers can use the same wires. The result is the same at every member.
///
/// The result is computed one time per communicator and cached as its attribute.
pub fn is_like_world(library: &'static Library, comm: Handle) -> bool {
    static KEYVAL: OnceLock<Option<c_int>> = OnceLock::new();
    if comm == library.constants.comm_world {
        return true;
    }
    // Other communicators exist only after MPI has started, so the keyval can be created.
    let Some(keyval) = *KEYVAL.get_or_init(|| keyval(library, deleted).ok()) else {
        return false;
    };
    let functions = &library.functions;
    let (mut known, mut found) = (address(), 0);
    // SAFETY: both out pointers are live locals of the types that `MPI_Comm_get_attr` writes.
    let code =
        unsafe { (functions.comm_get_attr)(comm, keyval, (&raw mut known).cast(), &raw mut found) };
    if code == 0 && found != 0 {
        return !known.is_null();
    }
    let mut alike: c_int = 0;
    // SAFETY: the out pointer is a live local of the type that `MPI_Comm_compare` writes.
    let code =
        unsafe { (functions.comm_compare)(library.constants.comm_world, comm, &raw mut alike) };
    let alike = code == 0 && alike == library.constants.congruent && !is_threaded(library);
    // If the attribute cannot be set, the next call computes the result again.
    // SAFETY: MPI stores the value and never dereferences it; it encodes a flag.
    unsafe { (functions.comm_set_attr)(comm, keyval, without_provenance_mut(alike.into())) };
    alike
}

/// Duplicates `MPI_COMM_WORLD`, and agrees with the other members to use the component or software.
fn set_up(library: &'static Library) -> Result<(Box<ForeignComm>, Option<Module>), String> {
    // SAFETY: `TABLE` points to the component's static table.
    let component = unsafe { abi::read(coll_hwbarr::TABLE.as_ptr()) };
    // SAFETY: the table points to `param_count` static parameters, by the plugin ABI.
    let params: &[Param] =
        unsafe { &*slice_from_raw_parts(component.params, component.param_count) };
    let foreign_comm = Box::new(ForeignComm::new(library, params)?);
    let asked = Module::ask(&component, &foreign_comm);
    if !agree(&foreign_comm, "refuses", asked.as_ref().err())? {
        if let Ok(module) = asked {
            module.free();
        }
        return Ok((foreign_comm, None));
    }
    let module = asked?;
    let enabled = module.enable();
    if !agree(&foreign_comm, "is not enabled", enabled.as_ref().err())? {
        module.disable();
        module.free();
        foreign_comm.give_back();
        return Ok((foreign_comm, None));
    }
    Ok((foreign_comm, Some(module)))
}

/// Returns true if no member reports a reason against `what`;
/// otherwise the first member that reports one warns the user.
///
/// If the user requires the hardware, a reason becomes an error at every member.
fn agree(foreign_comm: &ForeignComm, what: &str, reason: Option<&String>) -> Result<bool, String> {
    let all = foreign_comm.gather(reason.is_some().into())?;
    let first = all.iter().position(|against| *against != 0);
    if let Some(reason) = reason
        && first == Some(foreign_comm.rank() as usize)
    {
        printable::eprintln!(
            "portcullis: hwbarr {what} at rank {}: {reason}{}",
            foreign_comm.rank(),
            match foreign_comm::is_set("required") {
                true => "",
                false => "; barriers stay in software",
            }
        );
    }
    match first {
        Some(first) if foreign_comm::is_set("required") => Err(format!(
            "hwbarr {what} at rank {first}, and coll_hwbarr_required is true"
        )),
        first => Ok(first.is_none()),
    }
}

impl Module {
    fn ask(component: &abi::ComponentTable, foreign_comm: &ForeignComm) -> Result<Module, String> {
        let query = component.query.ok_or("the component cannot be asked")?;
        let (mut this, mut why) = (null_mut(), Why::new());
        let comm = std::ptr::from_ref(foreign_comm).cast_mut().cast();
        // SAFETY: `HOST` is static, the communicator outlives the module, and `this` and `why` are live locals.
        let table = unsafe { query(&raw const HOST, comm, &raw mut this, &raw mut why) };
        if table.is_null() {
            return Err(why.sentence());
        }
        // SAFETY: `query` returned a table that begins with its size, by the plugin ABI.
        let table = unsafe { abi::read(table) };
        Ok(Module { table, this })
    }

    fn enable(&self) -> Result<(), String> {
        let Some(enable) = self.table.enable else {
            return Ok(());
        };
        let mut why = Why::new();
        // SAFETY: `this` is the module that `query` returned; only `free`, which consumes `self`, frees it.
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
        // SAFETY: `this` is alive until `free` consumes `self`; the component does not read the null call.
        match unsafe { barrier(self.this, null_mut(), &raw mut why) } {
            DONE => Ok(Passed::Here),
            NEXT => Ok(Passed::Software),
            _ => Err(why.sentence()),
        }
    }

    fn attend(&self) {
        if let Some(attend) = self.table.attend {
            // SAFETY: `this` is alive until `free` consumes `self`.
            unsafe { attend(self.this) };
        }
    }

    fn disable(&self) {
        if let Some(disable) = self.table.disable {
            // SAFETY: `this` is alive until `free` consumes `self`.
            unsafe { disable(self.this) };
        }
    }

    fn free(self) {
        if let Some(free) = self.table.free {
            // SAFETY: `self` is consumed, so this is the last call with the module.
            unsafe { free(self.this) };
        }
    }
}

/// Sets an attribute of `MPI_COMM_SELF`, whose delete callback runs at the start of `MPI_Finalize`.
fn watch_finalize(library: &Library) -> Result<(), String> {
    let ending = keyval(library, end)?;
    // SAFETY: the keyval was just created, and the value is never dereferenced.
    let code = unsafe {
        (library.functions.comm_set_attr)(library.constants.comm_self, ending, null_mut())
    };
    done(code, "MPI_Comm_set_attr")
}

/// Creates a keyval for attributes that duplicates do not inherit.
fn keyval(library: &Library, deleted: Deleted) -> Result<c_int, String> {
    let mut keyval: c_int = 0;
    // SAFETY: the callbacks have the signatures of the standard and stay mapped; the out pointer is a live local.
    let code = unsafe {
        (library.functions.comm_create_keyval)(not_copied, deleted, &raw mut keyval, null_mut())
    };
    done(code, "MPI_Comm_create_keyval").map(|()| keyval)
}

fn is_threaded(library: &Library) -> bool {
    let mut level: c_int = 0;
    // SAFETY: the out pointer is a live local of the type that `MPI_Query_thread` writes.
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
    // SAFETY: MPI passes a valid pointer to the copy callback's flag.
    unsafe { flag.write(0) };
    0
}

unsafe extern "C" fn deleted(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// The attribute's delete callback, called at the start of `MPI_Finalize`:
/// the wire returns to idle, the component writes its files, and later barriers use software.
unsafe extern "C" fn end(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    let Ok(library) = crate::library::library() else {
        return 0;
    };
    let mut whole = whole();
    let State::Met {
        foreign_comm,
        module,
    } = &mut whole.state
    else {
        return 0;
    };
    if let Some(module) = module.take() {
        if let Some(engine) = &library.engine {
            // SAFETY: `attend` was registered with this engine.
            unsafe { (engine.unregister)(attend) };
        }
        module.disable();
        module.free();
        foreign_comm.give_back();
    }
    0
}

/// The callback of Open MPI's progress engine, which lets the component
/// answer the setup and agreement messages of other members.
unsafe extern "C" fn attend() -> c_int {
    // If the lock is taken, a barrier is in progress, during which the component polls by itself.
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
