//! Version 2 in shared memory: the live board of five channels (`fpga_model::channels`).
//! It uses the protocol described in [`live`](super), with longer slots.
//!
//! One handle drives a node's eight outward lines, reads its five inward lines and owns two slots.
//! The clock advances when a process reads the board; a read commits only if a line was written
//! or a channel has released.
//! The board wakes no node; a node that sees a release wakes the other nodes of its host itself.
//! With a record, the board keeps every change of an outward line with its time, by the record's
//! protocol of [`live`](super). All other signals follow from these changes, because the machine
//! is deterministic (`channel_vcd` of package `barrier-waveform`).

use super::CLOCK;
use super::board::{Look, Snapshot};
use super::channel_look::ChannelLook;
use super::claim::WiresError;
use super::engine::ChannelEngine;
use super::shared::{Geometry, HANDS};
use super::slots::{BoardState, Core, Encoded, Slots, Writer};
use crate::event::{ChannelRecord, LineChange};
use fpga_model::channels::{
    Channel, ChannelGates, ChannelMachine, Line, MAX_CHANNELS, Phase, Pins, Serial,
};
use fpga_model::{BadNodeCount, LATENCY_EDGES};
use std::hint::spin_loop;
use std::sync::{Mutex, PoisonError};

/// Number of words of a slot for the edge, the channels' levels and the three serial lines.
const PINS: usize = 1 + MAX_CHANNELS + 3;
/// Number of words of a slot for each channel.
const CHANNEL: usize = 8;
/// Number of words of a slot for the serial receiver.
const SERIAL: usize = 9;
/// Number of a slot's words for recorded line changes (three):
/// the number of changes of earlier commits, then the time and the line of this commit's change.
const NEWS: usize = 3;
/// Picoseconds per nanosecond; line changes are recorded in picoseconds, as in virtual time.
const PS_PER_NS: u64 = 1000;

/// Number of words of a slot, a multiple of two cache lines.
pub(super) const WORDS: usize = 64;
const _: () =
    assert!(PINS + MAX_CHANNELS * CHANNEL + SERIAL + NEWS <= WORDS && WORDS.is_multiple_of(16));

/// A version 2 board in shared memory; it borrows the memory for `'m` as [`Board`](super::Board) does.
#[derive(Clone, Copy)]
pub struct ChannelBoard<'m>(Core<'m, State, ChannelEngine<'m>, WORDS>);

/// The state of a board of version 2, which each commit replaces as a whole.
#[derive(Clone, Copy)]
pub(super) struct State {
    machine: ChannelMachine,
    pins: Pins,
    /// Index of the last clock edge that `machine` has simulated.
    edge: u64,
    /// Number of line changes in all earlier commits, recorded or not.
    older_changes: u64,
    /// The line change of this commit.
    change: Option<LineChange>,
}

impl<'m> ChannelBoard<'m> {
    /// Returns the size of a board of `nodes` nodes that records `record` line changes.
    /// The memory must be aligned to 128 bytes.
    pub fn layout_size(nodes: usize, record: usize) -> usize {
        Geometry::size::<WORDS>(nodes.saturating_mul(HANDS), record).unwrap_or(usize::MAX)
    }

    pub(super) fn new(slots: Slots<'m, State, WORDS>) -> Self {
        Self(Core::new(slots, ChannelEngine::default()))
    }

    /// Replaces the model by gates (for example the RTL);
    /// all processes of the board must use the same gates.
    pub fn with_gates(self, gates: &'m dyn ChannelGates) -> Self {
        Self(self.0.with_engine(ChannelEngine::of(gates)))
    }

    /// Returns the number of nodes with lines.
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// Returns the machine's state now, for observers.
    pub fn machine(&self) -> ChannelMachine {
        self.0.now().1.machine
    }

    /// Returns the observer's view: the claimed nodes, the releases of all channels, each channel.
    /// A node counts as claimed if a living process holds its claim.
    ///
    /// No level is reported for a node, because a node has one arrival line per channel.
    pub(super) fn look(&self) -> Look {
        let (at_ns, State { machine, .. }) = self.0.now();
        let seen = Snapshot {
            at_ns,
            inputs: 0,
            outputs: 0,
            releases: machine.all_releases(),
        };
        let channels = (0..MAX_CHANNELS).filter_map(|number| machine.channel(number));
        Look::at(&seen, self.nodes(), self.0.claimed())
            .with_channels(channels.map(ChannelLook::from).collect())
    }

    /// Returns the line changes recorded so far, oldest first.
    /// May be called while the board is in use.
    pub fn record(&self) -> ChannelRecord {
        let (changes, dropped) = self.0.record(LineChange::from_words);
        ChannelRecord {
            nodes: self.nodes(),
            changes,
            dropped,
        }
    }

    /// Claims the lines of a node; the claim of a dead process is replaced.
    pub fn lines(&self, node: usize) -> Result<NodeLines<'m>, WiresError> {
        let claim = self.0.take(node)?;
        Ok(NodeLines(Mutex::new(self.0.writer(node, 0, claim))))
    }
}

/// The lines of one node.
/// Outward are the arrivals of the channels, then serial clock, data and select;
/// inward are the releases.
pub struct NodeLines<'m>(Mutex<Writer<'m, State, ChannelEngine<'m>, WORDS>>);

/// The function that a commit with a release calls:
/// does nothing, as a version 2 board wakes no node.
fn wakes_none() {}

impl NodeLines<'_> {
    /// Drives an outward line; a nonexistent line is ignored.
    pub fn set(&self, line: usize, high: bool) {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let node = writer.node();
        let state = writer.touch(&wakes_none, |state, now| state.drive(now, node, line, high));
        // An arrival may make a release inevitable. This node waits for the three edges and commits
        // the release itself, because the other nodes might not access the board for a long time.
        if line < MAX_CHANNELS {
            let due = CLOCK.time_of(state.edge + LATENCY_EDGES);
            while writer.core().now_ns() < due {
                spin_loop();
            }
            writer.touch(&wakes_none, |_, _| ());
        }
    }

    /// Returns the level of an inward line.
    pub fn get(&self, line: usize) -> bool {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = writer.core().current();
        let mut state = before;
        state.run_until(writer.core().engine(), writer.core().now_ns());
        if state.releases() != before.releases() {
            state = writer.touch(&wakes_none, |_, _| ());
        }
        state.machine.reads(writer.node(), line)
    }
}

impl State {
    /// Returns the number of line changes of the board, including that of this commit.
    fn changes(&self) -> u64 {
        self.older_changes + u64::from(self.change.is_some())
    }

    fn drive(&mut self, at_ns: u64, node: usize, line: usize, high: bool) {
        self.pins.set(node, line, high);
        self.change = Some(LineChange {
            at_ps: at_ns.saturating_mul(PS_PER_NS),
            node,
            line,
            high,
        });
    }
}

impl Encoded<WORDS> for State {
    type Blank = ChannelMachine;

    const MAGIC: u64 = u64::from_le_bytes(*b"hwbarr\x04\x02");

    fn blank(nodes: usize) -> Result<ChannelMachine, BadNodeCount> {
        ChannelMachine::new(nodes, MAX_CHANNELS).map_err(|bad| BadNodeCount(bad.nodes))
    }

    fn power_on(machine: ChannelMachine) -> Self {
        Self {
            machine,
            pins: Pins::default(),
            edge: 0,
            older_changes: 0,
            change: None,
        }
    }

    fn to_words(self) -> [u64; WORDS] {
        let Pins {
            arrive,
            select,
            clock,
            data,
        } = self.pins;
        let channels = (0..MAX_CHANNELS).flat_map(|number| {
            let c = self.machine.channel(number).copied().unwrap_or_default();
            [
                c.stage1,
                c.stage2,
                c.mask,
                u64::from(c.level)
                    | u64::from(c.toggled1) << 1
                    | u64::from(c.toggled2) << 2
                    | u64::from(c.overdue) << 3
                    | u64::from(c.expired) << 8
                    | u64::from(c.early) << 16,
                c.limit.into(),
                c.count.into(),
                c.late,
                c.releases,
            ]
        });
        let s = self.machine.serial();
        let lines = [s.select, s.clock, s.data].into_iter().rev();
        let lines = lines.fold(0, |bits, line| bits << LINE_BITS | pack(line));
        let flags = u64::from(s.select_was) << 1 | u64::from(s.clock_was);
        let frame = (s.phase as u64) << 32 | u64::from(s.count) << 16 | u64::from(s.check);
        let serial = [
            s.select1,
            s.select2,
            s.grant,
            s.blocked,
            u64::from(s.age) << 32 | flags,
            lines,
            frame,
            (s.shift >> 64) as u64,
            s.shift as u64,
        ];
        let all = std::iter::once(self.edge)
            .chain(arrive)
            .chain([select, clock, data])
            .chain(channels)
            .chain(serial)
            .chain([
                self.older_changes,
                self.change.map_or(0, |change| change.at_ps),
                self.change.map_or(0, |change| change.what()),
            ]);
        let mut words = [0; WORDS];
        words
            .iter_mut()
            .zip(all)
            .for_each(|(place, word)| *place = word);
        words
    }

    fn from_words(blank: ChannelMachine, words: &[u64; WORDS]) -> Self {
        let mut next = words.iter().copied();
        let mut word = || next.next().unwrap_or(0);
        let edge = word();
        let pins = Pins {
            arrive: std::array::from_fn(|_| word()),
            select: word(),
            clock: word(),
            data: word(),
        };
        let channels = std::array::from_fn(|_| {
            let (stage1, stage2, mask, counted) = (word(), word(), word(), word());
            Channel {
                stage1,
                stage2,
                mask,
                level: counted & 1 == 1,
                toggled1: counted >> 1 & 1 == 1,
                toggled2: counted >> 2 & 1 == 1,
                overdue: counted >> 3 & 1 == 1,
                expired: (counted >> 8) as u8,
                early: (counted >> 16) as u8,
                limit: word() as u32,
                count: word() as u32,
                late: word(),
                releases: word(),
            }
        });
        let (select1, select2, grant, blocked) = (word(), word(), word(), word());
        let (age, lines, frame) = (word(), word(), word());
        let serial = Serial {
            select1,
            select2,
            grant,
            blocked,
            age: (age >> 32) as u32,
            select_was: age >> 1 & 1 == 1,
            clock_was: age & 1 == 1,
            select: unpack(lines),
            clock: unpack(lines >> LINE_BITS),
            data: unpack(lines >> (2 * LINE_BITS)),
            phase: match frame >> 32 {
                1 => Phase::Execute,
                2 => Phase::Reply,
                3 => Phase::Over,
                _ => Phase::Receive,
            },
            count: (frame >> 16) as u8,
            check: frame as u16,
            shift: u128::from(word()) << 64 | u128::from(word()),
        };
        let (older_changes, at_ps, what) = (word(), word(), word());
        Self {
            machine: blank.load(channels, serial),
            pins,
            edge,
            older_changes,
            change: LineChange::from_words(at_ps, what),
        }
    }
}

impl BoardState<ChannelEngine<'_>, WORDS> for State {
    fn next(mut self) -> Self {
        self.older_changes = self.changes();
        self.change = None;
        self
    }

    fn run_until(&mut self, engine: ChannelEngine<'_>, now_ns: u64) {
        let due = CLOCK.edges_until(now_ns);
        engine.run(&mut self.machine, &self.pins, due.saturating_sub(self.edge));
        self.edge = self.edge.max(due);
    }

    /// Returns the levels of all channels as one number; each release toggles a level.
    fn releases(&self) -> u64 {
        self.machine.releases().into()
    }

    fn older_entries(&self) -> u64 {
        self.older_changes
    }

    fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let change = self.change.iter();
        change.map(|change| (change.at_ps, change.what()))
    }
}

const LINE_BITS: u32 = 16;

fn pack(line: Line) -> u64 {
    let levels = [line.stage1, line.stage2, line.level];
    let levels = levels
        .into_iter()
        .fold(0, |bits, level| bits << 1 | u64::from(level));
    u64::from(line.run) << 3 | levels
}

fn unpack(bits: u64) -> Line {
    let bit = |at: u32| bits >> at & 1 == 1;
    Line {
        stage1: bit(2),
        stage2: bit(1),
        level: bit(0),
        run: (bits >> 3 & 0xff) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A state that is encoded and decoded behaves as before, for any line changes.
        #[test]
        fn a_state_goes_through_words_unchanged(moves in prop::collection::vec((0usize..8, 0usize..3, any::<bool>(), 0u64..40), 0..300)) {
            let blank = ChannelMachine::new(3, MAX_CHANNELS).expect("three nodes");
            let mut state = State::power_on(blank);
            for (line, node, high, edges) in moves {
                state.drive(edges, node, line, high);
                state.machine.fast_forward(&state.pins, edges);
                state.edge += edges;
                let copy = State::from_words(blank, &state.to_words());
                prop_assert_eq!(copy.machine, state.machine);
                prop_assert_eq!((copy.pins, copy.edge), (state.pins, state.edge));
                prop_assert_eq!((copy.older_changes, copy.change), (state.older_changes, state.change));
                state = state.next();
            }
        }
    }

    #[test]
    fn members_of_the_power_on_channel_release_each_other() {
        let memory = Memory::create(ChannelBoard::layout_size(2, 8)).expect("memory");
        let board = memory.init_channels(2, 8).expect("a board");
        let nodes = [0, 1].map(|node| board.lines(node).expect("free lines"));
        assert!(board.lines(1).is_err(), "taken");
        nodes[0].set(0, true);
        assert!(!nodes[0].get(0) && !nodes[1].get(0));
        nodes[1].set(0, true);
        assert!(nodes[0].get(0) && nodes[1].get(0));
        assert_eq!(board.machine().channel(0).map(|c| c.releases), Some(1));
        let record = board.record();
        let changes = record.changes.iter().map(|c| (c.node, c.line, c.high));
        assert_eq!(changes.collect::<Vec<_>>(), [(0, 0, true), (1, 0, true)]);
        for _ in 0..4 {
            nodes[0].set(0, false);
            nodes[0].set(0, true);
        }
        let record = board.record();
        assert_eq!((record.changes.len(), record.dropped), (8, 2));
    }
}
