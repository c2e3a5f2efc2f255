//! This process's port of the board, for all its communicators: its node's number and, at a leader, the lines.
//!
//! # Initialisation of a leader
//!
//! All leaders set their lines to idle and enter a fence. Then each leader, one after the other,
//!
//! 1. reads the board's identification,
//! 2. determines its node's number. The board refuses to take a channel for nodes without the requesting one,
//!    so a binary search finds the number without a change of channels that are taken,
//! 3. frees the channels of which its node is a member. It holds the claim on the port,
//!    so the process that took such a channel is dead,
//!    or the channel is number 0, whose members are all nodes after power-on.
//!
//! # After the death of a leader
//!
//! Each surviving leader enters the channel's barrier, unless it has already entered it,
//! and does not wait, as in a farewell (the last barrier of a channel).
//! When all have entered, they request that the board drop the dead node.
//! The board applies its own time limit to that node, and checks that
//! all others wait and are the majority. The release that follows is the farewell's.
//! A single survivor is no majority. If its entry is not released, it withdraws the entry, so that all lines
//! are idle, and frees the channel.

use super::lines::{self, Lines, Simulated};
use crate::port::{Barrier, Fault, Wire};
use crate::settings::Settings;
use crate::setup_group::SetupGroup;
use barrier_board::served::ChannelLines;
use barrier_driver::channels::{
    ChannelBarrier, ChannelOpenError, Membership, ProgramError, Status,
};
use barrier_driver::last_resort::Watch;
use barrier_driver::ports::{BoxedChannel, BoxedProgrammer, Resting, WireError};
use mpi_base::yield_now::Backoff;
use mpi_core::plugin::guest::Comm;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Maximum time for which the end of a job waits for other nodes to enter farewells.
/// They enter as soon as their processes are scheduled, unless a node has died.
const FAREWELL: Duration = Duration::from_secs(5);

/// Upper limit of a node's back-off before it repeats a request to the board.
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

type BoardError = ProgramError<WireError>;

pub struct NodePort {
    node: u32,
    /// The leader's lines and channels; `Some` only at a leader.
    lead: Option<Lead>,
}

struct Lead {
    channels: Vec<BoxedChannel>,
    /// The line for requests to the board, borrowed for one request, or while a channel is opened,
    /// during which MPI makes progress.
    programmer: RefCell<BoxedProgrammer>,
    /// The channels, one bit each, that are open at this node,
    /// or that this node has stopped using without a farewell, which would free them.
    in_use: Cell<u8>,
    /// Channels, one bit each, that this node has requested to free, but whose reply was lost.
    unanswered: Cell<u8>,
    /// The farewells of channels of freed communicators that were not released at the last poll.
    departing: RefCell<Vec<Farewell>>,
    resting: Resting,
    _watch: Option<Watch>,
    simulated: RefCell<Option<Simulated>>,
    /// The connection to a served board (simulated in another process); `None` for other boards.
    remote: Option<Arc<ChannelLines>>,
}

/// A channel that this node is leaving: the nodes enter a last barrier, the farewell,
/// and free the channel after its release.
struct Farewell {
    channel: u8,
    /// The last barrier of the channel.
    /// `None` if this leader is the only survivor and has withdrawn its entry.
    barrier: Option<Box<dyn Barrier>>,
    /// Time at which this node entered the farewell.
    since: Instant,
    /// Mask of the nodes that are dead and will not enter the farewell.
    dead_nodes: u64,
    /// True if the board has accepted the time limit for the dead nodes.
    limited: bool,
    /// True if the survivors are no majority: the channel stays taken until the next job frees it.
    kept: bool,
}

/// Number of clock edges (1 ms) after which the board treats a dead node in a barrier as late.
const LATE_EDGES: u32 = 25_175;

/// The reason why a channel could not be opened.
pub enum OpenFailure {
    /// Another communicator has taken the channel since it was chosen.
    Taken,
    Fault(Fault),
}

impl NodePort {
    /// Opens this process's node port; every rank of `MPI_COMM_WORLD` must call this.
    pub fn arrive(world: &Comm, settings: &Settings) -> Result<NodePort, String> {
        let all = SetupGroup::of_all(world);
        let mates = all.agree(lines::mates(settings, world).map_err(Fault::Here))?;
        let leader = mates.first().copied().unwrap_or(world.rank());
        let leads = leader == world.rank();
        let attached = lines::attach(settings, world, leads).map_err(Fault::Here);
        let lines = all.agree(attached)?;
        if let Some(lines) = &lines {
            lines.channels.resting.rest();
        }
        world.fence()?;
        // The leaders proceed one after the other, because the board serves one request at a time.
        if world.rank() > 0 {
            world.recv(world.rank() - 1, &mut [0])?;
        }
        let arrived = lines.map(Lead::open).transpose();
        if world.rank() + 1 < world.size() {
            world.send(world.rank() + 1, &[0])?;
        }
        let lead = all.agree(arrived.map_err(Fault::Here))?;
        let mut node = [0];
        if let Some((_, number)) = &lead {
            node = [*number as u8];
            for mate in mates.iter().filter(|mate| **mate != leader) {
                world.send(*mate, &node)?;
            }
        } else {
            world.recv(leader, &mut node)?;
        }
        Ok(NodePort {
            node: node[0].into(),
            lead: lead.map(|(lead, _)| lead),
        })
    }

    /// Returns the number of this process's node.
    pub fn node(&self) -> u32 {
        self.node
    }

    pub fn leads(&self) -> bool {
        self.lead.is_some()
    }

    /// Returns the channels that this node cannot take, as a mask.
    pub fn in_use(&self) -> u8 {
        let Some(lead) = &self.lead else { return 0 };
        lead.poll_farewells();
        lead.in_use.get()
    }

    /// Returns a free channel of the board that is not in the mask `in_use`.
    pub fn free_channel(&self, in_use: u8) -> Result<u8, Fault> {
        let mut taken = Vec::new();
        for channel in 0..self.channels() {
            let members = match in_use >> channel & 1 {
                1 => None,
                _ => Some(self.ask(|programmer| programmer.members(channel))?),
            };
            match members {
                Some(0) => return Ok(channel),
                Some(_) => taken.push(format!("{channel} has other members")),
                None => taken.push(format!("{channel} serves another communicator")),
            }
        }
        Err(Fault::Named(format!(
            "no channel is free: {}",
            taken.join(", ")
        )))
    }

    fn channels(&self) -> u8 {
        let channels = self.lead.as_ref().map_or(0, |lead| lead.channels.len());
        u8::try_from(channels).unwrap_or(0)
    }

    /// Opens a channel for `members`. The leader whose `programs` is true takes the channel.
    /// All leaders must call this function, which calls `fence` twice.
    pub fn open(
        &self,
        channel: u8,
        members: u64,
        programs: bool,
        mut fence: impl FnMut() -> Result<(), String>,
    ) -> Result<Box<dyn Wire>, OpenFailure> {
        let lead = self.lead.as_ref().ok_or_else(|| no_lines("open a channel"));
        let lead = lead.map_err(|reason| OpenFailure::Fault(Fault::Here(reason)))?;
        let Some(BoxedChannel { out, input }) = lead.channels.get(usize::from(channel)).cloned()
        else {
            let reason = format!("there is no channel {channel}");
            return Err(OpenFailure::Fault(Fault::Here(reason)));
        };
        let mut board = lead.programmer.borrow_mut();
        let programmer = programs.then_some(&mut *board);
        let opened = ChannelBarrier::open(
            out,
            input,
            Membership { channel, members },
            programmer,
            &mut fence,
        );
        match opened {
            Ok(barrier) => {
                lead.in_use.set(lead.in_use.get() | 1 << channel);
                Ok(Box::new(barrier.into_toggle()))
            }
            Err(ChannelOpenError::Program(ProgramError::Refused {
                status: Status::Taken,
                ..
            })) => Err(OpenFailure::Taken),
            // Two communicators may choose the same free channel. One takes and tests the channel,
            // which changes the release lines of the other communicator's nodes.
            Err(ChannelOpenError::Wires(_))
                if programs && is_held_by_others(&mut board, channel, members) =>
            {
                Err(OpenFailure::Taken)
            }
            Err(other) => Err(OpenFailure::Fault(Fault::Here(other.to_string()))),
        }
    }

    /// Frees a channel after a failed test; all lines are idle. If the board refuses, the next job frees it.
    pub fn give_back(&self, channel: u8) {
        let _ = self.ask(|programmer| programmer.give_back(channel));
    }

    /// Removes a channel from the mask of channels in use, because it was not taken.
    pub fn forget(&self, channel: u8) {
        if let Some(lead) = &self.lead {
            lead.in_use.set(lead.in_use.get() & !(1 << channel));
        }
    }

    /// Returns the nodes that have entered a channel's barrier, as a mask that the board reports.
    pub fn arrived(&self, channel: u8) -> Result<u64, String> {
        self.ask(|programmer| programmer.arrived(channel))
            .map_err(|fault| fault.reason())
    }

    /// Checks that a served board answers; other boards are not checked.
    pub fn check(&self) -> Result<(), String> {
        let remote = self.lead.as_ref().and_then(|lead| lead.remote.as_ref());
        remote.map_or(Ok(()), |remote| remote.check().map_err(|e| e.to_string()))
    }

    /// Sets the time within which the loss of the connection to a served board is detected.
    pub fn detect_loss_within(&self, limit: Duration) {
        if let Some(remote) = self.lead.as_ref().and_then(|lead| lead.remote.as_ref()) {
            remote.detect_loss_within(limit);
        }
    }

    /// Calls `note` if this process is a leader and the board is simulated and still open.
    pub fn count(&self, note: impl Fn(&Simulated)) {
        if let Some(lead) = &self.lead
            && let Some(simulated) = &*lead.simulated.borrow()
        {
            note(simulated);
        }
    }

    /// Enters the farewell of a channel and polls all pending farewells.
    pub fn depart(&self, channel: u8, mut barrier: Box<dyn Barrier>) {
        let Some(lead) = &self.lead else { return };
        // If the port fails here, the channel stays taken, and the next job frees it.
        if barrier.enter().is_ok() {
            lead.departing.borrow_mut().push(Farewell {
                channel,
                barrier: Some(barrier),
                since: Instant::now(),
                dead_nodes: 0,
                limited: false,
                kept: false,
            });
        }
        lead.poll_farewells();
    }

    /// Enters the farewell of a channel with the dead members `dead_nodes`.
    pub fn depart_without(&self, channel: u8, mut barrier: Box<dyn Barrier>, dead_nodes: u64) {
        let Some(lead) = &self.lead else { return };
        let entered = match barrier.poll() {
            // This node has already entered the barrier, which the dead nodes will not enter.
            Ok(Poll::Pending) => true,
            Ok(Poll::Ready(())) => barrier.enter().is_ok(),
            Err(_) => false,
        };
        if entered {
            lead.departing.borrow_mut().push(Farewell {
                channel,
                barrier: Some(barrier),
                since: Instant::now(),
                dead_nodes,
                limited: false,
                kept: false,
            });
        }
        lead.poll_farewells();
    }

    /// At the end of the job: waits up to 5 s for farewells of other nodes, then closes the lines.
    pub fn close(&self) -> Result<(), String> {
        let Some(lead) = &self.lead else {
            return Ok(());
        };
        let (since, mut backoff) = (Instant::now(), Backoff::new());
        while since.elapsed() < FAREWELL {
            let since_poll = Instant::now();
            match lead
                .poll_farewells()
                .then(|| lead.has_given_back(self.node))
            {
                Some(true) => break,
                // The reply was lost because several nodes sent at once: wait in proportion to the node's number.
                Some(false) => {
                    std::thread::sleep((since_poll.elapsed() * self.node).min(BACK_OFF_MAX));
                }
                None => backoff.pause(),
            }
        }
        match lead.simulated.take() {
            Some(simulated) => {
                lead.departing.take();
                lead.resting.rest();
                simulated.close()
            }
            None => Ok(()),
        }
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&mut BoxedProgrammer) -> Result<T, BoardError>,
    ) -> Result<T, Fault> {
        let lead = self.lead.as_ref();
        let lead = lead.ok_or_else(|| Fault::Here(no_lines("ask the board")))?;
        let mut programmer = lead.programmer.try_borrow_mut().map_err(|_| {
            Fault::Here("the board is being programmed for another communicator".into())
        })?;
        question(&mut programmer).map_err(|e| Fault::Here(e.to_string()))
    }
}

/// Returns true if a channel has members that are not in the mask `members`.
fn is_held_by_others(programmer: &mut BoxedProgrammer, channel: u8, members: u64) -> bool {
    let found = programmer.members(channel);
    found.is_ok_and(|found| found != 0 && found != members)
}

fn no_lines(what: &str) -> String {
    format!("this rank leads no node and cannot {what}")
}

impl Farewell {
    /// Requests that the board drop the dead nodes when they are late by the time limit;
    /// a refused request is repeated at the next poll.
    fn drop_dead_members(&mut self, programmer: &mut BoxedProgrammer) {
        if !self.is_waiting() {
            return;
        }
        if !self.limited {
            if let Ok(members) = programmer.members(self.channel)
                && (members & !self.dead_nodes).count_ones() == 1
            {
                // The entry has not released the barrier, so the dead nodes have not entered it.
                // The drop withdraws the entry.
                self.barrier = None;
                return;
            }
            self.limited = programmer.set_limit(self.channel, LATE_EDGES).is_ok();
            return;
        }
        match programmer.drop_members(self.channel, self.dead_nodes) {
            Ok(_) => self.dead_nodes = 0,
            Err(ProgramError::Refused {
                status: Status::Minority,
                ..
            }) => self.kept = true,
            // Some nodes have not entered the barrier yet, or another node is sending to the board.
            Err(_) => {}
        }
    }
}

/// Time for which a leader that survives alone repeats its request to free the channel.
/// A served board needs this time to detect the death of the other node.
const ALONE: Duration = Duration::from_secs(1);

impl Farewell {
    /// Returns true if the farewell has a barrier that has not been released.
    fn is_waiting(&mut self) -> bool {
        let polled = self.barrier.as_mut().map(|barrier| barrier.poll());
        matches!(polled, Some(Ok(Poll::Pending)))
    }

    /// Returns true if the farewell has ended: its barrier was released or has failed,
    /// or the only survivor has freed the channel.
    fn has_ended(&mut self, programmer: &mut BoxedProgrammer) -> bool {
        if self.barrier.is_some() {
            return !self.is_waiting();
        }
        let freed = match programmer.members(self.channel) {
            Ok(0) => true,
            Ok(_) => programmer.give_back(self.channel).is_ok(),
            Err(_) => false,
        };
        // If only some of the dead nodes had entered, the request is never granted;
        // the next job then frees the channel.
        self.kept = !freed && self.since.elapsed() >= ALONE;
        freed
    }
}

impl Lead {
    /// Reads the board's identification and this node's number, and frees the channels of dead jobs.
    fn open(lines: Lines) -> Result<(Lead, u32), String> {
        let remote = lines.remote.clone();
        Self::identify(lines).map_err(|reason| {
            // If a served board does not answer, the connection's error is more specific.
            let unanswered = remote.and_then(|remote| remote.check().err());
            unanswered.map_or(reason, |unanswered| unanswered.to_string())
        })
    }

    fn identify(lines: Lines) -> Result<(Lead, u32), String> {
        let Lines {
            channels,
            node,
            watch,
            simulated,
            remote,
        } = lines;
        let mut programmer = channels.programmer;
        let identity = programmer.identify().map_err(|e| e.to_string())?;
        if identity.version != 2 {
            return Err(format!(
                "the board says that it is version {}, and version 2 is needed",
                identity.version
            ));
        }
        let node = match node {
            Some(node) => node,
            None => {
                own_number(&mut programmer, identity.nodes.into()).map_err(|e| e.to_string())?
            }
        };
        for channel in 0..identity.channels {
            let members = programmer.members(channel).map_err(|e| e.to_string())?;
            if members >> node & 1 == 1 {
                // If lines of other nodes are not idle, this channel stays taken, and another is used.
                let _ = programmer.give_back(channel);
            }
        }
        let lead = Lead {
            channels: channels
                .channels
                .into_iter()
                .take(identity.channels.into())
                .collect(),
            programmer: RefCell::new(programmer),
            in_use: Cell::new(0),
            unanswered: Cell::new(0),
            departing: RefCell::default(),
            resting: channels.resting,
            _watch: watch,
            simulated: RefCell::new(simulated),
            remote,
        };
        Ok((lead, node))
    }

    /// Frees the channels that every node has left. Returns true if no farewell is pending.
    fn poll_farewells(&self) -> bool {
        let (Ok(mut departing), Ok(mut programmer)) = (
            self.departing.try_borrow_mut(),
            self.programmer.try_borrow_mut(),
        ) else {
            return false;
        };
        for farewell in departing
            .iter_mut()
            .filter(|farewell| farewell.dead_nodes != 0)
        {
            farewell.drop_dead_members(&mut programmer);
        }
        let ended: Vec<Farewell> = departing
            .extract_if(.., |farewell| farewell.has_ended(&mut programmer))
            .collect();
        // A channel that stays taken because of dead members remains in use; its farewell is removed.
        departing.retain(|farewell| !farewell.kept);
        for Farewell {
            channel, barrier, ..
        } in ended
        {
            self.in_use.set(self.in_use.get() & !(1 << channel));
            // The drop sets the line to idle; if the port has failed, the channel stays taken.
            drop(barrier);
            // Every leader that sees the release attempts to free the channel.
            // A later leader finds it free, or taken by others.
            if programmer.members(channel) != Ok(0)
                && let Err(ProgramError::NoAnswer { .. } | ProgramError::Garbled { .. }) =
                    programmer.give_back(channel)
            {
                self.unanswered.set(self.unanswered.get() | 1 << channel);
            }
        }
        departing.is_empty()
    }

    /// At the end of the job: repeats the requests to free channels whose reply was lost.
    /// Returns true if `node` is no longer a member of any of them.
    ///
    /// An earlier repetition could free a channel that a new communicator has taken.
    fn has_given_back(&self, node: u32) -> bool {
        let Ok(mut programmer) = self.programmer.try_borrow_mut() else {
            return false;
        };
        for channel in (0..u8::BITS as u8).filter(|c| self.unanswered.get() >> c & 1 == 1) {
            let ours = |members: u64| members >> node & 1 == 1;
            if let Ok(members) = programmer.members(channel)
                && (!ours(members) || programmer.give_back(channel).is_ok())
            {
                self.unanswered.set(self.unanswered.get() & !(1 << channel));
            }
        }
        self.unanswered.get() == 0
    }
}

/// Determines the number of the node with these lines, by binary search.
fn own_number(programmer: &mut BoxedProgrammer, nodes: u32) -> Result<u32, BoardError> {
    let mut candidates = u64::MAX >> (64 - nodes.clamp(1, 64));
    while candidates.count_ones() > 1 {
        let half = lower_half(candidates);
        candidates = match is_among(programmer, half)? {
            true => half,
            false => candidates & !half,
        };
    }
    Ok(candidates.trailing_zeros())
}

/// Returns the lower half of the set bits of `mask`.
fn lower_half(mask: u64) -> u64 {
    (0..64)
        .filter(|bit| mask >> bit & 1 == 1)
        .take(mask.count_ones() as usize / 2)
        .fold(0, |half, bit| half | 1 << bit)
}

/// Returns true if this node is in the mask `nodes`. To find out, requests to take a channel.
///
/// The board checks membership first, and then refuses the request unless the channel is free.
/// If the request takes the channel, this function frees it.
fn is_among(programmer: &mut BoxedProgrammer, nodes: u64) -> Result<bool, BoardError> {
    let members = programmer.members(0)?;
    match programmer.take(0, nodes) {
        Ok(()) => {
            if members != nodes {
                programmer.give_back(0)?;
            }
            Ok(true)
        }
        Err(ProgramError::Refused { status, .. }) => Ok(status != Status::NotMember),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests;
