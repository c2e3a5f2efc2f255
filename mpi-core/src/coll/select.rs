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
use crate::op::{Op, Predefined};
use mpi_base::param::{Param, ParamError, Params, Selection, Value};
use std::rc::Rc;

/// `--mca coll hwbarr,basic` or `--mca coll ^hwbarr`.
pub static SELECTION: Param<Selection> = Param::selection(
    "coll",
    "",
    "Collective components that may serve: a list such as shm,basic, or all but some, such as ^hwbarr.\n\
     The priority of one is coll_<component>_priority; a negative one leaves it out.",
);

/// Who is not used and why.
type Refused = Vec<(String, Refusal)>;

/// The components chosen for one communicator.
pub struct Table {
    chosen: Vec<Chosen>,
    /// By [`CallId`]: the modules that serve it, the highest priority first.
    chains: [Box<[Rc<dyn Module>]>; CallId::ALL.len()],
    /// By [`CallId`]: up to how many bytes the first of them takes calls in brief, or [`NOTHING`].
    brief: [i64; CallId::ALL.len()],
    refused: Refused,
}

/// Less than any call has.
const NOTHING: i64 = -1;

struct Chosen {
    name: String,
    priority: i32,
    module: Rc<dyn Module>,
}

/// A component that is willing here, or that rank 0 has told about.
struct Offer {
    name: String,
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

    let mut enabled = Vec::new();
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
    let components = engine.coll_components();
    let selection = engine
        .params()
        .get(&SELECTION)
        .map_err(CollError::Parameter)?;
    let known: Vec<&str> = components.iter().map(|c| c.name()).collect();
    selection
        .check("coll", &known)
        .map_err(CollError::Selection)?;

    let mut offers: Vec<Offer> = Vec::new();
    let mut refused = Vec::new();
    for component in components {
        let name = component.name().to_owned();
        if offers.iter().any(|o| o.name == name) {
            refused.push((
                name,
                Refusal("another component of this name came first".into()),
            ));
            continue;
        }
        match ask(component.as_ref(), comm, &selection)? {
            Ok((priority, module)) => offers.push(Offer {
                name,
                priority,
                module: Some(module),
            }),
            Err(refusal) => refused.push((name, refusal)),
        }
    }
    offers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((offers, refused))
}

type Answer = Result<(i32, Rc<dyn Module>), Refusal>;

fn ask(component: &dyn Component, comm: &Comm, selection: &Selection) -> Result<Answer, CollError> {
    let refuse = |reason: &str| Ok(Err(Refusal(reason.into())));
    if !selection.allows(component.name()) {
        return refuse("the parameter coll leaves it out");
    }
    let priority = priority(component, comm.engine().params()).map_err(CollError::Parameter)?;
    if priority < 0 {
        return refuse("its priority is negative");
    }
    let verified = component.verify(comm.engine().params());
    verified.map_err(|reason| CollError::Unusable {
        component: component.name().into(),
        reason,
    })?;
    Ok(component.query(comm).map(|module| (priority, module)))
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

/// What rank 0 offers: names and priorities.
async fn first_says(comm: &Comm, offers: &[Offer]) -> Result<Vec<(String, i32)>, Error> {
    let mine: String = offers
        .iter()
        .map(|o| format!("{} {}\n", o.priority, o.name))
        .collect();
    let text = tell(&comm.hidden(), &mine, 0).await?;
    let parse = |line: &str| {
        let (priority, name) = line.split_once(' ')?;
        Some((name.to_owned(), priority.parse().ok()?))
    };
    Ok(text.lines().filter_map(parse).collect())
}

/// Brings this process's offers into the shape of rank 0's.
fn adopt(first: &[(String, i32)], mut mine: Vec<Offer>, refused: &mut Refused) -> Vec<Offer> {
    let agreed = first.iter().map(|(name, priority)| {
        let here = mine.iter().position(|o| o.name == *name);
        let module = here.and_then(|i| mine.swap_remove(i).module);
        Offer {
            name: name.clone(),
            priority: *priority,
            module,
        }
    });
    let agreed = agreed.collect();
    let unheard = "rank 0 does not have it or is not willing to use it";
    refused.extend(mine.into_iter().map(|o| (o.name, Refusal(unheard.into()))));
    agreed
}

fn reason_for(name: &str, refused: &[(String, Refusal)]) -> Refusal {
    let said = refused
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, reason)| reason.clone());
    said.unwrap_or_else(|| Refusal("this process does not have it".into()))
}

/// Brings one outcome for each offer from every member together: `Err` with the lowest refuser's reason unless all agree.
async fn vote(
    comm: &Comm,
    mine: Vec<Result<(), Refusal>>,
) -> Result<Vec<Result<(), Refusal>>, Error> {
    const NOBODY: u32 = u32::MAX;
    if comm.size() == 1 || mine.is_empty() {
        return Ok(mine);
    }
    let me = comm.rank();
    let votes = elements(mine.len() as i64, &Named::UINT32.into())?.all();
    let ballots = mine.iter().map(|v| if v.is_ok() { NOBODY } else { me });
    let bytes: Vec<u8> = ballots.flat_map(u32::to_ne_bytes).collect();
    votes.clone().unpack_at(0, &bytes);
    let lowest = Op::from(Predefined::Min);
    allreduce_recursive_doubling::allreduce(&comm.hidden(), None, &votes, &lowest).await?;

    let counted = votes.as_send().to_vec();
    let mut verdicts = Vec::new();
    for (own, refuser) in mine.into_iter().zip(counted.chunks_exact(4)) {
        let refuser = u32::from_ne_bytes([refuser[0], refuser[1], refuser[2], refuser[3]]);
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
    const HEAD: i64 = 4;
    const FIRST: i64 = 508;
    let message = |start: &[u8], room: i64| {
        let message = bytes(room)?.all();
        message.clone().unpack_at(0, start);
        Ok::<_, Error>(message)
    };
    let own = text.as_bytes();
    let own_first = &own[..own.len().min(FIRST as usize)];
    let first = [&(own.len() as u32).to_le_bytes()[..], own_first].concat();
    let first = message(&first, HEAD + FIRST)?;
    bcast_binomial::bcast(cx, &first, from).await?;
    let mut all = first.as_send().to_vec();
    let (len, _) = all
        .split_first_chunk()
        .unwrap_or((&[0; HEAD as usize], &[]));
    let len = i64::from(u32::from_le_bytes(*len));
    all.drain(..HEAD as usize);
    if len > FIRST {
        let rest = message(own.get(FIRST as usize..).unwrap_or(&[]), len - FIRST)?;
        bcast_binomial::bcast(cx, &rest, from).await?;
        all.extend(rest.as_send().to_vec());
    }
    all.truncate(len as usize);
    Ok(String::from_utf8_lossy(&all).into_owned())
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
        let chains: [Box<[Rc<dyn Module>]>; _] = CallId::ALL.map(|call| {
            let serving = chosen.iter().filter(|c| c.module.serves().contains(call));
            serving.map(|c| c.module.clone()).collect()
        });
        let brief = CallId::ALL.map(|call| {
            let first = chains[call as usize].first();
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
        let call = brief.id() as usize;
        if brief.bytes() as i64 > self.brief[call] {
            return None;
        }
        self.chains[call].first().map(|module| &**module)
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
        match self.chains[call as usize].get(cx.depth()) {
            Some(module) => Ok(module.as_ref()),
            None => Err(unserved(cx.comm(), call)),
        }
    }

    /// The calls that somebody serves.
    pub fn serves(&self) -> CallSet {
        let served = CallId::ALL
            .into_iter()
            .filter(|c| !self.chains[*c as usize].is_empty());
        served.fold(CallSet::NONE, CallSet::with)
    }

    /// The names of the components that serve a call, the first that is asked first.
    pub fn chain(&self, call: CallId) -> impl Iterator<Item = &str> {
        let serving = self
            .chosen
            .iter()
            .filter(move |c| c.module.serves().contains(call));
        serving.map(|c| c.name.as_str())
    }

    /// Why the others were not chosen.
    pub fn refused(&self) -> &[(String, Refusal)] {
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
