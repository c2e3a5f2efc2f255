//! `basic`: every collective by one simple algorithm, on every communicator, always.
//!
//! It never refuses, so no call stays unserved; `tuned` chooses better where there is something to choose.

use super::algo::Algorithm;
use super::{Call, CallSet, Component, Cx, Module, Refusal, Running};
use crate::Error;
use crate::comm::Comm;
use std::rc::Rc;

/// The component.
pub struct Basic;

impl Component for Basic {
    fn name(&self) -> &str {
        "basic"
    }

    fn priority(&self) -> i32 {
        10
    }

    fn query(&self, _: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        Ok(Rc::new(Basic))
    }
}

impl Module for Basic {
    fn serves(&self) -> CallSet {
        CallSet::ALL
    }

    fn start(&self, cx: Cx, call: Call) -> Running {
        Box::pin(carry_out(cx, call))
    }

    fn run(&self, cx: Cx, call: Call) -> Result<(), Error> {
        let engine = cx.engine().clone();
        engine.block_on(carry_out(cx, call))
    }
}

async fn carry_out(cx: Cx, call: Call) -> Result<(), Error> {
    match Algorithm::serving(call.id()).next() {
        Some(first) => first.run(&cx, call).await,
        None => Ok(()),
    }
}
