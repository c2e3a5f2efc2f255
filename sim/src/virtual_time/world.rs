//! The discrete-event engine: a queue of what happens when, and one function for each kind of happening.
//!
//! Happenings of the same instant come in the order in which they were scheduled, so a run has one order only.
//!
//! A level's way: a node's latch, its wire ([`Line`](super::wiring::Line)) to a pin of the machine, the machine's clock
//! edges, its output, a wire back, the node's connector.
//! The world does not know faults: they are other wiring, other latches, pauses of the clock and [`Incident`]s of a [`Setup`].

use super::host::{Answer, Host, Program, Request, Shared};
use super::observe::{Observer, Sight};
use super::oscillator::Oscillator;
use super::random::Random;
use super::setup::{End, Incident, Setup};
use super::wiring::{Sink, Source, Wiring};
use super::{Parameters, RunError, Time};
use crate::clock::Clock;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use fpga_model::ToggleMachine;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// The driver and its callers need a few kilobytes; a sentence that is formatted needs some more.
const STACK_BYTES: usize = 128 * 1024;

/// Switches the power on, runs a program on each node until all have ended, and returns the observer.
pub fn run_world<O: Observer>(
    setup: Setup,
    observer: O,
    program: impl FnMut(usize) -> Program,
) -> Result<(End, O), RunError> {
    let mut world = World::new(setup, observer, program)?;
    let end = world.run();
    // Programs that have not ended are unwound with the world, and their pins must not ask it any more.
    world.shared.dead.set(u64::MAX);
    Ok((end?, world.observer))
}

/// What happens; variants are never compared in earnest, the sequence number before them is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The program goes on.
    Go { node: usize },
    /// The write access ends: the level is at the connector.
    Written { node: usize, high: bool },
    /// The read access ends: the level at the connector is sampled.
    Sampled { node: usize },
    /// The program need not watch any longer, if it still does so for the same reason.
    Watched { node: usize, watch: u64 },
    /// Everybody is in the fence, or will never be.
    Fenced { complete: bool },
    /// A level enters the far end of a wire.
    Feed { sink: Sink, high: bool },
    /// What comes out of a wire may have changed.
    Look { sink: Sink },
    /// The edge at which the machine releases, unless a wire has changed since it was foreseen.
    Edge { foreseen: u64 },
    /// What befalls.
    Befall { incident: Incident },
}

type Task = Coroutine<Answer, Request, (), DefaultStack>;

struct Node {
    /// `None` once it has ended or died.
    program: Option<Task>,
    random: Random,
    slowness: f64,
    /// Since when the program watches its input, and which of its watches this is.
    watching: Option<(Time, u64)>,
    /// When the read that a watch ended with has begun.
    reading_since: Option<Time>,
    fencing: bool,
}

struct World<O> {
    parameters: Parameters,
    oscillator: Oscillator,
    wiring: Wiring,
    ends: Vec<(Sink, Source)>,
    incidents: Vec<(Time, Incident)>,
    latches: u64,
    queue: BinaryHeap<Reverse<(Time, u64, Step)>>,
    scheduled: u64,
    machine: ToggleMachine,
    inputs: u64,
    edge: u64,
    /// The level at the machine's outputs, and what they float to while they are not driven.
    output: bool,
    undriven: Option<bool>,
    /// Counts changes of the inputs, so that an edge foreseen before the last of them is not taken for a release.
    changes: u64,
    watches: u64,
    nodes: Vec<Node>,
    shared: Rc<Shared>,
    observer: O,
}

impl<O: Observer> World<O> {
    fn new(
        setup: Setup,
        observer: O,
        mut program: impl FnMut(usize) -> Program,
    ) -> Result<Self, RunError> {
        let Setup {
            parameters,
            wiring,
            latches,
            slowness,
            incidents,
            pauses,
        } = setup;
        let machine = ToggleMachine::new(parameters.nodes).map_err(RunError::Nodes)?;
        if parameters.port_read == Time::ZERO {
            return Err(RunError::InstantRead);
        }
        if parameters.clock_hz == 0 {
            return Err(RunError::NoClock);
        }
        let shared = Rc::new(Shared::default());
        let mut nodes = Vec::with_capacity(parameters.nodes);
        for (node, slowness) in slowness.into_iter().enumerate() {
            let (program, shared) = (program(node), shared.clone());
            let count = parameters.nodes;
            let stack = DefaultStack::new(STACK_BYTES).map_err(|e| RunError::Stack(e.kind()))?;
            let task = Coroutine::with_stack(stack, move |yielder, _| {
                program(&Host::new(node, count, yielder, shared));
            });
            nodes.push(Node {
                program: Some(task),
                random: Random::new(!parameters.seed, node),
                slowness,
                watching: None,
                reading_since: None,
                fencing: false,
            });
        }
        Ok(Self {
            oscillator: Oscillator {
                clock: Clock {
                    hz: parameters.clock_hz,
                    units_per_s: 1_000_000_000_000,
                },
                pauses,
            },
            parameters,
            ends: wiring.ends().collect(),
            wiring,
            incidents,
            latches,
            queue: BinaryHeap::new(),
            scheduled: 0,
            machine,
            inputs: 0,
            edge: 0,
            output: false,
            undriven: None,
            changes: 0,
            watches: 0,
            nodes,
            shared,
            observer,
        })
    }

    fn run(&mut self) -> Result<End, RunError> {
        self.power_on();
        let mut now = Time::ZERO;
        while self.nodes.iter().any(|node| node.program.is_some()) {
            let Some(Reverse((at, _, step))) = self.queue.pop() else {
                break;
            };
            if at.ps() == u64::MAX {
                return Err(RunError::TooLong {
                    completed: self.machine.releases(),
                });
            }
            now = at;
            self.happen(at, step);
        }
        Ok(End {
            at: now,
            releases: self.machine.releases(),
            stuck: self.mask(|node| node.program.is_some()),
        })
    }

    /// Levels that are there from the beginning, and everybody's first step.
    fn power_on(&mut self) {
        for (sink, source) in self.ends.clone() {
            let high = match source {
                Source::Node(node) => self.latches >> node & 1 == 1,
                Source::Machine => false,
                Source::Open { high } => high,
            };
            self.at(Time::ZERO, Step::Feed { sink, high });
            for instant in self.wiring.line(sink).instants() {
                self.at(instant, Step::Look { sink });
            }
        }
        for (when, incident) in std::mem::take(&mut self.incidents) {
            self.at(when, Step::Befall { incident });
        }
        for node in 0..self.nodes.len() {
            self.at(Time::ZERO, Step::Go { node });
        }
    }

    fn at(&mut self, when: Time, step: Step) {
        self.scheduled += 1;
        self.queue.push(Reverse((when, self.scheduled, step)));
    }

    fn happen(&mut self, now: Time, step: Step) {
        self.shared.now.set(now);
        match step {
            Step::Go { node } => self.resume(now, node, Answer::Done),
            Step::Written { node, high } => self.written(now, node, high),
            Step::Sampled { node } => {
                let level = self.wiring.line(Sink::Input(node)).output();
                self.resume(now, node, Answer::Level(level));
            }
            Step::Watched { node, watch } => {
                if self.nodes[node].watching.is_some_and(|(_, w)| w == watch) {
                    self.wake(now, node);
                }
            }
            Step::Fenced { complete } => self.fenced(now, complete),
            Step::Feed { sink, high } => self.feed(now, sink, high),
            Step::Look { sink } => self.look(now, sink),
            Step::Edge { foreseen } => self.edge(now, foreseen),
            Step::Befall { incident } => self.befall(now, incident),
        }
    }

    /// Lets the program run until it asks for something that takes time.
    fn resume(&mut self, now: Time, node: usize, mut answer: Answer) {
        loop {
            let Some(task) = &mut self.nodes[node].program else {
                return;
            };
            let CoroutineResult::Yield(request) = task.resume(answer) else {
                self.nodes[node].program = None;
                return self.check_fence(now);
            };
            let sight = match request {
                Request::Enter => Sight::Enter { node },
                Request::Leave => Sight::Leave { node },
                other => return self.grant(now, node, other),
            };
            self.observer.see(now, sight);
            answer = Answer::Done;
        }
    }

    /// Starts what takes time.
    fn grant(&mut self, now: Time, node: usize, request: Request) {
        match request {
            Request::Write(high) => {
                let end = now + self.access(node, self.parameters.port_write);
                self.at(end, Step::Written { node, high });
            }
            Request::Read => {
                let since = self.nodes[node].reading_since.take().unwrap_or(now);
                let end = since + self.access(node, self.parameters.port_read);
                self.at(end.max(now), Step::Sampled { node });
            }
            Request::Compute(time) => self.at(now + time, Step::Go { node }),
            Request::Watch { until } => {
                self.watches += 1;
                self.nodes[node].watching = Some((now, self.watches));
                if let Some(until) = until {
                    let watch = self.watches;
                    self.at(until, Step::Watched { node, watch });
                }
            }
            Request::Fence => {
                self.nodes[node].fencing = true;
                self.check_fence(now);
            }
            Request::Enter | Request::Leave => {}
        }
    }

    /// How long an access takes.
    fn access(&mut self, node: usize, time: Time) -> Time {
        let Node {
            slowness, random, ..
        } = &mut self.nodes[node];
        let jitter = match self.parameters.jitter {
            Time::ZERO => Time::ZERO,
            jitter => jitter.scaled(random.unit()),
        };
        time.scaled(*slowness) + jitter
    }

    fn written(&mut self, now: Time, node: usize, high: bool) {
        if self.nodes[node].program.is_none() {
            return;
        }
        self.observer.see(now, Sight::Driven { node });
        self.latch(now, node, high);
        self.resume(now, node, Answer::Done);
    }

    /// A level at a node's connector goes to wherever it is plugged.
    fn latch(&mut self, now: Time, node: usize, high: bool) {
        self.latches = self.latches & !(1 << node) | u64::from(high) << node;
        self.spread(now, Source::Node(node), high);
    }

    fn spread(&mut self, now: Time, source: Source, high: bool) {
        let Parameters {
            cable,
            pad_in,
            pad_out,
            ..
        } = self.parameters;
        for index in 0..self.ends.len() {
            let (sink, from) = self.ends[index];
            if from == source {
                let pads = match (source, sink) {
                    (Source::Machine, _) => pad_out,
                    (_, Sink::Pin(_)) => pad_in,
                    (_, Sink::Input(_)) => Time::ZERO,
                };
                self.at(now + pads + cable, Step::Feed { sink, high });
            }
        }
    }

    /// A level goes into a wire, and strikes those that are too close.
    fn feed(&mut self, now: Time, sink: Sink, high: bool) {
        let is_edge = self.wiring.line(sink).input() != high;
        for instant in self.wiring.line(sink).feed(now, high) {
            self.at(instant, Step::Look { sink });
        }
        self.look(now, sink);
        if is_edge {
            for (sink, until) in self.wiring.strikes(sink, now) {
                self.wiring.line(sink).strike(until, high);
                self.at(until, Step::Look { sink });
                self.look(now, sink);
            }
        }
    }

    /// Delivers what comes out of a wire.
    fn look(&mut self, now: Time, sink: Sink) {
        let Some(high) = self.wiring.line(sink).change(now) else {
            return;
        };
        match sink {
            Sink::Pin(node) => {
                self.step_until(now);
                self.inputs = self.inputs & !(1 << node) | u64::from(high) << node;
                self.observer.see(now, Sight::Pin { node, high });
                self.foresee();
            }
            Sink::Input(node) => {
                self.observer.see(now, Sight::Back { node });
                if self.nodes[node].watching.is_some() {
                    self.wake(now, node);
                }
            }
        }
    }

    /// Reads have followed each other without a gap since the watch began; the one that is going on now is the next to count.
    fn wake(&mut self, now: Time, node: usize) {
        let Some((since, _)) = self.nodes[node].watching.take() else {
            return;
        };
        let read = self
            .parameters
            .port_read
            .scaled(self.nodes[node].slowness)
            .ps()
            .max(1);
        let over = (now - since).ps() / read;
        self.nodes[node].reading_since = Some(since + Time::from_ps(over.saturating_mul(read)));
        self.resume(now, node, Answer::Done);
    }

    /// The edge of the next release, if nothing changes before.
    fn foresee(&mut self) {
        self.changes += 1;
        let foreseen = self.changes;
        if let Some(edges) = self.machine.edges_to_release(self.inputs)
            && let Some(when) = self.oscillator.time_of(self.edge + edges)
        {
            self.at(when, Step::Edge { foreseen });
        }
    }

    fn edge(&mut self, now: Time, foreseen: u64) {
        // A later change has foreseen its own release, or that there is none.
        if foreseen == self.changes {
            self.step_until(now);
            self.drive(now);
            // A machine whose inputs all differ from its output again would toggle at each third edge.
            self.foresee();
        }
    }

    /// Brings the machine's output to the connectors.
    fn drive(&mut self, now: Time) {
        let high = self.undriven.unwrap_or(self.machine.outputs() != 0);
        if high != self.output {
            self.output = high;
            let before = self.oscillator.time_of(self.edge.saturating_sub(1));
            let last_edge = now - before.unwrap_or(now);
            self.observer.see(now, Sight::Output { high, last_edge });
            self.spread(now, Source::Machine, high);
        }
    }

    fn befall(&mut self, now: Time, incident: Incident) {
        match incident {
            Incident::Die { node } => {
                self.shared.dead.set(self.shared.dead.get() | 1 << node);
                // Unwinds the program, whose pins fail from now on.
                self.nodes[node].program = None;
                self.observer.see(now, Sight::Down { node });
                self.check_fence(now);
            }
            Incident::Latch { node, high } => self.latch(now, node, high),
            Incident::Reset => {
                self.step_until(now);
                self.machine.reset();
                self.drive(now);
                self.foresee();
            }
            Incident::Undriven { high } => {
                self.undriven = Some(high);
                self.drive(now);
            }
            Incident::Driven => {
                self.undriven = None;
                self.drive(now);
            }
        }
    }

    /// The fence opens when all nodes are in it, and fails when all that are left are.
    fn check_fence(&mut self, now: Time) {
        let fencing = self.mask(|node| node.fencing && node.program.is_some());
        let left = self.mask(|node| node.program.is_some());
        if fencing != 0 && fencing == left {
            let complete = left.count_ones() as usize == self.nodes.len();
            let end = now + self.parameters.fence;
            self.at(end, Step::Fenced { complete });
        }
    }

    fn fenced(&mut self, now: Time, complete: bool) {
        let answer = if complete {
            Answer::Done
        } else {
            Answer::FenceFailed
        };
        // Everybody is out of this fence before anybody can enter the next.
        let fencing = self.mask(|node| node.fencing);
        for node in &mut self.nodes {
            node.fencing = false;
        }
        for node in (0..self.nodes.len()).filter(|node| fencing >> node & 1 == 1) {
            self.resume(now, node, answer);
        }
    }

    fn step_until(&mut self, now: Time) {
        let cycles = self.oscillator.edges_until(now) - self.edge;
        self.machine.fast_forward(self.inputs, cycles);
        self.edge += cycles;
    }

    fn mask(&self, what: impl Fn(&Node) -> bool) -> u64 {
        let bits = self.nodes.iter().enumerate();
        bits.fold(0, |mask, (n, node)| mask | u64::from(what(node)) << n)
    }
}
