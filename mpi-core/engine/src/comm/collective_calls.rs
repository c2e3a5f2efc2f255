//! The collective operations of a communicator: the selected components, and the call numbers.
#![allow(unsafe_code)]

use super::{Collectives, Comm, FastCarrier, FastSlot, Unserved};
use crate::coll::{Call, CallId, CallSignature, FastCall, Form};
use crate::request::Req;
use crate::{Error, RunObserver};
use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// Why a communicator was created: for the program, or by a component.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    #[default]
    Program,
    /// Created by a component for steps of calls on another communicator.
    Steps,
}

/// The components selected for a communicator, and the sequence number of its next call.
#[derive(Default)]
pub(super) struct Chosen {
    /// The selected components; set when all members have agreed on them.
    table: OnceCell<Table>,
    purpose: Cell<Purpose>,
    /// The sequence number of the next call, the same on all members.
    next: Cell<i32>,
}

struct Table {
    components: Box<dyn Collectives>,
    /// For each [`CallId`], the maximum size in bytes of fast calls that are accepted,
    /// or [`NOTHING`].
    fast_call_limits: [i64; CallId::ALL.len()],
    /// For each [`CallId`], the carrier of its fast calls;
    /// [`NoComponent`] if there are none.
    fast_carriers: [Rc<dyn FastCarrier>; CallId::ALL.len()],
}

/// The limit if no fast calls are accepted: less than the size of any call.
const NOTHING: i64 = -1;

/// Carrier that fails, for collectives without fast calls.
struct NoComponent;

impl FastCarrier for NoComponent {
    unsafe fn carry_out(&self, comm: &Comm, fast_call: &FastCall<'_>) -> Result<(), Error> {
        Err(Unserved::on(comm, fast_call.id()))
    }
}

impl Table {
    fn new(components: Box<dyn Collectives>) -> Table {
        let no_component: Rc<dyn FastCarrier> = Rc::new(NoComponent);
        let mut fast_call_limits = [NOTHING; CallId::ALL.len()];
        let fast_carriers = CallId::ALL.map(|call| match components.fast_slot(call) {
            Some(FastSlot { limit, carrier }) => {
                fast_call_limits[call as usize] = limit.min(i64::MAX as usize) as i64;
                carrier
            }
            None => no_component.clone(),
        });
        Table {
            components,
            fast_call_limits,
            fast_carriers,
        }
    }
}

impl Chosen {
    pub(super) fn components(&self) -> Option<&dyn Collectives> {
        self.table.get().map(|table| &*table.components)
    }
}

/// The collective operations of a communicator.
#[derive(Clone, Copy)]
pub struct CollectiveCalls<'a> {
    comm: &'a Comm,
    chosen: &'a Chosen,
}

impl<'a> CollectiveCalls<'a> {
    #[inline(always)]
    pub(super) fn new(comm: &'a Comm, chosen: &'a Chosen) -> CollectiveCalls<'a> {
        CollectiveCalls { comm, chosen }
    }

    pub(super) fn comm(self) -> &'a Comm {
        self.comm
    }

    /// Returns the communicator's collective components, after their selection.
    pub fn components(self) -> Option<&'a dyn Collectives> {
        self.chosen.components()
    }

    /// Stores the selected components; called once, by the call that creates the communicator.
    pub(super) fn install(self, components: Box<dyn Collectives>) {
        // `set` succeeds, since `install` is called once.
        let _ = self.chosen.table.set(Table::new(components));
    }

    fn served(self, call: CallId) -> Result<&'a dyn Collectives, Error> {
        self.components()
            .ok_or_else(|| Unserved::on(self.comm, call))
    }

    /// Carries out a collective operation.
    #[inline]
    pub fn carry_out(self, call: Call) -> Result<(), Error> {
        self.comm.usable()?;
        let (number, state) = (self.next_number(), self.comm.engine().state());
        // A component's calls on derived communicators are parts of the program's call and are not published.
        let outermost = !state.is_inside();
        if outermost {
            self.publish(number, &call, Form::Blocking);
            state.inside(true);
        }
        let served = self.served(call.id());
        let outcome = served.and_then(|coll| coll.carry_out(self.comm, number, &call));
        if outermost {
            state.inside(false);
        }
        outcome
    }

    /// Carries out a fast call if the first component accepts it;
    /// otherwise does nothing and returns `None`.
    ///
    /// Only for calls of the program, not for calls by which a component carries out another call.
    #[inline(always)]
    pub fn try_fast_call(self, fast_call: &FastCall<'_>) -> Option<Result<(), Error>> {
        let (engine, table) = (self.comm.engine(), self.chosen.table.get()?);
        if fast_call.bytes() as i64 > table.fast_call_limits[fast_call.id() as usize] {
            return None;
        }
        if engine.observer().is_some() || !self.comm.is_sound() {
            return None;
        }
        let (number, state) = (self.next_number(), engine.state());
        let (comm, round) = (self.comm.context().number(), number as u64 + 1);
        let signature = fast_call.signature();
        state.collective(comm, self.comm.size(), round, signature.words());
        state.inside(true);
        let carrier = &table.fast_carriers[fast_call.id() as usize];
        // SAFETY: `Table::new` stores the carrier of each collective at the index of its `CallId`.
        let outcome = unsafe { carrier.carry_out(self.comm, fast_call) };
        state.inside(false);
        Some(outcome)
    }

    /// Starts a collective operation; the request completes as the engine progresses.
    pub fn begin(self, call: Call) -> Result<Req, Error> {
        self.begin_in_form(call, Form::Nonblocking, None)
    }

    /// Starts a persistent operation with the state that [`CollectiveCalls::plan`] returned for it.
    pub fn begin_persistent(self, call: Call, plan: Option<&Rc<dyn Any>>) -> Result<Req, Error> {
        self.begin_in_form(call, Form::Persistent, plan)
    }

    fn begin_in_form(
        self,
        call: Call,
        form: Form,
        plan: Option<&Rc<dyn Any>>,
    ) -> Result<Req, Error> {
        self.comm.usable()?;
        let number = self.next_number();
        self.publish(number, &call, form);
        let components = self.served(call.id())?;
        let running = match plan {
            Some(plan) => components.begin_planned(self.comm, number, call, plan),
            None => components.begin(self.comm, number, call),
        }?;
        Ok(self.comm.engine().operations().start(running))
    }

    /// Creates state that a persistent operation keeps between its starts;
    /// `None` if it needs no such state.
    pub fn plan(self, call: &Call) -> Option<Rc<dyn Any>> {
        self.components()?.plan(call)
    }

    /// Returns true if a component created the communicator for the steps of calls on another one.
    pub fn is_for_steps(self) -> bool {
        self.chosen.purpose.get() == Purpose::Steps
    }

    /// Sets why the communicator was created; called before components are selected.
    pub(super) fn set_purpose(self, purpose: Purpose) {
        self.chosen.purpose.set(purpose);
    }

    /// Publishes on the state page that a collective operation begins.
    /// The state page counts the operations of a communicator from 1, `number` counts them from 0.
    #[inline]
    fn publish(self, number: i32, call: &Call, form: Form) {
        let signature = CallSignature::of(call).in_form(form);
        let (comm, round) = (self.comm.context().number(), number as u64 + 1);
        let engine = self.comm.engine();
        if let Some(trace) = engine.observer().and_then(RunObserver::trace) {
            trace.rounds(comm, round, &signature);
        }
        if let Some(matrix) = engine.observer().and_then(RunObserver::matrix) {
            matrix.collective(self.comm.rank(), self.comm.peers(), call);
        }
        let size = self.comm.size();
        engine
            .state()
            .collective(comm, size, round, signature.words());
    }

    fn next_number(self) -> i32 {
        let number = self.chosen.next.get();
        self.chosen.next.set(number.wrapping_add(1) & i32::MAX);
        number
    }
}
