//! A plugin as a component of the coll framework: C tables in, [`Component`] and [`Module`] out.
//!
//! A blocking barrier calls the plugin's blocking function.
//! A nonblocking barrier is a future that calls the plugin's start function, and its test function in every turn of progress.
//! Meanwhile the engine must keep polling, since no message announces completion.
//!
//! A plugin may pass a barrier down long after the call, and at a different time than on other members, for instance when hardware is abandoned.
//! Lower components number the barriers that reach them, so barriers go down in call order ([`TicketOrder`]).
//! Lower components also count barriers separately from other calls, which do not pass through here and may overtake.
#![allow(unsafe_code)]

use super::abi::{self, DONE, FAILED, ModuleTable, NEXT, PENDING, Why};
use super::host::Services as _;
use super::module_comm::{HOST, ModuleComm, PluginCall, Values, values};
use super::table::Plugin;
use crate::Error;
use crate::comm::Comm;
use crate::engine::{Occasion, ProgressHook};
use crate::select::Table;
use crate::tickets::TicketOrder;
use crate::{
    Call, CallId, CallSet, CollError, Component, EurekaLine, Invocation, Module, Refusal, Running,
};
use mpi_base::node::RetiredBlocks;
use mpi_base::param::{About, Params};
use std::cell::{Cell, OnceCell};
use std::ffi::{c_int, c_void};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

pub(super) struct PluginComponent {
    plugin: Rc<Plugin>,
    retired: Rc<RetiredBlocks>,
    /// The plugin's pointer, see `component_data` in the header.
    data: Rc<Cell<*mut c_void>>,
    /// The parameters' values as C strings, made for the first communicator.
    values: OnceCell<Rc<Values>>,
}

impl PluginComponent {
    pub fn new(plugin: Rc<Plugin>) -> PluginComponent {
        PluginComponent {
            retired: Rc::default(),
            data: Rc::new(Cell::new(std::ptr::null_mut())),
            values: OnceCell::new(),
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

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        if !comm.engine().operations().may_block() {
            // The same on every member: nonblocking and blocking calls do not match each other.
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
        let (mut this, mut why) = (std::ptr::null_mut(), Why::new());
        // SAFETY: `Plugin::check`'s caller vouches for the plugin's functions; `module_comm` lives until after the module's `free`.
        let table = unsafe {
            (self.plugin.query)(
                &HOST,
                Rc::as_ptr(&module_comm).cast_mut().cast(),
                &mut this,
                &mut why,
            )
        };
        if table.is_null() {
            return Err(Refusal(why.sentence()));
        }
        // SAFETY: the plugin ABI: a non-null table begins with its size and stays valid as long as the module.
        let table = unsafe { abi::read(table) };
        let module = PluginModule(Rc::new(Inner {
            plugin: self.plugin.clone(),
            table,
            this,
            module_comm,
            tickets: TicketOrder::default(),
            enabled: Cell::new(false),
        }));
        if module.serves() == CallSet::NONE {
            return Err(Refusal("its module has no functions".into()));
        }
        Ok(Rc::new(module))
    }
}

struct PluginModule(Rc<Inner>);

/// The module, owned by the communicator and by every operation in progress.
pub(super) struct Inner {
    pub(super) plugin: Rc<Plugin>,
    pub(super) table: ModuleTable,
    pub(super) this: *mut c_void,
    pub(super) module_comm: Rc<ModuleComm>,
    tickets: TicketOrder,
    enabled: Cell<bool>,
}

impl Inner {
    fn disable(&self) {
        if let (true, Some(disable)) = (self.enabled.replace(false), self.table.disable) {
            // SAFETY: `this` is valid until `drop` calls `free`.
            unsafe { disable(self.this) };
        }
    }

    /// Converts a function's return code; `None` is `NEXT`.
    fn outcome(&self, call: CallId, code: c_int, why: &Why) -> Result<Option<()>, Error> {
        let reason = match code {
            DONE => return Ok(Some(())),
            NEXT => return Ok(None),
            FAILED => {
                // After a member's death the program gets that error and not the component's.
                self.module_comm.usable()?;
                why.sentence()
            }
            unknown => format!("it answered {unknown}, which means nothing here"),
        };
        let (component, comm) = (
            self.plugin.name.into(),
            self.module_comm.name().to_string_lossy().into_owned(),
        );
        Err(CollError::Component {
            component,
            call,
            comm,
            reason,
        }
        .into())
    }

    fn begin(&self, ticket: &mut u64, why: &mut Why) -> c_int {
        match self.table.barrier_start {
            // SAFETY: `this` is valid until `drop` calls `free`.
            Some(start) => unsafe { start(self.this, ticket, why) },
            None => NEXT,
        }
    }

    fn test(&self, ticket: u64, why: &mut Why) -> c_int {
        match self.table.barrier_test {
            // SAFETY: `this` is valid until `drop` calls `free`.
            Some(test) => unsafe { test(self.this, ticket, why) },
            None => NEXT,
        }
    }

    fn has_split(&self) -> bool {
        self.table.barrier_start.is_some() && self.table.barrier_test.is_some()
    }

    /// Blocking form; `None` is `NEXT`.
    fn run(&self, invocation: &Invocation, call: &Call) -> Result<Option<()>, Error> {
        let mut why = Why::new();
        let code = match self.table.barrier {
            Some(barrier) => {
                let mut invocation = PluginCall {
                    invocation: invocation.clone(),
                    call: call.clone(),
                };
                // SAFETY: `this` is valid until `drop` calls `free`, and `invocation` outlives the call.
                unsafe { barrier(self.this, (&raw mut invocation).cast(), &mut why) }
            }
            None => self.run_split(call.id(), &mut why)?,
        };
        self.outcome(call.id(), code, &why)
    }

    /// Blocking form for a plugin with a nonblocking barrier only.
    fn run_split(&self, call: CallId, why: &mut Why) -> Result<c_int, Error> {
        let mut ticket = 0;
        let mut code = self.begin(&mut ticket, why);
        if matches!(code, DONE | PENDING) {
            let waited = self.module_comm.wait(None, &mut || {
                code = self.test(ticket, why);
                code != PENDING
            });
            if let Err(reason) = waited {
                why.set(&reason);
                return self.outcome(call, FAILED, why).map(|_| FAILED);
            }
        }
        Ok(code)
    }

    /// Nonblocking form; `None` is `NEXT`.
    async fn start(&self, invocation: &Invocation, call: CallId) -> Result<Option<()>, Error> {
        let mut why = Why::new();
        let mut ticket = 0;
        let mut code = if self.has_split() {
            self.begin(&mut ticket, &mut why)
        } else {
            NEXT
        };
        if matches!(code, DONE | PENDING) {
            let _polled = invocation.engine().operations().poll_always();
            code = poll_fn(|_| match self.test(ticket, &mut why) {
                PENDING => match invocation.comm().usable() {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                },
                code => Poll::Ready(Ok(code)),
            })
            .await?;
        }
        self.outcome(call, code, &why)
    }
}

impl ProgressHook for Inner {
    fn attend(&self, occasion: Occasion) {
        if let (true, Some(attend)) = (self.enabled.get(), self.table.attend)
            && (occasion == Occasion::Time || self.module_comm.has_news())
        {
            // SAFETY: `this` is valid until `drop` calls `free`.
            unsafe { attend(self.this) };
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.disable();
        if let Some(free) = self.table.free {
            // SAFETY: `drop` runs once, for the last owner, so this is the module's last call; `module_comm` is dropped after it.
            unsafe { free(self.this) };
        }
    }
}

impl Module for PluginModule {
    fn serves(&self) -> CallSet {
        if self.0.table.barrier.is_some() || self.0.has_split() {
            CallSet::NONE.with(CallId::Barrier)
        } else {
            CallSet::NONE
        }
    }

    fn sets_up(&self) -> bool {
        true
    }

    fn enable<'a>(
        &'a self,
        comm: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        Box::pin(async move {
            let inner = &*self.0;
            inner.module_comm.begin(comm);
            inner.enabled.set(true);
            if inner.table.attend.is_some() {
                let weak = Rc::downgrade(&self.0);
                comm.engine().operations().enlist(weak);
            }
            let mut why = Why::new();
            let answered = match inner.table.enable {
                // SAFETY: `this` is valid until `drop` calls `free`.
                Some(enable) => unsafe { enable(inner.this, &mut why) },
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
        let inner = self.0.clone();
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

    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        let ticket = self.0.tickets.draw();
        if self.0.run(invocation, call)?.is_some() {
            return Ok(());
        }
        invocation
            .engine()
            .block_on(ticket.come(invocation.engine()));
        Table::run_next(invocation, call)
    }

    fn eureka(&self) -> Option<&dyn EurekaLine> {
        self.0.has_line().then_some(&*self.0 as &dyn EurekaLine)
    }

    fn disable(&self) {
        self.0.disable();
    }
}
