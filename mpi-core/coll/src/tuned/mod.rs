//! `tuned`: selects the algorithm of every collective from a decision table, by the number of ranks, the number of bytes and oversubscription.
//!
//! The table is a text ([`rules`]); the file in `coll_tuned_rules` replaces it, and `coll_tuned_<call>_algorithm` forces one algorithm.
//! The criteria must be equal on all members:
//! the size of the communicator, the byte counts that the standard makes equal,
//! and whether ranks are oversubscribed, which rank 0 decides and sends to the others when the communicator is created.
//! An algorithm that reorders operands is skipped if the operator does not commute.
//! An unreadable table, or an unknown algorithm's name, ends the job with an error.

mod params;
pub(crate) mod rules;
#[cfg(test)]
mod tests;

use super::algo::Algorithm;
use super::priority;
use super::reproducible::{REPRODUCIBLE, is_sensitive};
use super::{Call, CallId, CallSet, Component, Invocation, Module, Refusal, Running};
use crate::Error;
use crate::comm::Comm;
use mpi_base::occupancy::Occupancy;
use mpi_base::param::{About, Params};
use mpi_base::text;
use rules::{Rules, Setting, Step, algorithm_named};
use std::cell::{OnceCell, RefCell};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

static PRIORITY: About = priority::about("tuned", "30");

/// The component `tuned`.
#[derive(Default)]
pub struct Tuned {
    /// The parsed settings, or the error; set when the first communicator is created.
    choices: OnceCell<Result<Rc<Choices>, String>>,
}

impl Component for Tuned {
    fn name(&self) -> &str {
        "tuned"
    }

    fn priority(&self) -> i32 {
        30
    }

    fn params(&self) -> Vec<&'static About> {
        std::iter::once(&PRIORITY).chain(params::all()).collect()
    }

    fn verify(&self, params: &Params) -> Result<(), String> {
        read(params)?;
        forced(params).map(|_| ())
    }

    fn explain(&self, params: &Params, call: CallId) -> Vec<String> {
        let (rules, forced) = match (read(params), forced(params)) {
            (Ok(rules), Ok(forced)) => (rules, forced),
            (Err(why), _) | (_, Err(why)) => return vec![why],
        };
        let mut lines = match forced[call as usize] {
            Some(algorithm) => vec![format!("{} always, as a parameter says", algorithm.name())],
            None => rules.explain(call),
        };
        let names: Vec<&str> = Algorithm::serving(call).map(Algorithm::name).collect();
        lines.push(format!("there are {}", names.join(", ")));
        lines
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let read = || Choices::read(comm.engine().params());
        let choices = self.choices.get_or_init(read).clone();
        Ok(Rc::new(TunedModule {
            choices: choices.map_err(Refusal)?,
            plan: OnceCell::new(),
        }))
    }
}

/// For each [`CallId`], the algorithm that a parameter forces.
type Forced = [Option<Algorithm>; CallId::ALL.len()];

fn forced(params: &Params) -> Result<Forced, String> {
    let mut forced = [None; CallId::ALL.len()];
    for call in CallId::ALL {
        let about = params::algorithm(call).about();
        let name = params.text(about);
        if !name.is_empty() {
            let complain = |expected| {
                let parameter = about.full_name();
                format!("{parameter} is \"{name}\", but {expected} is expected")
            };
            forced[call as usize] = Some(algorithm_named(call, name).map_err(complain)?);
        }
    }
    Ok(forced)
}

fn read(params: &Params) -> Result<Rules, String> {
    let file = params.text(params::RULES.about());
    let complain = |what: &dyn std::fmt::Display| format!("the decision table {file}: {what}");
    let text = match file {
        "" => rules::BUILT_IN.into(),
        _ => std::fs::read_to_string(text::to_path(file)).map_err(|e| complain(&e))?,
    };
    Rules::parse(&text).map_err(|e| complain(&e))
}

struct Choices {
    rules: Rules,
    forced: Forced,
    reproducible: bool,
    /// A hash of all settings that must be equal on all members.
    fingerprint: u64,
    /// The plan of the previous communicator, since most communicators have the same number of members.
    last: RefCell<Option<(Setting, Rc<Plan>)>>,
}

/// For each [`CallId`], the rows of the table that apply to a communicator.
type Plan = [Box<[Step]>; CallId::ALL.len()];

impl Choices {
    fn read(params: &Params) -> Result<Rc<Choices>, String> {
        let (rules, forced) = (read(params)?, forced(params)?);
        let reproducible = params.get(&REPRODUCIBLE).map_err(|e| e.to_string())?;
        Ok(Choices::new(rules, forced, reproducible))
    }

    fn new(rules: Rules, forced: Forced, reproducible: bool) -> Rc<Choices> {
        let mut hasher = std::hash::DefaultHasher::new();
        let names = forced.map(|algorithm| algorithm.map(Algorithm::name));
        (&rules, names, reproducible).hash(&mut hasher);
        Rc::new(Choices {
            rules,
            forced,
            reproducible,
            fingerprint: hasher.finish(),
            last: RefCell::default(),
        })
    }

    fn plan(&self, setting: Setting) -> Rc<Plan> {
        let mut last = self.last.borrow_mut();
        if let Some((of, plan)) = &*last
            && *of == setting
        {
            return plan.clone();
        }
        let steps = |call: CallId| match self.forced[call as usize] {
            Some(algorithm) => [(0, algorithm)].into(),
            None => self.rules.steps(call, setting),
        };
        let plan = Rc::new(CallId::ALL.map(steps));
        *last = Some((setting, plan.clone()));
        plan
    }
}

struct TunedModule {
    choices: Rc<Choices>,
    plan: OnceCell<Rc<Plan>>,
}

impl TunedModule {
    /// Returns the algorithm for a call;
    /// if no row of the table applies, the default algorithm.
    fn choose(&self, call: &Call, ranks: u32) -> Option<Algorithm> {
        let bytes = decisive_bytes(call, ranks);
        let steps = self
            .plan
            .get()
            .map_or(&[][..], |plan| &plan[call.id() as usize]);
        let fixed = self.choices.reproducible && is_sensitive(call);
        let mut met = steps
            .iter()
            .rev()
            .filter(|(from, _)| *from <= bytes)
            .map(|(_, a)| *a);
        met.find(|a| a.suits(call) && (!fixed || a.is_fixed()))
            .or_else(|| Algorithm::usual(call.id(), fixed))
    }
}

/// Returns the number of bytes that is compared with the table; the standard makes it equal on all members.
fn decisive_bytes(call: &Call, ranks: u32) -> i64 {
    let bytes = call.agreed_bytes().unwrap_or(0);
    match call {
        Call::ReduceScatterBlock { .. } => bytes.saturating_mul(ranks.into()),
        _ => bytes,
    }
}

impl Module for TunedModule {
    fn serves(&self) -> CallSet {
        CallSet::ALL
    }

    /// Appends what could differ between members: whether ranks are oversubscribed, and the fingerprint of rank 0's choices.
    fn export_config(&self, comm: &Comm, config: &mut Vec<u8>) {
        config.push(comm.engine().waiting().occupancy() as u8);
        config.extend(self.choices.fingerprint.to_le_bytes());
    }

    /// Selects the rows for this communicator; an error if this process's choices differ from rank 0's.
    fn import_config(&self, comm: &Comm, config: &[u8]) -> Result<(), Refusal> {
        let own = self.choices.fingerprint.to_le_bytes();
        let configured = config.split_first().filter(|(_, choices)| *choices == own);
        let occupancy =
            configured.and_then(|(number, _)| Occupancy::from_number(u64::from(*number)));
        let Some(occupancy) = occupancy else {
            let why = "its decision table, forced algorithms or coll_base_reproducible are not those of rank 0";
            return Err(Refusal(why.into()));
        };
        let plan = self.choices.plan(Setting {
            ranks: comm.size(),
            occupancy,
        });
        let _ = self.plan.set(plan);
        Ok(())
    }

    fn explain(&self, call: CallId) -> Option<String> {
        Some(shown(&self.plan.get()?[call as usize], call))
    }

    fn is_reusable(&self) -> bool {
        true
    }

    fn start(&self, invocation: Invocation, call: Call) -> Running {
        let algorithm = self.choose(&call, invocation.size());
        Box::pin(async move { carry_out(algorithm, &invocation, &call).await })
    }

    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        invocation.engine().block_on(carry_out(
            self.choose(call, invocation.size()),
            invocation,
            call,
        ))
    }
}

/// Formats the algorithms with the numbers of bytes from which they are used, without those that are never used.
fn shown(steps: &[Step], call: CallId) -> String {
    let ladder = |serves: fn(Algorithm) -> bool| -> Vec<Step> {
        let steps = steps.iter().filter(|(_, algorithm)| serves(*algorithm));
        let mut ladder: Vec<Step> = Vec::new();
        for &(from, algorithm) in steps {
            ladder.retain(|(lower, _)| *lower < from);
            ladder.push((from, algorithm));
        }
        // The default algorithm is used below the first row, or if there are no rows.
        if ladder.first().is_none_or(|(from, _)| *from > 0) {
            let usual = Algorithm::usual(call, false).filter(|usual| serves(*usual));
            ladder.splice(0..0, usual.map(|usual| (0, usual)));
        }
        ladder.dedup_by_key(|(_, algorithm)| *algorithm);
        ladder
    };
    let told = |ladder: &[Step]| {
        let each = ladder.iter().map(|(from, algorithm)| match from {
            0 => algorithm.name().to_string(),
            _ => format!("from {from} bytes {}", algorithm.name()),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let (all, ordered) = (ladder(|_| true), ladder(Algorithm::keeps_order));
    match ordered.is_empty() || ordered == all {
        true => told(&all),
        false => format!(
            "{} ({} if the operator does not commute)",
            told(&all),
            told(&ordered)
        ),
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
