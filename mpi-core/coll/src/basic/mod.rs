//! `basic`: one simple algorithm for each collective, on every communicator.
//!
//! `basic` supports every call, so there is always a component for it;
//! `tuned` chooses better algorithms for collectives that have several.

use super::algo::Algorithm;
use super::priority;
use super::reproducible::{REPRODUCIBLE, is_sensitive};
use super::{Call, CallSet, Component, Invocation, Module, Refusal, Running};
use crate::Error;
use crate::comm::Comm;
use mpi_base::param::About;
use std::rc::Rc;

static PRIORITY: About = priority::about("basic", "10");

/// The component `basic`.
pub struct Basic;

impl Component for Basic {
    fn name(&self) -> &str {
        "basic"
    }

    fn priority(&self) -> i32 {
        10
    }

    fn params(&self) -> Vec<&'static About> {
        vec![&PRIORITY, REPRODUCIBLE.about()]
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let reproducible = comm.engine().params().get(&REPRODUCIBLE);
        Ok(Rc::new(BasicModule {
            reproducible: reproducible.map_err(|e| Refusal(e.to_string()))?,
        }))
    }
}

struct BasicModule {
    reproducible: bool,
}

impl BasicModule {
    fn choose(&self, call: &Call) -> Option<Algorithm> {
        Algorithm::usual(call.id(), self.reproducible && is_sensitive(call))
    }
}

impl Module for BasicModule {
    fn serves(&self) -> CallSet {
        CallSet::ALL
    }

    fn is_reusable(&self) -> bool {
        true
    }

    fn start(&self, invocation: Invocation, call: Call) -> Running {
        let algorithm = self.choose(&call);
        Box::pin(async move { carry_out(algorithm, &invocation, &call).await })
    }

    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        invocation
            .engine()
            .block_on(carry_out(self.choose(call), invocation, call))
    }
}

async fn carry_out(
    algorithm: Option<Algorithm>,
    invocation: &Invocation,
    call: &Call,
) -> Result<(), Error> {
    match algorithm {
        Some(algorithm) => algorithm.run(invocation, call).await,
        None => Ok(()),
    }
}
