//! Adapter of a plugin to the coll framework: implements [`Component`] and [`Module`] by the C tables of the plugin.
//!
//! A plugin may pass a barrier to the next component long after the call, and later than on other members,
//! for example because it releases its hardware.
//! Lower components number the barriers that reach them.
//! So this module passes barriers down in the order of the calls ([`TicketOrder`]).
//! Lower components number barriers separately from other calls,
//! so other calls may overtake barriers.
#![allow(unsafe_code)]

use super::abi::{self, DONE, FAILED, Why};
use super::module::Inner;
use super::module_comm::{HOST, ModuleComm, Values, values};
use super::operations::Operations;
use super::table::Plugin;
use super::{Origin, Taken, dense};
use crate::Error;
use crate::comm::Comm;
use crate::inventory::{self, Entry};
use crate::select::Table;
use crate::tickets::TicketOrder;
use crate::{
    Call, CallId, CallSet, Component, EurekaLine, FastSlot, Invocation, Module, Refusal, Running,
};
use mpi_base::node::RetiredBlocks;
use mpi_base::param::{About, Params};
use mpi_base::plugin_file::{guarded, reported};
use mpi_base::state::FileCall;
use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::ffi::c_void;
use std::future::{Future, ready};
use std::pin::Pin;
use std::ptr::null_mut;
use std::rc::Rc;

pub(super) struct PluginComponent {
    plugin: Rc<Plugin>,
    /// The component's name, version and file, which the members compare with each other.
    entry: Rc<Entry>,
    is_file: bool,
    retired: Rc<RetiredBlocks>,
    /// The pointer that the plugin's modules share, see `component_data` in `plugin.h`.
    data: Rc<Cell<*mut c_void>>,
    /// The parameters' values as C strings; created for the first communicator.
    values: OnceCell<Rc<Values>>,
}

impl PluginComponent {
    pub fn new(taken: &Taken) -> PluginComponent {
        let plugin = taken.plugin.clone();
        PluginComponent {
            retired: Rc::default(),
            data: Rc::new(Cell::new(null_mut())),
            values: OnceCell::new(),
            entry: Rc::new(Entry::new(plugin.name, plugin.version, &taken.origin)),
            is_file: taken.origin != Origin::BuiltIn,
            plugin,
        }
    }
}

impl Component for PluginComponent {
    fn name(&self) -> &str {
        self.plugin.name
    }

    fn priority(&self) -> i32 {
        self.plugin.priority
    }

    fn params(&self) -> Vec<&'static About> {
        self.plugin.params.iter().collect()
    }

    fn is_asked_for(&self, params: &Params) -> bool {
        let param = self
            .plugin
            .asked_by
            .and_then(|name| self.plugin.param(name));
        param.is_some_and(|param| {
            let value = params.text(param);
            !value.is_empty() && value != param.default
        })
    }

    fn file(&self) -> Option<&Entry> {
        self.is_file.then_some(&*self.entry)
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        if !comm.engine().operations().may_block() {
            // This decision is the same on every member,
            // because a nonblocking call (that creates the communicator) and a blocking one do not match each other.
            return Err(Refusal(
                "a plugin cannot be set up on a communicator made by a nonblocking call".into(),
            ));
        }
        if comm.collectives().is_for_steps() {
            return Err(Refusal(
                "what is made for steps of other collectives is served without plugins".into(),
            ));
        }
        let params = comm.engine().params();
        let values = self.values.get_or_init(|| values(&self.plugin, params));
        let module_comm = ModuleComm::new(&self.plugin, values, &self.retired, &self.data, comm);
        let module_comm = Rc::new(module_comm);
        let (mut this, mut why) = (null_mut(), Why::new());
        let origin = self.entry.file();
        let pointer = Rc::as_ptr(&module_comm).cast_mut().cast();
        let page = self.is_file.then_some(comm.engine().state());
        let table = reported(page, FileCall::PluginQuery, origin, || {
            // SAFETY: `Plugin::check`'s caller vouches for the plugin's functions; `module_comm` lives until after the module's `free`.
            guarded(&(self.plugin.name, origin), "query", || unsafe {
                (self.plugin.query)(&HOST, pointer, &mut this, &mut why)
            })
        });
        if table.is_null() {
            return Err(Refusal(why.sentence()));
        }
        if !table.is_aligned() {
            return Err(Refusal(
                "its function query returns no table: the address is odd".into(),
            ));
        }
        // SAFETY: the plugin ABI requires that a non-null table begins with its size and stays valid as long as the module.
        let table = unsafe { abi::read(table) };
        // SAFETY: the plugin ABI requires that the list of operations has `operation_count` entries of `operation_size` bytes.
        let operations = unsafe { Operations::of(&table) }.map_err(Refusal)?;
        let module = PluginModule {
            inner: Rc::new(Inner {
                plugin: self.plugin.clone(),
                table,
                this,
                module_comm,
                operations,
                tickets: TicketOrder::default(),
                enabled: Cell::new(false),
                origin: origin.into(),
            }),
            entry: self.entry.clone(),
            is_file: self.is_file,
        };
        if module.serves() == CallSet::NONE {
            return Err(Refusal("its module has no functions".into()));
        }
        Ok(Rc::new(module))
    }
}

struct PluginModule {
    inner: Rc<Inner>,
    entry: Rc<Entry>,
    is_file: bool,
}

impl PluginModule {
    /// Returns true if the plugin has functions for barriers; they are used instead of an entry for barriers in its table of operations.
    fn has_barrier(&self) -> bool {
        self.inner.table.barrier.is_some() || self.inner.has_split()
    }

    fn passes_to_barrier(&self, call: &Call) -> bool {
        matches!(call, Call::Barrier) && self.has_barrier()
    }

    /// Starts an operation of the plugin, or passes the call to the next lower component.
    fn begin(&self, invocation: Invocation, call: Call, plan: Option<&Rc<dyn Any>>) -> Running {
        let operation = self.inner.operations.taking(&call);
        let started = operation.and_then(|operation| {
            (self.inner).start_operation(operation, &invocation, &call, plan)
        });
        started.unwrap_or_else(|| {
            let table = Table::of(invocation.comm(), call.id());
            match table.and_then(|table| table.start(invocation.next_down(), call)) {
                Ok(running) => running,
                Err(error) => Box::pin(ready(Err(error))),
            }
        })
    }
}

impl Module for PluginModule {
    fn serves(&self) -> CallSet {
        let served = self.inner.operations.served();
        match self.has_barrier() {
            true => served.with(CallId::Barrier),
            false => served,
        }
    }

    /// True, because a function of a plugin may pass its call to the next component.
    fn is_transparent(&self) -> bool {
        true
    }

    fn export_config(&self, _: &Comm, config: &mut Vec<u8>) {
        inventory::write(std::iter::once(&*self.entry), config);
    }

    fn import_config(&self, comm: &Comm, config: &[u8]) -> Result<(), Refusal> {
        self.entry.compare(config, comm.rank()).map_err(Refusal)
    }

    fn sets_up(&self) -> bool {
        true
    }

    fn enable<'a>(
        &'a self,
        comm: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        Box::pin(async move {
            let inner = &*self.inner;
            inner.module_comm.begin(comm);
            inner.enabled.set(true);
            if inner.table.attend.is_some() {
                let weak = Rc::downgrade(&self.inner);
                comm.engine().operations().enlist(weak);
            }
            let mut why = Why::new();
            let answered = match inner.table.enable {
                Some(enable) => {
                    let page = self.is_file.then_some(comm.engine().state());
                    reported(page, FileCall::PluginEnable, self.entry.file(), || {
                        // SAFETY: `this` is valid until `drop` calls `free`.
                        inner.guarded("enable", || unsafe { enable(inner.this, &mut why) })
                    })
                }
                None => DONE,
            };
            match answered {
                DONE => Ok(()),
                FAILED => Err(Refusal(why.sentence())),
                unknown => Err(Refusal(format!(
                    "its function enable answered {unknown}, which means nothing here"
                ))),
            }
        })
    }

    fn start(&self, invocation: Invocation, call: Call) -> Running {
        if !self.passes_to_barrier(&call) {
            return self.begin(invocation, call, None);
        }
        let inner = self.inner.clone();
        let ticket = inner.tickets.draw();
        Box::pin(async move {
            if inner.start(&invocation, call.id()).await?.is_some() {
                return Ok(());
            }
            ticket.come(invocation.engine()).await;
            let next =
                Table::of(invocation.comm(), call.id())?.start(invocation.next_down(), call)?;
            ticket.pass();
            next.await
        })
    }

    fn plan(&self, call: &Call) -> Option<Rc<dyn Any>> {
        Some(self.inner.plan(call))
    }

    fn start_planned(&self, invocation: Invocation, call: Call, plan: &Rc<dyn Any>) -> Running {
        match self.passes_to_barrier(&call) {
            true => self.start(invocation, call),
            false => self.begin(invocation, call, Some(plan)),
        }
    }

    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        if !self.passes_to_barrier(call) {
            let run = |operation| self.inner.run_operation(operation, invocation, call);
            return match self.inner.operations.taking(call).map(run).transpose()? {
                Some(Some(())) => Ok(()),
                _ => Table::run_next(invocation, call),
            };
        }
        let ticket = self.inner.tickets.draw();
        if self.inner.run(invocation, call)?.is_some() {
            return Ok(());
        }
        invocation
            .engine()
            .block_on(ticket.come(invocation.engine()));
        Table::run_next(invocation, call)
    }

    fn fast_slot(self: Rc<Self>, call: CallId) -> Option<FastSlot> {
        match call == CallId::Barrier && self.has_barrier() {
            true => None,
            false => dense::slot(&self.inner, call),
        }
    }

    fn eureka(&self) -> Option<&dyn EurekaLine> {
        self.inner
            .has_line()
            .then_some(&*self.inner as &dyn EurekaLine)
    }

    fn disable(&self) {
        self.inner.disable();
    }
}
