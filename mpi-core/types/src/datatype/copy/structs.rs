//! Copy loops for arrays of structures: a body (list of runs), repeated at a constant stride.
//!
//! A short run is copied by moves of 16, 8, 4, 2 or 1 bytes.
//! The last move of a run may overlap the previous one.
//! A few moves form a *pass*: one loop over the structures,
//! compiled for each combination of the numbers of moves.
//! Most structures need one pass, so each cache line is visited once.
//! With one loop per run, copying three runs (44 bytes) of structures of 64 bytes took 1.5 times as
//! long, although all data were in the first-level cache.
//! Structures of several passes are processed in *stretches*: groups of structures that stay in the
//! first-level cache from one pass to the next.

use super::super::layout::{Body, Run};
use super::direction::Direction;
use super::grid::{Grid, Row, all_blocks};
use super::one_body;

/// Maximum size in bytes of a stretch, which must stay in the first-level cache between two passes.
const NEAR: i64 = 16 << 10;

/// Minimum number of repetitions that are moved in passes.
/// With fewer, building the passes costs more than it saves.
const FEW: i64 = 8;

/// Maximum number of moves of 16, of 8 and of 4 bytes in a pass, and of all its moves.
/// The position of each move takes two registers.
const SIXTEENS: usize = 3;
const EIGHTS: usize = 4;
const FOURS: usize = 4;
const MOST: usize = 5;

/// The position of a move: the offset in the structure in memory,
/// and the offset from the start of the pass in the packed bytes.
type Place = (isize, usize);

/// The moves of one pass.
#[derive(Default)]
struct Pass {
    sixteen: Places<SIXTEENS>,
    eight: Places<EIGHTS>,
    four: Places<FOURS>,
    /// The position of the pass's run of one or two bytes, if there is one.
    small: Place,
    small_len: usize,
    bytes: usize,
}

struct Places<const MOST: usize> {
    at: [Place; MOST],
    count: usize,
}

impl<const MOST: usize> Default for Places<MOST> {
    fn default() -> Places<MOST> {
        Places {
            at: [(0, 0); MOST],
            count: 0,
        }
    }
}

impl<const MOST: usize> Places<MOST> {
    /// Adds the moves of `len` bytes that cover a run of at least `len` bytes.
    /// Returns false if the pass has no space for them.
    fn take(&mut self, len: usize, run: Run, packed: usize, space: usize) -> bool {
        let whole = run.len as usize;
        let n = whole.div_ceil(len);
        if n > space {
            return false;
        }
        let Some(places) = self.at.get_mut(self.count..self.count.saturating_add(n)) else {
            return false;
        };
        for (i, place) in places.iter_mut().enumerate() {
            let skip = (i * len).min(whole - len);
            *place = (run.offset as isize + skip as isize, packed + skip);
        }
        self.count += n;
        true
    }
}

impl Pass {
    /// Adds runs of the body, from index `first` on, until the pass is full. Returns their number.
    fn fill(&mut self, body: &Body<'_>, first: usize) -> usize {
        let runs = first..body.offsets.len();
        runs.take_while(|&i| self.take(body.run(i))).count()
    }

    fn moves(&self) -> usize {
        let small = usize::from(self.small_len > 0);
        self.sixteen.count + self.eight.count + self.four.count + small
    }

    fn take(&mut self, run: Run) -> bool {
        let (packed, space) = (self.bytes, MOST - self.moves());
        let taken = match run.len {
            16.. => self.sixteen.take(16, run, packed, space),
            8.. => self.eight.take(8, run, packed, space),
            4.. => self.four.take(4, run, packed, space),
            1..=2 if space > 0 && self.small_len == 0 => {
                self.small = (run.offset as isize, packed);
                self.small_len = run.len as usize;
                true
            }
            _ => false,
        };
        if taken {
            self.bytes += run.len as usize;
        }
        taken
    }

    /// # Safety
    /// Every run of the pass must be valid for [`Direction::run`] in every repetition.
    unsafe fn run<D: Direction>(&self, all: Repeated<D>) {
        // SAFETY: the runs of the pass are valid in every repetition by this function's contract.
        unsafe {
            match self.sixteen.count {
                0 => self.of_sixteens::<D, 0>(all),
                1 => self.of_sixteens::<D, 1>(all),
                2 => self.of_sixteens::<D, 2>(all),
                _ => self.of_sixteens::<D, SIXTEENS>(all),
            }
        }
    }

    /// # Safety
    /// The contract of `run`.
    unsafe fn of_sixteens<D: Direction, const A: usize>(&self, all: Repeated<D>) {
        // SAFETY: the runs of the pass are valid in every repetition by the contract of `run`.
        unsafe {
            match self.eight.count {
                0 => self.of_eights::<D, A, 0>(all),
                1 => self.of_eights::<D, A, 1>(all),
                2 => self.of_eights::<D, A, 2>(all),
                3 => self.of_eights::<D, A, 3>(all),
                _ => self.of_eights::<D, A, EIGHTS>(all),
            }
        }
    }

    /// # Safety
    /// The contract of `run`.
    unsafe fn of_eights<D: Direction, const A: usize, const B: usize>(&self, all: Repeated<D>) {
        // SAFETY: the runs of the pass are valid in every repetition by the contract of `run`.
        unsafe {
            match self.four.count {
                0 => self.of_fours::<D, A, B, 0>(all),
                1 => self.of_fours::<D, A, B, 1>(all),
                2 => self.of_fours::<D, A, B, 2>(all),
                3 => self.of_fours::<D, A, B, 3>(all),
                _ => self.of_fours::<D, A, B, FOURS>(all),
            }
        }
    }

    /// # Safety
    /// The contract of `run`.
    unsafe fn of_fours<D: Direction, const A: usize, const B: usize, const C: usize>(
        &self,
        all: Repeated<D>,
    ) {
        // SAFETY: the runs of the pass are valid in every repetition by the contract of `run`.
        unsafe {
            match self.small_len {
                0 => self.moved::<D, A, B, C, 0>(all),
                1 => self.moved::<D, A, B, C, 1>(all),
                _ => self.moved::<D, A, B, C, 2>(all),
            }
        }
    }

    /// The loop of a pass: for each structure `A` moves of 16 bytes,
    /// `B` of 8, `C` of 4, and one of `S` unless `S` is 0.
    ///
    /// # Safety
    /// The contract of `run`.
    unsafe fn moved<
        D: Direction,
        const A: usize,
        const B: usize,
        const C: usize,
        const S: usize,
    >(
        &self,
        all: Repeated<D>,
    ) {
        // No pass has more than `MOST` moves, so no code is generated for this combination.
        if const { A + B + C + S.div_ceil(2) > MOST } {
            return;
        }
        let Repeated {
            mut d,
            mut memory,
            stride,
            packed_stride,
            count,
        } = all;
        // Copies of the positions on the stack.
        // The moves cannot alias them, so the compiler keeps them in registers.
        let (sixteen, eight, four, small) =
            (self.sixteen.at, self.eight.at, self.four.at, self.small);
        for _ in 0..count {
            // SAFETY: the moves are parts of the pass's runs,
            // which are valid in every repetition by the contract of `run`.
            unsafe {
                for &(at, packed) in &sixteen[..A] {
                    d.ahead(packed).block::<16>(memory.wrapping_offset(at));
                }
                for &(at, packed) in &eight[..B] {
                    d.ahead(packed).block::<8>(memory.wrapping_offset(at));
                }
                for &(at, packed) in &four[..C] {
                    d.ahead(packed).block::<4>(memory.wrapping_offset(at));
                }
                if S > 0 {
                    d.ahead(small.1).block::<S>(memory.wrapping_offset(small.0));
                }
            }
            memory = memory.wrapping_offset(stride as isize);
            d = d.ahead(packed_stride);
        }
    }
}

/// Structures at a constant stride in memory, consecutive in the packed bytes.
#[derive(Clone, Copy)]
pub struct Repeated<D> {
    pub d: D,
    pub memory: *mut u8,
    pub stride: i64,
    pub packed_stride: usize,
    pub count: i64,
}

impl<D: Direction> Repeated<D> {
    /// Selects the first `n` repetitions.
    fn first(self, n: i64) -> Repeated<D> {
        Repeated { count: n, ..self }
    }

    /// Selects the repetitions after the first `n`.
    fn after(self, n: i64) -> Repeated<D> {
        let by = (n as isize).wrapping_mul(self.stride as isize);
        Repeated {
            d: self.d.ahead(n as usize * self.packed_stride),
            memory: self.memory.wrapping_offset(by),
            count: self.count - n,
            ..self
        }
    }

    /// Moves the packed position forward by `by` bytes in each repetition.
    fn within(self, by: usize) -> Repeated<D> {
        Repeated {
            d: self.d.ahead(by),
            ..self
        }
    }
}

/// Copies all repetitions of a body.
///
/// # Safety
/// Every run of every repetition must be valid for [`Direction::run`].
#[inline(never)]
pub unsafe fn bodies<D: Direction>(mut all: Repeated<D>, body: &Body<'_>) {
    if all.count >= FEW {
        let mut pass = Pass::default();
        let n = pass.fill(body, 0);
        if n == body.offsets.len() {
            // SAFETY: the pass has all runs of the body, which are valid
            // in every repetition by this function's contract.
            return unsafe { pass.run(all) };
        }
    }
    let stretch = NEAR / all.stride.saturating_abs().max(body.bytes);
    while all.count > 0 {
        let n = if stretch < FEW {
            1
        } else {
            stretch.min(all.count)
        };
        let (n, some) = if n < FEW { (1, false) } else { (n, true) };
        // SAFETY: the runs of the body are valid in every repetition by this function's contract.
        unsafe {
            match some {
                true => passes(all.first(n), body),
                false => one_body(all.d, all.memory, body),
            }
        }
        all = all.after(n);
    }
}

/// Moves the repetitions of one stretch, one pass after another.
///
/// # Safety
/// The contract of [`bodies`].
unsafe fn passes<D: Direction>(mut all: Repeated<D>, body: &Body<'_>) {
    let mut first = 0;
    while first < body.offsets.len() {
        let mut pass = Pass::default();
        let n = pass.fill(body, first);
        // SAFETY: the runs are part of the body,
        // valid in every repetition by the contract of `bodies`.
        unsafe {
            if n > 1 {
                pass.run(all);
                all = all.within(pass.bytes);
                first += n;
            } else {
                let run = body.run(first);
                row(all, run);
                all = all.within(run.len as usize);
                first += 1;
            }
        }
    }
}

/// Moves one run of every repetition.
///
/// # Safety
/// The contract of [`bodies`].
unsafe fn row<D: Direction>(all: Repeated<D>, run: Run) {
    let row = Row {
        memory: all.memory.wrapping_offset(run.offset as isize),
        stride: all.stride,
        packed_stride: all.packed_stride,
        count: all.count,
    };
    let grid = Grid {
        row,
        stride: 0,
        count: 1,
        total: 0,
    };
    // SAFETY: the run is valid in every repetition by the contract of `bodies`.
    unsafe { all_blocks(all.d, grid, run.len) };
}
