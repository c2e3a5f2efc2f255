//! The communicator as a plugin's module sees it: the type behind the opaque `portcullis_comm`.
//!
//! A [`ModuleComm`] has only a weak reference to the communicator, because the communicator owns the module and the module owns the `ModuleComm`.
//! So messages are possible only while the communicator exists, but rank, size, name, memory and doorbells are valid
//! until the module is freed.
//!
//! A [`ModuleComm`] implements the services of the host table ([`Services`]).
//! Its messages use conversations in the communicator's hidden plane, which all members begin in the same order when the module is enabled.
#![allow(unsafe_code)]

use super::abi::{self, Call, Host, WARNING};
use super::call::{self, PluginCall, may_block};
use super::data;
use super::host::{Services, calm, table};
use super::memory::Memory;
use super::table::Plugin;
use crate::comm::{Comm, WeakComm};
use crate::datatype::{Datatype, Named, RecvBuf, Scratch, SendBuf};
use crate::group::Group;
use crate::inventory::host_name;
use crate::pml::Plane;
use crate::select::Table;
use crate::{Engine, Error};
use crate::{Invocation, Pending, algo};
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::node::RetiredBlocks;
use mpi_base::param::Params;
use mpi_base::text;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The values of a plugin's parameters as C strings, by name.
pub(super) type Values = BTreeMap<&'static str, CString>;

/// Returns the present values of a plugin's parameters.
pub(super) fn values(plugin: &Plugin, params: &Params) -> Rc<Values> {
    let each = plugin.params.iter();
    Rc::new(each.map(|p| (p.name, c_text(params.text(p)))).collect())
}

fn c_text(text: &str) -> CString {
    let text = text.replace('\0', " ");
    CString::new(text::to_bytes(&text)).unwrap_or_default()
}

/// A member on this node: its rank and its doorbell.
type Neighbour = (u32, Held<Inbox>);

pub(super) struct ModuleComm {
    plugin: Rc<Plugin>,
    values: Rc<Values>,
    pub(super) engine: Engine,
    comm: WeakComm,
    pub rank: u32,
    pub size: u32,
    pub is_world: bool,
    name: CString,
    group: Group,
    /// The members on this node in ascending order; computed when the plugin needs them for the first time.
    node: OnceCell<Box<[Neighbour]>>,
    /// The tags of the module's conversations; `None` until the module is enabled.
    tags: Cell<Option<Tags>>,
    messages: RefCell<BTreeMap<u64, Message>>,
    last_message: Cell<u64>,
    pub(super) memory: Memory,
    /// Predefined datatypes that the plugin has requested, by handle.
    /// Each is in a box, because the plugin keeps its address.
    types: RefCell<BTreeMap<usize, Box<Datatype>>>,
    /// The error text that the plugin has set with the service `fail`.
    reason: RefCell<Option<String>>,
    host_name: CString,
    /// The pointer that the component's modules in this process share; the host does not dereference it.
    pub(super) component_data: Rc<Cell<*mut c_void>>,
}

/// The tags of the module's conversations, one for each kind: blocking messages, nonblocking messages, fences.
#[derive(Clone, Copy)]
struct Tags {
    waited: i32,
    tested: i32,
    fences: i32,
}

struct Message {
    pending: Pending,
    data: Scratch,
    is_received: bool,
}

/// The host table of this library.
pub(super) static HOST: Host = Host {
    topology: Some(topology),
    named_type: Some(named_type),
    type_info: Some(data::type_info),
    op_info: Some(data::op_info),
    pack: Some(data::pack),
    unpack: Some(data::unpack),
    copy: Some(data::copy),
    reduce: Some(data::reduce),
    combine: Some(data::combine),
    temporary: Some(call::temporary),
    call_send: Some(call::send),
    call_recv: Some(call::recv),
    call_test: Some(call::test),
    call_wait: Some(call::wait),
    ..table::<ModuleComm>()
};

const LIBRARY: &CStr = match CStr::from_bytes_with_nul(
    concat!("Portcullis ", env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
) {
    Ok(text) => text,
    Err(_) => c"Portcullis",
};

impl ModuleComm {
    pub fn new(
        plugin: &Rc<Plugin>,
        values: &Rc<Values>,
        retired: &Rc<RetiredBlocks>,
        component_data: &Rc<Cell<*mut c_void>>,
        comm: &Comm,
    ) -> ModuleComm {
        ModuleComm {
            values: values.clone(),
            rank: comm.rank(),
            size: comm.size(),
            is_world: comm.is_world(),
            name: c_text(&comm.label()),
            group: comm.group().clone(),
            node: OnceCell::new(),
            tags: Cell::new(None),
            messages: RefCell::default(),
            last_message: Cell::new(0),
            memory: Memory::new(retired),
            component_data: component_data.clone(),
            types: RefCell::default(),
            reason: RefCell::default(),
            host_name: c_text(&host_name()),
            comm: comm.downgrade(),
            plugin: plugin.clone(),
            engine: comm.engine().clone(),
        }
    }

    fn node(&self) -> &[Neighbour] {
        self.node.get_or_init(|| {
            let members = self.engine.place().members_here(&self.group);
            let members = members
                .filter_map(|(rank, place)| Some((rank, self.engine.node().inbox(place).ok()?)));
            let ascending: BTreeMap<_, _> = members.collect();
            ascending.into_iter().collect()
        })
    }

    /// Draws the conversations' tags. Every member calls this function at the same point of its call sequence.
    pub fn begin(&self, comm: &Comm) {
        let tag = || comm.internal().conversation().tag();
        self.tags.set(Some(Tags {
            waited: tag(),
            tested: tag(),
            fences: tag(),
        }));
    }

    /// Returns an error if the communicator has lost a member or is revoked, so that operations must not wait for members.
    pub fn usable(&self) -> Result<(), Error> {
        self.comm.upgrade().map_or(Ok(()), |comm| comm.usable())
    }

    fn keep(&self, message: Message) -> u64 {
        let number = self.last_message.get() + 1;
        self.last_message.set(number);
        self.messages.borrow_mut().insert(number, message);
        number
    }

    /// Returns true if a nonblocking message is complete and the plugin has not tested it since.
    pub fn has_news(&self) -> bool {
        let messages = self.messages.try_borrow();
        messages.is_ok_and(|all| all.values().any(|message| message.pending.is_complete()))
    }

    /// Returns the conversation for a blocking message to or from rank `peer`.
    pub(super) fn waiting(&self, peer: u32) -> Result<Invocation, String> {
        may_block(&self.engine)?;
        self.conversation(peer, |tags| tags.waited)
    }

    /// Returns the conversation with this tag; an error if no tags have been drawn or `peer` is no valid rank.
    fn conversation(&self, peer: u32, tag: impl Fn(Tags) -> i32) -> Result<Invocation, String> {
        let comm = self
            .comm
            .upgrade()
            .ok_or_else(|| format!("{} has been freed", self.name.to_string_lossy()))?;
        if peer >= self.size {
            return Err(format!(
                "rank {peer} is not in a communicator of {} ranks",
                self.size
            ));
        }
        let tags = self
            .tags
            .get()
            .ok_or("messages begin when the module is enabled")?;
        Ok(Invocation::new(comm, Plane::Hidden, tag(tags), 0))
    }

    /// Removes and returns the error text that the plugin has set with the service `fail`.
    pub fn take_reason(&self) -> Option<String> {
        self.reason.take()
    }

    /// Returns a predefined datatype, at an address that is valid as long as the module.
    fn named_type(&self, handle: usize) -> Option<*const abi::Type> {
        let named = Datatype::named(handle)?;
        let mut types = self.types.borrow_mut();
        let kept = types.entry(handle).or_insert_with(|| Box::new(named));
        Some(std::ptr::from_ref(&**kept).cast())
    }
}

impl Services for ModuleComm {
    const LIBRARY: &'static CStr = LIBRARY;

    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn name(&self) -> &CStr {
        &self.name
    }

    fn is_world(&self) -> bool {
        self.is_world
    }

    fn node_ranks(&self) -> impl ExactSizeIterator<Item = u32> {
        self.node().iter().map(|(rank, _)| *rank)
    }

    /// Returns the ranks of the members that this process knows to be dead.
    /// Plugins call this function while they wait, so the common case only reads a flag.
    fn failed_ranks(&self) -> Vec<u32> {
        if let Some(comm) = self.comm.upgrade()
            && comm.usable().is_ok()
        {
            return Vec::new();
        }
        // The communicator may be freed before its module is, so the engine is queried instead of the communicator.
        let failed = self.engine.peers().failed_among(&self.group);
        let ranks = failed.iter().filter_map(|proc| self.group.rank_of(proc));
        ranks.collect()
    }

    fn send(&self, dest: u32, data: &[u8]) -> Result<(), String> {
        let invocation = self.waiting(dest)?;
        // SAFETY: `data` is borrowed until this function returns, and it returns when the message is complete or cancelled.
        let data = unsafe { SendBuf::new(data.as_ptr(), data.len() as i64, Named::BYTE.into()) };
        self.engine
            .block_on(invocation.send(&data, dest))
            .map_err(|e| e.to_string())
    }

    fn recv(&self, source: u32, data: &mut [u8]) -> Result<(), String> {
        let invocation = self.waiting(source)?;
        let len = data.len() as i64;
        // SAFETY: `data` is borrowed until this function returns, and it returns when the message is complete or cancelled.
        let data = unsafe { RecvBuf::new(data.as_mut_ptr(), len, Named::BYTE.into()) };
        self.engine
            .block_on(invocation.recv(&data, source))
            .map_err(|e| e.to_string())
    }

    fn fence(&self) -> Result<(), String> {
        may_block(&self.engine)?;
        let invocation = self.conversation(self.rank, |tags| tags.fences)?;
        self.engine
            .block_on(algo::barrier_dissemination::barrier(&invocation))
            .map_err(|e| e.to_string())
    }

    fn start_send(&self, dest: u32, bytes: &[u8]) -> Result<u64, String> {
        let invocation = self.conversation(dest, |tags| tags.tested)?;
        let data = scratch(bytes.len())?;
        data.all().unpack_at(0, bytes);
        let pending = invocation.isend(&data.all().as_send(), dest);
        Ok(self.keep(Message {
            pending,
            data,
            is_received: false,
        }))
    }

    fn start_recv(&self, source: u32, bytes: usize) -> Result<u64, String> {
        let invocation = self.conversation(source, |tags| tags.tested)?;
        let data = scratch(bytes)?;
        let pending = invocation.irecv(&data.all(), source);
        Ok(self.keep(Message {
            pending,
            data,
            is_received: true,
        }))
    }

    /// Returns true if a message is complete,
    /// and then copies a received message to `bytes` and removes the message.
    fn test_message(&self, number: u64, bytes: &mut [u8]) -> Result<bool, String> {
        let mut messages = self.messages.borrow_mut();
        let message = messages
            .get_mut(&number)
            .ok_or_else(|| format!("there is no message with the number {number}"))?;
        let Poll::Ready(outcome) =
            Pin::new(&mut message.pending).poll(&mut Context::from_waker(Waker::noop()))
        else {
            return Ok(false);
        };
        if message.is_received {
            message.data.all().as_send().pack_at(0, bytes);
        }
        messages.remove(&number);
        outcome.map(|()| true).map_err(|e| e.to_string())
    }

    fn progress(&self) -> bool {
        self.engine.progress()
    }

    fn wait(
        &self,
        limit: Option<Duration>,
        ready: &mut dyn FnMut() -> bool,
    ) -> Result<bool, String> {
        may_block(&self.engine)?;
        if ready() {
            return Ok(true);
        }
        let until = limit.map(|limit| Instant::now() + limit);
        let mut waiter = self.engine.waiter();
        loop {
            if self.engine.turn(&mut waiter, &mut *ready) {
                return Ok(true);
            }
            self.usable().map_err(|error| error.to_string())?;
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(ready());
            }
        }
    }

    fn ring(&self, rank: u32) {
        let node = self.node();
        if let Ok(at) = node.binary_search_by_key(&rank, |(rank, _)| *rank) {
            node[at].1.doorbell().ring();
        }
    }

    fn shared_memory(&self, bytes: usize, align: usize) -> Result<*mut c_void, String> {
        self.allocate_shared(bytes, align).map(<*mut u8>::cast)
    }

    fn param(&self, name: &CStr) -> Option<&CStr> {
        Some(self.values.get(name.to_str().ok()?)?)
    }

    fn log(&self, level: c_int, line: &CStr) {
        let line = line.to_string_lossy();
        if level < WARNING {
            // Informational lines are printed only by rank 0, and only if `mpirun --explain` is used.
            if self.engine.me() == 0 && self.engine.place().explains() {
                let comm = self.name.to_string_lossy();
                printable::eprintln!("explain: coll on {comm}: {}: {line}", self.plugin.name);
            }
            return;
        }
        printable::eprintln!(
            "[rank {} of {}] coll {}: warning: {line}",
            self.rank,
            self.name.to_string_lossy(),
            self.plugin.name
        );
    }

    fn component_data(&self) -> &Cell<*mut c_void> {
        &self.component_data
    }

    fn fail(&self, reason: &CStr) {
        *self.reason.borrow_mut() = Some(reason.to_string_lossy().into_owned());
    }

    fn barrier_wire(&self, wire: u32, entered: u64, released: u64) {
        self.engine
            .published()
            .barrier_wire(wire, entered, released);
    }

    unsafe fn call_next(call: *mut Call) -> Result<(), String> {
        // SAFETY: the host made the pointer from a `PluginCall` that lives until the plugin's function returns, and `call` is that pointer.
        let running = unsafe { &*call.cast::<PluginCall>() };
        let (invocation, call) = (&running.invocation, &running.call);
        if !invocation.engine().operations().may_block() {
            return Err("call_next was called from inside progress, where nothing may wait".into());
        }
        Table::run_next(invocation, call).map_err(|e| e.to_string())
    }
}

/// The service `named_type`: returns the predefined datatype for a handle of the MPI 5.0 ABI, or null.
unsafe extern "C" fn named_type(comm: *mut abi::Comm, handle: usize) -> *const abi::Type {
    // SAFETY: the plugin passes the communicator of a module that has not been freed, see `plugin.h`.
    let comm = unsafe { &*comm.cast::<ModuleComm>() };
    calm(std::ptr::null(), || {
        comm.named_type(handle).unwrap_or(std::ptr::null())
    })
}

/// The service `topology`: returns the host's name, this process's number of usable cores, and the number of ranks on this node.
unsafe extern "C" fn topology(comm: *mut abi::Comm, to: *mut abi::Topology) {
    // SAFETY: the plugin passes the communicator of a module that has not been freed, see `plugin.h`.
    let comm = unsafe { &*comm.cast::<ModuleComm>() };
    let facts = abi::Topology {
        size: size_of::<abi::Topology>(),
        host: comm.host_name.as_ptr(),
        cores: comm.engine.place().cores().usable as u32,
        ranks_here: comm.engine.place().neighbours().len() as u32,
    };
    // SAFETY: the plugin passes a structure whose first field is its size, see `plugin.h`.
    unsafe { abi::fill_in(to, &facts) };
}

fn scratch(bytes: usize) -> Result<Scratch, String> {
    Scratch::bytes(bytes as i64).map_err(|e| e.to_string())
}
