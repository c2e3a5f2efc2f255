//! Version 2 in shared memory: the live board of five channels (`fpga_model::channels`), with the protocol of the single
//! barrier's board described in [`live`](super), with longer slots.
//!
//! One handle drives a node's eight outward lines and reads its five inward lines, and owns one pair of slots.
//! Time passes when a process reads the board; a read commits only if a line was written or a channel has released.
//! The board wakes no node; a node that sees a release wakes its neighbours itself.
//! A board that records keeps every change of an outward line with its time, by the record's protocol described in [`live`](super);
//! the rest follows from these changes, because the machine is deterministic (`channel_vcd` of package `barrier-waveform`).

use super::board::{AttachError, InitError, Look, Snapshot};
use super::engine::ChannelEngine;
use super::shared::{Geometry, HANDS, HeadWord, Shared};
use super::wires::{Claim, WiresError, claimed};
use super::{CLOCK, monotonic_ns};
use crate::event::{ChannelRecord, LineChange};
use fpga_model::LATENCY_EDGES;
use fpga_model::channels::{
    Channel, ChannelGates, ChannelMachine, Line, MAX_CHANNELS, Phase, Pins, Serial,
};
use std::hint::spin_loop;
use std::sync::{Mutex, PoisonError};

/// Words of the clock and the lines, of a channel, of the serial receiver.
const PINS: usize = 1 + MAX_CHANNELS + 3;
const CHANNEL: usize = 8;
const SERIAL: usize = 9;
/// Words of the record: the number of changes of earlier commits, and this commit's change.
const NEWS: usize = 3;
/// A line change is recorded in picoseconds, as in virtual time.
const PS_PER_NS: u64 = 1000;

/// Words of a slot, a multiple of two cache lines.
pub(super) const WORDS: usize = 64;
const _: () =
    assert!(PINS + MAX_CHANNELS * CHANNEL + SERIAL + NEWS <= WORDS && WORDS.is_multiple_of(16));

/// A version 2 board in shared memory; it borrows the memory for `'m` as [`Board`](super::Board) does.
#[derive(Clone, Copy)]
pub struct ChannelBoard<'m> {
    shared: Shared<'m, WORDS>,
    geometry: Geometry,
    /// The machine after power-on, which defines the number of nodes.
    blank: ChannelMachine,
    engine: ChannelEngine<'m>,
}

/// The state that a commit replaces.
#[derive(Clone, Copy)]
struct State {
    machine: ChannelMachine,
    pins: Pins,
    /// The last edge that `machine` has simulated.
    edge: u64,
    /// Number of line changes of all earlier commits.
    older_changes: u64,
    /// The line change of this commit.
    change: Option<LineChange>,
}

impl<'m> ChannelBoard<'m> {
    /// Returns the size of a board of `nodes` nodes that records `record` line changes; the memory must be aligned to 128 bytes.
    pub fn layout_size(nodes: usize, record: usize) -> usize {
        Geometry::size::<WORDS>(nodes.saturating_mul(HANDS), record).unwrap_or(usize::MAX)
    }

    /// Returns the board after power-on, as a geometry and the words of its first slot.
    pub(super) fn power_on(
        nodes: usize,
        record: usize,
        len: usize,
    ) -> Result<(Geometry, [u64; WORDS]), InitError> {
        let blank = ChannelMachine::new(nodes, MAX_CHANNELS)
            .map_err(|bad| InitError::Nodes(fpga_model::BadNodeCount(bad.nodes)))?;
        let need = Self::layout_size(nodes, record);
        if need > len {
            return Err(InitError::TooSmall { need, have: len });
        }
        let geometry = Geometry {
            nodes,
            writers: nodes * HANDS,
            capacity: record,
            origin_ns: monotonic_ns(),
            tree: [0; 2],
        };
        Ok((geometry, State::power_on(blank).to_words()))
    }

    pub(super) fn over(
        shared: Shared<'m, WORDS>,
        geometry: Geometry,
        len: usize,
    ) -> Result<Self, AttachError> {
        let blank = ChannelMachine::new(geometry.nodes, MAX_CHANNELS)
            .map_err(|_| AttachError::NoBoard { have: len })?;
        Ok(Self {
            shared,
            geometry,
            blank,
            engine: ChannelEngine::default(),
        })
    }

    /// Replaces the model by these gates; every process must use the same gates.
    pub fn with_gates(self, gates: &'m dyn ChannelGates) -> Self {
        Self {
            engine: ChannelEngine::of(gates),
            ..self
        }
    }

    /// Returns the number of nodes with lines.
    pub fn nodes(&self) -> usize {
        self.geometry.nodes
    }

    /// Returns the machine's state now, for observers.
    pub fn machine(&self) -> ChannelMachine {
        let (_, mut state) = self.copy();
        state.run_until(self.engine, self.now_ns());
        state.machine
    }

    /// What an observer sees: the nodes that living processes have claimed and the releases of all channels.
    ///
    /// Which nodes have arrived differs from channel to channel, so no level is reported for any.
    pub(super) fn look(&self) -> Look {
        let machine = self.machine();
        let channels = (0..MAX_CHANNELS).filter_map(|number| machine.channel(number));
        let seen = Snapshot {
            at_ns: self.now_ns(),
            inputs: 0,
            outputs: 0,
            releases: channels.map(|channel| channel.releases).sum(),
        };
        let claimed = claimed(self.nodes(), |node| self.shared.claim(node));
        Look::at(&seen, self.nodes(), claimed)
    }

    /// Returns the line changes so far, oldest first; may be called while the board is in use.
    pub fn record(&self) -> ChannelRecord {
        let (_, state) = self.copy();
        self.publish(&state);
        let entries = self.shared.entries(state.changes());
        let changes: Vec<_> = entries
            .filter_map(|(at_ps, what)| LineChange::from_words(at_ps, what))
            .collect();
        let dropped = match self.geometry.capacity {
            0 => 0,
            _ => state.changes() - changes.len() as u64,
        };
        ChannelRecord {
            nodes: self.nodes(),
            changes,
            dropped,
        }
    }

    /// Writes the change of a commit to its slot in the record.
    fn publish(&self, state: &State) {
        if let Some(change) = &state.change {
            self.shared
                .write_entry(state.older_changes, change.at_ps, change.what());
        }
    }

    /// Claims the lines of a node; a dead holder is replaced.
    pub fn lines(&self, node: usize) -> Result<NodeLines<'m>, WiresError> {
        if node >= self.nodes() {
            return Err(WiresError::NoSuchNode {
                node,
                nodes: self.nodes(),
            });
        }
        Ok(NodeLines(Mutex::new(Writer {
            board: *self,
            node,
            slots: Shared::<WORDS>::slots_of(node * HANDS),
            _claim: Claim::take(self.shared.claim(node), node)?,
        })))
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.geometry.origin_ns)
    }

    fn copy(&self) -> (HeadWord, State) {
        let (head, words) = self.shared.read::<WORDS>();
        (head, State::from_words(self.blank, &words))
    }
}

/// The lines of one node: outward the arrivals of the channels, then serial clock, data and select; inward the releases.
pub struct NodeLines<'m>(Mutex<Writer<'m>>);

struct Writer<'m> {
    board: ChannelBoard<'m>,
    node: usize,
    /// Written only by this handle.
    slots: [usize; 2],
    _claim: Claim<'m>,
}

impl NodeLines<'_> {
    /// Drives an outward line; a nonexistent line is ignored.
    pub fn set(&self, line: usize, high: bool) {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let node = writer.node;
        let state = writer.touch(|state, now| state.drive(now, node, line, high));
        // An arrival may make a release inevitable, and no process would compute it if this node went on to other work: wait for the three edges.
        if line < MAX_CHANNELS {
            let due = CLOCK.time_of(state.edge + LATENCY_EDGES);
            while writer.board.now_ns() < due {
                spin_loop();
            }
            writer.touch(|_, _| ());
        }
    }

    /// Returns the level of an inward line.
    pub fn get(&self, line: usize) -> bool {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, mut state) = writer.board.copy();
        let before = state.machine.releases();
        state.run_until(writer.board.engine, writer.board.now_ns());
        if state.machine.releases() != before {
            state = writer.touch(|_, _| ());
        }
        state.machine.reads(writer.node, line)
    }
}

impl Writer<'_> {
    /// Steps the board to the present, applies `change`, and commits.
    fn touch(&mut self, change: impl Fn(&mut State, u64)) -> State {
        loop {
            let (head, before) = self.board.copy();
            self.board.publish(&before);
            // Read after the copy, so times in the record increase with the commits.
            let now = self.board.now_ns();
            let mut state = before.next();
            state.run_until(self.board.engine, now);
            change(&mut state, now);
            let [first, second] = self.slots;
            let slot = if head.slot() == first { second } else { first };
            self.board.shared.fill(slot, &state.to_words());
            if self.board.shared.commit(head, slot) {
                self.board.publish(&state);
                return state;
            }
        }
    }
}

impl State {
    fn power_on(machine: ChannelMachine) -> Self {
        Self {
            machine,
            pins: Pins::default(),
            edge: 0,
            older_changes: 0,
            change: None,
        }
    }

    /// Returns the number of line changes, including that of this commit.
    fn changes(&self) -> u64 {
        self.older_changes + u64::from(self.change.is_some())
    }

    /// Starts the next commit, still without a change.
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

    fn drive(&mut self, at_ns: u64, node: usize, line: usize, high: bool) {
        self.pins.set(node, line, high);
        self.change = Some(LineChange {
            at_ps: at_ns.saturating_mul(PS_PER_NS),
            node,
            line,
            high,
        });
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

    /// Decodes a state; the inverse of [`to_words`](Self::to_words).
    /// A torn copy gives a meaningless state, which the caller discards when it sees that the head has changed.
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
        /// For any line changes, a state that was encoded and decoded continues like one that was not.
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
