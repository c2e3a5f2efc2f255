//! The discrete-event engine: a queue of what happens when, and one function for each kind of event.
//!
//! Events of the same instant happen in the order in which they were scheduled, so a run has one order only.

use super::stats::{Distribution, Phase, Summary};
use super::{Outcome, Parameters, Random, RunError, Time};
use crate::clock::Clock;
use crate::event::{Event, Record, What};
use barrier_driver::ToggleBarrier;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use fpga_model::ToggleMachine;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::rc::Rc;

/// What happens; variants are never compared in earnest, the sequence number before them is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The program calls the barrier.
    Enter { node: usize },
    /// The write access ends: the driver's level is at the connector.
    Driven { node: usize },
    /// A level reaches the machine.
    Pin { node: usize, high: bool },
    /// The edge at which the machine releases, unless a wire has changed since it was foreseen.
    Edge { foreseen: u64 },
    /// The machine's level reaches a node's connector.
    Back { node: usize, high: bool },
    /// The read access ends that samples the release.
    Poll { node: usize },
}

/// The levels at a node's connector.
#[derive(Debug, Default)]
struct Connector {
    out: Cell<bool>,
    input: Cell<bool>,
}

/// A node's pin: its connector, at the instant at which the access takes effect.
struct Pin(Rc<Connector>);

impl ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.out.set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.out.set(true);
        Ok(())
    }
}

impl InputPin for Pin {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.input.get())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.0.input.get())
    }
}

struct Node {
    connector: Rc<Connector>,
    driver: ToggleBarrier<Pin, Pin>,
    random: Random,
    /// When the first read of the current barrier began.
    polls_since: Time,
    /// Barriers entered and left so far.
    entered: usize,
    left: usize,
}

/// When the things happened that the latency of one barrier is made of.
#[derive(Debug, Clone, Copy, Default)]
struct Passage {
    first_enter: Time,
    last_enter: Time,
    /// The last arriver, its level at the connector, and at the machine.
    last: usize,
    driven: Time,
    at_pin: Time,
    released: Time,
    /// The release at the last arriver's connector, and its return.
    back: Time,
    left: Time,
}

struct Engine<'p> {
    parameters: &'p Parameters,
    clock: Clock,
    queue: BinaryHeap<Reverse<(Time, u64, Step)>>,
    scheduled: u64,
    machine: ToggleMachine,
    inputs: u64,
    edge: u64,
    /// Counts changes of the inputs, so that an edge foreseen before the last of them is not taken for a release.
    changes: u64,
    nodes: Vec<Node>,
    passages: Vec<Passage>,
    latencies: Vec<Time>,
    record: Option<Vec<Event>>,
}

/// Runs the nodes through all barriers; `keep_record` for a waveform.
pub fn run(parameters: &Parameters, keep_record: bool) -> Result<Outcome, RunError> {
    let mut engine = Engine::new(parameters, keep_record)?;
    if parameters.barriers > 0 {
        for node in 0..parameters.nodes {
            engine.compute_then_enter(Time::ZERO, node);
        }
    }
    let mut now = Time::ZERO;
    while let Some(Reverse((at, _, step))) = engine.queue.pop() {
        if at.ps() == u64::MAX {
            return Err(RunError::TooLong {
                completed: engine.machine.releases(),
            });
        }
        now = at;
        engine.happen(at, step);
    }
    Ok(engine.finish(now))
}

impl<'p> Engine<'p> {
    fn new(parameters: &'p Parameters, keep_record: bool) -> Result<Self, RunError> {
        let machine = ToggleMachine::new(parameters.nodes).map_err(RunError::Nodes)?;
        if parameters.port_read == Time::ZERO {
            return Err(RunError::InstantRead);
        }
        if parameters.clock_hz == 0 {
            return Err(RunError::NoClock);
        }
        let nodes = (0..parameters.nodes)
            .map(|node| power_on(parameters.seed, node))
            .collect();
        Ok(Self {
            parameters,
            clock: Clock {
                hz: parameters.clock_hz,
                units_per_s: 1_000_000_000_000,
            },
            queue: BinaryHeap::new(),
            scheduled: 0,
            machine,
            inputs: 0,
            edge: 0,
            changes: 0,
            nodes,
            passages: Vec::new(),
            latencies: Vec::new(),
            record: keep_record.then(Vec::new),
        })
    }

    fn at(&mut self, when: Time, step: Step) {
        self.scheduled += 1;
        self.queue.push(Reverse((when, self.scheduled, step)));
    }

    fn note(&mut self, at: Time, what: What) {
        if let Some(events) = &mut self.record {
            events.push(Event {
                at_ns: at.ns(),
                what,
            });
        }
    }

    fn compute_then_enter(&mut self, now: Time, node: usize) {
        let work = self
            .parameters
            .arrivals
            .sample(&mut self.nodes[node].random);
        self.at(now + work, Step::Enter { node });
    }

    fn happen(&mut self, now: Time, step: Step) {
        match step {
            Step::Enter { node } => self.enter(now, node),
            Step::Driven { node } => self.driven(now, node),
            Step::Pin { node, high } => self.pin(now, node, high),
            Step::Edge { foreseen } => self.edge(now, foreseen),
            Step::Back { node, high } => self.back(now, node, high),
            Step::Poll { node } => self.poll(now, node),
        }
    }

    fn enter(&mut self, now: Time, node: usize) {
        let number = self.nodes[node].entered;
        self.nodes[node].entered += 1;
        if number == self.passages.len() {
            self.passages.push(Passage {
                first_enter: now,
                ..Passage::default()
            });
        }
        let passage = &mut self.passages[number];
        (passage.last_enter, passage.last) = (now, node);
        self.note(now, What::Enter { node });
        self.at(now + self.parameters.port_write, Step::Driven { node });
    }

    fn driven(&mut self, now: Time, node: usize) {
        let Node {
            driver,
            connector,
            entered,
            ..
        } = &mut self.nodes[node];
        // A node enters only after it has left, and the pins cannot fail, so there is nothing to report.
        let _ = driver.enter();
        let (high, number) = (connector.out.get(), *entered - 1);
        if self.passages[number].last == node {
            self.passages[number].driven = now;
        }
        self.nodes[node].polls_since = now;
        let Parameters { cable, pad_in, .. } = *self.parameters;
        self.at(now + cable + pad_in, Step::Pin { node, high });
    }

    fn pin(&mut self, now: Time, node: usize, high: bool) {
        self.step_until(now);
        self.inputs = self.inputs & !(1 << node) | u64::from(high) << node;
        self.changes += 1;
        let number = self.nodes[node].entered - 1;
        if self.passages[number].last == node {
            self.passages[number].at_pin = now;
        }
        self.note(now, What::Wire { node, high });
        if let Some(edges) = self.machine.edges_to_release(self.inputs) {
            let when = Time::from_ps(self.clock.time_of(self.edge + edges));
            self.at(
                when,
                Step::Edge {
                    foreseen: self.changes,
                },
            );
        }
    }

    fn edge(&mut self, now: Time, foreseen: u64) {
        // A later change has foreseen its own release, or that there is none.
        if foreseen != self.changes {
            return;
        }
        self.step_until(now);
        let high = self.machine.outputs() != 0;
        let number = self.machine.releases() as usize - 1;
        self.passages[number].released = now;
        self.note(now, What::Release { high });
        let when = now + self.parameters.pad_out + self.parameters.cable;
        for node in 0..self.nodes.len() {
            self.at(when, Step::Back { node, high });
        }
    }

    /// Reads follow each other without a gap from the end of the write.
    /// Those before the release would sample the old level and change nothing, so they are not simulated one by one:
    /// the first read that ends after the level has arrived is the one that samples it.
    fn back(&mut self, now: Time, node: usize, high: bool) {
        self.nodes[node].connector.input.set(high);
        let passage = &mut self.passages[self.nodes[node].left];
        if passage.last == node {
            passage.back = now;
        }
        let since = self.nodes[node].polls_since;
        let read = self.parameters.port_read.ps();
        let reads = (now - since).ps() / read + 1;
        let sampled = since + Time::from_ps(reads.saturating_mul(read));
        self.at(sampled, Step::Poll { node });
    }

    fn poll(&mut self, now: Time, node: usize) {
        // It is the driver that says whether the node may leave, also where the engine thinks it knows.
        if !self.nodes[node]
            .driver
            .poll()
            .is_ok_and(|state| state.is_ready())
        {
            return;
        }
        let passage = &mut self.passages[self.nodes[node].left];
        if passage.last == node {
            passage.left = now;
        }
        self.latencies.push(now - passage.last_enter);
        self.nodes[node].left += 1;
        self.note(now, What::Leave { node });
        if self.nodes[node].entered < self.parameters.barriers {
            self.compute_then_enter(now, node);
        }
    }

    fn step_until(&mut self, now: Time) {
        let cycles = self.clock.edges_until(now.ps()) - self.edge;
        self.machine.fast_forward(self.inputs, cycles);
        self.edge += cycles;
    }

    fn finish(self, now: Time) -> Outcome {
        let each = |part: &dyn Fn(&Passage) -> Time| {
            Distribution::new(self.passages.iter().map(part).collect())
        };
        let phases = Phase::ALL.map(|phase| {
            each(&|p| match phase {
                Phase::Write => p.driven - p.last_enter,
                Phase::WireOut => p.at_pin - p.driven,
                Phase::Machine => p.released - p.at_pin,
                Phase::WireBack => p.back - p.released,
                Phase::Read => p.left - p.back,
            })
        });
        let summary = Summary {
            releases: self.machine.releases(),
            last_arriver: each(&|p| p.left - p.last_enter),
            every_node: Distribution::new(self.latencies),
            phases,
            skew: each(&|p| p.last_enter - p.first_enter),
            duration: now,
        };
        let events = self.record.unwrap_or_default();
        Outcome {
            summary,
            record: Record {
                nodes: self.parameters.nodes,
                events,
                dropped: 0,
            },
        }
    }
}

/// A node whose barrier is open: after power-on all wires are low and stay so.
fn power_on(seed: u64, node: usize) -> Node {
    let connector = Rc::new(Connector::default());
    let pin = || Pin(connector.clone());
    let Ok(driver) = ToggleBarrier::open(pin(), pin(), || Ok::<_, Infallible>(())) else {
        unreachable!(
            "a level that nobody changes is the same when read again, and these pins cannot fail"
        );
    };
    Node {
        driver,
        random: Random::new(seed, node),
        connector,
        polls_since: Time::ZERO,
        entered: 0,
        left: 0,
    }
}
