//! Writing a plugin in safe Rust: the other side of the tables.
//!
//! A component implements [`Guest`] and its modules [`Module`]; [`BuiltIn::of`] makes the C table of it, once, at compile time.
//! The same table is built into the library and returned by the plugin file's one symbol:
//!
//! ```ignore
//! static TABLE: BuiltIn = BuiltIn::of::<Mine>();
//!
//! #[unsafe(no_mangle)]
//! pub extern "C" fn portcullis_component() -> *const abi::ComponentTable {
//!     TABLE.as_ptr()
//! }
//! ```
//!
//! A panic in a component ends here and becomes a failure with a sentence.
//! A [`Comm`] may be kept anywhere; once its module is gone its services fail.
#![allow(unsafe_code)]

use super::abi::{self, ComponentTable, DONE, FAILED, Host, ModuleTable, NEXT, PENDING, Why};
use super::host::{answer, panic_text};
use super::table::{Plugin, TableError};
use std::any::{Any, TypeId};
use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// A component.
pub trait Guest: 'static {
    const NAME: &'static CStr;
    const VERSION: &'static CStr;
    /// The default of its priority parameter.
    const PRIORITY: i32;
    const PARAMS: &'static [abi::Param] = &[];
    type Module: Module;

    /// Whether this process can serve the communicator; the error is the reason why not. No communication here.
    fn query(comm: Comm) -> Result<Self::Module, String>;
}

/// Who serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    Here,
    /// The next component down shall do it; every member says so for the same call.
    Next,
}

/// What a started barrier is asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    Ticket(u64),
    /// As [`Served::Next`].
    Next,
}

/// What a component does for one communicator.
///
/// Methods take `&self`, because a barrier that waits lets MPI progress, and progress tests barriers that were started before.
pub trait Module: 'static {
    /// Sets up what all members set up together; blocking services may be used.
    fn enable(&self) -> Result<(), String>;

    /// `MPI_Barrier`; blocking services may be used.
    fn barrier(&self) -> Result<Served, String>;

    /// The first half of `MPI_Ibarrier`.
    fn start(&self) -> Result<Started, String>;

    /// The second half, until it is ready.
    fn test(&self, ticket: u64) -> Result<Poll<Served>, String>;

    /// The communicator goes away: leave everything as it was. Members do not call it together.
    fn disable(&self);
}

/// A parameter of the component; `kind` as in `plugin.h`.
pub const fn param(
    name: &'static CStr,
    default: &'static CStr,
    kind: &'static CStr,
    help: &'static CStr,
) -> abi::Param {
    abi::Param {
        name: name.as_ptr(),
        default_value: default.as_ptr(),
        help: help.as_ptr(),
        kind: kind.as_ptr(),
    }
}

/// A component's table, made at compile time.
#[derive(Clone, Copy)]
pub struct BuiltIn(&'static ComponentTable);

impl BuiltIn {
    pub const fn of<G: Guest>() -> BuiltIn {
        BuiltIn(Tables::<G>::COMPONENT)
    }

    /// For the exported function.
    pub const fn as_ptr(&self) -> *const ComponentTable {
        self.0
    }

    pub(super) fn check(&self) -> Result<Plugin, TableError> {
        // SAFETY: the table was made by `of`, from constants and from functions of this module.
        unsafe { Plugin::check(self.0) }
    }
}

struct Tables<G>(PhantomData<G>);

impl<G: Guest> Tables<G> {
    const COMPONENT: &'static ComponentTable = &ComponentTable {
        size: size_of::<ComponentTable>(),
        abi_version: abi::ABI_VERSION,
        priority: G::PRIORITY,
        framework: c"coll".as_ptr(),
        name: G::NAME.as_ptr(),
        version: G::VERSION.as_ptr(),
        params: G::PARAMS.as_ptr(),
        param_count: G::PARAMS.len(),
        query: Some(query::<G>),
    };

    const MODULE: &'static ModuleTable = &ModuleTable {
        size: size_of::<ModuleTable>(),
        enable: Some(enable::<G::Module>),
        barrier: Some(barrier::<G::Module>),
        barrier_start: Some(barrier_start::<G::Module>),
        barrier_test: Some(barrier_test::<G::Module>),
        disable: Some(disable::<G::Module>),
        free: Some(free::<G::Module>),
    };
}

/// A module and the communicator whose services end with it.
struct Instance<M> {
    module: M,
    comm: Comm,
}

unsafe extern "C" fn query<G: Guest>(
    host: *const Host,
    comm: *mut abi::Comm,
    this: *mut *mut c_void,
    why: *mut Why,
) -> *const ModuleTable {
    let ask = || {
        // SAFETY: the host hands in its table, which begins with its size.
        let host = unsafe { abi::read(host) };
        if host.abi_version != abi::ABI_VERSION {
            return Err(format!(
                "it speaks version {} of the plugin ABI and the library version {}",
                abi::ABI_VERSION,
                host.abi_version
            ));
        }
        let comm = Comm(Rc::new(Link {
            host,
            comm,
            alive: Cell::new(true),
        }));
        let module = match catch_unwind(AssertUnwindSafe(|| G::query(comm.clone()))) {
            Ok(Ok(module)) => module,
            Ok(Err(reason)) => {
                comm.0.alive.set(false);
                return Err(reason);
            }
            Err(panic) => {
                comm.0.alive.set(false);
                return Err(panic_text(&*panic));
            }
        };
        let instance = Box::into_raw(Box::new(Instance { module, comm }));
        // SAFETY: the host gives a place for the module's pointer.
        unsafe { this.write(instance.cast()) };
        Ok(DONE)
    };
    // SAFETY: the host's `why` is writable.
    match unsafe { answer(why, ask) } {
        DONE => Tables::<G>::MODULE,
        _ => std::ptr::null(),
    }
}

/// The module behind the pointer that the host hands back.
///
/// # Safety
/// `this` came from `query` of the same component and has not been freed.
unsafe fn module<'a, M: Module>(this: *mut c_void) -> &'a M {
    // SAFETY: `query` made it of a box of this type.
    unsafe { &(*this.cast::<Instance<M>>()).module }
}

unsafe extern "C" fn enable<M: Module>(this: *mut c_void, why: *mut Why) -> c_int {
    // SAFETY: the host keeps the rule of `module`, and its `why` is writable.
    unsafe { answer(why, || module::<M>(this).enable().map(|()| DONE)) }
}

unsafe extern "C" fn barrier<M: Module>(
    this: *mut c_void,
    _: *mut abi::Call,
    why: *mut Why,
) -> c_int {
    // SAFETY: the host keeps the rule of `module`, and its `why` is writable.
    unsafe { answer(why, || module::<M>(this).barrier().map(code)) }
}

unsafe extern "C" fn barrier_start<M: Module>(
    this: *mut c_void,
    ticket: *mut u64,
    why: *mut Why,
) -> c_int {
    let start = || {
        // SAFETY: the host keeps the rule of `module`.
        Ok(match unsafe { module::<M>(this) }.start()? {
            Started::Next => NEXT,
            Started::Ticket(number) => {
                // SAFETY: the host gives a place for the ticket.
                unsafe { ticket.write(number) };
                PENDING
            }
        })
    };
    // SAFETY: the host's `why` is writable.
    unsafe { answer(why, start) }
}

unsafe extern "C" fn barrier_test<M: Module>(
    this: *mut c_void,
    ticket: u64,
    why: *mut Why,
) -> c_int {
    let test = || {
        // SAFETY: the host keeps the rule of `module`.
        Ok(match unsafe { module::<M>(this) }.test(ticket)? {
            Poll::Pending => PENDING,
            Poll::Ready(served) => code(served),
        })
    };
    // SAFETY: the host's `why` is writable.
    unsafe { answer(why, test) }
}

unsafe extern "C" fn disable<M: Module>(this: *mut c_void) {
    // SAFETY: the host keeps the rule of `module`.
    let module = unsafe { module::<M>(this) };
    // Nobody is left to tell.
    let _ = catch_unwind(AssertUnwindSafe(|| module.disable()));
}

unsafe extern "C" fn free<M: Module>(this: *mut c_void) {
    // SAFETY: `query` made it of a box of this type, and the host says that this is the last call.
    let Instance { module, comm } = *unsafe { Box::from_raw(this.cast::<Instance<M>>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(module)));
    comm.0.alive.set(false);
}

fn code(served: Served) -> c_int {
    match served {
        Served::Here => DONE,
        Served::Next => NEXT,
    }
}

/// A communicator, with the services of the library.
#[derive(Clone)]
pub struct Comm(Rc<Link>);

struct Link {
    host: Host,
    comm: *mut abi::Comm,
    /// Whether `comm` may still be handed to the host.
    alive: Cell<bool>,
}

/// A message under way.
#[derive(Debug, PartialEq, Eq)]
pub struct Message(u64);

/// Memory that members on one node share; it stays until the last of them has lost its module.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    pub at: NonNull<u8>,
    pub len: usize,
}

/// What the component's modules in this process share; see [`Comm::share`].
///
/// A module owns it and drops it before its communicator goes, as it does with all it has.
pub struct Common<T: 'static> {
    value: Rc<Tagged<T>>,
    place: *mut *mut c_void,
    /// Tells whether `place` is still there.
    comm: Comm,
}

/// A value with its type in front, because the place in the host has none.
#[repr(C)]
struct Tagged<T> {
    kind: TypeId,
    value: T,
}

impl<T> Deref for Common<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value.value
    }
}

impl<T> Drop for Common<T> {
    fn drop(&mut self) {
        if Rc::strong_count(&self.value) > 1 {
            return;
        }
        if self.comm.0.alive.get() {
            // SAFETY: the communicator is alive, and with it the host's place.
            unsafe { self.place.write(std::ptr::null_mut()) };
        } else {
            // The place may still point here, so the value has to stay.
            std::mem::forget(self.value.clone());
        }
    }
}

/// Calls a service and makes a `Result` of its answer.
macro_rules! ask {
    ($self:ident . $service:ident ( $($argument:expr),* )) => {{
        let (service, comm) = $self.service($self.0.host.$service, stringify!($service))?;
        let mut why = Why::new();
        // SAFETY: the communicator is alive, and the arguments are what the header asks for.
        match unsafe { service(comm, $($argument,)* &mut why) } {
            FAILED => Err(why.sentence()),
            code => Ok(code),
        }
    }};
}

/// Calls a service that cannot fail; without it, or without the communicator, the answer is `$nothing`.
macro_rules! tell {
    ($nothing:expr, $self:ident . $service:ident ( $($argument:expr),* )) => {
        match $self.service($self.0.host.$service, stringify!($service)) {
            // SAFETY: the communicator is alive, and the arguments are what the header asks for.
            Ok((service, comm)) => unsafe { service(comm, $($argument),*) },
            Err(_) => $nothing,
        }
    };
}

impl Comm {
    /// This process's rank.
    pub fn rank(&self) -> u32 {
        tell!(0, self.comm_rank())
    }

    /// How many members it has.
    pub fn size(&self) -> u32 {
        tell!(0, self.comm_size())
    }

    /// What the program called it when the component was asked; empty if it had no name.
    pub fn name(&self) -> String {
        self.text(tell!(std::ptr::null(), self.comm_name()))
            .unwrap_or_default()
    }

    /// Whether it is `MPI_COMM_WORLD`.
    pub fn is_world(&self) -> bool {
        tell!(0, self.comm_is_world()) != 0
    }

    /// Members that share this process's memory, ascending.
    pub fn node_ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.size() as usize];
        let count = tell!(
            0,
            self.comm_node_ranks(ranks.as_mut_ptr(), ranks.len() as u32)
        );
        ranks.truncate(count as usize);
        ranks
    }

    /// Sends a message to a member, who receives messages of one sender in their order; waits, while progress goes on.
    pub fn send(&self, dest: u32, data: &[u8]) -> Result<(), String> {
        ask!(self.send(dest, data.as_ptr().cast(), data.len())).map(|_| ())
    }

    /// Receives the next message of a member, which is as long as `data`; waits, while progress goes on.
    pub fn recv(&self, source: u32, data: &mut [u8]) -> Result<(), String> {
        ask!(self.recv(source, data.as_mut_ptr().cast(), data.len())).map(|_| ())
    }

    /// Returns after every member has called it.
    pub fn fence(&self) -> Result<(), String> {
        ask!(self.fence()).map(|_| ())
    }

    /// Starts a message to be tested; what is sent is copied at once.
    pub fn start_send(&self, dest: u32, data: &[u8]) -> Result<Message, String> {
        let mut number = 0;
        ask!(self.start_send(dest, data.as_ptr().cast(), data.len(), &raw mut number))
            .map(|_| Message(number))
    }

    /// Starts receiving a message of so many bytes.
    pub fn start_recv(&self, source: u32, bytes: usize) -> Result<Message, String> {
        let mut number = 0;
        ask!(self.start_recv(source, bytes, &raw mut number)).map(|_| Message(number))
    }

    /// Whether a message is through; true once, and then what was received is in `data`.
    pub fn test_message(&self, message: &Message, data: &mut [u8]) -> Result<bool, String> {
        ask!(self.test_message(message.0, data.as_mut_ptr().cast(), data.len()))
            .map(|code| code == DONE)
    }

    /// Lets MPI look once at what has arrived.
    pub fn progress(&self) -> bool {
        tell!(0, self.progress()) != 0
    }

    /// Waits until `ready`, or for so long; tells which.
    pub fn wait(
        &self,
        limit: Option<Duration>,
        ready: impl FnMut() -> bool,
    ) -> Result<bool, String> {
        struct Asked<F> {
            ready: F,
            panic: Option<Box<dyn Any + Send>>,
        }
        unsafe extern "C" fn ask<F: FnMut() -> bool>(argument: *mut c_void) -> c_int {
            // SAFETY: `wait` below hands in an `Asked` of this type, and the host asks from one thread, one question at a time.
            let asked = unsafe { &mut *argument.cast::<Asked<F>>() };
            match catch_unwind(AssertUnwindSafe(&mut asked.ready)) {
                Ok(ready) => ready.into(),
                Err(panic) => {
                    asked.panic = Some(panic);
                    1
                }
            }
        }
        fn asker<F: FnMut() -> bool>(_: &Asked<F>) -> abi::Ready {
            ask::<F>
        }
        let mut asked = Asked { ready, panic: None };
        let function = asker(&asked);
        let limit = limit.map_or(0, |limit| {
            u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).max(1)
        });
        let came = ask!(self.wait(Some(function), (&raw mut asked).cast(), limit));
        if let Some(panic) = asked.panic {
            resume_unwind(panic);
        }
        Ok(came? == DONE)
    }

    /// Wakes a member on this node if it sleeps.
    pub fn ring(&self, rank: u32) {
        tell!((), self.ring(rank));
    }

    /// Zeroed memory that this node's members share; every one of them calls.
    pub fn shared_memory(&self, bytes: usize, align: usize) -> Result<SharedMemory, String> {
        let mut at = std::ptr::null_mut();
        ask!(self.shared_memory(bytes, align, &raw mut at))?;
        let at = NonNull::new(at.cast()).ok_or("the library gave no address for shared memory")?;
        Ok(SharedMemory { at, len: bytes })
    }

    /// What the component's modules in this process share, if one of them has made it.
    pub fn common<T: 'static>(&self) -> Option<Common<T>> {
        let place = tell!(std::ptr::null_mut(), self.component_data());
        // SAFETY: the host's place is readable, and nobody else uses it while this thread is in the component.
        let found: *const Tagged<T> = unsafe { place.as_ref() }?.cast_const().cast();
        // SAFETY: what is there was put there by `share`, and it is alive, for whoever drops the last one takes it away.
        let kind = unsafe { found.cast::<TypeId>().as_ref() }?;
        if *kind != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: the type is right, so this is the pointer that `share` got from an `Rc`, of which one more is handed out.
        let value = unsafe {
            Rc::increment_strong_count(found);
            Rc::from_raw(found)
        };
        Some(Common {
            value,
            place,
            comm: self.clone(),
        })
    }

    /// Shares a value with the component's other modules in this process, for as long as one of them keeps it.
    pub fn share<T: 'static>(&self, value: T) -> Result<Common<T>, String> {
        let (service, comm) = self.service(self.0.host.component_data, "component_data")?;
        // SAFETY: the communicator is alive.
        let place = unsafe { service(comm) };
        // SAFETY: as in `common`.
        let there =
            unsafe { place.as_mut() }.ok_or("the library gave no place for what modules share")?;
        if !there.is_null() {
            return Err("the component's modules share something already".into());
        }
        let kind = TypeId::of::<T>();
        let value = Rc::new(Tagged { kind, value });
        *there = Rc::as_ptr(&value).cast_mut().cast();
        Ok(Common {
            value,
            place,
            comm: self.clone(),
        })
    }

    /// One of the component's own parameters in the user's words; empty if it has none of that name.
    pub fn param(&self, name: &CStr) -> String {
        self.text(tell!(std::ptr::null(), self.param(name.as_ptr())))
            .unwrap_or_default()
    }

    /// Says a line to whoever asked for explanations.
    pub fn info(&self, line: &str) {
        self.log(abi::INFO, line);
    }

    /// Tells reports of the hardware barrier's wire that this process drives; a library without this service does not ask.
    pub fn tell_wire(&self, wire: u32, entered: u64, released: u64) {
        tell!((), self.barrier_wire(wire, entered, released));
    }

    /// Says a line that the user should see.
    pub fn warn(&self, line: &str) {
        self.log(abi::WARNING, line);
    }

    fn log(&self, level: c_int, line: &str) {
        let line = CString::new(line.replace('\0', " ")).unwrap_or_default();
        tell!((), self.log(level, line.as_ptr()));
    }

    /// A service, if the library has it and the communicator is still there.
    fn service<F>(&self, service: Option<F>, name: &str) -> Result<(F, *mut abi::Comm), String> {
        let service =
            service.ok_or_else(|| format!("this library does not offer the service {name}"))?;
        if self.0.alive.get() {
            Ok((service, self.0.comm))
        } else {
            Err(format!(
                "the service {name} was called after the communicator had gone"
            ))
        }
    }

    fn text(&self, at: *const std::ffi::c_char) -> Option<String> {
        if at.is_null() {
            return None;
        }
        // SAFETY: the host's texts stay while the communicator is alive, and it was when it answered.
        Some(unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
    }
}
