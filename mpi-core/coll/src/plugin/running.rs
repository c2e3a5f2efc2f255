//! Calls of a plugin's functions for collective operations.
//!
//! A blocking call uses the plugin's `run`, or `start` and then `test` until it is complete.
//! A nonblocking call, and each start of a persistent one, uses `start`, and then `test` in each progress call.
//! If the plugin has no function for a call, or its function returns `NEXT`, the call is passed to the next lower component immediately.
//! So calls reach that component in the order in which they are made. `plugin.h` requires that all members' functions return the same code.
#![allow(unsafe_code)]

use super::abi::{self, DONE, FAILED, NEXT, Operation, PENDING, Why};
use super::args::NO_PLAN;
use super::call::PluginCall;
use super::host::Services as _;
use super::module::Inner;
use super::operations::starts;
use crate::{Call, CallId, Error, Invocation, Running};
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::future::poll_fn;
use std::ptr::null_mut;
use std::rc::Rc;
use std::task::Poll;

impl Inner {
    /// Runs a blocking operation; returns `None` if the plugin's function returned `NEXT`.
    pub(super) fn run_operation(
        &self,
        operation: &Operation,
        invocation: &Invocation,
        call: &Call,
    ) -> Result<Option<()>, Error> {
        let running = PluginCall::new(invocation, call);
        let (args, pointer) = running.pointers(NO_PLAN);
        let mut why = Why::new();
        let code = match (operation.run, starts(operation)) {
            (Some(run), _) => {
                let function = call.id().name();
                // SAFETY: `this` is valid until `drop` calls `free`, and `running` outlives the call.
                self.guarded(function, || unsafe {
                    run(self.this, args, pointer, &mut why)
                })
            }
            (None, Some((start, test))) => {
                let mut ticket = 0;
                // SAFETY: `this` is valid until `drop` calls `free`, and `running` outlives the call.
                let begun = self.guarded("start", || unsafe {
                    start(self.this, args, pointer, &mut ticket, &mut why)
                });
                match begun {
                    DONE | PENDING => self.test_until_done(test, ticket, &mut why)?,
                    other => other,
                }
            }
            (None, None) => NEXT,
        };
        self.outcome(call.id(), code, &why)
    }

    /// Blocks until a started call is complete; returns the code of the plugin's function `test`.
    fn test_until_done(&self, test: abi::Test, ticket: u64, why: &mut Why) -> Result<c_int, Error> {
        let mut code = PENDING;
        let waited = self.module_comm.wait(None, &mut || {
            // SAFETY: `this` is valid until `drop` calls `free`.
            code = self.guarded("test", || unsafe { test(self.this, ticket, why) });
            code != PENDING
        });
        if let Err(reason) = waited {
            why.set(&reason);
            return Ok(FAILED);
        }
        Ok(ended(code, why))
    }

    /// Starts a nonblocking operation; returns `None` if the plugin's function returned `NEXT`.
    pub(super) fn start_operation(
        self: &Rc<Inner>,
        operation: &Operation,
        invocation: &Invocation,
        call: &Call,
        plan: Option<&Rc<dyn Any>>,
    ) -> Option<Running> {
        let (start, test) = starts(operation)?;
        let (inner, id) = (self.clone(), call.id());
        let running = PluginCall::new(invocation, call);
        let place = plan.and_then(|plan| plan.downcast_ref::<KeptPlan>());
        let (args, pointer) = running.pointers(place.map_or(NO_PLAN, |kept| kept.place.get()));
        let (mut why, mut ticket) = (Box::new(Why::new()), 0);
        // SAFETY: `this` is valid until `drop` calls `free`; `running` is boxed, and the future below keeps it until the call has ended.
        let begun = self.guarded("start", || unsafe {
            start(self.this, args, pointer, &mut ticket, &mut *why)
        });
        if begun == NEXT {
            return None;
        }
        let engine = invocation.engine().clone();
        let comm = invocation.comm().clone();
        Some(Box::pin(async move {
            let _running = running;
            let mut code = begun;
            if matches!(begun, DONE | PENDING) {
                let _polled = engine.operations().poll_always();
                code = poll_fn(|_| {
                    // SAFETY: `this` is valid until `drop` calls `free`.
                    match inner.guarded("test", || unsafe { test(inner.this, ticket, &mut *why) }) {
                        PENDING => match comm.usable() {
                            Ok(()) => Poll::Pending,
                            Err(error) => Poll::Ready(Err(error)),
                        },
                        code => Poll::Ready(Ok(ended(code, &mut why))),
                    }
                })
                .await?;
            }
            inner.outcome(id, code, &why).map(|_| ())
        }))
    }

    /// Creates the variable in which the plugin stores its pointer for a persistent operation, see `plan` in `plugin.h`.
    pub(super) fn plan(self: &Rc<Inner>, call: &Call) -> Rc<dyn Any> {
        Rc::new(KeptPlan {
            inner: self.clone(),
            call: call.id(),
            place: UnsafeCell::new(null_mut()),
        })
    }
}

/// Converts the return code of `test`: `NEXT` is an error, since a call that has been started cannot be passed down.
fn ended(code: c_int, why: &mut Why) -> c_int {
    if code == NEXT {
        why.set("its function test answered NEXT, which only start may answer");
        return FAILED;
    }
    code
}

/// The plugin's pointer for a persistent operation, kept between starts.
struct KeptPlan {
    inner: Rc<Inner>,
    call: CallId,
    place: UnsafeCell<*mut c_void>,
}

impl Drop for KeptPlan {
    fn drop(&mut self) {
        let kept = *self.place.get_mut();
        let forget = self.inner.operations.forget(self.call);
        if let (false, Some(forget)) = (kept.is_null(), forget) {
            let inner = &self.inner;
            // SAFETY: `this` is valid until `Inner::drop` calls `free`, and the plugin has stored the pointer for this function.
            inner.guarded("forget", || unsafe { forget(inner.this, kept) });
        }
    }
}
