//! The state of a board as a value, and its transitions: pure functions between a copy and a commit.

use super::CLOCK;
use super::engine::Engine;
use super::slots::{BoardState, Encoded};
use crate::event::{Event, What};
use fpga_model::{BadNodeCount, LATENCY_EDGES, Registers, ToggleMachine};

/// Number of words of a slot before the events.
pub(super) const CORE_WORDS: usize = 8;
/// Maximum number of events in a commit: one release per clock edge of the latency, and one change.
pub(super) const MAX_NEWS: usize = LATENCY_EDGES as usize + 1;
/// Number of words of a slot: two cache lines.
pub(super) const SLOT_WORDS: usize = CORE_WORDS + 2 * MAX_NEWS;

/// The state of a board of version 1, which each commit replaces as a whole.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub machine: ToggleMachine,
    /// Levels of the wires to the barrier.
    pub inputs: u64,
    /// Index of the last clock edge that `machine` has simulated.
    pub edge: u64,
    /// Number of events in all earlier commits, recorded or not.
    older_events: u64,
    news: [Event; MAX_NEWS],
    news_len: usize,
}

const NOTHING: Event = Event {
    at_ns: 0,
    what: What::Release { high: false },
};

impl State {
    /// Returns the events of this commit.
    fn news(&self) -> &[Event] {
        &self.news[..self.news_len]
    }

    /// Returns the board's number of events, including those of this commit.
    fn events(&self) -> u64 {
        self.older_events + self.news_len as u64
    }

    /// Returns true if edges have passed that the machine has not simulated.
    pub(super) fn is_behind(&self, now_ns: u64) -> bool {
        CLOCK.edges_until(now_ns) > self.edge
    }

    /// Returns the time of the next release if no wire changes.
    pub(super) fn release_due_ns(&self, engine: Engine<'_>) -> Option<u64> {
        engine
            .edges_to_release(&self.machine, self.inputs)
            .map(|edges| CLOCK.time_of(self.edge + edges))
    }

    pub(super) fn set_wire(&mut self, now_ns: u64, node: usize, high: bool) {
        // Several nodes drive the wire from a lower board to the same level;
        // later writes change nothing.
        if (self.inputs >> node & 1 == 1) == high {
            return;
        }
        self.inputs = self.inputs & !(1 << node) | u64::from(high) << node;
        self.note(now_ns, What::Wire { node, high });
    }

    pub(super) fn note(&mut self, at_ns: u64, what: What) {
        // A commit has at most `MAX_NEWS` events. If a defect fills the list,
        // further events are lost, and the board continues.
        if let Some(place) = self.news.get_mut(self.news_len) {
            *place = Event { at_ns, what };
            self.news_len += 1;
        }
    }
}

impl Encoded<SLOT_WORDS> for State {
    type Blank = ToggleMachine;

    const MAGIC: u64 = u64::from_le_bytes(*b"hwbarr\x04\x01");

    fn blank(nodes: usize) -> Result<ToggleMachine, BadNodeCount> {
        ToggleMachine::new(nodes)
    }

    fn power_on(machine: ToggleMachine) -> Self {
        Self {
            machine,
            inputs: 0,
            edge: 0,
            older_events: 0,
            news: [NOTHING; MAX_NEWS],
            news_len: 0,
        }
    }

    /// Encodes the state without its events, then each event in two words.
    fn to_words(self) -> [u64; SLOT_WORDS] {
        let Registers {
            stage1,
            stage2,
            output,
            releases,
        } = self.machine.registers();
        let mut words = [0; SLOT_WORDS];
        words[..CORE_WORDS].copy_from_slice(&[
            self.inputs,
            stage1,
            stage2,
            output,
            releases,
            self.edge,
            self.older_events,
            self.news_len as u64,
        ]);
        for (pair, event) in words[CORE_WORDS..].chunks_exact_mut(2).zip(self.news()) {
            pair.copy_from_slice(&[event.at_ns, event.what.to_word()]);
        }
        words
    }

    fn from_words(machine: ToggleMachine, words: &[u64; SLOT_WORDS]) -> Self {
        let [
            inputs,
            stage1,
            stage2,
            output,
            releases,
            edge,
            older_events,
            news_len,
            ..,
        ] = *words;
        let registers = Registers {
            stage1,
            stage2,
            output,
            releases,
        };
        let mut state = Self::power_on(machine.load(registers));
        state.inputs = inputs;
        state.edge = edge;
        state.older_events = older_events;
        for pair in words[CORE_WORDS..].chunks_exact(2).take(news_len as usize) {
            if let Some(what) = What::from_word(pair[1]) {
                state.note(pair[0], what);
            }
        }
        state
    }
}

impl BoardState<Engine<'_>, SLOT_WORDS> for State {
    fn next(mut self) -> Self {
        self.older_events = self.events();
        self.news_len = 0;
        self
    }

    fn run_until(&mut self, engine: Engine<'_>, now_ns: u64) {
        // The clock was read after the state was copied, so it cannot be before the state's edge.
        // The saturating subtraction limits the damage of a broken clock.
        let cycles = CLOCK.edges_until(now_ns).saturating_sub(self.edge);
        let (before, mut machine) = (self.edge, self.machine);
        engine.run(&mut machine, self.inputs, cycles, |edge, outputs| {
            self.note(
                CLOCK.time_of(before + edge),
                What::Release { high: outputs != 0 },
            );
        });
        self.machine = machine;
        self.edge += cycles;
    }

    fn releases(&self) -> u64 {
        self.machine.releases()
    }

    fn older_entries(&self) -> u64 {
        self.older_events
    }

    fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let news = self.news().iter();
        news.map(|event| (event.at_ns, event.what.to_word()))
    }
}
