//! `check`: component that detects members that do not call the same collective operation.
//!
//! Enabled by `coll_base_check`.
//! If the parameter is false, the component serves no communicator and costs nothing.
//! `check` has the highest priority of all components, so it gets every call first.
//! Before it passes a call to the next component, every member sends its call signature to all others,
//! in messages of the same invocation.
//! If two call signatures differ,
//! the call fails on every member with an error that lists the call of each member ([`Mismatch`]).
//!
//! The check compares the operation, whether it is blocking, nonblocking or persistent, its root, its operator,
//! and the byte counts that the standard makes equal (MPI 5.0, section 6.1).
//! For calls with several counts,
//! it compares the sent bytes with the bytes that each receiver expects ([`amounts`]).
//! For neighbourhood collectives, it compares the bytes along each edge of the topology ([`edges`]).
//! If the byte counts agree, it compares the type signatures ([`types`]).
//! Between any two members, the messages of the check are the first of the invocation,
//! so they never match other messages of the operation.

mod amounts;
mod difference;
mod edges;
mod mismatch;
#[cfg(test)]
mod tests;
mod types;

pub use mismatch::{CallSignature, Mismatch};

use super::priority;
use super::tickets::{Ticket, TicketOrder};
use super::{
    Call, CallSet, CollError, Component, Form, Invocation, Module, Refusal, Running, Table,
};
use crate::Error;
use crate::comm::Comm;
use mismatch::Difference;
use mpi_base::param::{About, Level, Param};
use std::any::Any;
use std::rc::Rc;

/// Parameter `coll_base_check`: enables the comparison of call signatures.
pub static CHECK: Param<bool> = Param::new(
    "coll",
    "base",
    "check",
    "false",
    Level::USER,
    "Before each collective operation, compare the calls of all members (function, root, count, type signature, operator); a difference is an error that names it",
);

static PRIORITY: About = priority::about("check", "1000");

/// The component `check`.
pub struct Check;

impl Component for Check {
    fn name(&self) -> &str {
        "check"
    }

    fn priority(&self) -> i32 {
        1000
    }

    fn params(&self) -> Vec<&'static About> {
        vec![&PRIORITY, CHECK.about()]
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let params = comm.engine().params();
        match params.get(&CHECK).map_err(|e| Refusal(e.to_string()))? {
            true => Ok(Rc::new(CheckModule(TicketOrder::default()))),
            false => Err(Refusal("the parameter coll_base_check is off".into())),
        }
    }
}

/// The module of one communicator.
/// It passes calls to the next component in the order in which they were made,
/// even if the check of a later call completes first,
/// because the components of lower priority may count the calls.
struct CheckModule(TicketOrder);

/// Checks a call, and then waits until all earlier calls have been passed to the next component or have failed.
async fn check(
    ticket: &Ticket,
    invocation: &Invocation,
    call: &Call,
    form: Form,
) -> Result<(), Error> {
    let outcome = compare(invocation, call, form).await;
    ticket.come(invocation.engine()).await;
    outcome
}

impl Module for CheckModule {
    fn serves(&self) -> CallSet {
        CallSet::ALL
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn start(&self, invocation: Invocation, call: Call) -> Running {
        self.start_in_form(invocation, call, Form::Nonblocking)
    }

    /// Returns an empty plan, so that each start of a persistent operation calls [`Module::start_planned`].
    fn plan(&self, _call: &Call) -> Option<Rc<dyn Any>> {
        Some(Rc::new(()))
    }

    fn start_planned(&self, invocation: Invocation, call: Call, _plan: &Rc<dyn Any>) -> Running {
        self.start_in_form(invocation, call, Form::Persistent)
    }

    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        let ticket = self.0.draw();
        invocation
            .engine()
            .block_on(check(&ticket, invocation, call, Form::Blocking))?;
        ticket.pass();
        Table::run_next(invocation, call)
    }
}

impl CheckModule {
    fn start_in_form(&self, invocation: Invocation, call: Call, form: Form) -> Running {
        let ticket = self.0.draw();
        Box::pin(async move {
            let checked = check(&ticket, &invocation, &call, form).await;
            let next = checked
                .and_then(|()| Table::of(invocation.comm(), call.id()))
                .and_then(|table| table.start(invocation.next_down(), call));
            ticket.pass();
            next?.await
        })
    }
}

async fn compare(invocation: &Invocation, call: &Call, form: Form) -> Result<(), Error> {
    let signature = CallSignature::of(call).in_form(form).words();
    let mine: Vec<u64> = signature.into_iter().chain(types::words(call)).collect();
    let all = difference::share(invocation, &mine).await?;
    let members = || {
        let members = all.chunks(mine.len());
        members.map(|words| words.split_at(signature.len()))
    };
    let signatures: Vec<CallSignature> = members()
        .map(|(signature, _)| CallSignature::from_words(signature))
        .collect();
    let types: Vec<u64> = members().flat_map(|(_, types)| types).copied().collect();
    // All members have received the same words, so either all of them compare the byte counts or none does.
    let difference = if signatures.windows(2).any(|two| two[0] != two[1]) {
        Some(Difference::calls(&signatures))
    } else {
        let amounts = amounts::compare(invocation, call, form).await?;
        let types = || (!types::agree(&types)).then(|| Difference::types(&signatures, &types));
        amounts.map(Difference::Amounts).or_else(types)
    };
    match difference {
        None => Ok(()),
        Some(difference) => Err(CollError::Mismatch(Mismatch::new(
            invocation.comm().label(),
            invocation.tag(),
            difference,
        )))?,
    }
}
