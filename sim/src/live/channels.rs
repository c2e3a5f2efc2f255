//! Version 2 in shared memory: the live board of five channels (`fpga_model::channels`), by the same protocol as the board of
//! one barrier at the head of [`live`](super), with longer slots.
//!
//! A node's eight outward and five inward lines are one handle, which owns one pair of slots.
//! Time passes for whoever looks; what a look finds is committed only if a line was written or a channel has released.
//! There is no record and nobody is rung here: whoever hears of a release wakes its neighbours itself.

use super::board::{AttachError, InitError};
use super::engine::ChannelEngine;
use super::shared::{Geometry, HeadWord, Shared};
use super::wires::{Claim, WiresError};
use super::{CLOCK, monotonic_ns};
use fpga_model::LATENCY_EDGES;
use fpga_model::channels::{
    Channel, ChannelGates, ChannelMachine, Line, MAX_CHANNELS, Phase, Pins, Serial,
};
use std::hint::spin_loop;
use std::sync::{Mutex, PoisonError};

/// Words of the clock and the lines, of a channel, of the serial side.
const PINS: usize = 1 + MAX_CHANNELS + 3;
const CHANNEL: usize = 8;
const SERIAL: usize = 9;

/// Words of a slot, a multiple of two cache lines.
pub(super) const WORDS: usize = 64;
const _: () = assert!(PINS + MAX_CHANNELS * CHANNEL + SERIAL <= WORDS && WORDS.is_multiple_of(16));

/// A version 2 board in shared memory; as [`Board`](super::Board) it borrows the memory for `'m`.
#[derive(Clone, Copy)]
pub struct ChannelBoard<'m> {
    shared: Shared<'m, WORDS>,
    geometry: Geometry,
    /// The machine after power-on, which knows the number of nodes.
    blank: ChannelMachine,
    engine: ChannelEngine<'m>,
}

/// What one commit replaces by the next.
#[derive(Clone, Copy)]
struct State {
    machine: ChannelMachine,
    pins: Pins,
    /// The last edge that `machine` has seen.
    edge: u64,
}

impl<'m> ChannelBoard<'m> {
    /// Bytes for a board of `nodes` nodes; the memory must begin at a multiple of 128.
    pub fn layout_size(nodes: usize) -> usize {
        Geometry::size::<WORDS>(nodes, 0).unwrap_or(usize::MAX)
    }

    /// The board after power-on, as a geometry and the words of its first slot.
    pub(super) fn power_on(
        nodes: usize,
        len: usize,
    ) -> Result<(Geometry, [u64; WORDS]), InitError> {
        let blank = ChannelMachine::new(nodes, MAX_CHANNELS)
            .map_err(|bad| InitError::Nodes(fpga_model::BadNodeCount(bad.nodes)))?;
        let need = Self::layout_size(nodes);
        if need > len {
            return Err(InitError::TooSmall { need, have: len });
        }
        let geometry = Geometry {
            nodes,
            capacity: 0,
            origin_ns: monotonic_ns(),
        };
        let state = State {
            machine: blank,
            pins: Pins::default(),
            edge: 0,
        };
        Ok((geometry, state.to_words()))
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

    /// The same board with these gates in the model's place; every process has to put the same there.
    pub fn with_gates(self, gates: &'m dyn ChannelGates) -> Self {
        Self {
            engine: ChannelEngine::of(gates),
            ..self
        }
    }

    /// How many nodes have lines.
    pub fn nodes(&self) -> usize {
        self.geometry.nodes
    }

    /// The machine as it is now, for onlookers.
    pub fn machine(&self) -> ChannelMachine {
        let (_, mut state) = self.copy();
        state.run_until(self.engine, self.now_ns());
        state.machine
    }

    /// Takes the lines of a node; whoever held them and is dead is replaced.
    pub fn lines(&self, node: usize) -> Result<NodeLines<'m>, WiresError> {
        if node >= self.nodes() {
            return Err(WiresError::NoSuchNode {
                node,
                nodes: self.nodes(),
            });
        }
        Ok(NodeLines(Mutex::new(Hand {
            board: *self,
            node,
            slots: Shared::<WORDS>::slots_of(node, 0),
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
pub struct NodeLines<'m>(Mutex<Hand<'m>>);

struct Hand<'m> {
    board: ChannelBoard<'m>,
    node: usize,
    /// Written by this handle only.
    slots: [usize; 2],
    _claim: Claim<'m>,
}

impl NodeLines<'_> {
    /// Drives an outward line; one that does not exist stays as it is.
    pub fn set(&self, line: usize, high: bool) {
        let mut hand = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let node = hand.node;
        let state = hand.touch(|state| state.drive(node, line, high));
        // An arrival may make a release inevitable, and whoever computes next would not see it: stay for the three edges.
        if line < MAX_CHANNELS {
            let due = CLOCK.time_of(state.edge + LATENCY_EDGES);
            while hand.board.now_ns() < due {
                spin_loop();
            }
            hand.touch(|_| ());
        }
    }

    /// The level of an inward line.
    pub fn get(&self, line: usize) -> bool {
        let mut hand = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, mut state) = hand.board.copy();
        let before = state.machine.releases();
        state.run_until(hand.board.engine, hand.board.now_ns());
        if state.machine.releases() != before {
            state = hand.touch(|_| ());
        }
        state.machine.reads(hand.node, line)
    }
}

impl Hand<'_> {
    /// Steps the board to the present, applies `change`, and commits.
    fn touch(&mut self, change: impl Fn(&mut State)) -> State {
        loop {
            let (head, mut state) = self.board.copy();
            state.run_until(self.board.engine, self.board.now_ns());
            change(&mut state);
            let [first, second] = self.slots;
            let slot = if head.slot() == first { second } else { first };
            self.board.shared.fill(slot, &state.to_words());
            if self.board.shared.commit(head, slot) {
                return state;
            }
        }
    }
}

impl State {
    fn run_until(&mut self, engine: ChannelEngine<'_>, now_ns: u64) {
        let due = CLOCK.edges_until(now_ns);
        engine.run(&mut self.machine, &self.pins, due.saturating_sub(self.edge));
        self.edge = self.edge.max(due);
    }

    fn drive(&mut self, node: usize, line: usize, high: bool) {
        self.pins.set(node, line, high);
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
                c.level.into(),
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
            .chain(serial);
        let mut words = [0; WORDS];
        words
            .iter_mut()
            .zip(all)
            .for_each(|(place, word)| *place = word);
        words
    }

    /// The inverse of [`to_words`](Self::to_words).
    /// A torn copy gives a state without meaning, which the caller throws away when it sees that the head has moved.
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
        let channels = std::array::from_fn(|_| Channel {
            stage1: word(),
            stage2: word(),
            mask: word(),
            level: word() != 0,
            limit: word() as u32,
            count: word() as u32,
            late: word(),
            releases: word(),
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
        Self {
            machine: blank.load(channels, serial),
            pins,
            edge,
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
        /// Whatever the lines do, a state that went through words goes on as one that did not.
        #[test]
        fn a_state_goes_through_words_unchanged(moves in prop::collection::vec((0usize..8, 0usize..3, any::<bool>(), 0u64..40), 0..300)) {
            let blank = ChannelMachine::new(3, MAX_CHANNELS).expect("three nodes");
            let mut state = State { machine: blank, pins: Pins::default(), edge: 0 };
            for (line, node, high, edges) in moves {
                state.drive(node, line, high);
                state.machine.fast_forward(&state.pins, edges);
                state.edge += edges;
                let copy = State::from_words(blank, &state.to_words());
                prop_assert_eq!(copy.machine, state.machine);
                prop_assert_eq!((copy.pins, copy.edge), (state.pins, state.edge));
            }
        }
    }

    #[test]
    fn members_of_the_power_on_channel_release_each_other() {
        let memory = Memory::create(ChannelBoard::layout_size(2)).expect("memory");
        let board = memory.init_channels(2).expect("a board");
        let nodes = [0, 1].map(|node| board.lines(node).expect("free lines"));
        assert!(board.lines(1).is_err(), "taken");
        nodes[0].set(0, true);
        assert!(!nodes[0].get(0) && !nodes[1].get(0));
        nodes[1].set(0, true);
        assert!(nodes[0].get(0) && nodes[1].get(0));
        assert_eq!(board.machine().channel(0).map(|c| c.releases), Some(1));
    }
}
