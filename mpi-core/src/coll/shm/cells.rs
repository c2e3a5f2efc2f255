//! Cells: where each rank of a node shows the others a few bytes.
//!
//! Every rank has [`DEPTH`] cells, used in turn by the operations of a communicator, which all members number alike.
//! A cell is one run of words; the first holds the number of the operation whose data follow, and is written last.
//! So a message of seven words or less is one cache line, written once and read once by each reader.
//!
//! Protocol of operation k:
//! 1. a rank that has something to show writes its cell k mod [`DEPTH`], then the number ([`Cells::show`]);
//!    before that it makes sure that all members have finished operation k - [`DEPTH`], whose data the cell still holds;
//! 2. whoever needs the data waits for the number and reads ([`Cells::seen`], [`Cells::read`]);
//! 3. when a rank has finished it says so in a line of its own ([`Cells::end`]).
//!
//! A rank that finds others too far behind says that it is hungry, and who finishes wakes it.
//! There is one place more than there are ranks: the result of an operation that one rank works out for all.

use super::gate::{LINE, Members};
use super::wait;
use crate::engine::Engine;
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::node::{Node, ShmOffset};
use std::cell::Cell;

/// How many operations may be under way before their cells are used again.
const DEPTH: u64 = 4;

const WORD: usize = size_of::<u64>();

/// The longest cell: the number and sixteen kilobytes, up to which two copies are faster than one by the system.
pub const LONGEST: usize = (16 << 10) + LINE;

/// Bytes in a cell unless somebody wants otherwise; where there are many members a short message is all that is worth the memory.
pub fn fitting_cell(members: u32) -> usize {
    match members {
        0..=4 => LONGEST,
        5..=8 => 4 << 10,
        _ => 512,
    }
}

/// The cell that is made of a wish: whole lines, one at least.
pub fn possible_cell(wish: usize) -> usize {
    wish.clamp(LINE, LONGEST).next_multiple_of(LINE)
}

pub struct Cells {
    node: Node,
    place: ShmOffset,
    me: u32,
    members: u32,
    /// Bytes in a cell.
    cell: usize,
    /// The last operation that has begun here.
    number: Cell<u64>,
    /// All members are known to have finished this one.
    safe: Cell<u64>,
}

impl Cells {
    /// The bytes that cells of this length for so many members need.
    pub fn len(members: u32, cell: usize) -> usize {
        let members_too = members as usize;
        // A line for the hungry, one for each rank's word, and the cells with those of the result.
        (1 + members_too) * LINE + (members_too + 1) * DEPTH as usize * cell
    }

    /// The cells at `place`, if all of them are inside the node's memory.
    pub fn at(node: &Node, place: ShmOffset, cell: usize, members: &Members) -> Option<Cells> {
        if possible_cell(cell) != cell {
            return None;
        }
        node.shared::<AtomicU64>(place, Cells::len(members.count(), cell) / WORD)?;
        Some(Cells {
            node: node.clone(),
            place,
            me: members.me,
            members: members.count(),
            cell,
            number: Cell::new(0),
            safe: Cell::new(0),
        })
    }

    /// How many bytes a rank can show.
    pub fn capacity(&self) -> usize {
        self.cell - WORD
    }

    /// The place of the result.
    pub fn result(&self) -> u32 {
        self.members
    }

    /// Begins the next operation.
    pub fn begin(&self) -> u64 {
        let number = self.number.get() + 1;
        self.number.set(number);
        number
    }

    fn words(&self, at: usize, count: usize) -> &[AtomicU64] {
        // `at` checked that all of it is there.
        let place = ShmOffset(self.place.0 + at as u64);
        self.node.shared(place, count).unwrap_or(&[])
    }

    fn hungry(&self) -> Option<&AtomicU64> {
        self.words(0, 1).first()
    }

    /// The last operation that a rank has finished.
    fn finished(&self, rank: u32) -> Option<&AtomicU64> {
        self.words((1 + rank as usize) * LINE, 1).first()
    }

    /// The cell of operation `number` at a place: the number, and the data.
    #[inline]
    fn cell(&self, place: u32, number: u64) -> Option<(&AtomicU64, &[AtomicU64])> {
        let len = self.cell;
        let which = place as usize * DEPTH as usize + (number % DEPTH) as usize;
        let start = (1 + self.members as usize) * LINE;
        self.words(start + which * len, len / WORD).split_first()
    }

    /// Shows data in operation `number` at a place that this rank has to fill.
    pub fn show(&self, engine: &Engine, place: u32, number: u64, data: &[u8]) {
        self.make_room(engine, number);
        let Some((flag, words)) = self.cell(place, number) else {
            return;
        };
        let (whole, rest) = data.as_chunks::<WORD>();
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if let Some(word) = words.get(whole.len())
            && !rest.is_empty()
        {
            let mut bytes = [0; WORD];
            bytes[..rest.len()].copy_from_slice(rest);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        // SYNC POINT shm.cell: releases the data.
        flag.store(number, Ordering::Release);
    }

    /// Waits until nobody can still be reading what the cells of operation `number` held before.
    #[inline]
    fn make_room(&self, engine: &Engine, number: u64) {
        let before = number.saturating_sub(DEPTH);
        if self.safe.get() < before && !self.all_finished(before) {
            self.starve(engine, before);
        }
    }

    #[cold]
    fn starve(&self, engine: &Engine, number: u64) {
        let Some(hungry) = self.hungry() else { return };
        // SYNC POINT shm.hungry: whoever finishes from now on sees that somebody waits, or we see that it has finished.
        hungry.fetch_add(1, Ordering::SeqCst);
        wait::until(engine, &mut || self.all_finished(number));
        hungry.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits until those of the others that `who` names have finished an operation.
    pub fn await_end(&self, engine: &Engine, number: u64, who: impl Fn(u32) -> bool) {
        let finished = |rank| {
            // SYNC POINT shm.finished
            let word = self.finished(rank);
            word.is_none_or(|word| word.load(Ordering::Acquire) >= number)
        };
        let others = || (0..self.members).filter(|rank| *rank != self.me && who(*rank));
        let mut done = || others().all(finished);
        if done() {
            return;
        }
        let Some(hungry) = self.hungry() else { return };
        // SYNC POINT shm.hungry, as in `starve`.
        hungry.fetch_add(1, Ordering::SeqCst);
        wait::until(engine, &mut done);
        hungry.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all members have finished an operation.
    fn all_finished(&self, number: u64) -> bool {
        let finished = |rank| {
            // SYNC POINT shm.finished: what that rank read in the operation, it read before.
            self.finished(rank)
                .map_or(u64::MAX, |word| word.load(Ordering::Acquire))
        };
        let others = (0..self.members).filter(|rank| *rank != self.me);
        let slowest = others.map(finished).min().unwrap_or(u64::MAX);
        self.safe.set(self.safe.get().max(slowest));
        slowest >= number
    }

    /// Whether a place shows its data of operation `number`.
    #[inline]
    pub fn seen(&self, place: u32, number: u64) -> bool {
        // SYNC POINT shm.cell
        self.cell(place, number)
            .is_none_or(|(flag, _)| flag.load(Ordering::Acquire) >= number)
    }

    /// Reads the data from byte `at` on, which is a multiple of eight; they have been seen.
    pub fn read(&self, place: u32, number: u64, at: usize, out: &mut [u8]) {
        let Some((_, words)) = self.cell(place, number) else {
            return;
        };
        let Some(words) = words.get(at / WORD..) else {
            return;
        };
        let (whole, rest) = out.as_chunks_mut::<WORD>();
        for (word, bytes) in words.iter().zip(&mut *whole) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        if let Some(word) = words.get(whole.len()) {
            let value = word.load(Ordering::Relaxed).to_ne_bytes();
            rest.copy_from_slice(&value[..rest.len()]);
        }
    }

    /// This rank has finished an operation in which it heard of every member: so all have finished the one before.
    pub fn end_together(&self, number: u64) {
        self.safe.set(self.safe.get().max(number - 1));
        if let Some(word) = self.finished(self.me) {
            word.store(number, Ordering::Release);
        }
    }

    /// This rank has finished an operation that it may be the last to finish.
    pub fn end(&self, members: &Members, number: u64) {
        let (Some(word), Some(hungry)) = (self.finished(self.me), self.hungry()) else {
            return;
        };
        // SYNC POINT shm.finished
        word.store(number, Ordering::Release);
        // SYNC POINT shm.hungry: who is hungry goes to sleep by its bell, whose fences these are.
        members.order();
        if hungry.load(Ordering::Relaxed) > 0 {
            members.ring_all();
        }
    }
}
