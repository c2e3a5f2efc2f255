//! The services of the library, as a component's modules call them.
//!
//! A service is a function of the host's table; one that an older library lacks, or that is called after the communicator has gone,
//! answers with a sentence, or with nothing where it cannot fail.
#![allow(unsafe_code)]

use crate::plugin::abi::{self, DONE, FAILED, Host, Why};
use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

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
    pub(super) fn new(host: Host, comm: *mut abi::Comm) -> Comm {
        let alive = Cell::new(true);
        Comm(Rc::new(Link { host, comm, alive }))
    }

    /// The communicator has gone: services fail from now on, in every copy of this.
    pub(super) fn close(&self) {
        self.0.alive.set(false);
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.alive.get()
    }

    /// Where the host keeps what the component's modules share.
    pub(super) fn common_place(&self) -> Result<*mut *mut c_void, String> {
        let (service, comm) = self.service(self.0.host.component_data, "component_data")?;
        // SAFETY: the communicator is alive.
        Ok(unsafe { service(comm) })
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        tell!(0, self.comm_rank())
    }

    /// How many members it has.
    pub fn size(&self) -> u32 {
        tell!(0, self.comm_size())
    }

    /// What the program called it when the component was asked, or what can be said of one without a name.
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

    /// The members that this process knows to be dead, ascending; none unless the job survives deaths.
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

    /// Sends a message to a member, which receives messages of one sender in their order; waits, while progress goes on.
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

    /// One of the component's own parameters in the user's words; empty if it has none of that name.
    pub fn param(&self, name: &CStr) -> String {
        self.text(tell!(std::ptr::null(), self.param(name.as_ptr())))
            .unwrap_or_default()
    }

    /// Says a line to the user who asked for explanations.
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
        if self.is_open() {
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
        Some(mpi_base::text::from_bytes(
            unsafe { CStr::from_ptr(at) }.to_bytes(),
        ))
    }
}
