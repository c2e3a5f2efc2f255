//! Component selection: when a communicator is created, its members agree on the components that carry out its collectives.
//!
//! The protocol's messages use hidden planes and one tree ([`crate::comm`]):
//! 1. rank 0 broadcasts its offers (`invitation`): the components that it can use, by name and priority, in the order of names,
//!    each with its config blob (`Module::export_config`);
//! 2. every member passes each config blob to its own component of that name (`Module::import_config`)
//!    and votes on each offer; an offer that no member refuses is kept;
//! 3. if rank 0 has marked some of the kept offers as having a collective set-up, the members enable these in the order of names
//!    and vote again, on the result of the set-up;
//! 4. for each lost vote, the lowest rank that refused broadcasts its reason.
//!
//! So selection takes two message rounds for most communicators, and no member uses a component before it knows that all members will ([ADR 17]).
//! If rank 0 also broadcasts the new context id, the offers are in the same message.
//!
//! Names are sent as text, so the vote drops a plugin that some machines lack.
//! Only rank 0's priorities are used,
//! so a setting that reached only one rank cannot cause different choices.
//! A communicator of one member needs no messages.
//!
//! [ADR 17]: ../../../docs/adr/0017-one-invitation-one-vote.md

mod demand;
pub(crate) mod offer;
#[cfg(test)]
mod tests;
mod vote_round;

use super::algo::Blocks;
use super::inventory;
use super::{
    Call, CallId, CallSet, CollError, Component, FastSlot, Invocation, Module, Refusal, Running,
    Unserved, algo, built_in,
};
use crate::Error;
use crate::comm::{Comm, Conversation};
use crate::datatype::RecvBuf;
use crate::pml::Plane;
use demand::Demands;
use mpi_base::param::{Param, ParamError, Params, Selection, Value};
use mpi_engine::comm::{Collectives, EurekaLine, Framework, Joint, Proposal};
use std::any::Any;
use std::cell::OnceCell;
use std::rc::Rc;
use vote_round::vote;

/// The components that the user allows: `--mca coll hwbarr,basic` or `--mca coll ^hwbarr`.
pub static SELECTION: Param<Selection> = Param::selection(
    "coll",
    "",
    "Collective components that may serve: a list such as shm,basic, or all but some, such as ^hwbarr.\n\
     The priority of one is coll_<component>_priority; a negative one leaves it out.",
);

/// The reason why a component that the parameter `coll` excludes is not used.
const LEFT_OUT: &str = "the parameter coll leaves it out";

/// The names of the components that a communicator does not use, each with the reason.
pub type Refused = Vec<(Rc<str>, Refusal)>;

/// The selection table: the components chosen for one communicator.
pub struct Table {
    chosen: Vec<Chosen>,
    chains: Chains,
    refused: Refused,
}

struct Chosen {
    name: Rc<str>,
    priority: i32,
    module: Rc<dyn Module>,
    serves: CallSet,
}

/// For each collective, the modules that implement it (its chain), the highest priority first.
struct Chains {
    /// The chains of all collectives, concatenated; collectives with the same modules share one chain.
    all: Box<[Rc<dyn Module>]>,
    /// For each [`CallId`], the range of its chain in `all`.
    bounds: [(u16, u16); CallId::ALL.len()],
}

impl Chains {
    fn new(chosen: &[Chosen]) -> Chains {
        let mut all: Vec<Rc<dyn Module>> = Vec::new();
        let mut bounds = [(0, 0); CallId::ALL.len()];
        for (at, call) in CallId::ALL.into_iter().enumerate() {
            let same = |other: &CallId| {
                let mut serving = chosen.iter().map(|c| c.serves);
                serving.all(|serves| serves.contains(*other) == serves.contains(call))
            };
            bounds[at] = match CallId::ALL[..at].iter().rposition(same) {
                Some(before) => bounds[before],
                None => {
                    let start = all.len() as u16;
                    let serving = chosen.iter().filter(|c| c.serves.contains(call));
                    all.extend(serving.map(|c| c.module.clone()));
                    (start, all.len() as u16)
                }
            };
        }
        Chains {
            all: all.into_boxed_slice(),
            bounds,
        }
    }

    #[inline(always)]
    fn of(&self, call: CallId) -> &[Rc<dyn Module>] {
        let (start, end) = self.bounds[call as usize];
        &self.all[start.into()..end.into()]
    }
}

/// The components that selection may choose in this process; computed for the first communicator.
pub struct Candidates {
    /// The components that the settings do not exclude, sorted by name (stable sort).
    may_serve: Vec<Candidate>,
    refused: Refused,
    demands: Demands,
    files: Rc<[inventory::Entry]>,
}

struct Candidate {
    name: Rc<str>,
    priority: i32,
    number: usize,
}

/// The collective components of a process, which its engine owns.
pub struct Coll {
    components: Vec<Box<dyn Component>>,
    candidates: OnceCell<Candidates>,
}

impl Coll {
    /// Creates the framework with these components, in any order.
    pub fn of(components: Vec<Box<dyn Component>>) -> Coll {
        Coll {
            components,
            candidates: OnceCell::new(),
        }
    }
}

impl Default for Coll {
    fn default() -> Coll {
        Coll::of(built_in())
    }
}

impl Framework for Coll {
    fn propose(&self, comm: &Comm) -> Result<Box<dyn Proposal>, Error> {
        Ok(Box::new(LocalOffers::of(self, comm)?))
    }

    fn between_groups(&self) -> Box<dyn Collectives> {
        Box::new(between_groups())
    }

    fn allgather<'a>(&self, conversation: &'a Conversation, first: &'a RecvBuf) -> Joint<'a, ()> {
        Box::pin(async move {
            let blocks = Blocks::equal(first, conversation.comm().size());
            algo::allgather_bruck::allgather(&Invocation::from(conversation), None, &blocks).await
        })
    }

    fn bcast<'a>(
        &self,
        conversation: &'a Conversation,
        buf: &'a RecvBuf,
        root: u32,
    ) -> Joint<'a, ()> {
        Box::pin(async move {
            algo::bcast_binomial::bcast(&Invocation::from(conversation), buf, root).await
        })
    }

    fn barrier<'a>(&self, conversation: &'a Conversation) -> Joint<'a, ()> {
        Box::pin(async move {
            algo::barrier_dissemination::barrier(&Invocation::from(conversation)).await
        })
    }
}

impl Proposal for LocalOffers {
    fn invite(&self, comm: &Comm, to: &mut Vec<u8>) {
        LocalOffers::invite(self, comm, to);
    }

    fn agree<'a>(
        self: Box<Self>,
        comm: &'a Comm,
        invitation: &'a [u8],
    ) -> Joint<'a, Box<dyn Collectives>> {
        Box::pin(async move {
            let table = LocalOffers::agree(*self, comm, invitation).await?;
            Ok(Box::new(table) as Box<dyn Collectives>)
        })
    }

    fn choose_alone(self: Box<Self>) -> Box<dyn Collectives> {
        let LocalOffers {
            mut offers,
            refused,
            ..
        } = *self;
        offers.retain(|offer| offer.module.as_ref().is_some_and(|m| m.serves_alone()));
        Box::new(Table::new(offers, refused))
    }
}

impl Collectives for Table {
    #[inline]
    fn carry_out(&self, comm: &Comm, number: i32, call: &Call) -> Result<(), Error> {
        let invocation = Invocation::new(comm.clone(), Plane::Collective, number, 0);
        self.run(&invocation, call)
    }

    fn begin(&self, comm: &Comm, number: i32, call: Call) -> Result<Running, Error> {
        self.start(
            Invocation::new(comm.clone(), Plane::Collective, number, 0),
            call,
        )
    }

    fn plan(&self, call: &Call) -> Option<Rc<dyn Any>> {
        self.chains.of(call.id()).first()?.plan(call)
    }

    fn begin_planned(
        &self,
        comm: &Comm,
        number: i32,
        call: Call,
        plan: &Rc<dyn Any>,
    ) -> Result<Running, Error> {
        let invocation = Invocation::new(comm.clone(), Plane::Collective, number, 0);
        let module = self.module(&invocation, call.id())?;
        Ok(module.start_planned(invocation, call, plan))
    }

    fn fast_slot(&self, call: CallId) -> Option<FastSlot> {
        let first = self.chains.of(call).first()?;
        first.clone().fast_slot(call)
    }

    fn rehearse(&self, comm: &Comm) -> Result<(), Error> {
        self.modules().try_for_each(|module| module.rehearse(comm))
    }

    fn eureka(&self) -> Option<&dyn EurekaLine> {
        self.chosen.iter().find_map(|chosen| chosen.module.eureka())
    }

    fn explain(&self, comm: &str) -> Vec<String> {
        Table::explain(self, comm)
    }

    fn unwilling(&self) -> Vec<String> {
        let allowed = self.refused.iter().filter(|(_, why)| why.0 != LEFT_OUT);
        let why = allowed.map(|(name, why)| format!("{name} is not used: {why}"));
        why.collect()
    }

    fn is_reusable(&self) -> bool {
        self.modules().all(|module| module.is_reusable())
    }

    fn progress(&self, parent: &Comm) -> Option<u64> {
        self.modules().try_fold(0u64, |sum, module| {
            Some(sum.wrapping_add(module.progress(parent)?))
        })
    }

    fn prefetch_next(&self) {
        self.modules().for_each(|module| module.prefetch_next());
    }

    fn disable(&self) {
        Table::disable(self);
    }
}

/// A component that this process can use, or that rank 0 offers.
struct Offer {
    name: Rc<str>,
    priority: i32,
    module: Option<Rc<dyn Module>>,
}

/// The components that this process could use for a communicator, before the members have agreed.
pub struct LocalOffers {
    offers: Vec<Offer>,
    refused: Refused,
    demands: Demands,
    files: Rc<[inventory::Entry]>,
}

/// Name of the entry in rank 0's offers that lists rank 0's plugin files.
/// The name is empty, because no component has an empty name.
const FILES: &str = "";

impl LocalOffers {
    /// Queries each component of this process for `comm`.
    fn of(coll: &Coll, comm: &Comm) -> Result<LocalOffers, CollError> {
        let known = match coll.candidates.get() {
            Some(known) => known,
            None => {
                let found = Candidates::find(&coll.components, comm.engine().params())?;
                coll.candidates.get_or_init(|| found)
            }
        };
        let mut refused = known.refused.clone();
        let mut offers: Vec<Offer> = Vec::with_capacity(known.may_serve.len());
        for candidate in &known.may_serve {
            let name = candidate.name.clone();
            if offers.last().is_some_and(|before| before.name == name) {
                let why = "another component of this name came first";
                refused.push((name, Refusal(why.into())));
                continue;
            }
            match coll.components[candidate.number].query(comm) {
                Ok(module) => offers.push(Offer {
                    name,
                    priority: candidate.priority,
                    module: Some(module),
                }),
                Err(refusal) => refused.push((name, refusal)),
            }
        }
        Ok(LocalOffers {
            offers,
            refused,
            demands: known.demands.clone(),
            files: known.files.clone(),
        })
    }

    /// Appends rank 0's offers to `to`; called on rank 0, one time per communicator.
    pub fn invite(&self, comm: &Comm, to: &mut Vec<u8>) {
        if comm.is_world() {
            let write = |to: &mut Vec<u8>| inventory::write(self.files.iter(), to);
            offer::write(to, (0, false, FILES), write);
        }
        for offer in &self.offers {
            if let Some(module) = &offer.module {
                let entry = (offer.priority, module.sets_up(), &*offer.name);
                offer::write(to, entry, |to| module.export_config(comm, to));
            }
        }
    }

    /// Agrees on components with all members of `comm`; `invitation` is rank 0's offers, which each member has received.
    pub async fn agree(self, comm: &Comm, invitation: &[u8]) -> Result<Table, Error> {
        let LocalOffers {
            offers,
            refused,
            demands,
            files,
        } = self;
        let (mut mine, mut refused) = (offers, refused);
        let mut offers = Vec::with_capacity(mine.len());
        let mut taken = Vec::with_capacity(mine.len());
        let mut set_up = Vec::new();
        let mut compared = Vec::new();
        for entry in offer::read(invitation) {
            if entry.name == FILES {
                let same = inventory::compare(&files, entry.config, comm.rank());
                compared.push(same.map_err(Refusal));
                continue;
            }
            let here = mine.iter().position(|o| *o.name == *entry.name);
            // An offer without a module here (this process lacks the component, or its query failed) counts as a refusal.
            let offer = here.map(|i| mine.remove(i)).unwrap_or_else(|| Offer {
                name: entry.name.into(),
                priority: 0,
                module: None,
            });
            taken.push(match &offer.module {
                Some(module) => module.import_config(comm, entry.config),
                None => Err(reason_for(&offer.name, &refused)),
            });
            if entry.sets_up {
                set_up.push(offer.name.clone());
            }
            offers.push(Offer {
                priority: entry.priority,
                ..offer
            });
        }
        let unheard = "rank 0 does not have it or is not willing to use it";
        refused.extend(mine.into_iter().map(|o| (o.name, Refusal(unheard.into()))));

        // The comparison with rank 0's files is the first vote; the votes on the components follow.
        let of_files = compared.len();
        compared.extend(taken);
        let mut verdicts = vote(comm, compared).await?;
        let told = verdicts.drain(..of_files).find_map(Result::err);
        if let (0, Some(difference)) = (comm.rank(), told) {
            warn_of_files(&difference);
        }
        keep(&mut offers, verdicts, &mut refused, |module| {
            module.withdraw();
        });

        // This condition has the same value on all members:
        // `set_up` is from rank 0's offers, and all members have kept the same offers.
        let has_more = |offer: &Offer| set_up.contains(&offer.name);
        if offers.iter().any(has_more) {
            let mut enabled = Vec::with_capacity(offers.len());
            for offer in &offers {
                enabled.push(match &offer.module {
                    Some(module) if has_more(offer) => module.enable(comm).await,
                    _ => Ok(()),
                });
            }
            let verdicts = vote(comm, enabled).await?;
            keep(&mut offers, verdicts, &mut refused, |module| {
                module.disable();
            });
        }
        let table = Table::new(offers, refused);
        if let Err(missed) = demands.compare(comm, &table) {
            table.disable();
            return Err(missed.into());
        }
        Ok(table)
    }
}

fn warn_of_files(difference: &Refusal) {
    // The text begins with the rank that refused (see `vote`); this prefix is removed.
    let sentence = difference
        .0
        .split_once(": ")
        .map_or(&*difference.0, |(_, said)| said);
    printable::eprintln!("rank 0: warning: {sentence}");
}

/// Returns the table of an intercommunicator. Its only component is `inter`, so the members need not agree.
pub fn between_groups() -> Table {
    let inter = Offer {
        name: "inter".into(),
        priority: 0,
        module: Some(Rc::new(super::inter::Inter)),
    };
    Table::new(vec![inter], Vec::new())
}

impl Candidates {
    fn find(components: &[Box<dyn Component>], params: &Params) -> Result<Candidates, CollError> {
        let selection = params.get(&SELECTION).map_err(CollError::Parameter)?;
        let known: Vec<&str> = components.iter().map(|c| c.name()).collect();
        selection
            .check("coll", &known)
            .map_err(CollError::Selection)?;

        let mut may_serve: Vec<Candidate> = Vec::new();
        let mut refused = Vec::new();
        for (number, component) in components.iter().enumerate() {
            let name: Rc<str> = component.name().into();
            let mut refuse = |why: &str| refused.push((name.clone(), Refusal(why.into())));
            if !selection.allows(&name) {
                refuse(LEFT_OUT);
                continue;
            }
            let priority = priority(component.as_ref(), params).map_err(CollError::Parameter)?;
            if priority < 0 {
                refuse("its priority is negative");
                continue;
            }
            let verified = component.verify(params);
            verified.map_err(|reason| CollError::Unusable {
                component: component.name().into(),
                reason,
            })?;
            may_serve.push(Candidate {
                name,
                priority,
                number,
            });
        }
        may_serve.sort_by(|a, b| a.name.cmp(&b.name));
        let demands = Demands::read(components, params, |name| {
            may_serve.iter().any(|candidate| *candidate.name == *name)
        })?;
        let files = may_serve
            .iter()
            .filter_map(|candidate| components[candidate.number].file());
        let files = files.cloned().collect();
        Ok(Candidates {
            may_serve,
            refused,
            demands,
            files,
        })
    }
}

/// Returns the value of `coll_<component>_priority`, or the component's default priority.
pub fn priority(component: &dyn Component, params: &Params) -> Result<i32, ParamError> {
    // Plugins' parameters are unknown when this library is built, so the parameter is searched by name.
    let wanted = format!("coll_{}_priority", component.name());
    let Some((name, value, source)) = params.settings().find(|(name, ..)| *name == wanted) else {
        return Ok(component.priority());
    };
    <i32 as Value>::parse(value).map_err(|expected| ParamError::Malformed {
        name: name.into(),
        value: value.into(),
        source: source.clone(),
        expected,
    })
}

fn reason_for(name: &str, refused: &Refused) -> Refusal {
    let reported = refused
        .iter()
        .find(|(n, _)| **n == *name)
        .map(|(_, reason)| reason.clone());
    reported.unwrap_or_else(|| Refusal("this process does not have it".into()))
}

/// Calls `end` on the modules of the offers that lost their vote, and moves these offers to `refused`.
fn keep(
    offers: &mut Vec<Offer>,
    verdicts: Vec<Result<(), Refusal>>,
    refused: &mut Refused,
    end: impl Fn(&dyn Module),
) {
    let mut verdicts = verdicts.into_iter();
    offers.retain_mut(|offer| match verdicts.next() {
        Some(Err(refusal)) => {
            if let Some(module) = offer.module.take() {
                end(&*module);
            }
            refused.retain(|(name, _)| *name != offer.name);
            refused.push((offer.name.clone(), refusal));
            false
        }
        _ => true,
    });
}

impl Table {
    fn new(offers: Vec<Offer>, refused: Refused) -> Table {
        let mut chosen: Vec<Chosen> = offers
            .into_iter()
            .filter_map(|o| {
                let module = o.module?;
                Some(Chosen {
                    serves: module.serves(),
                    module,
                    name: o.name,
                    priority: o.priority,
                })
            })
            .collect();
        // The sort is stable, so components of equal priority stay in the order of names.
        chosen.sort_by_key(|c| std::cmp::Reverse(c.priority));
        let chains = Chains::new(&chosen);
        Table {
            chosen,
            chains,
            refused,
        }
    }

    /// Returns the table of a communicator; if it has none, the error names the collective `call`.
    pub fn of(comm: &Comm, call: CallId) -> Result<&Table, Error> {
        Table::chosen(comm).ok_or_else(|| Unserved::on(comm, call))
    }

    /// Returns the table of a communicator, if its members have agreed on one.
    pub fn chosen(comm: &Comm) -> Option<&Table> {
        let chosen: &dyn Any = comm.collectives().components()?;
        chosen.downcast_ref()
    }

    /// Carries out a blocking call with the module at [`Invocation::depth`] in the collective's chain.
    #[inline]
    pub fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        self.module(invocation, call.id())?.run(invocation, call)
    }

    /// Starts a nonblocking call with the module at [`Invocation::depth`] in the collective's chain.
    pub fn start(&self, invocation: Invocation, call: Call) -> Result<Running, Error> {
        Ok(self.module(&invocation, call.id())?.start(invocation, call))
    }

    /// Passes a nonblocking call to the next lower component; modules call this function.
    pub async fn next(invocation: &Invocation, call: Call) -> Result<(), Error> {
        let down = invocation.next_down();
        let running = Table::of(invocation.comm(), call.id())?.start(down, call)?;
        running.await
    }

    /// Passes a blocking call to the next lower component; modules call this function.
    pub fn run_next(invocation: &Invocation, call: &Call) -> Result<(), Error> {
        Table::of(invocation.comm(), call.id())?.run(&invocation.next_down(), call)
    }

    #[inline]
    fn module(&self, invocation: &Invocation, call: CallId) -> Result<&dyn Module, Error> {
        match self.chains.of(call).get(invocation.depth()) {
            Some(module) => Ok(module.as_ref()),
            None => Err(Unserved::on(invocation.comm(), call)),
        }
    }

    /// Returns the collectives that at least one chosen component implements.
    pub fn serves(&self) -> CallSet {
        let served = CallId::ALL
            .into_iter()
            .filter(|c| !self.chains.of(*c).is_empty());
        served.fold(CallSet::NONE, CallSet::with)
    }

    /// Returns the names of the components in a collective's chain, highest priority first.
    pub fn chain(&self, call: CallId) -> impl Iterator<Item = &str> {
        let serving = self.chosen.iter().filter(move |c| c.serves.contains(call));
        serving.map(|c| &*c.name)
    }

    /// Returns the name of the first component that performs calls of this collective itself.
    fn performer(&self, call: CallId) -> Option<&str> {
        let mut serving = self.chosen.iter().filter(|c| c.serves.contains(call));
        let performer = serving.find(|c| !c.module.is_transparent());
        performer.map(|c| &*c.name)
    }

    /// If other components get all calls that the chosen component `name` serves, returns the reason.
    fn preceded(&self, name: &str) -> Option<String> {
        let at = self.chosen.iter().position(|c| *c.name == *name)?;
        let (before, own) = (&self.chosen[..at], &self.chosen[at]);
        let mut first = None;
        for call in CallId::ALL.into_iter().filter(|c| own.serves.contains(*c)) {
            let mut before = before.iter();
            let opaque = before.find(|c| c.serves.contains(call) && !c.module.is_transparent())?;
            first = first.or(Some(opaque));
        }
        let first = first?;
        Some(format!(
            "component {} precedes it: its priority is {}, and coll_{name}_priority is {}",
            first.name, first.priority, own.priority
        ))
    }

    /// Returns true if the component `name` was chosen.
    pub fn has(&self, name: &str) -> bool {
        self.chosen.iter().any(|chosen| *chosen.name == *name)
    }

    /// Returns the components that were not chosen, each with the reason.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Returns the chosen components, and the reasons why others were not chosen, one fact per line; printed by `mpirun --explain`.
    pub fn explain(&self, comm: &str) -> Vec<String> {
        let mut groups: Vec<(Vec<&str>, Vec<CallId>)> = Vec::new();
        for call in CallId::ALL {
            let chain: Vec<&str> = self.chain(call).collect();
            match groups.iter_mut().find(|(c, _)| *c == chain) {
                Some((_, calls)) => calls.push(call),
                None => groups.push((chain, vec![call])),
            }
        }
        let served = groups.iter().map(|(chain, calls)| {
            let calls: Vec<&str> = calls.iter().map(|c| c.name()).collect();
            let by = if chain.is_empty() {
                "no component".into()
            } else {
                chain.join(", then ")
            };
            format!("coll on {comm}: {by} for {}", calls.join(", "))
        });
        let refused = self
            .refused
            .iter()
            .map(|(name, why)| format!("coll on {comm}: not {name}: {why}"));
        let how = self.chosen.iter().filter_map(|chosen| {
            let explained = CallId::ALL.into_iter().filter_map(|call| {
                let how = chosen.module.explain(call)?;
                Some(format!("{call} by {how}"))
            });
            let calls: Vec<String> = explained.collect();
            let name = &chosen.name;
            (!calls.is_empty()).then(|| format!("coll on {comm}: {name} does {}", calls.join("; ")))
        });
        served.chain(how).chain(refused).collect()
    }

    /// Disables all modules; called when the communicator is freed.
    pub fn disable(&self) {
        self.modules().for_each(|module| module.disable());
    }

    fn modules(&self) -> impl Iterator<Item = &dyn Module> {
        self.chosen.iter().map(|chosen| &*chosen.module)
    }
}

impl Invocation {
    /// Runs a blocking step of this call on another communicator; see [`Constructors::create_for_steps`](crate::comm::Constructors::create_for_steps).
    ///
    /// The step uses the call's tag, so steps of different calls never match each other, whatever their order.
    pub(crate) fn run_step(&self, on: &Comm, call: &Call) -> Result<(), Error> {
        Table::of(on, call.id())?.run(&self.step_on(on), call)
    }

    /// Starts a nonblocking step of this call on another communicator.
    pub(crate) fn begin_step(&self, on: &Comm, call: Call) -> Result<Running, Error> {
        Table::of(on, call.id())?.start(self.step_on(on), call)
    }
}
