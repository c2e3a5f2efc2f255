//! `han`: hierarchical autonomous collectives: inside of each node first, between nodes through one leader of each.
//!
//! X. Luo, W. Wu, G. Bosilca, Y. Pei, Q. Cao, T. Patinyasakdikul, D. Zhong, J. Dongarra,
//! "HAN: a hierarchical autonomic collective communication framework", IEEE Cluster 2020.
//! A communicator that spans several nodes gets two below it: the members of this node, and the nodes' leaders, who are the lowest ranks there.
//! Each has components of its own, so memory is shared inside of a node, and between leaders a message goes, or a wire toggles.
//!
//! It serves blocking barriers, broadcasts and reductions; everything else, and what must keep the order of ranks, goes one component down.
//! The members of the communicators below call them in the order in which they call this one, so nonblocking calls, whose steps could
//! overtake each other, go down too.

#[cfg(test)]
mod tests;

use super::algo;
use super::reproducible::{REPRODUCIBLE, is_sensitive};
use super::{Call, CallId, CallSet, Component, Cx, Module, Refusal, Running, Table};
use crate::Error;
use crate::comm::{Comm, SplitKey};
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use std::cell::OnceCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// The component.
pub struct Han;

impl Component for Han {
    fn name(&self) -> &str {
        "han"
    }

    fn priority(&self) -> i32 {
        50
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let here = comm.engine().neighbours();
        if comm.group().iter().all(|proc| here.contains(&proc)) {
            return Err(Refusal("all members are on one node".into()));
        }
        let reproducible = comm.engine().params().get(&REPRODUCIBLE);
        Ok(Rc::new(HanModule {
            reproducible: reproducible.map_err(|e| Refusal(e.to_string()))?,
            levels: OnceCell::new(),
        }))
    }
}

/// One communicator's services.
struct HanModule {
    reproducible: bool,
    levels: OnceCell<Levels>,
}

/// The two communicators below one.
struct Levels {
    local: Comm,
    /// At leaders.
    leaders: Option<Comm>,
    seats: Box<[Seat]>,
}

/// Where a rank sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seat {
    /// Which node, in the order of leaders.
    node: u32,
    /// Its rank there; the leader's is 0.
    place: u32,
}

/// Where ranks sit whose nodes have these names.
fn seats(nodes: &[u64]) -> Box<[Seat]> {
    let mut known: Vec<(u64, u32)> = Vec::new();
    let seat = |name: &u64| {
        let node = known.iter().position(|(n, _)| n == name);
        let node = node.unwrap_or_else(|| {
            known.push((*name, 0));
            known.len() - 1
        });
        let place = known[node].1;
        known[node].1 += 1;
        Seat {
            node: node as u32,
            place,
        }
    };
    nodes.iter().map(seat).collect()
}

impl HanModule {
    async fn make_levels(&self, comm: &Comm) -> Result<(), Refusal> {
        let failed = |e: Error| Refusal(format!("setting up: {e}"));
        // A node is called by the first of its processes.
        let node = comm.engine().neighbours().first().copied();
        let node = node.map_or(u64::from(comm.rank()), u64::from);
        let nodes = comm.share(&[node]).await.map_err(failed)?;
        let seats = seats(&nodes);
        if seats.iter().all(|seat| seat.place == 0) {
            return Err(Refusal("no two members are on one node".into()));
        }
        let leads = seats[comm.rank() as usize].place == 0;
        let part = |color| SplitKey { color, key: 0 };
        let local = comm.split(part(Some(node))).await.map_err(failed)?;
        let leaders = comm.split(part(leads.then_some(0))).await.map_err(failed)?;
        if let Some(local) = local {
            let _ = self.levels.set(Levels {
                local,
                leaders,
                seats,
            });
        }
        Ok(())
    }

    /// Whether a call goes through the levels; the same answer at all members.
    fn takes(&self, call: &Call) -> bool {
        let free = |op: &Op| op.is_commutative() && !(self.reproducible && is_sensitive(call));
        match call {
            Call::Barrier | Call::Bcast { .. } => true,
            Call::Reduce { op, .. } | Call::Allreduce { op, .. } => free(op),
            _ => false,
        }
    }
}

impl Module for HanModule {
    fn serves(&self) -> CallSet {
        [
            CallId::Barrier,
            CallId::Bcast,
            CallId::Reduce,
            CallId::Allreduce,
        ]
        .into_iter()
        .fold(CallSet::NONE, CallSet::with)
    }

    fn enable<'a>(
        &'a self,
        comm: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        Box::pin(self.make_levels(comm))
    }

    fn start(&self, cx: Cx, call: Call) -> Running {
        let next = Table::of(cx.comm(), call.id()).and_then(|t| t.start(cx.next_down(), call));
        next.unwrap_or_else(|e| Box::pin(std::future::ready(Err(e))))
    }

    fn run(&self, cx: Cx, call: Call) -> Result<(), Error> {
        match self.levels.get() {
            Some(levels) if self.takes(&call) => levels.run(&cx, call),
            _ => Table::run_next(&cx, call),
        }
    }
}

impl Levels {
    fn run(&self, cx: &Cx, call: Call) -> Result<(), Error> {
        match call {
            Call::Bcast { buf, root } => self.bcast(cx, &buf, root),
            Call::Reduce {
                send,
                recv,
                op,
                root,
            } => self.reduce(cx, send, recv, op, root),
            Call::Allreduce { send, recv, op } => self.allreduce(send, &recv, op),
            _ => self.barrier(),
        }
    }

    fn seat(&self, rank: u32) -> Seat {
        self.seats[rank as usize]
    }

    /// A call of the leaders, if this rank is one.
    fn among_leaders(&self, call: impl FnOnce() -> Call) -> Result<(), Error> {
        match &self.leaders {
            Some(leaders) => leaders.collective(call()),
            None => Ok(()),
        }
    }

    fn barrier(&self) -> Result<(), Error> {
        self.local.collective(Call::Barrier)?;
        self.among_leaders(|| Call::Barrier)?;
        self.local.collective(Call::Barrier)
    }

    fn bcast(&self, cx: &Cx, buf: &RecvBuf, root: u32) -> Result<(), Error> {
        let from = |root| Call::Bcast {
            buf: buf.clone(),
            root,
        };
        let Seat { node, place } = self.seat(root);
        let at_root = self.seat(cx.rank()).node == node;
        if at_root {
            self.local.collective(from(place))?;
        }
        self.among_leaders(|| from(node))?;
        if !at_root {
            self.local.collective(from(0))?;
        }
        Ok(())
    }

    fn reduce(
        &self,
        cx: &Cx,
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        op: Op,
        root: u32,
    ) -> Result<(), Error> {
        let me = cx.rank();
        let recv = recv.filter(|_| me == root);
        let Some(own) = send.or_else(|| recv.as_ref().map(RecvBuf::as_send)) else {
            return Ok(());
        };
        let room = || Ok::<_, Error>(algo::elements(own.count(), own.datatype())?.all());
        let leads = self.leaders.is_some();
        let partial = leads.then(room).transpose()?;
        self.local.collective(Call::Reduce {
            send: Some(own.clone()),
            recv: partial.clone(),
            op: op.clone(),
            root: 0,
        })?;
        let to = self.seat(root);
        let total = match &recv {
            Some(recv) if leads => Some(recv.clone()),
            _ if leads && self.seat(me).node == to.node => Some(room()?),
            _ => None,
        };
        self.among_leaders(|| Call::Reduce {
            send: partial.map(|partial| partial.as_send()),
            recv: total.clone(),
            op,
            root: to.node,
        })?;
        if to.place == 0 {
            return Ok(());
        }
        // The leader of the root's node has what the root wants.
        let leader = Seat {
            place: 0,
            node: to.node,
        };
        match (&total, &recv) {
            (Some(total), _) => cx.engine().block_on(cx.send(&total.as_send(), root)),
            (None, Some(recv)) => {
                let leader = self.seats.iter().position(|seat| *seat == leader);
                let leader = leader.unwrap_or_default() as u32;
                cx.engine().block_on(cx.recv(recv, leader))
            }
            (None, None) => Ok(()),
        }
    }

    fn allreduce(&self, send: Option<SendBuf>, recv: &RecvBuf, op: Op) -> Result<(), Error> {
        let (send, at_leader) = match &self.leaders {
            Some(_) => (send, Some(recv.clone())),
            None => (Some(send.unwrap_or_else(|| recv.as_send())), None),
        };
        self.local.collective(Call::Reduce {
            send,
            recv: at_leader,
            op: op.clone(),
            root: 0,
        })?;
        self.among_leaders(|| Call::Allreduce {
            send: None,
            recv: recv.clone(),
            op,
        })?;
        self.local.collective(Call::Bcast {
            buf: recv.clone(),
            root: 0,
        })
    }
}
