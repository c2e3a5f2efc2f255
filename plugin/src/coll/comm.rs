//! The communicator of a module, with the library functions (services) that the module may call.
//!
//! Each service is a function of the library's table. A call fails if the communicator was freed,
//! or if an older library lacks the service. Methods without a `Result` then return an empty value.
#![allow(unsafe_code)]

use super::abi::{self, DONE, FAILED, Host, Why};
use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

/// A communicator handle; its methods call the services of the library.
#[derive(Clone)]
pub struct Comm(Rc<Link>);

struct Link {
    host: Host,
    comm: *mut abi::Comm,
    /// True until the communicator is freed; then `comm` must not be passed to the library.
    alive: Cell<bool>,
}

/// A message that has been started and may be incomplete.
#[derive(Debug, PartialEq, Eq)]
pub struct Message(u64);

/// Memory shared by the members on one node; valid until all of them have dropped their modules.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    pub at: NonNull<u8>,
    pub len: usize,
}

/// Calls a service and converts its return code to a `Result`.
macro_rules! ask {
    ($self:ident . $service:ident ( $($argument:expr),* )) => {{
        let (service, comm) = $self.service($self.0.host.$service, stringify!($service))?;
        let mut why = Why::new();
        // SAFETY: `Comm::service` returned this `comm`, so the communicator has not been freed; the arguments are as `plugin.h` requires.
        match unsafe { service(comm, $($argument,)* &mut why) } {
            FAILED => Err(why.sentence()),
            code => Ok(code),
        }
    }};
}

/// Calls a service that cannot fail. Returns `$nothing` if the library lacks the service
/// or the communicator has been freed.
macro_rules! tell {
    ($nothing:expr, $self:ident . $service:ident ( $($argument:expr),* )) => {
        match $self.service($self.0.host.$service, stringify!($service)) {
            // SAFETY: `Comm::service` returned this `comm`, so the communicator has not been freed; the arguments are as `plugin.h` requires.
            Ok((service, comm)) => unsafe { service(comm, $($argument),*) },
            Err(_) => $nothing,
        }
    };
}

impl Comm {
    pub(super) fn new(host: Host, comm: *mut abi::Comm) -> Comm {
        let alive = Cell::new(true);
        Comm(Rc::new(Link { host, comm, alive }))
    }

    pub(super) fn host(&self) -> &Host {
        &self.0.host
    }

    /// Marks the communicator as freed: from now on the services of all clones fail.
    pub(super) fn close(&self) {
        self.0.alive.set(false);
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.alive.get()
    }

    /// Returns the address of the pointer that the component's modules in this process share.
    pub(super) fn common_place(&self) -> Result<*mut *mut c_void, String> {
        let (service, comm) = self.service(self.0.host.component_data, "component_data")?;
        // SAFETY: `Comm::service` returned this `comm`, so the communicator has not been freed.
        Ok(unsafe { service(comm) })
    }

    /// Returns this process's rank in the communicator.
    pub fn rank(&self) -> u32 {
        tell!(0, self.comm_rank())
    }

    /// Returns the number of members.
    pub fn size(&self) -> u32 {
        tell!(0, self.comm_size())
    }

    /// Returns the name that the communicator had when the module was created,
    /// or a description if it had no name.
    pub fn name(&self) -> String {
        let name = self.text(tell!(std::ptr::null(), self.comm_name()));
        String::from_utf8_lossy(&name).into_owned()
    }

    /// Returns true for `MPI_COMM_WORLD`.
    pub fn is_world(&self) -> bool {
        tell!(0, self.comm_is_world()) != 0
    }

    /// Returns the ranks of the members on this node, ascending.
    pub fn node_ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.size() as usize];
        let count = tell!(
            0,
            self.comm_node_ranks(ranks.as_mut_ptr(), ranks.len() as u32)
        );
        ranks.truncate(count as usize);
        ranks
    }

    /// Returns the ranks of dead members, ascending; always empty without fault tolerance.
    pub fn failed_ranks(&self) -> Vec<u32> {
        if tell!(0, self.failed_ranks(std::ptr::null_mut(), 0)) == 0 {
            return Vec::new();
        }
        let mut ranks = vec![0; self.size() as usize];
        let count = tell!(0, self.failed_ranks(ranks.as_mut_ptr(), ranks.len() as u32));
        ranks.truncate(count as usize);
        ranks.sort_unstable();
        ranks
    }

    /// Sends a message and blocks until the send is complete, with MPI progress.
    /// Messages of one sender arrive in order.
    pub fn send(&self, dest: u32, data: &[u8]) -> Result<(), String> {
        ask!(self.send(dest, data.as_ptr().cast(), data.len())).map(|_| ())
    }

    /// Blocks until the next message of a member has arrived; it must have `data.len()` bytes.
    pub fn recv(&self, source: u32, data: &mut [u8]) -> Result<(), String> {
        ask!(self.recv(source, data.as_mut_ptr().cast(), data.len())).map(|_| ())
    }

    /// A barrier: returns after every member has called this function.
    pub fn fence(&self) -> Result<(), String> {
        ask!(self.fence()).map(|_| ())
    }

    /// Starts a nonblocking send. `data` is copied immediately.
    pub fn start_send(&self, dest: u32, data: &[u8]) -> Result<Message, String> {
        let mut number = 0;
        ask!(self.start_send(dest, data.as_ptr().cast(), data.len(), &raw mut number))
            .map(|_| Message(number))
    }

    /// Starts a nonblocking receive of `bytes` bytes.
    pub fn start_recv(&self, source: u32, bytes: usize) -> Result<Message, String> {
        let mut number = 0;
        ask!(self.start_recv(source, bytes, &raw mut number)).map(|_| Message(number))
    }

    /// Returns true if a message is complete; a received message is then in `data`.
    /// A complete message must not be tested again.
    pub fn test_message(&self, message: &Message, data: &mut [u8]) -> Result<bool, String> {
        ask!(self.test_message(message.0, data.as_mut_ptr().cast(), data.len()))
            .map(|code| code == DONE)
    }

    /// Calls MPI's progress engine once. Returns true if it made progress.
    pub fn progress(&self) -> bool {
        tell!(0, self.progress()) != 0
    }

    /// Waits until `ready` returns true or `limit` has passed. Returns true if `ready` did.
    pub fn wait(
        &self,
        limit: Option<Duration>,
        ready: impl FnMut() -> bool,
    ) -> Result<bool, String> {
        struct Asked<F> {
            ready: F,
            panic: Option<Box<dyn Any + Send>>,
        }
        unsafe extern "C-unwind" fn ask<F: FnMut() -> bool>(argument: *mut c_void) -> c_int {
            // SAFETY: `wait` passes an `Asked` of this type that outlives the calls.
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

    /// Wakes a member on this node if it sleeps in a wait.
    pub fn ring(&self, rank: u32) {
        tell!((), self.ring(rank));
    }

    /// Allocates zeroed memory shared by this node's members; collective over them.
    pub fn shared_memory(&self, bytes: usize, align: usize) -> Result<SharedMemory, String> {
        let mut at = std::ptr::null_mut();
        ask!(self.shared_memory(bytes, align, &raw mut at))?;
        let at = NonNull::new(at.cast()).ok_or("the library gave no address for shared memory")?;
        Ok(SharedMemory { at, len: bytes })
    }

    /// Returns the text value of a parameter of the component; empty for an unknown name.
    pub fn param(&self, name: &CStr) -> String {
        String::from_utf8_lossy(&self.param_bytes(name)).into_owned()
    }

    /// Returns the value of a parameter of the component as bytes, which may not be UTF-8.
    pub fn param_bytes(&self, name: &CStr) -> Vec<u8> {
        self.text(tell!(std::ptr::null(), self.param(name.as_ptr())))
    }

    /// Logs a line that is printed only if explanations are enabled.
    pub fn info(&self, line: &str) {
        self.log(abi::INFO, line);
    }

    /// Reports the number of barriers that this process has entered on a hardware barrier wire,
    /// and the number of those released.
    pub fn tell_wire(&self, wire: u32, entered: u64, released: u64) {
        tell!((), self.barrier_wire(wire, entered, released));
    }

    /// Logs a warning for the user.
    pub fn warn(&self, line: &str) {
        self.log(abi::WARNING, line);
    }

    fn log(&self, level: c_int, line: &str) {
        let line = CString::new(line.replace('\0', " ")).unwrap_or_default();
        tell!((), self.log(level, line.as_ptr()));
    }

    /// Returns a service. Fails if the library lacks it or the communicator is freed.
    fn service<F>(&self, service: Option<F>, name: &str) -> Result<(F, *mut abi::Comm), String> {
        let service =
            service.ok_or_else(|| format!("this library does not offer the service {name}"))?;
        if self.is_open() {
            Ok((service, self.0.comm))
        } else {
            Err(format!(
                "the service {name} was called after the communicator had gone"
            ))
        }
    }

    fn text(&self, at: *const std::ffi::c_char) -> Vec<u8> {
        if at.is_null() {
            return Vec::new();
        }
        // SAFETY: a service has just returned `at`: the communicator is alive and the text valid.
        unsafe { CStr::from_ptr(at) }.to_bytes().to_vec()
    }
}
