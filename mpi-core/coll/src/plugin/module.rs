//! A plugin's module for one communicator, and the calls of its functions, except those for operations.
//!
//! A blocking barrier calls the plugin's blocking function.
//! A nonblocking barrier is a future:
//! it calls the plugin's start function once, and the test function in each progress call.
//! Until the barrier is complete, the engine must keep polling, since no message announces the completion.
#![allow(unsafe_code)]

use super::abi::{DONE, FAILED, ModuleTable, NEXT, PENDING, Why};
use super::args::NO_PLAN;
use super::call::PluginCall;
use super::host::Services as _;
use super::module_comm::ModuleComm;
use super::operations::Operations;
use super::table::Plugin;
use crate::Error;
use crate::engine::{Occasion, ProgressHook};
use crate::tickets::TicketOrder;
use crate::{Call, CallId, CollError, Invocation};
use mpi_base::plugin_file::{Owner, guarded};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// The module, owned jointly by the communicator and by every operation in progress.
pub(super) struct Inner {
    pub(super) plugin: Rc<Plugin>,
    pub(super) table: ModuleTable,
    pub(super) this: *mut c_void,
    pub(super) module_comm: Rc<ModuleComm>,
    pub(super) operations: Operations,
    pub(super) tickets: TicketOrder,
    pub(super) enabled: Cell<bool>,
    /// The path of the component's file, or the library's name.
    pub(super) origin: Rc<str>,
}

impl Owner for Inner {
    fn component(&self) -> &str {
        self.plugin.name
    }

    fn file(&self) -> &str {
        &self.origin
    }
}

impl Inner {
    pub(super) fn disable(&self) {
        if let (true, Some(disable)) = (self.enabled.replace(false), self.table.disable) {
            // SAFETY: `this` is valid until `drop` calls `free`.
            self.guarded("disable", || unsafe { disable(self.this) });
        }
    }

    /// Calls a function of the plugin; ends the process if the function throws an exception.
    #[inline(always)]
    pub(super) fn guarded<R>(&self, function: &'static str, call: impl FnOnce() -> R) -> R {
        guarded(self, function, call)
    }

    /// Converts a function's return code to a result; the code `NEXT` becomes `None`.
    pub(super) fn outcome(
        &self,
        call: CallId,
        code: c_int,
        why: &Why,
    ) -> Result<Option<()>, Error> {
        let reason = match code {
            DONE => return Ok(Some(())),
            NEXT => return Ok(None),
            FAILED => {
                // After a member's death, return the error about the death instead of the plugin's error.
                self.module_comm.usable()?;
                self.module_comm
                    .take_reason()
                    .unwrap_or_else(|| why.sentence())
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
            Some(start) => {
                // SAFETY: `this` is valid until `drop` calls `free`.
                self.guarded("barrier_start", || unsafe { start(self.this, ticket, why) })
            }
            None => NEXT,
        }
    }

    fn test(&self, ticket: u64, why: &mut Why) -> c_int {
        match self.table.barrier_test {
            Some(test) => {
                // SAFETY: `this` is valid until `drop` calls `free`.
                self.guarded("barrier_test", || unsafe { test(self.this, ticket, why) })
            }
            None => NEXT,
        }
    }

    pub(super) fn has_split(&self) -> bool {
        self.table.barrier_start.is_some() && self.table.barrier_test.is_some()
    }

    /// Runs a blocking barrier; returns `None` if the plugin's function returned `NEXT`.
    pub(super) fn run(&self, invocation: &Invocation, call: &Call) -> Result<Option<()>, Error> {
        let mut why = Why::new();
        let code = match self.table.barrier {
            Some(barrier) => {
                let running = PluginCall::new(invocation, call);
                let (_, pointer) = running.pointers(NO_PLAN);
                // SAFETY: `this` is valid until `drop` calls `free`, and `running` outlives the call.
                self.guarded("barrier", || unsafe {
                    barrier(self.this, pointer, &mut why)
                })
            }
            None => self.run_split(call.id(), &mut why)?,
        };
        self.outcome(call.id(), code, &why)
    }

    /// Runs a blocking barrier for a plugin that has only the functions of a nonblocking barrier.
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

    /// Runs a nonblocking barrier; returns `None` if the plugin's function returned `NEXT`.
    pub(super) async fn start(
        &self,
        invocation: &Invocation,
        call: CallId,
    ) -> Result<Option<()>, Error> {
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
            self.guarded("attend", || unsafe { attend(self.this) });
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.disable();
        if let Some(free) = self.table.free {
            // SAFETY: `drop` runs once, for the last owner, so this is the module's last call; `module_comm` is dropped after it.
            self.guarded("free", || unsafe { free(self.this) });
        }
    }
}
