//! `check`: finds out members that do not call the same collective operation.
//!
//! Switched on by `coll_base_check`; otherwise it serves no communicator, and calls do not pass through it.
//! It stands in front of all other components.
//! Before a call goes down to them, every member tells all others what it calls, in messages of the same invocation;
//! where two differ, the call ends at every member with a sentence that says who calls what ([`Mismatch`]).
//!
//! Compared are the operation, its root, its operator, and the bytes that the standard makes equal at all members (MPI 5.0, section 6.1);
//! for calls with a count for each rank, these counts where all members have to know them.
//! The messages of the check are the first of the invocation between any two members, so they never mix with those of the operation.

mod said;
#[cfg(test)]
mod tests;

pub use said::Mismatch;

use super::algo::{Blocks, allgather_bruck, bytes};
use super::{Call, CallSet, CollError, Component, Cx, Module, Refusal, Running, Table};
use crate::Error;
use crate::comm::Comm;
use mpi_base::param::{About, Level, Param};
use said::Said;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Whether members tell each other what they call.
pub static CHECK: Param<bool> = Param::new(
    "coll",
    "base",
    "check",
    "false",
    Level::USER,
    "Compare what the members of a communicator call before each collective operation, and end those that differ with a sentence.",
);

/// The component.
pub struct Check;

impl Component for Check {
    fn name(&self) -> &str {
        "check"
    }

    fn priority(&self) -> i32 {
        1000
    }

    fn params(&self) -> Vec<&'static About> {
        vec![CHECK.about()]
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let params = comm.engine().params();
        match params.get(&CHECK).map_err(|e| Refusal(e.to_string()))? {
            true => Ok(Rc::new(CheckModule(Rc::default()))),
            false => Err(Refusal("the parameter coll_base_check is off".into())),
        }
    }
}

/// One communicator's calls, which go down in the order in which they were made, however long their checks take:
/// components below may count them.
#[derive(Default)]
struct Turns {
    drawn: Cell<u64>,
    passed: Cell<u64>,
}

impl Turns {
    fn draw(&self) -> u64 {
        self.drawn.replace(self.drawn.get() + 1)
    }

    /// Checks a call and waits until all before it have gone down or failed.
    async fn check(&self, number: u64, cx: &Cx, call: &Call) -> Result<(), Error> {
        let outcome = compare(cx, call).await;
        // No message comes when a turn has come.
        let _restless = cx.engine().restless();
        poll_fn(|_| match self.passed.get() == number {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        outcome
    }

    fn pass(&self, number: u64) {
        self.passed.set(number + 1);
    }
}

struct CheckModule(Rc<Turns>);

impl Module for CheckModule {
    fn serves(&self) -> CallSet {
        CallSet::ALL
    }

    fn start(&self, cx: Cx, call: Call) -> Running {
        let (turns, number) = (self.0.clone(), self.0.draw());
        Box::pin(async move {
            let checked = turns.check(number, &cx, &call).await;
            let next = checked
                .and_then(|()| Table::of(cx.comm(), call.id()))
                .and_then(|table| table.start(cx.next_down(), call));
            turns.pass(number);
            next?.await
        })
    }

    fn run(&self, cx: Cx, call: Call) -> Result<(), Error> {
        let number = self.0.draw();
        let checked = cx.engine().block_on(self.0.check(number, &cx, &call));
        self.0.pass(number);
        checked?;
        Table::run_next(&cx, call)
    }
}

/// Tells all members what this one calls, and fails where they differ.
async fn compare(cx: &Cx, call: &Call) -> Result<(), Error> {
    let mine = Said::of(call, cx.rank()).to_bytes();
    let each = mine.len() as i64;
    let all = bytes(each * i64::from(cx.size()))?;
    let first = all.recv(0..each);
    let blocks = Blocks::equal(&first, cx.size());
    blocks.of(cx.rank()).unpack_at(0, &mine);
    allgather_bruck::allgather(cx, None, &blocks).await?;

    let told = all.all().as_send().to_vec();
    let said: Vec<Said> = told.chunks(mine.len()).map(Said::from_bytes).collect();
    match said.windows(2).all(|two| two[0] == two[1]) {
        true => Ok(()),
        false => Err(CollError::Mismatch(Mismatch::new(
            cx.comm().name(),
            cx.tag(),
            &said,
        )))?,
    }
}
