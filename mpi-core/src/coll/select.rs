//! Which components serve a communicator: its members agree, once, when it is made.
//!
//! Protocol, all of it in the communicator's hidden plane and by the same algorithms that serve users:
//! 1. rank 0 tells which components are willing at its place, by name and priority, in the order of names;
//! 2. everybody votes on each of them, and only those without a refusal anywhere stay;
//! 3. those that stay are enabled, in the order of names, and everybody votes once more on how that ended;
//! 4. where a vote was lost, the lowest rank that refused tells everybody why.
//!
//! Names travel as text, so that a plugin which lies in one machine's directory only is found out and dropped.
//! Rank 0's priorities count, so that a setting that reached one rank only cannot make members take different ways.
//! A communicator of one member agrees with itself without a message.

#[cfg(test)]
mod tests;

use super::algo::{allreduce_recursive_doubling, bcast_binomial, bytes, elements};
use super::{Brief, Call, CallId, CallSet, CollError, Component, Cx, Module, Refusal, Running};
use crate::Error;
use crate::comm::Comm;
use crate::datatype::Named;
use crate::engine::Engine;
use crate::op::{Op, Predefined};
use mpi_base::param::{Param, ParamError, Params, Selection, Value};
use std::fmt::Write;
use std::rc::Rc;

/// `--mca coll hwbarr,basic` or `--mca coll ^hwbarr`.
pub static SELECTION: Param<Selection> = Param::selection(
    "coll",
    "",
    "Collective components that may serve: a list such as shm,basic, or all but some, such as ^hwbarr.\n\
     The priority of one is coll_<component>_priority; a negative one leaves it out.",
);

/// Who is not used and why.
type Refused = Vec<(Rc<str>, Refusal)>;

/// The components chosen for one communicator.
pub struct Table {
    chosen: Vec<Chosen>,
    chains: Chains,
    /// By [`CallId`]: up to how many bytes the first of them takes calls in brief, or [`NOTHING`].
    brief: [i64; CallId::ALL.len()],
    refused: Refused,
}

/// Less than any call has.
const NOTHING: i64 = -1;

struct Chosen {
    name: Rc<str>,
    priority: i32,
    module: Rc<dyn Module>,
}

/// The modules that serve each call, the highest priority first.
struct Chains {
    /// One chain behind the other, in the order of [`CallId`].
    all: Box<[Rc<dyn Module>]>,
    /// By [`CallId`]: where its chain begins and ends.
    bounds: [(u16, u16); CallId::ALL.len()],
}

impl Chains {
    fn new(chosen: &[Chosen]) -> Chains {
        let serving = |call| {
            chosen
                .iter()
                .filter(move |c| c.module.serves().contains(call))
        };
        let mut end = 0;
        let bounds = CallId::ALL.map(|call| {
            let start = end;
            end += serving(call).count() as u16;
            (start, end)
        });
        let all = CallId::ALL.into_iter().flat_map(serving);
        Chains {
            all: all.map(|c| c.module.clone()).collect(),
            bounds,
        }
    }

    #[inline(always)]
    fn of(&self, call: CallId) -> &[Rc<dyn Module>] {
        let (start, end) = self.bounds[call as usize];
        &self.all[start.into()..end.into()]
    }
}

/// What is the same for all communicators of a process, found out for the first of them.
pub struct Candidates {
    /// In the order of names, and of one name in the order in which they came.
    may_serve: Vec<Candidate>,
    refused: Refused,
}

struct Candidate {
    name: Rc<str>,
    priority: i32,
    /// Which of the engine's components it is.
    number: usize,
}

/// A component that is willing here, or that rank 0 has told about.
struct Offer {
    name: Rc<str>,
    priority: i32,
    module: Option<Rc<dyn Module>>,
}

/// Agrees with all members of `comm`.
pub async fn agree(comm: &Comm) -> Result<Table, Error> {
    let (mut offers, mut refused) = ask_components(comm)?;
    if comm.size() > 1 {
        offers = adopt(&first_says(comm, &offers).await?, offers, &mut refused);
    }

    // A component that is not here or not willing here has no module and so votes against itself.
    let willing = offers.iter().map(|offer| match &offer.module {
        Some(_) => Ok(()),
        None => Err(reason_for(&offer.name, &refused)),
    });
    let verdicts = vote(comm, willing.collect()).await?;
    keep(&mut offers, verdicts, &mut refused);

    let mut enabled = Vec::with_capacity(offers.len());
    for offer in &offers {
        enabled.push(match &offer.module {
            Some(module) => module.enable(comm).await,
            None => Ok(()),
        });
    }
    let verdicts = vote(comm, enabled).await?;
    keep(&mut offers, verdicts, &mut refused);
    Ok(Table::new(offers, refused))
}

/// The table of an intercommunicator: there is one component for them, everywhere, so there is nothing to agree on.
pub fn between_groups() -> Table {
    let inter = Offer {
        name: "inter".into(),
        priority: 0,
        module: Some(Rc::new(super::inter::Inter)),
    };
    Table::new(vec![inter], Vec::new())
}

/// Asks each component of this process; offers are in the order of names.
fn ask_components(comm: &Comm) -> Result<(Vec<Offer>, Refused), CollError> {
    let engine = comm.engine();
    let known = match engine.coll_candidates().get() {
        Some(known) => known,
        None => {
            let found = Candidates::find(engine)?;
            engine.coll_candidates().get_or_init(|| found)
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
        match engine.coll_components()[candidate.number].query(comm) {
            Ok(module) => offers.push(Offer {
                name,
                priority: candidate.priority,
                module: Some(module),
            }),
            Err(refusal) => refused.push((name, refusal)),
        }
    }
    Ok((offers, refused))
}

impl Candidates {
    fn find(engine: &Engine) -> Result<Candidates, CollError> {
        let (components, params) = (engine.coll_components(), engine.params());
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
                refuse("the parameter coll leaves it out");
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
        Ok(Candidates { may_serve, refused })
    }
}

/// The value of `coll_<component>_priority`, or the component's own.
pub fn priority(component: &dyn Component, params: &Params) -> Result<i32, ParamError> {
    // The parameters of plugins are not known when this library is built, so this one is looked up by its text.
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

/// What rank 0 offers, a line for each: priority and name.
async fn first_says(comm: &Comm, offers: &[Offer]) -> Result<String, Error> {
    let mut mine = String::new();
    if comm.rank() == 0 {
        // As much as the names that there are mostly need.
        mine.reserve(128);
        for offer in offers {
            // Writing to a string cannot fail.
            let _ = writeln!(mine, "{} {}", offer.priority, offer.name);
        }
    }
    tell(&comm.hidden(), &mine, 0).await
}

/// Brings this process's offers into the shape of rank 0's.
fn adopt(first: &str, mut mine: Vec<Offer>, refused: &mut Refused) -> Vec<Offer> {
    let mut agreed = Vec::with_capacity(mine.len());
    for line in first.lines() {
        let Some((priority, name)) = line.split_once(' ') else {
            continue;
        };
        let Ok(priority) = priority.parse() else {
            continue;
        };
        let here = mine.iter().position(|o| *o.name == *name);
        agreed.push(match here.map(|i| mine.remove(i)) {
            Some(offer) => Offer { priority, ..offer },
            None => Offer {
                name: name.into(),
                priority,
                module: None,
            },
        });
    }
    let unheard = "rank 0 does not have it or is not willing to use it";
    refused.extend(mine.into_iter().map(|o| (o.name, Refusal(unheard.into()))));
    agreed
}

fn reason_for(name: &str, refused: &Refused) -> Refusal {
    let said = refused
        .iter()
        .find(|(n, _)| **n == *name)
        .map(|(_, reason)| reason.clone());
    said.unwrap_or_else(|| Refusal("this process does not have it".into()))
}

/// Brings one outcome for each offer from every member together: `Err` with the lowest refuser's reason unless all agree.
async fn vote(
    comm: &Comm,
    mine: Vec<Result<(), Refusal>>,
) -> Result<Vec<Result<(), Refusal>>, Error> {
    const NOBODY: u32 = u32::MAX;
    const BALLOT: usize = size_of::<u32>();
    if comm.size() == 1 || mine.is_empty() {
        return Ok(mine);
    }
    let me = comm.rank();
    let mut votes = elements(mine.len() as i64, &Named::UINT32.into())?.all();
    for (at, vote) in (0..).step_by(BALLOT).zip(&mine) {
        let ballot: u32 = if vote.is_ok() { NOBODY } else { me };
        votes.unpack_at(at, &ballot.to_ne_bytes());
    }
    let lowest = Op::from(Predefined::Min);
    allreduce_recursive_doubling::allreduce(&comm.hidden(), None, &votes, &lowest).await?;

    let counted = votes.as_send();
    let mut verdicts = Vec::with_capacity(mine.len());
    for (at, own) in (0..).step_by(BALLOT).zip(mine) {
        let mut refuser = [0; BALLOT];
        counted.pack_at(at, &mut refuser);
        let refuser = u32::from_ne_bytes(refuser);
        verdicts.push(if refuser == NOBODY {
            Ok(())
        } else {
            let reason = own.err().map(|r| r.0).unwrap_or_default();
            let reason = tell(&comm.hidden(), &reason, refuser).await?;
            Err(Refusal(format!("rank {refuser}: {reason}")))
        });
    }
    Ok(verdicts)
}

/// Drops the offers that lost, together with what they have set up.
fn keep(offers: &mut Vec<Offer>, verdicts: Vec<Result<(), Refusal>>, refused: &mut Refused) {
    let mut verdicts = verdicts.into_iter();
    offers.retain_mut(|offer| match verdicts.next() {
        Some(Err(refusal)) => {
            if let Some(module) = offer.module.take() {
                module.disable();
            }
            refused.retain(|(name, _)| *name != offer.name);
            refused.push((offer.name.clone(), refusal));
            false
        }
        _ => true,
    });
}

/// Tells all members the text of one of them.
async fn tell(cx: &Cx, text: &str, from: u32) -> Result<String, Error> {
    // Nearly every text fits the first message; its first four bytes are the length of all of it.
    const HEAD: usize = 4;
    const FIRST: usize = 508;
    let own = text.as_bytes();
    let message = bytes((HEAD + FIRST) as i64)?.all();
    message
        .clone()
        .unpack_at(0, &(own.len() as u32).to_le_bytes());
    message
        .clone()
        .unpack_at(HEAD as i64, &own[..own.len().min(FIRST)]);
    bcast_binomial::bcast(cx, &message, from).await?;
    let mut len = [0; HEAD];
    message.as_send().pack_at(0, &mut len);
    let len = u32::from_le_bytes(len) as usize;
    let mut all = vec![0; len.min(FIRST)];
    message.as_send().pack_at(HEAD as i64, &mut all);
    if len > FIRST {
        let rest = bytes((len - FIRST) as i64)?.all();
        rest.clone()
            .unpack_at(0, own.get(FIRST..).unwrap_or_default());
        bcast_binomial::bcast(cx, &rest, from).await?;
        all.extend(rest.as_send().to_vec());
    }
    Ok(match String::from_utf8(all) {
        Ok(text) => text,
        Err(bad) => String::from_utf8_lossy(bad.as_bytes()).into_owned(),
    })
}

impl Table {
    fn new(offers: Vec<Offer>, refused: Refused) -> Table {
        let mut chosen: Vec<Chosen> = offers
            .into_iter()
            .filter_map(|o| {
                Some(Chosen {
                    module: o.module?,
                    name: o.name,
                    priority: o.priority,
                })
            })
            .collect();
        // Stable: equal priorities stay in the order of names.
        chosen.sort_by_key(|c| std::cmp::Reverse(c.priority));
        let chains = Chains::new(&chosen);
        let brief = CallId::ALL.map(|call| {
            let first = chains.of(call).first();
            let most = first.and_then(|module| module.takes_brief(call));
            most.map_or(NOTHING, |most| most.min(i64::MAX as usize) as i64)
        });
        Table {
            chosen,
            chains,
            brief,
            refused,
        }
    }

    /// The table of a communicator; `call` is for the sentence if there is none.
    pub fn of(comm: &Comm, call: CallId) -> Result<&Table, Error> {
        comm.coll().ok_or_else(|| unserved(comm, call))
    }

    /// Carries out a call by the component at the invocation's depth.
    #[inline]
    pub fn run(&self, cx: &Cx, call: &Call) -> Result<(), Error> {
        self.module(cx, call.id())?.run(cx, call)
    }

    /// The component that carries out calls like this in brief, if the first that is asked does.
    #[inline(always)]
    pub(crate) fn in_brief(&self, brief: &Brief<'_>) -> Option<&dyn Module> {
        let call = brief.id();
        if brief.bytes() as i64 > self.brief[call as usize] {
            return None;
        }
        self.chains.of(call).first().map(|module| &**module)
    }

    /// Starts a call by the component at the invocation's depth.
    pub fn start(&self, cx: Cx, call: Call) -> Result<Running, Error> {
        Ok(self.module(&cx, call.id())?.start(cx, call))
    }

    /// Hands a call to the next component down; for modules.
    pub async fn next(cx: &Cx, call: Call) -> Result<(), Error> {
        let down = cx.next_down();
        let running = Table::of(cx.comm(), call.id())?.start(down, call)?;
        running.await
    }

    /// Like [`Table::next`] for a module that has no future to wait in.
    pub fn run_next(cx: &Cx, call: &Call) -> Result<(), Error> {
        Table::of(cx.comm(), call.id())?.run(&cx.next_down(), call)
    }

    #[inline]
    fn module(&self, cx: &Cx, call: CallId) -> Result<&dyn Module, Error> {
        match self.chains.of(call).get(cx.depth()) {
            Some(module) => Ok(module.as_ref()),
            None => Err(unserved(cx.comm(), call)),
        }
    }

    /// The calls that somebody serves.
    pub fn serves(&self) -> CallSet {
        let served = CallId::ALL
            .into_iter()
            .filter(|c| !self.chains.of(*c).is_empty());
        served.fold(CallSet::NONE, CallSet::with)
    }

    /// The names of the components that serve a call, the first that is asked first.
    pub fn chain(&self, call: CallId) -> impl Iterator<Item = &str> {
        let serving = self
            .chosen
            .iter()
            .filter(move |c| c.module.serves().contains(call));
        serving.map(|c| &*c.name)
    }

    /// Why the others were not chosen.
    pub fn refused(&self) -> &[(Rc<str>, Refusal)] {
        &self.refused
    }

    /// What was chosen and why the rest was not, a line for each fact; what `mpirun --explain` prints.
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
                "nobody".into()
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

    /// The communicator is being freed.
    pub fn disable(&self) {
        for chosen in &self.chosen {
            chosen.module.disable();
        }
    }
}

#[cold]
pub(super) fn unserved(comm: &Comm, call: CallId) -> Error {
    CollError::Unserved {
        call,
        comm: comm.name(),
    }
    .into()
}
