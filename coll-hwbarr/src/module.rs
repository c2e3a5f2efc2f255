//! The component on one communicator: [`Module`] of the plugin ABI.
//!
//! All state is in one cell, which is borrowed for one poll at a time and never while MPI progresses,
//! because progress polls the nonblocking barriers of the same module.

use crate::channels::{self, NodePort};
use crate::fallback_agreement::{FallbackAgreement, Finding, Remark};
use crate::port::line::LineEnd;
use crate::port::{self, MOST_NODES, Mark, Port, ReadBack};
use crate::queue::{Completion, Queue};
use crate::sentence::{listed, sentence};
use crate::settings::{Settings, Version};
use crate::setup::{self, Ready};
use barrier_board::tree::BOARD_PINS;
use mpi_core::plugin::guest::{self, Comm, Common, Served, Started};
use std::cell::{Cell, RefCell};
use std::task::Poll;
use std::time::Duration;

pub struct Module {
    comm: Comm,
    settings: Settings,
    state: RefCell<Option<State>>,
    /// This process's node port of version 2, for all its communicators; created for `MPI_COMM_WORLD`.
    node_port: RefCell<Option<Common<NodePort>>>,
    /// Number of polls since this module last read the clock and polled messages.
    polls: Cell<u32>,
    /// True while a round of the eureka line is open; a barrier on the wire would end the round.
    pub(crate) round: Cell<bool>,
}

/// The module's state between enable and disable; the wires are dropped before the port.
pub(crate) struct State {
    queue: Queue,
    agreement: FallbackAgreement,
    pub(crate) line: LineEnd,
    pub(crate) port: Box<dyn Port>,
    nodes: u32,
    /// The error of a failed port; the port is not accessed after it.
    lost: Option<String>,
    /// The remark that this node reports when it stops using the hardware.
    remark: Option<Remark>,
    /// True if this node has warned the user that the members stop using the hardware,
    /// or knows that another node has warned.
    warned: bool,
    /// The counts of entered and released barriers that were last reported to the host;
    /// `None` if this process shares the wire.
    reported_counts: Option<(u64, u64)>,
}

/// If rank 0 is the missing member, only ranks 1 to `SPEAKERS` warn the user about it.
const SPEAKERS: u32 = 3;

/// Number of polls before a wait sleeps; with oversubscribed cores, each poll yields the core.
const POLLS_BEFORE_SLEEP: u32 = 16;

/// Number of polls of the wire for each check of the clock and the messages.
const CHECK_EVERY: u32 = 16;

impl Module {
    pub fn new(comm: Comm) -> Result<Module, String> {
        let settings = Settings::read(&comm)?;
        let node_port = match settings.version {
            Version::Toggle => {
                suits_version_1(&settings, &comm)?;
                None
            }
            Version::Channels if settings.boards > 1 => {
                return Err(format!(
                    "cascaded boards are of version 1, and coll_hwbarr_version is 2 with coll_hwbarr_boards {}",
                    settings.boards
                ));
            }
            Version::Channels => channels::suits(&settings, &comm)?,
        };
        Ok(Module {
            comm,
            settings,
            state: RefCell::default(),
            node_port: RefCell::new(node_port),
            polls: Cell::new(0),
            round: Cell::new(false),
        })
    }

    fn bring_up(&self) -> Result<Ready, String> {
        match self.settings.version {
            Version::Toggle => setup::bring_up(&self.comm, &self.settings),
            Version::Channels => {
                channels::bring_up(&self.comm, &self.settings, &mut self.node_port.borrow_mut())
            }
        }
    }

    /// Returns true if each barrier changes the wires twice (`coll_hwbarr_reboot`).
    pub(crate) fn is_returning(&self) -> bool {
        self.settings.reboot.is_some()
    }

    /// Returns the communicator that this module serves.
    pub(crate) fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Runs `act` on the state; MPI does not progress during the call.
    pub(crate) fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, String> {
        let mut state = self.state.borrow_mut();
        Ok(act(state.as_mut().ok_or("the component is not enabled")?))
    }

    /// Polls the wire one time and, less often, the clock and the messages of the agreement.
    fn poll_once(&self) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().ok_or("the component is not enabled")?;
        state.drive();
        state.report_counts(&self.comm);
        let polls = self.polls.get() + 1;
        self.polls.set(polls % CHECK_EVERY);
        if polls == CHECK_EVERY || state.lost.is_some() {
            state.check_agreement(&self.comm, self.settings.timeout)?;
        }
        Ok(())
    }

    /// Polls one time and returns the state of barrier `ticket`.
    fn over(&self, ticket: u64) -> Result<Poll<Completion>, String> {
        self.poll_once()?;
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().ok_or("the component is not enabled")?;
        let over = state.queue.over(ticket);
        if over == Poll::Ready(Completion::Released) {
            state.port.mark(Mark::Leave);
        }
        Ok(over)
    }

    /// Waits until barrier `ticket` has ended.
    fn wait(&self, ticket: u64) -> Result<Completion, String> {
        let sleep_limit = self.settings.sleep;
        let sleep_limit = match sleep_limit {
            Some(sleep_limit) if self.with_state(|state| state.queue.wakes_sleepers())? => {
                Some(sleep_limit)
            }
            _ => None,
        };
        let mut polls = 0_u32;
        loop {
            let mut over = Ok(Poll::Pending);
            // If this loop sleeps in the kernel, `comm.wait` polls only one time:
            // a release at the port would not end its sleep.
            let waited = self.comm.wait(sleep_limit.map(|_| Duration::ZERO), || {
                // The closure may be called again after it has returned true, so its result is kept.
                if over == Ok(Poll::Pending) {
                    over = self.over(ticket);
                }
                over != Ok(Poll::Pending)
            });
            if waited.is_err() {
                // The wait returns an error if a member is dead; `attend` then handles the death.
                guest::Module::attend(self);
            }
            waited?;
            if let Poll::Ready(over) = over? {
                return Ok(over);
            }
            if let Some(sleep_limit) = sleep_limit.filter(|_| polls >= POLLS_BEFORE_SLEEP) {
                self.with_state(|state| state.sleep(sleep_limit))?;
            }
            polls = polls.saturating_add(1);
        }
    }

    /// Starts a barrier, unless the members have stopped using the hardware.
    fn begin(&self) -> Result<Started, String> {
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().ok_or("the component is not enabled")?;
        // A release would lower the eureka line during its round, which is open at all members.
        if self.round.get() || state.queue.is_closed() {
            return Ok(Started::Next);
        }
        state.port.mark(Mark::Enter);
        let ticket = state.queue.start();
        state.drive();
        state.report_counts(&self.comm);
        Ok(Started::Ticket(ticket))
    }
}

fn suits_version_1(settings: &Settings, comm: &Comm) -> Result<(), String> {
    if !comm.is_world() {
        return Err("each node has one wire pair, and it belongs to MPI_COMM_WORLD".into());
    }
    let (ranks, boards) = (comm.size(), settings.boards);
    if ranks.div_ceil(boards) > MOST_NODES {
        let barrier = match boards {
            1 => "the barrier has".to_owned(),
            boards => format!("the {boards} boards of coll_hwbarr_boards have"),
        };
        return Err(format!(
            "there are {ranks} ranks, and {barrier} at most {} wires; coll_hwbarr_boards {} would be enough",
            boards * MOST_NODES,
            ranks.div_ceil(BOARD_PINS as u32)
        ));
    }
    port::suits(&settings.port, boards, comm)
}

impl State {
    /// Polls the wire, which may enter the next barrier. After the first failure of a port,
    /// the members stop using the hardware together.
    fn drive(&mut self) {
        if self.lost.is_none() {
            let driven = self.queue.drive();
            self.note_loss(driven);
        }
    }

    /// Sleeps until a possible release, at most `limit`; port errors are handled as in [`drive`](Self::drive).
    fn sleep(&mut self, limit: Duration) {
        if self.lost.is_none() {
            let slept = self.queue.sleep(limit);
            self.note_loss(slept);
        }
    }

    /// Handles a failed access as the loss of the port.
    /// If the whole board does not answer, the error of [`Port::check`] is reported instead.
    fn note_loss(&mut self, access: Result<(), String>) {
        if let Err(reason) = access {
            self.lost = Some(self.port.check().err().unwrap_or(reason));
        }
    }

    /// Reports the counts of entered and released barriers to the host if they have changed.
    fn report_counts(&mut self, comm: &Comm) {
        let now = (self.queue.entered(), self.queue.released());
        if let Some(reported_counts) = self
            .reported_counts
            .as_mut()
            .filter(|reported_counts| **reported_counts != now)
        {
            *reported_counts = now;
            comm.tell_wire(comm.rank(), now.0, now.1);
        }
    }

    /// After the death of a member the hardware releases no barrier.
    /// Each surviving member stops using the hardware when it is notified of the death.
    fn leave_after_death(&mut self, comm: &Comm) -> Result<(), String> {
        let dead = comm.failed_ranks();
        if dead.is_empty() || self.queue.is_closed() {
            return Ok(());
        }
        let reporter = (0..comm.size()).find(|rank| !dead.contains(rank));
        let barrier = self.queue.leave_with_wire(self.queue.released());
        self.port.lose(barrier, &dead);
        let dead: Vec<_> = dead.iter().map(ToString::to_string).collect();
        let why = match &*dead {
            [one] => format!("has lost node {one}, which is dead"),
            all => format!("has lost nodes {}, which are dead", listed(all)),
        };
        if !self.warned && reporter == Some(comm.rank()) {
            self.warned = true;
            comm.warn(&format!(
                "the hardware barrier of {} nodes {why}; the others leave it",
                self.nodes
            ));
        }
        Err(format!("the hardware barrier {why}"))
    }

    /// Stops using the hardware after a timeout, a port failure, or the stop of another member.
    fn check_agreement(&mut self, comm: &Comm, timeout: Option<Duration>) -> Result<(), String> {
        self.leave_after_death(comm)?;
        if self.queue.is_closed() {
            return Ok(());
        }
        let waiting = self.queue.waiting();
        let limit = timeout.unwrap_or(Duration::MAX);
        let give_up = self.lost.is_some() || waiting.is_some_and(|waiting| waiting >= limit);
        let entered = self.queue.entered();
        if give_up && self.remark.is_none() {
            self.remark = self.own_remark(comm, waiting.or(timeout));
        }
        let finding = self
            .agreement
            .poll_once(comm, give_up, entered, self.remark.as_ref())?;
        match finding {
            Finding::Nothing => return Ok(()),
            Finding::Stopped => self.queue.stop(),
            Finding::Verdict(released) => self.queue.leave(released),
        }
        if !self.warned
            && let Some(why) = self.why(comm, give_up, entered, waiting.or(timeout))
        {
            self.warn(comm, &why);
        }
        Ok(())
    }

    fn warn(&mut self, comm: &Comm, why: &str) {
        self.warned = true;
        comm.warn(&format!(
            "the hardware barrier of {} nodes {why}; {} goes on in software",
            self.nodes,
            comm.name(),
        ));
    }

    /// Returns the remark with which this node stops using the hardware:
    /// its port's error, or the missing nodes as read from the hardware.
    fn own_remark(&mut self, comm: &Comm, waited: Option<Duration>) -> Option<Remark> {
        if self.lost.is_none() {
            self.lost = self.port.check().err();
        }
        if let Some(reason) = &self.lost {
            return Some(Remark::Lost(reason.clone()));
        }
        let ReadBack { sentence, speaks } = self.port.read_back()?;
        let why = format!(
            "has not released for {:.1?}, {sentence}",
            waited.unwrap_or_default()
        );
        if !speaks {
            return Some(Remark::Missing(why));
        }
        self.warn(comm, &why);
        Some(Remark::Told)
    }

    /// Returns the reason why the members stop using the hardware,
    /// if this node knows it and must warn the user.
    fn why(
        &mut self,
        comm: &Comm,
        give_up: bool,
        entered: u64,
        waited: Option<Duration>,
    ) -> Option<String> {
        let remarks = self.agreement.remarks();
        if remarks.iter().any(|(_, remark)| *remark == Remark::Told) {
            self.warned = true;
            return None;
        }
        for (rank, remark) in remarks {
            match remark {
                Remark::Lost(reason) => return Some(format!("is lost at rank {rank}: {reason}")),
                // Another member may already have warned the user.
                Remark::Missing(why) => {
                    return self.agreement.has_all_numbers().then(|| why.clone());
                }
                Remark::Told => {}
            }
        }
        // Rank 0 receives the remark of this member and warns the user.
        if self.remark.is_some() {
            return None;
        }
        let missing = self.missing(comm, give_up, entered)?;
        Some(format!(
            "has not released for {:.1?}, {}",
            waited.unwrap_or_default(),
            sentence(
                &missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
                comm.size() as usize
            )
        ))
    }

    /// Returns the missing nodes, if this node knows them and must name them to the user.
    fn missing(&mut self, comm: &Comm, give_up: bool, entered: u64) -> Option<Vec<u32>> {
        match self.port.missing() {
            Ok(Some(missing)) => (give_up && self.port.may_warn()).then_some(missing),
            // The port cannot read the missing nodes, but the messages of the agreement name them.
            Ok(None) => (comm.rank() <= SPEAKERS)
                .then(|| self.agreement.missing(entered))
                .flatten(),
            // The hardware itself has failed; this member reports the reason as its remark.
            Err(reason) => {
                self.lost.get_or_insert(reason);
                None
            }
        }
    }
}

impl guest::Module for Module {
    fn enable(&self) -> Result<(), String> {
        let agreement = FallbackAgreement::new(&self.comm)?;
        let Ready { wire, port, nodes } = self.bring_up()?;
        // If several ranks share the wire, or several communicators use wires,
        // the counts would describe only a part of the barriers.
        let reported_counts = (self.comm.is_world() && nodes == self.comm.size()).then_some((0, 0));
        if reported_counts.is_some() {
            self.comm.tell_wire(self.comm.rank(), 0, 0);
        }
        if self.comm.rank() == 0 {
            let port = crate::settings::text_of(&self.comm, crate::settings::PORT);
            self.comm.info(&format!(
                "port {port}, {nodes} wires, opened and found idle by all; the self-test with a late node was passed"
            ));
        }
        *self.state.borrow_mut() = Some(State {
            queue: Queue::new(wire),
            agreement,
            line: LineEnd::default(),
            port,
            nodes,
            lost: None,
            remark: None,
            warned: false,
            reported_counts,
        });
        Ok(())
    }

    fn barrier(&self) -> Result<Served, String> {
        let Started::Ticket(ticket) = self.begin()? else {
            return Ok(Served::Next);
        };
        Ok(served(Poll::Ready(self.wait(ticket)?)))
    }

    fn start(&self) -> Result<Started, String> {
        self.begin()
    }

    fn test(&self, ticket: u64) -> Result<Poll<Served>, String> {
        Ok(match self.over(ticket)? {
            Poll::Pending => Poll::Pending,
            over => Poll::Ready(served(over)),
        })
    }

    fn eureka_begin(&self) -> Result<Served, String> {
        self.open_round()
    }

    fn eureka_raise(&self) -> Result<bool, String> {
        self.with_line(|line| line.raise())
    }

    fn eureka_test(&self) -> Result<bool, String> {
        self.with_line(|line| line.is_found())
    }

    fn eureka_end(&self) -> Result<(), String> {
        self.end_round()
    }

    fn attend(&self) {
        // If the state is borrowed, a poll of this module is already running and does this work.
        if let Ok(mut state) = self.state.try_borrow_mut()
            && let Some(state) = state.as_mut()
        {
            // An error is ignored here, because the next barrier fails with the same error.
            let _ = state.check_agreement(&self.comm, self.settings.timeout);
        }
    }

    fn disable(&self) {
        let Some(State {
            mut queue,
            line,
            mut port,
            warned,
            ..
        }) = self.state.take()
        else {
            return;
        };
        if self.comm.rank() == 0
            && !warned
            && let Err(reason) = port.check()
        {
            self.comm
                .warn(&format!("{reason}; the hardware barrier ends without it"));
        }
        drop(line);
        let barrier = queue.close();
        if let Err(reason) = port.close(barrier, queue.released()) {
            self.comm.warn(&reason);
        }
        if self.comm.is_world()
            && let Some(node_port) = &*self.node_port.borrow()
            && let Err(reason) = node_port.close()
        {
            self.comm.warn(&reason);
        }
    }
}

fn served(over: Poll<Completion>) -> Served {
    match over {
        Poll::Ready(Completion::Released) => Served::Here,
        Poll::Ready(Completion::Abandoned) | Poll::Pending => Served::Next,
    }
}
