//! Setup of a communicator's channel: the choice of the participating nodes and of a free channel.

use super::lines;
use super::node_barrier::{ArrivalSlots, NodeBarrier};
use super::node_port::{NodePort, OpenFailure};
use crate::port::{Barrier, Fault, MOST_NODES, Mark, Port, ReadBack, Wire};
use crate::sentence::sentence;
use crate::settings::Settings;
use crate::setup::{self, Ready};
use crate::setup_group::SetupGroup;
use mpi_core::plugin::guest::{Comm, Common};

/// Maximum number of attempts to take a channel;
/// an attempt fails if another communicator has taken the chosen channel first.
const TRIES: u32 = 16;

/// Checks without communication whether this communicator may use a channel.
/// Returns the node port if it already exists.
pub fn suits(settings: &Settings, comm: &Comm) -> Result<Option<Common<NodePort>>, String> {
    if comm.size() < 2 {
        return Err("one rank has no other rank to wait for".into());
    }
    let node_port = comm.common::<NodePort>();
    match (comm.is_world(), node_port) {
        (true, None) => lines::mates(settings, comm).map(|_| None),
        (true, Some(_)) => Err("this process is attached to the board already".into()),
        (false, None) => Err("MPI_COMM_WORLD is not attached to a board of version 2".into()),
        (false, node_port) => Ok(node_port),
    }
}

/// The participating nodes of a communicator; the plan is the same at every rank.
struct Plan {
    /// The node of each rank.
    nodes: Vec<u8>,
    /// The ranks that drive lines, one per node.
    leaders: Vec<u32>,
    /// Mask of the channels that at least one of the nodes cannot take.
    in_use: u8,
}

/// Sets up a channel for a communicator; every rank of the communicator must call this.
/// `MPI_COMM_WORLD` creates the node port.
pub fn bring_up(
    comm: &Comm,
    settings: &Settings,
    node_port: &mut Option<Common<NodePort>>,
) -> Result<Ready, String> {
    let all = SetupGroup::of_all(comm);
    if node_port.is_none() {
        let arrived = NodePort::arrive(comm, settings)?;
        *node_port = Some(all.agree(comm.share(arrived).map_err(Fault::Here))?);
    }
    let node_port = comm.common::<NodePort>();
    let node_port = all.agree(node_port.ok_or(Fault::Here(
        "the node port of this process is closed".into(),
    )))?;
    let plan = Plan::agree(&all, &node_port)?;
    let arrival_slots = match plan.is_oversubscribed() {
        true => Some(all.agree(ArrivalSlots::new(comm).map_err(Fault::Here))?),
        false => None,
    };
    let led = match node_port.leads() {
        true => set_up_leaders(comm, &plan, &node_port, settings).map(Some),
        false => Ok(None),
    };
    // The leaders have agreed among themselves; this call sends the result to the other ranks.
    let led = all.agree(led.map_err(Fault::Named))?;
    if let Some(timeout) = settings.timeout {
        node_port.detect_loss_within(timeout);
    }
    let (channel, wire) = led.map_or((None, None), |(channel, wire)| (Some(channel), Some(wire)));
    let node = node_port.node();
    let node_barrier = NodeBarrier::new(
        comm,
        plan.ranks_of(node),
        plan.leader_of(node),
        arrival_slots,
        wire,
    );
    Ok(Ready {
        wire: Box::new(node_barrier),
        nodes: plan.leaders.len() as u32,
        port: Box::new(Channel {
            rank: comm.rank(),
            channel,
            arrival_slots,
            plan,
            node_port,
        }),
    })
}

impl Plan {
    /// Exchanges the node of every rank and returns the common plan.
    fn agree(all: &SetupGroup, node_port: &NodePort) -> Result<Plan, String> {
        let mine = [
            node_port.node() as u8,
            node_port.leads().into(),
            node_port.in_use(),
        ];
        let mut places = all.gather(mine)?;
        let checked = match all.is_first() {
            true => check_plan(&places),
            false => Ok(()),
        };
        all.agree(checked.map_err(Fault::Named))?;
        places.resize(all.ranks().len(), mine);
        let mut table = places.concat();
        all.broadcast(&mut table)?;
        let places = || table.chunks_exact(3).zip(0..);
        Ok(Plan {
            nodes: places().map(|(place, _)| place[0]).collect(),
            leaders: places()
                .filter(|(place, _)| place[1] != 0)
                .map(|(_, rank)| rank)
                .collect(),
            in_use: places().fold(0, |in_use, (place, _)| in_use | place[2]),
        })
    }

    fn is_oversubscribed(&self) -> bool {
        self.nodes.len() > self.leaders.len()
    }

    fn members(&self) -> u64 {
        self.nodes.iter().fold(0, |mask, node| mask | 1 << node)
    }

    fn ranks_of(&self, node: u32) -> Vec<u32> {
        let ranks = (0..).zip(&self.nodes);
        let ours = ranks.filter(|(_, theirs)| u32::from(**theirs) == node);
        ours.map(|(rank, _)| rank).collect()
    }

    fn leader_of(&self, node: u32) -> u32 {
        let ours = |rank: &&u32| self.node_of(**rank) == node;
        self.leaders.iter().find(ours).copied().unwrap_or(0)
    }

    fn node_of(&self, rank: u32) -> u32 {
        self.nodes.get(rank as usize).copied().unwrap_or(0).into()
    }
}

/// Checks whether a channel can serve the ranks of a communicator.
/// Each element of `places` has a rank's node, its leader flag (1), and the mask of its channels in use.
fn check_plan(places: &[[u8; 3]]) -> Result<(), String> {
    let led = |node: u8| places.iter().any(|place| place[0] == node && place[1] != 0);
    if let Some(rank) = places.iter().position(|place| !led(place[0])) {
        return Err(format!(
            "rank {rank} is at node {}, whose lines are led by a rank that is no member",
            places[rank][0]
        ));
    }
    if places.iter().all(|place| place[0] == places[0][0]) {
        return Err(format!("all its ranks are at node {}", places[0][0]));
    }
    Ok(())
}

/// Chooses and takes a channel; every leader must call this.
fn set_up_leaders(
    comm: &Comm,
    plan: &Plan,
    node_port: &NodePort,
    settings: &Settings,
) -> Result<(u8, Box<dyn Barrier>), String> {
    let setup_group = SetupGroup::of(comm, plan.leaders.clone(), node_port.node());
    let names: Vec<_> = plan
        .leaders
        .iter()
        .map(|rank| plan.node_of(*rank))
        .collect();
    let (channel, wire) = take_channel(&setup_group, plan, node_port)?;
    let proved = match wire {
        Ok(wire) => setup::prove(comm, &setup_group, wire, &names, settings),
        Err(reason) => Err(reason),
    };
    match proved {
        Ok((barrier, _way)) => {
            if setup_group.is_first() {
                node_port.count(|simulated| simulated.note_taken());
            }
            Ok((channel, barrier))
        }
        Err(reason) => {
            // All lines are idle, so the channel can be freed;
            // if the board refuses, the next job frees it.
            setup_group.fence()?;
            if setup_group.is_first() {
                node_port.give_back(channel);
            }
            node_port.forget(channel);
            Err(reason)
        }
    }
}

/// A channel that was taken for these leaders, and the result of opening its lines at all of them.
type Taken = (u8, Result<Box<dyn Wire>, String>);

fn take_channel(
    setup_group: &SetupGroup,
    plan: &Plan,
    node_port: &NodePort,
) -> Result<Taken, String> {
    for _ in 0..TRIES {
        let choice = match setup_group.is_first() {
            true => node_port.free_channel(plan.in_use),
            false => Ok(0),
        };
        let mut word = [setup_group.agree(choice)?];
        setup_group.broadcast(&mut word)?;
        let [channel] = word;
        #[cfg(test)]
        chosen::run(channel);
        let opened = node_port.open(channel, plan.members(), setup_group.is_first(), || {
            setup_group.fence()
        });
        let mut lost = [u8::from(matches!(opened, Err(OpenFailure::Taken)))];
        setup_group.broadcast(&mut lost)?;
        if lost == [0] {
            let opened = opened.map_err(|failure| match failure {
                OpenFailure::Fault(fault) => fault,
                // Unreachable: the first leader has broadcast that no leader found the channel taken.
                OpenFailure::Taken => Fault::Here(format!("channel {channel} is taken")),
            });
            return Ok((channel, setup_group.agree(opened)));
        }
        drop(opened);
        node_port.forget(channel);
    }
    Err(format!(
        "other communicators took each free channel first, in {TRIES} attempts"
    ))
}

/// A callback of tests, called on a rank's thread after it has chosen a channel
/// and before it attempts to take the channel.
#[cfg(test)]
pub(crate) mod chosen {
    use std::cell::RefCell;

    type Call = Box<dyn FnMut(u8)>;

    thread_local! {
        static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
    }

    /// Sets this thread's callback, which receives each channel that the thread's leader has chosen.
    pub fn set(call: impl FnMut(u8) + 'static) {
        CALL.with_borrow_mut(|set| *set = Some(Box::new(call)));
    }

    pub(super) fn run(channel: u8) {
        CALL.with_borrow_mut(|set| set.iter_mut().for_each(|call| call(channel)));
    }
}

/// A communicator's channel with the data of this rank.
struct Channel {
    rank: u32,
    /// The number of the channel; `None` at ranks that are not leaders.
    channel: Option<u8>,
    arrival_slots: Option<ArrivalSlots>,
    plan: Plan,
    node_port: Common<NodePort>,
}

impl Channel {
    /// Returns the names and ranks, for messages, of the nodes that are not in the mask `arrived`.
    fn names(&self, arrived: u64) -> Vec<String> {
        let nodes = (0..MOST_NODES).filter(|node| self.plan.members() & !arrived & 1 << node != 0);
        let name = |node| {
            let mut ranks = self.plan.ranks_of(node);
            // A leader knows which ranks of its own node are late; the board does not.
            if node == self.node_port.node()
                && let Some(arrival_slots) = self.arrival_slots
            {
                ranks = NodeBarrier::late(arrival_slots, &ranks);
            }
            let ranks: Vec<_> = ranks.iter().map(ToString::to_string).collect();
            match ranks.as_slice() {
                [] => format!("{node}"),
                [one] => format!("{node} (rank {one})"),
                several => format!("{node} (ranks {})", several.join(", ")),
            }
        };
        nodes.map(name).collect()
    }
}

impl Port for Channel {
    fn check(&self) -> Result<(), String> {
        self.node_port.check()
    }

    fn read_back(&self) -> Option<ReadBack> {
        let node = self.node_port.node();
        let Some(channel) = self.channel else {
            // Only the leader can query the board. If it is late itself, its node's slots show the late ranks.
            let late = NodeBarrier::late(self.arrival_slots?, &self.plan.ranks_of(node));
            let sentence = match late.contains(&self.plan.leader_of(node)) {
                true => sentence(&self.names(!(1 << node)), self.plan.leaders.len()),
                false => return None,
            };
            let speaks = false;
            return Some(ReadBack { sentence, speaks });
        };
        Some(match self.node_port.arrived(channel) {
            Ok(arrived) => {
                let first = arrived & self.plan.members();
                let here = |node| first >> node & 1 == 1;
                ReadBack {
                    sentence: sentence(&self.names(arrived), self.plan.leaders.len()),
                    speaks: !here(self.plan.node_of(0)) && first.trailing_zeros() == node,
                }
            }
            Err(reason) => ReadBack {
                sentence: format!("and the board does not say which node is missing: {reason}"),
                speaks: false,
            },
        })
    }

    fn lose(&mut self, barrier: Option<Box<dyn Barrier>>, dead: &[u32]) {
        // A node cannot continue when its leader has died.
        let leaders = self.plan.leaders.iter().filter(|rank| dead.contains(rank));
        let gone = leaders.fold(0, |gone, rank| gone | 1 << self.plan.node_of(*rank));
        if let (Some(channel), Some(wire)) = (self.channel, barrier.and_then(Barrier::into_wire)) {
            self.node_port.depart_without(channel, wire, gone);
        }
    }

    /// Counts each barrier when it completes: a communicator may never be freed,
    /// and its module is then not closed before the report is written.
    fn mark(&mut self, mark: Mark) {
        if matches!(mark, Mark::Leave) && self.plan.leaders.first() == Some(&self.rank) {
            self.node_port.count(|simulated| simulated.note_barrier());
        }
    }

    fn close(&mut self, barrier: Option<Box<dyn Barrier>>, _: u64) -> Result<(), String> {
        if let (Some(channel), Some(wire)) = (self.channel, barrier.and_then(Barrier::into_wire)) {
            self.node_port.depart(channel, wire);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check_plan;

    #[test]
    fn a_node_without_its_leader_is_named() {
        assert_eq!(check_plan(&[[0, 1, 0], [3, 1, 0], [3, 0, 0]]), Ok(()));
        let message = check_plan(&[[0, 1, 0], [3, 0, 0]]).expect_err("node 3 is not led");
        assert!(message.starts_with("rank 1 is at node 3, "), "{message}");
        let message = check_plan(&[[2, 1, 0], [2, 0, 0]]).expect_err("one node");
        assert_eq!(message, "all its ranks are at node 2");
    }
}
