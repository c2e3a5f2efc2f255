//! `han`, hierarchical collectives: first within each node, then between the nodes' leaders (one rank per node).
//!
//! X. Luo, W. Wu, G. Bosilca, Y. Pei, Q. Cao, T. Patinyasakdikul, D. Zhong, J. Dongarra,
//! "HAN: a hierarchical autonomic collective communication framework", IEEE Cluster 2020.
//! A communicator that spans several nodes gets two derived communicators:
//! one of this node's members, and one of the leaders (the lowest rank of each node).
//! Each derived communicator has its own components: shared memory within a node, messages between leaders.
//!
//! `han` serves barriers, broadcasts, reductions, gather, scatter,
//! allgather and all-to-all with equal blocks, and allgather with blocks of any lengths.
//! It passes all other calls to the next lower component, and also reductions that must keep the order of ranks,
//! and gather, scatter and all-to-all of long blocks.
//!
//! Each call is one `async fn` ([`levels::Way`]) whose steps are collective calls
//! on the derived communicators, with the tag of the original call.
//! The members of a derived communicator must begin the steps in the same order.
//! Without a further rule, a nonblocking call could overtake another one between two steps.
//! So a call begins its first step only when the previous call has begun its last step ([`TicketOrder`]).
//! No program depends on overtaking: a call never waits for a later one.
//! Barriers have a ticket order of their own, because the component above may pass a barrier down late,
//! and on each member after a different number of other calls.
//! Lower components count barriers separately from other calls, and messages match by the call's tag, so steps of different calls never match.
//!
//! The derived communicators are not offered to plugins ([`Constructors::create_for_steps`](crate::comm::Constructors::create_for_steps)):
//! barrier hardware needs one rank per node, so hardware that could serve the leaders could serve the whole communicator, too.

mod blocks;
mod levels;
mod node_ranks;
#[cfg(test)]
mod tests;
mod whole;

use super::algo::Blocks;
use super::priority;
use super::reproducible::{REPRODUCIBLE, is_sensitive};
use super::tickets::{Ticket, TicketOrder};
use super::{Call, CallId, CallSet, Component, Invocation, Module, Refusal, Running, Table};
use crate::Error;
use crate::comm::Comm;
use crate::group::Group;
use crate::op::Op;
use levels::{Levels, Way};
use mpi_base::param::{About, Level, Param};
use node_ranks::NodeRanks;
use std::cell::OnceCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Maximum length, in bytes, of blocks of gather, scatter and alltoall that are sent through leaders: for longer ones the additional copies cost too much.
pub static BLOCKS_UP_TO: Param<usize> = Param::new(
    "coll",
    "han",
    "blocks_max",
    "512",
    Level::TUNER,
    "Maximum block size for which gather, scatter and alltoall exchange one message between the leaders of each two nodes; rank 0's value is used",
);

static PRIORITY: About = priority::about("han", "50");

/// The component `han`.
pub struct Han;

impl Component for Han {
    fn name(&self) -> &str {
        "han"
    }

    fn priority(&self) -> i32 {
        50
    }

    fn params(&self) -> Vec<&'static About> {
        vec![&PRIORITY, BLOCKS_UP_TO.about()]
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let here = comm.engine().place().members_here(comm.group()).count();
        if here == comm.size() as usize {
            return Err(Refusal("all members are on one node".into()));
        }
        let params = comm.engine().params();
        let refuse = |e: mpi_base::param::ParamError| Refusal(e.to_string());
        Ok(Rc::new(HanModule {
            reproducible: params.get(&REPRODUCIBLE).map_err(refuse)?,
            blocks_up_to: params.get(&BLOCKS_UP_TO).map_err(refuse)? as u64,
            place: OnceCell::new(),
            barriers: TicketOrder::default(),
            others: TicketOrder::default(),
        }))
    }
}

struct HanModule {
    reproducible: bool,
    blocks_up_to: u64,
    place: OnceCell<Place>,
    barriers: TicketOrder,
    others: TicketOrder,
}

/// The result of `make_levels`, the set-up that all members run together.
struct Place {
    levels: Rc<Levels>,
    /// Rank 0's value of [`BLOCKS_UP_TO`].
    blocks_up_to: i64,
}

impl HanModule {
    async fn make_levels(&self, comm: &Comm) -> Result<(), Refusal> {
        let failed = |e: Error| Refusal(format!("setting up: {e}"));
        let node = comm.engine().place().node_id();
        let told = comm.internal().share(&[node, self.blocks_up_to]).await;
        let told = told.map_err(failed)?;
        let nodes: Vec<u64> = told.iter().step_by(2).copied().collect();
        let node_ranks = NodeRanks::new(&nodes);
        if node_ranks.are_single() {
            return Err(Refusal("no two members are on one node".into()));
        }
        let group = |ranks: &mut dyn Iterator<Item = u32>| {
            let procs = ranks.filter_map(|rank| comm.group().proc(rank));
            Group::from_procs(procs.collect())
        };
        let here = node_ranks.on(node_ranks.of(comm.rank()).node);
        let here = group(&mut here.iter().copied());
        let leading = group(&mut (0..node_ranks.nodes()).map(|node| node_ranks.leader(node)));
        let local = comm.constructors().create_for_steps(&here).await;
        // Create the leaders' communicator even if that of this node has failed, since the leaders of other nodes wait for this process.
        let leaders = comm.constructors().create_for_steps(&leading).await;
        let (local, leaders) = (local.map_err(failed)?, leaders.map_err(failed)?);
        if let Some(local) = local {
            let levels = Rc::new(Levels {
                local,
                leaders,
                node_ranks,
            });
            let _ = self.place.set(Place {
                levels,
                blocks_up_to: i64::try_from(told[1]).unwrap_or(i64::MAX),
            });
        }
        Ok(())
    }

    /// Returns the two levels if `han` serves the call itself; all members get the same result.
    fn takes(&self, call: &Call) -> Option<&Rc<Levels>> {
        let place = self.place.get()?;
        let free = |op: &Op| op.is_commutative() && !(self.reproducible && is_sensitive(call));
        let takes = match call {
            Call::Reduce { op, .. } | Call::Allreduce { op, .. } => free(op),
            Call::Gather { .. } | Call::Scatter { .. } | Call::Alltoall { .. } => call
                .agreed_bytes()
                .is_none_or(|bytes| bytes <= place.blocks_up_to),
            _ => true,
        };
        takes.then_some(&place.levels)
    }

    fn tickets_of(&self, call: &Call) -> &TicketOrder {
        match call {
            Call::Barrier => &self.barriers,
            _ => &self.others,
        }
    }
}

const SERVED: [CallId; 9] = [
    CallId::Barrier,
    CallId::Bcast,
    CallId::Gather,
    CallId::Scatter,
    CallId::Allgather,
    CallId::Allgatherv,
    CallId::Alltoall,
    CallId::Reduce,
    CallId::Allreduce,
];

impl Module for HanModule {
    fn serves(&self) -> CallSet {
        SERVED.into_iter().fold(CallSet::NONE, CallSet::with)
    }

    fn sets_up(&self) -> bool {
        true
    }

    fn enable<'a>(
        &'a self,
        comm: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        Box::pin(self.make_levels(comm))
    }

    fn explain(&self, call: CallId) -> Option<String> {
        let place = self.place.get()?;
        let levels = &place.levels;
        let chain = |comm: &Comm| match Table::chosen(comm) {
            Some(table) => table.chain(call).collect::<Vec<_>>().join(", then "),
            None => "no component".into(),
        };
        let limit = match call {
            _ if !SERVED.contains(&call) => return None,
            CallId::Gather | CallId::Scatter | CallId::Alltoall => {
                format!(" of up to {} bytes", place.blocks_up_to)
            }
            _ => String::new(),
        };
        let leaders = levels.leaders.as_ref().map_or_else(String::new, |leaders| {
            format!(" and {} between {} leaders", chain(leaders), leaders.size())
        });
        Some(format!(
            "levels{limit} ({} inside a node of {}{leaders})",
            chain(&levels.local),
            levels.local.size()
        ))
    }

    fn start(&self, invocation: Invocation, call: Call) -> Running {
        let Some(levels) = self.takes(&call).cloned() else {
            let next = Table::of(invocation.comm(), call.id())
                .and_then(|t| t.start(invocation.next_down(), call));
            return next.unwrap_or_else(|e| Box::pin(std::future::ready(Err(e))));
        };
        let ticket = self.tickets_of(&call).draw();
        Box::pin(async move {
            ticket.come(invocation.engine()).await;
            carry_out(&levels, &invocation, ticket, false, call).await
        })
    }

    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        let Some(levels) = self.takes(call) else {
            return Table::run_next(invocation, call);
        };
        let ticket = self.tickets_of(call).draw();
        if !ticket.has_come() {
            invocation
                .engine()
                .block_on(ticket.come(invocation.engine()));
        }
        // The steps of a blocking call block inside the future, so a single poll completes it, without an outer waiting loop.
        let mut whole = pin!(carry_out(levels, invocation, ticket, true, call.clone()));
        match whole.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => invocation.engine().block_on(whole),
        }
    }
}

async fn carry_out(
    levels: &Levels,
    invocation: &Invocation,
    ticket: Ticket,
    blocking: bool,
    call: Call,
) -> Result<(), Error> {
    let enduring = invocation.checked_for_lengths();
    let invocation = enduring.as_ref().unwrap_or(invocation);
    let way = &Way {
        levels,
        invocation,
        ticket,
        blocking,
    };
    let outcome = take_steps(way, call).await;
    match &enduring {
        Some(invocation) => invocation.verdict(outcome),
        None => outcome,
    }
}

async fn take_steps(way: &Way<'_>, call: Call) -> Result<(), Error> {
    let invocation = way.invocation;
    match call {
        Call::Bcast { buf, root } => whole::bcast(way, &buf, root).await,
        Call::Reduce {
            send,
            recv,
            op,
            root,
        } => whole::reduce(way, send, recv, op, root).await,
        Call::Allreduce { send, recv, op } => whole::allreduce(way, send, &recv, op).await,
        Call::Gather { send, recv, root } => blocks::gather(way, send, recv, root).await,
        Call::Scatter { send, recv, root } => blocks::scatter(way, send, recv, root).await,
        Call::Allgather { send, recv } => {
            blocks::allgather(way, send, &Blocks::equal(&recv, invocation.size())).await
        }
        Call::Allgatherv { send, recv } => blocks::allgather(way, send, &Blocks::Each(recv)).await,
        Call::Alltoall { send, recv } => blocks::alltoall(way, send, &recv).await,
        _ => whole::barrier(way).await,
    }
}
