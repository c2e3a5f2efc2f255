//! The discrete-event engine: the event queue, and one function per kind of event.
//!
//! Events at the same time are processed in the order of scheduling, so a run is deterministic.
//!
//! The path of a level: a node's latch, a wire ([`Line`](super::wiring::Line)) to a pin of a board,
//! the board's clock edges, the board's output, and a wire to the board above.
//! From the root's output a wire leads back to the node's connector.
//! The world has no code for faults: a fault is a change of the wiring or of the initial levels,
//! a pause of a clock, or an [`Incident`] of a [`Setup`].

use super::board::Board;
use super::host::{Answer, Host, Program, Request, Shared};
use super::observe::{Observation, Observer};
use super::random::Random;
use super::setup::{End, Incident, Setup};
use super::wiring::{Sink, Source, Wiring};
use super::{Parameters, RunError, Time};
use barrier_board::tree::Tree;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// Stack size of a node's program in bytes: the driver and its callers need a few kilobytes, and
/// formatting a message needs more.
const STACK_BYTES: usize = 128 * 1024;

/// Powers the world on, runs each node's program until all have ended, and returns the observer.
pub fn run_world<O: Observer>(
    setup: Setup,
    observer: O,
    program: impl FnMut(usize) -> Program,
) -> Result<(End, O), RunError> {
    let mut world = World::new(setup, observer, program)?;
    let end = world.run();
    // Unfinished programs are unwound when the world is dropped;
    // after this flag is set, their pins do not access the world.
    world.shared.over.set(true);
    Ok((end?, world.observer))
}

/// An event of the queue, which requires `Ord`.
/// Two values are never compared, because the sequence number in front of them is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The program of a node continues.
    Go { node: usize },
    /// A write access ends: the level is at the node's connector.
    Written {
        node: usize,
        line: usize,
        high: bool,
    },
    /// A read access ends: the level at the node's connector is sampled.
    Sampled { node: usize, line: usize },
    /// The time limit of a watch for a level change expires;
    /// ignored unless `watch` is the current watch.
    Watched { node: usize, watch: u64 },
    /// A fence ends: `complete` is true if every node is in it,
    /// and false if a node will never enter it.
    Fenced { complete: bool },
    /// A level enters a wire at its source.
    Feed { sink: Sink, high: bool },
    /// The output of a wire may have changed and is evaluated.
    Look { sink: Sink },
    /// A clock edge at which a board's outputs change,
    /// unless an input has changed since this step was scheduled.
    Edge { board: usize, scheduled_change: u64 },
    /// A fault is injected.
    Inject { incident: Incident },
}

type Task = Coroutine<Answer, Request, (), DefaultStack>;

struct Node {
    /// The node's program; `None` once the program has ended or the node has died.
    program: Option<Task>,
    random: Random,
    slowness: f64,
    /// The program's current watch, while it waits for a level change: its start and its number.
    watching: Option<(Time, u64)>,
    /// Start of the read access that was in progress when a watch ended.
    reading_since: Option<Time>,
    fencing: bool,
}

/// The wires that each node's lines and each board's outputs drive.
struct Fans {
    outward: usize,
    nodes: Vec<Vec<Sink>>,
    boards: Vec<Vec<(Sink, usize)>>,
}

impl Fans {
    fn of(wiring: &Wiring, nodes: usize, boards: usize) -> Self {
        let [outward, _] = wiring.lines();
        let mut fans = Self {
            outward,
            nodes: vec![Vec::new(); nodes * outward],
            boards: vec![Vec::new(); boards],
        };
        for (sink, source) in wiring.ends() {
            match source {
                Source::Node { node, line } => fans.nodes[node * outward + line].push(sink),
                Source::Board { board, line } => fans.boards[board].push((sink, line)),
                Source::Open { .. } => {}
            }
        }
        fans
    }
}

struct World<O> {
    parameters: Parameters,
    tree: Tree,
    wiring: Wiring,
    fans: Fans,
    incidents: Vec<(Time, Incident)>,
    latches: Vec<u8>,
    queue: BinaryHeap<Reverse<(Time, u64, Step)>>,
    scheduled: u64,
    boards: Vec<Board>,
    /// The levels of the root's release outputs after their last change.
    output: u64,
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
            tree,
            wiring,
            latches,
            slowness,
            incidents,
            pauses,
        } = setup;
        if parameters.port_read == Time::ZERO {
            return Err(RunError::InstantRead);
        }
        if parameters.clock_hz == 0 {
            return Err(RunError::NoClock);
        }
        if parameters.channels > 0 && tree.boards() > 1 {
            return Err(RunError::ChannelsOnBoards);
        }
        let boards = (0..tree.boards()).map(|board| {
            let own = pauses.iter().filter(|(of, ..)| *of == board);
            let own = own.map(|&(_, from, to)| (from, to)).collect();
            Board::new(&parameters, &tree, board, own)
        });
        let boards = boards.collect::<Result<Vec<_>, _>>()?;
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
            fans: Fans::of(&wiring, parameters.nodes, tree.boards()),
            parameters,
            tree,
            wiring,
            incidents,
            latches,
            queue: BinaryHeap::new(),
            scheduled: 0,
            boards,
            output: 0,
            watches: 0,
            nodes,
            shared,
            observer,
        })
    }

    fn releases(&self) -> u64 {
        self.boards.last().map_or(0, Board::releases)
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
                    completed: self.releases(),
                });
            }
            now = at;
            self.execute(at, step);
        }
        let stuck = self.nodes.iter().enumerate();
        let stuck = stuck.filter(|(_, node)| node.program.is_some());
        Ok(End {
            at: now,
            releases: self.releases(),
            stuck: stuck.map(|(node, _)| node).collect(),
        })
    }

    /// Sets the initial levels, and schedules the start of every node's program and all faults.
    fn power_on(&mut self) {
        for (sink, source) in self.wiring.ends().collect::<Vec<_>>() {
            let high = match source {
                Source::Node { node, line } => self.latches[node] >> line & 1 == 1,
                Source::Board { .. } => false,
                Source::Open { high } => high,
            };
            self.wiring.line(sink).sends(high);
            self.at(Time::ZERO, Step::Feed { sink, high });
            for instant in self.wiring.line(sink).instants() {
                self.at(instant, Step::Look { sink });
            }
        }
        for (when, incident) in std::mem::take(&mut self.incidents) {
            self.at(when, Step::Inject { incident });
        }
        for node in 0..self.nodes.len() {
            self.at(Time::ZERO, Step::Go { node });
        }
    }

    fn at(&mut self, when: Time, step: Step) {
        self.scheduled += 1;
        self.queue.push(Reverse((when, self.scheduled, step)));
    }

    fn execute(&mut self, now: Time, step: Step) {
        self.shared.now.set(now);
        match step {
            Step::Go { node } => self.resume(now, node, Answer::Done),
            Step::Written { node, line, high } => self.written(now, node, line, high),
            Step::Sampled { node, line } => {
                let level = self.wiring.line(Sink::Input { node, line }).output();
                self.observer.observe(now, Observation::Read { node });
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
            Step::Edge {
                board,
                scheduled_change,
            } => self.edge(now, board, scheduled_change),
            Step::Inject { incident } => self.inject(now, incident),
        }
    }

    /// Runs the program until it makes a request that takes virtual time.
    fn resume(&mut self, now: Time, node: usize, mut answer: Answer) {
        loop {
            let Some(task) = &mut self.nodes[node].program else {
                return;
            };
            let CoroutineResult::Yield(request) = task.resume(answer) else {
                self.nodes[node].program = None;
                return self.check_fence(now);
            };
            let observation = match request {
                Request::Enter => Observation::Enter { node },
                Request::Leave => Observation::Leave { node },
                other => return self.grant(now, node, other),
            };
            self.observer.observe(now, observation);
            answer = Answer::Done;
        }
    }

    /// Starts the processing of a request that takes virtual time.
    fn grant(&mut self, now: Time, node: usize, request: Request) {
        match request {
            Request::Write { line, high } => {
                let end = now + self.access(node, self.parameters.port_write);
                self.at(end, Step::Written { node, line, high });
            }
            Request::Read { line } => {
                let since = self.nodes[node].reading_since.take().unwrap_or(now);
                let end = since + self.access(node, self.parameters.port_read);
                self.at(end.max(now), Step::Sampled { node, line });
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

    /// Returns the duration of a port access, with jitter and the node's slowness.
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

    fn written(&mut self, now: Time, node: usize, line: usize, high: bool) {
        if self.nodes[node].program.is_none() {
            return;
        }
        self.observer
            .observe(now, Observation::Driven { node, line, high });
        self.latch(now, node, line, high);
        self.resume(now, node, Answer::Done);
    }

    /// Propagates a level at a node's connector to the connected wires.
    fn latch(&mut self, now: Time, node: usize, line: usize, high: bool) {
        self.latches[node] = self.latches[node] & !(1 << line) | u8::from(high) << line;
        let Parameters {
            cable,
            pad_in,
            receivers,
            edge,
            ..
        } = self.parameters;
        for index in 0..self.fans.nodes[node * self.fans.outward + line].len() {
            let sink = self.fans.nodes[node * self.fans.outward + line][index];
            let pads = match sink {
                Sink::Pin { .. } => receivers + pad_in,
                Sink::Link { .. } => pad_in,
                Sink::Input { .. } => Time::ZERO,
            };
            self.send(now + edge + cable + pads, sink, high);
        }
    }

    /// Propagates the changed levels of a board's outputs to the connected wires.
    fn drive(&mut self, now: Time, board: usize) {
        let levels = self.boards[board].levels();
        if board == self.tree.root() && levels != self.output {
            self.output = levels;
            let last_edge = self.boards[board].since_last_edge(now);
            let high = levels != 0;
            self.observer
                .observe(now, Observation::Output { high, last_edge });
        }
        let Parameters {
            cable,
            trunk,
            fan_out,
            receivers,
            edge,
            pad_in,
            pad_out,
            ..
        } = self.parameters;
        let edge_to_node = self.parameters.edge_to_node();
        for index in 0..self.fans.boards[board].len() {
            let (sink, line) = self.fans.boards[board][index];
            let (pin, way) = match sink {
                Sink::Link { .. } => (0, trunk + pad_in),
                Sink::Pin { node, .. } => {
                    let way = edge + cable + receivers + pad_in;
                    (self.tree.place(node).1, way)
                }
                Sink::Input { node, .. } => {
                    let way = fan_out + edge_to_node + cable;
                    (self.tree.place(node).1, way)
                }
            };
            let high = self.boards[board].output(pin, line);
            self.send(now + pad_out + way, sink, high);
        }
    }

    fn send(&mut self, when: Time, sink: Sink, high: bool) {
        if self.wiring.line(sink).sends(high) {
            self.at(when, Step::Feed { sink, high });
        }
    }

    /// Feeds a level into a wire, and causes pulses on the coupled wires.
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

    /// Evaluates the output of a wire, and propagates the level if it changed.
    fn look(&mut self, now: Time, sink: Sink) {
        let Some(high) = self.wiring.line(sink).change(now) else {
            return;
        };
        match sink {
            Sink::Pin { node, line } => {
                let (board, pin) = self.tree.place(node);
                self.observer
                    .observe(now, Observation::Pin { node, line, high });
                self.arrive(now, board, pin, line, high);
            }
            Sink::Link { board: below } => {
                self.observer
                    .observe(now, Observation::Link { board: below, high });
                if let Some((board, pin)) = self.tree.above(below) {
                    self.arrive(now, board, pin, 0, high);
                }
            }
            Sink::Input { node, line } => {
                self.observer
                    .observe(now, Observation::Back { node, line, high });
                if self.nodes[node].watching.is_some() {
                    self.wake(now, node);
                }
            }
        }
    }

    /// Processes a level that arrives at a pin of a board.
    fn arrive(&mut self, now: Time, board: usize, pin: usize, line: usize, high: bool) {
        let before = self.boards[board].outputs();
        self.boards[board].set(now, pin, line, high);
        // An edge at the same time may have changed the outputs.
        if self.boards[board].outputs() != before {
            self.drive(now, board);
        }
        self.schedule_change(board);
    }

    /// Ends a watch; the program continues with the read access in progress.
    /// A real program reads continuously during a watch,
    /// so a read access is in progress when it ends.
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

    /// Schedules the clock edge of a board's next output change, with constant inputs.
    fn schedule_change(&mut self, board: usize) {
        let scheduled_change = self.boards[board].changes;
        if let Some(when) = self.boards[board].next_change() {
            self.at(
                when,
                Step::Edge {
                    board,
                    scheduled_change,
                },
            );
        }
    }

    fn edge(&mut self, now: Time, board: usize, scheduled_change: u64) {
        // The edge is ignored if an input of the board has changed since the edge was scheduled:
        // that change has scheduled its own edge, if one is needed.
        if scheduled_change == self.boards[board].changes {
            self.boards[board].run_until(now);
            self.drive(now, board);
            // If all inputs still differ from the new output,
            // the machine toggles again three edges later.
            self.schedule_change(board);
        }
    }

    fn inject(&mut self, now: Time, incident: Incident) {
        match incident {
            Incident::Die { node } => {
                self.shared.dead.borrow_mut().insert(node);
                // Unwinds the program; from now on its pins return errors.
                self.nodes[node].program = None;
                self.observer.observe(now, Observation::Down { node });
                self.check_fence(now);
            }
            Incident::Latch { node, high } => {
                for line in 0..self.fans.outward {
                    self.latch(now, node, line, high);
                }
            }
            Incident::Reset { board } => {
                self.boards[board].reset(now);
                self.drive(now, board);
                self.schedule_change(board);
            }
            Incident::Undriven { board, high } => {
                self.boards[board].run_until(now);
                self.boards[board].undriven = Some(high);
                self.drive(now, board);
            }
            Incident::Driven { board } => {
                self.boards[board].run_until(now);
                self.boards[board].undriven = None;
                self.drive(now, board);
            }
        }
    }

    /// Ends the fence if all remaining nodes are in it;
    /// the fence fails if a node has ended or died.
    fn check_fence(&mut self, now: Time) {
        let mut left = self.nodes.iter().filter(|node| node.program.is_some());
        let count = left.clone().count();
        if count != 0 && left.all(|node| node.fencing) {
            let complete = count == self.nodes.len();
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
        // All nodes leave this fence before any node can enter the next one.
        let nodes = self.nodes.iter_mut().enumerate();
        let fencing: Vec<_> = nodes
            .filter_map(|(number, node)| std::mem::take(&mut node.fencing).then_some(number))
            .collect();
        for node in fencing {
            self.resume(now, node, answer);
        }
    }
}
