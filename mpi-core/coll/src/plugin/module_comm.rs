//! The communicator as a plugin's module sees it: the type behind the opaque `portcullis_comm`.
//!
//! A [`ModuleComm`] refers to the communicator weakly, because the communicator owns the module and the module owns the `ModuleComm`.
//! So messages end with the communicator; rank, size, name, memory and doorbells stay valid until the module is freed.
//!
//! Its services are those of the host table ([`Services`]).
//! Messages use conversations in the hidden plane, which all members begin in the same order when the module is enabled.
#![allow(unsafe_code)]

use super::abi::{Call, Host, WARNING};
use super::host::{Services, table};
use super::memory::Memory;
use super::table::Plugin;
use crate::comm::{Comm, WeakComm};
use crate::datatype::Scratch;
use crate::group::Group;
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

/// The parameters' values as C strings.
pub(super) type Values = BTreeMap<&'static str, CString>;

/// Returns the values of a plugin's parameters.
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
    /// Ascending; computed when the plugin first needs them.
    node: OnceCell<Box<[Neighbour]>>,
    /// Set when the conversations begin.
    tags: Cell<Option<Tags>>,
    /// Messages in progress, by number.
    messages: RefCell<BTreeMap<u64, Message>>,
    last_message: Cell<u64>,
    pub(super) memory: Memory,
    /// Pointer shared by the component's modules in this process; the host only stores it.
    pub(super) component_data: Rc<Cell<*mut c_void>>,
}

/// One tag per kind of traffic: blocking messages, tested messages, fences.
#[derive(Clone, Copy)]
struct Tags {
    waited: i32,
    tested: i32,
    fences: i32,
}

/// A nonblocking message that the plugin tests.
struct Message {
    pending: Pending,
    data: Scratch,
    is_received: bool,
}

/// The host table.
pub(super) static HOST: Host = table::<ModuleComm>();

/// The type behind `portcullis_call`.
pub(super) struct PluginCall {
    pub invocation: Invocation,
    pub call: crate::Call,
}

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

    /// Begins the conversations; every member calls it at the same point.
    pub fn begin(&self, comm: &Comm) {
        let tag = || comm.internal().conversation().tag();
        self.tags.set(Some(Tags {
            waited: tag(),
            tested: tag(),
            fences: tag(),
        }));
    }

    /// Returns `Ok` if the communicator is usable, otherwise the error for operations that wait for its members.
    pub fn usable(&self) -> Result<(), Error> {
        self.comm.upgrade().map_or(Ok(()), |comm| comm.usable())
    }

    fn keep(&self, message: Message) -> u64 {
        let number = self.last_message.get() + 1;
        self.last_message.set(number);
        self.messages.borrow_mut().insert(number, message);
        number
    }

    /// Returns true if a tested message is complete.
    pub fn has_news(&self) -> bool {
        let messages = self.messages.try_borrow();
        messages.is_ok_and(|all| all.values().any(|message| message.pending.is_complete()))
    }

    /// The conversation of blocking messages.
    pub(super) fn waiting(&self, peer: u32) -> Result<Invocation, String> {
        self.may_block()?;
        self.conversation(peer, |tags| tags.waited)
    }

    /// Returns a conversation, if it has begun and `peer` is a member.
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

    fn may_block(&self) -> Result<(), String> {
        if self.engine.operations().may_block() {
            Ok(())
        } else {
            Err("a blocking service was called from inside progress, where nothing may wait".into())
        }
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

    /// The members that this process knows to be dead. Plugins call it while they wait, so the common case only reads a flag.
    fn failed_ranks(&self) -> Vec<u32> {
        if let Some(comm) = self.comm.upgrade()
            && comm.usable().is_ok()
        {
            return Vec::new();
        }
        // The communicator may already be gone when its module is freed, so this asks the engine.
        let failed = self.engine.peers().failed_among(&self.group);
        let ranks = failed.iter().filter_map(|proc| self.group.rank_of(proc));
        ranks.collect()
    }

    fn send(&self, dest: u32, data: &[u8]) -> Result<(), String> {
        let invocation = self.waiting(dest)?;
        let scratch = scratch(data.len())?;
        scratch.all().unpack_at(0, data);
        self.engine
            .block_on(invocation.send(&scratch.all().as_send(), dest))
            .map_err(|e| e.to_string())
    }

    fn recv(&self, source: u32, data: &mut [u8]) -> Result<(), String> {
        let invocation = self.waiting(source)?;
        let scratch = scratch(data.len())?;
        self.engine
            .block_on(invocation.recv(&scratch.all(), source))
            .map_err(|e| e.to_string())?;
        scratch.all().as_send().pack_at(0, data);
        Ok(())
    }

    fn fence(&self) -> Result<(), String> {
        self.may_block()?;
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

    /// Returns true if a message is complete; it then copies a received message to `bytes` and forgets the number.
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

    /// Waits until `ready` or until `limit` has passed; returns true if `ready`.
    fn wait(
        &self,
        limit: Option<Duration>,
        ready: &mut dyn FnMut() -> bool,
    ) -> Result<bool, String> {
        self.may_block()?;
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
            // Informational lines are printed only if explanations are enabled.
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

    fn barrier_wire(&self, wire: u32, entered: u64, released: u64) {
        self.engine
            .published()
            .barrier_wire(wire, entered, released);
    }

    unsafe fn call_next(call: *mut Call) -> Result<(), String> {
        // SAFETY: the host made the pointer from a `PluginCall` that lives until the plugin's function returns, and `call` is that pointer.
        let PluginCall { invocation, call } = unsafe { &*call.cast::<PluginCall>() };
        if !invocation.engine().operations().may_block() {
            return Err("call_next was called from inside progress, where nothing may wait".into());
        }
        Table::run_next(invocation, call).map_err(|e| e.to_string())
    }
}

/// Allocates memory for a message.
fn scratch(bytes: usize) -> Result<Scratch, String> {
    Scratch::bytes(bytes as i64).map_err(|e| e.to_string())
}
