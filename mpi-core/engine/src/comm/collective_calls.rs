//! The collective operations of a communicator: the selected components, and the call numbers.

use super::selected::{Purpose, SHARING, Table, Words};
use super::spares::Spares;
use super::{Collectives, Comm, CommError, Unserved};
use crate::coll::{Call, CallId, CallSignature, FastCall, Form};
use crate::engine::{Engine, Polls};
use crate::request::Req;
use crate::{Error, RunObserver};
use mpi_base::atomic::{Ordering, fence};
use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// The components selected for a communicator, and the sequence number of its next call.
#[derive(Default)]
pub(super) struct Chosen {
    /// The selected components; set when all members have agreed on them.
    /// Boxed, since a table of more than 1 KiB would be copied for each spare.
    table: OnceCell<Box<Table>>,
    purpose: Cell<Purpose>,
    /// The number of the spare that the components become when the communicator is freed.
    spare: Cell<Option<usize>>,
    /// The sequence number of the next call, the same on all members.
    next: Cell<i32>,
    /// The number of exchanges of words for duplicates, the same on all members.
    exchanges: Cell<u64>,
}

impl Chosen {
    pub(super) fn components(&self) -> Option<&dyn Collectives> {
        self.table.get().map(|table| table.components())
    }

    /// Ends the communicator's use of its components; called when it is freed.
    /// After a revocation members may have interrupted an operation at different steps, so the components become no spare.
    pub(super) fn end(&mut self, engine: &Engine, is_revoked: bool) {
        let Some(table) = self.table.take() else {
            return;
        };
        match self.spare.get().filter(|_| !is_revoked) {
            Some(spare) => Spares::of(engine).keep(engine, spare, table),
            None => table.disable(),
        }
    }
}

/// Maximum number of members of a communicator whose new requests are polled several times.
/// With more members, a poll takes longer, and it is less likely that all others arrive soon.
const POLLED_EARLY: u32 = 8;

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
        let _ = self.chosen.table.set(Box::new(Table::new(components)));
    }

    /// Stores the components of a spare instead of selecting components.
    pub(super) fn reuse(self, table: Box<Table>, spare: usize) {
        self.explain(table.components());
        self.becomes_spare(spare);
        table.prefetch_next();
        let _ = self.chosen.table.set(table);
    }

    /// When the communicator is freed, its components become the spare with this number.
    pub(super) fn becomes_spare(self, spare: usize) {
        self.chosen.spare.set(Some(spare));
    }

    /// Returns true if a later communicator of the same members can use the components,
    /// and if [`CollectiveCalls::share_words`] is possible. All members get the same result.
    pub(super) fn are_reusable(self) -> bool {
        let table = self.chosen.table.get();
        self.comm.size() as usize <= SHARING && table.is_some_and(|table| table.is_reusable())
    }

    /// Allgather of a few words by a fast call, as a part of another collective call; only if [`CollectiveCalls::are_reusable`].
    /// The words of rank `i` are at index `i`.
    pub(super) fn share_words(self, mine: &Words) -> Result<[Words; SHARING], Error> {
        self.comm.usable()?;
        match self.chosen.table.get() {
            Some(table) => table.share_words(self.comm, mine),
            None => Err(Unserved::on(self.comm, CallId::Allgather)),
        }
    }

    /// Returns the number of the next exchange of words for a duplicate.
    pub(super) fn next_exchange(self) -> u64 {
        let number = self.chosen.exchanges.get();
        self.chosen.exchanges.set(number + 1);
        number
    }

    /// Allgather of words by a fast call, as a part of another collective call.
    /// Does nothing and returns `None`, on all members, if the first component does not accept it.
    ///
    /// Orders memory accesses of all members before it with those of all members after it.
    /// `kind` distinguishes exchanges: it must be equal on all members.
    pub(super) fn try_share(self, kind: u32, mine: &[u64]) -> Option<Result<Vec<u64>, Error>> {
        let (table, each) = (self.chosen.table.get()?, mine.len() + 1);
        if !table.may_share(each) || self.comm.engine().is_fault_tolerant() {
            return None;
        }
        Some(self.comm.usable().and_then(|()| {
            // The cells still contain the words of earlier exchanges,
            // so the first word states what the member exchanges.
            let head = u64::from(kind) << 32 | mine.len() as u64;
            let mut words = Vec::with_capacity(each);
            words.push(head);
            words.extend_from_slice(mine);
            let mut all = vec![0; each * self.comm.size() as usize];
            fence(Ordering::SeqCst);
            table.share(self.comm, &words, &mut all)?;
            fence(Ordering::SeqCst);
            let mut members = (0..).zip(all.chunks_exact(each));
            if let Some((rank, _)) = members.find(|(_, words)| words[0] != head) {
                return Err(CommError::Unpaired { rank }.into());
            }
            let members = all.chunks_exact(each);
            Ok(members.flat_map(|words| &words[1..]).copied().collect())
        }))
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
    /// Only for calls of the program, not for calls by which a component or the library carries out another call.
    #[inline(always)]
    pub fn try_fast_call(self, fast_call: &FastCall<'_>) -> Option<Result<(), Error>> {
        let (engine, table) = (self.comm.engine(), self.chosen.table.get()?);
        if !table.accepts(fast_call.id(), fast_call.bytes()) {
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
        let outcome = table.carry_out(self.comm, fast_call);
        state.inside(false);
        Some(outcome)
    }

    /// Starts a fast call as a request if the first component accepts that;
    /// otherwise does nothing and returns `None`.
    ///
    /// If the first polls complete the operation, there is no request ([`Operations::start_unless_complete`](crate::engine::Operations::start_unless_complete)).
    #[inline]
    pub fn try_fast_request(
        self,
        fast_call: FastCall<'static>,
    ) -> Option<Result<Option<Req>, Error>> {
        let (engine, table) = (self.comm.engine(), self.chosen.table.get()?);
        if !table.accepts_request(fast_call.id(), fast_call.bytes()) {
            return None;
        }
        if engine.observer().is_some() || !self.comm.is_sound() {
            return None;
        }
        let round = self.next_number() as u64 + 1;
        let (comm, size) = (self.comm.context().number(), self.comm.size());
        let signature = fast_call.signature().in_form(Form::Nonblocking);
        engine
            .state()
            .collective(comm, size, round, signature.words());
        let begun = table.begin(self.comm, fast_call);
        let polls = match size <= POLLED_EARLY {
            true => Polls::Several,
            false => Polls::One,
        };
        Some(begun.map(|running| engine.operations().start_unless_complete(running?, polls)))
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

    /// Returns true if the communicator is only created for later duplicates.
    pub(super) fn is_spare(self) -> bool {
        self.chosen.purpose.get() == Purpose::Spare
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
        // Both groups of an intercommunicator take part.
        let other_group = match self.comm.is_inter() {
            true => self.comm.peers().size(),
            false => 0,
        };
        let members = self.comm.size() + other_group;
        engine
            .state()
            .collective(comm, members, round, signature.words());
    }

    fn next_number(self) -> i32 {
        let number = self.chosen.next.get();
        self.chosen.next.set(number.wrapping_add(1) & i32::MAX);
        number
    }
}
