//! `shm`: collectives of ranks that share a node, by hand, in the node's memory.
//!
//! It serves communicators whose members all are on one node: short data through [`cells`], as [`small`] tells,
//! long data through cells too, in pieces, or straight from the others' memory, as [`large`] tells, whichever [`ways`] has found to be faster, and `MPI_Barrier` and `MPI_Ibarrier` by one of two gates:
//! where every rank has a core, [`flags`] passes in log n rounds of one cache line each;
//! where ranks share cores, [`counter`] costs each rank one atomic addition and, if all goes well, one switch.
//!
//! Protocol: rank 0 takes a block of its arena, chooses the gate and tells the others place and choice in its letter.
//! The first line of the block counts the members that have left (see [`retired`]) and those that can read the others' memory (see [`readers`]);
//! behind it are the gate, two sets of cells, for calls that wait and for requests, and what the members agree on about ways.
//! Rank 0 alone gives the block back, when all have left; or, if some member does not take the place, when all have said whether they do.
//!
//! Operations are numbered when they are called or started, which all members do in the same order.
//! Barriers of one communicator pass the gate one after another: an `MPI_Ibarrier` enters when the one before it has left.
//! Other requests go on side by side, as far as there are cells.

mod cells;
mod counter;
mod flags;
mod gate;
mod large;
mod letter;
mod params;
mod readers;
mod retired;
mod small;
#[cfg(test)]
mod tests;
mod wait;
mod ways;

use super::reproducible::REPRODUCIBLE;
use super::{Brief, Call, CallId, CallSet, Component, Cx, Module, Refusal, Running, Table};
use crate::Error;
use crate::comm::Comm;
use crate::datatype::RecvBuf;
use crate::engine::Engine;
use crate::trial::Way;
use cells::{Cells, Lane};
use gate::{Gate, Kind, Members};
use large::Large;
use letter::Letter;
use mpi_base::atomic::AtomicU64;
use mpi_base::mem::Held;
use mpi_base::node::{ShmBlock, ShmOffset};
use mpi_base::param::{self, About};
pub use params::{CELL_SIZE, GATE, GateChoice, LONG_WAY, LongWay, PIECES_UP_TO, SINGLE_COPY_FROM};
use readers::Readers;
use retired::{Lease, Retired};
use small::Small;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;
use wait::{Here, Later, Waits};
use ways::Ways;

const WORD: usize = size_of::<u64>();

/// The component.
#[derive(Default)]
pub struct Shm {
    retired: Rc<Retired>,
}

impl Component for Shm {
    fn name(&self) -> &str {
        "shm"
    }

    fn priority(&self) -> i32 {
        60
    }

    fn params(&self) -> Vec<&'static About> {
        vec![
            GATE.about(),
            SINGLE_COPY_FROM.about(),
            PIECES_UP_TO.about(),
            LONG_WAY.about(),
            CELL_SIZE.about(),
        ]
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        if comm.size() < 2 {
            return Err(Refusal("the communicator has one member".into()));
        }
        let members = Members::of(comm)?;
        let refuse = |e: param::ParamError| Refusal(e.to_string());
        let params = comm.engine().params();
        let choice = params.get(&GATE).map_err(refuse)?;
        let single_copy_from = params.get(&SINGLE_COPY_FROM).map_err(refuse)?;
        let pieces_up_to = params.get(&PIECES_UP_TO).map_err(refuse)?;
        let cell = match params.get(&CELL_SIZE).map_err(refuse)? {
            0 => None,
            wish => Some(cells::possible_cell(wish)),
        };
        Ok(Rc::new(ShmModule(Rc::new(State {
            members,
            choice,
            single_copy_from: single_copy_from as u64,
            pieces_up_to: pieces_up_to as u64,
            long_way: params.get(&LONG_WAY).map_err(refuse)?,
            cell,
            reproducible: params.get(&REPRODUCIBLE).map_err(refuse)?,
            retired: self.retired.clone(),
            block: Cell::default(),
            place: OnceCell::new(),
            called: Cell::new(0),
            passed: Cell::new(0),
        }))))
    }
}

/// One communicator's services; barriers under way share the state.
struct ShmModule(Rc<State>);

struct State {
    members: Members,
    choice: GateChoice,
    single_copy_from: u64,
    pieces_up_to: u64,
    long_way: LongWay,
    /// As somebody wants it.
    cell: Option<usize>,
    reproducible: bool,
    retired: Rc<Retired>,
    /// At rank 0, from its letter to the place.
    block: Cell<Option<ShmBlock>>,
    place: OnceCell<Place>,
    /// How many barriers have been called here, and how many have let this rank pass.
    called: Cell<u64>,
    passed: Cell<u64>,
}

/// Where the members meet.
struct Place {
    gate: Gate,
    /// By [`Lane`], unless the node's memory had no room for them.
    small: Option<[Small; 2]>,
    large: Large,
    long: Long,
    /// Whether reductions compute the same expression wherever their ranks lie; rank 0's choice.
    reproducible: bool,
    lease: Lease,
}

/// Which way data go that can go in pieces.
enum Long {
    Measured(Ways<Held<[AtomicU64]>>),
    Always(Way),
}

/// How an operation other than a barrier is carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    /// Through cells, in so many pieces.
    Cells(u64),
    /// From the others' memory, with so many numbers.
    Copies(u64),
    /// In so many pieces, or as if there were none: as is faster.
    Measured(u64),
}

/// An operation that has its number.
struct Begun {
    route: Route,
    lane: Lane,
    /// The first of its numbers.
    number: u64,
}

/// A barrier that this rank is in.
struct Pass {
    /// Which of the communicator's barriers; the first is number 0.
    number: u64,
    stage: gate::Stage,
}

impl State {
    fn begin(&self) -> Pass {
        let number = self.called.get();
        self.called.set(number + 1);
        Pass {
            number,
            stage: gate::Stage::default(),
        }
    }

    /// Goes as far as possible; true once the barrier is passed.
    #[inline]
    fn step(&self, pass: &mut Pass) -> bool {
        let Some(place) = self.place.get() else {
            return true;
        };
        // Asked again after the end it stays true, and before its turn it stays out.
        let passed = self.passed.get();
        if passed != pass.number {
            return passed > pass.number;
        }
        let through = place.gate.step(&self.members, pass.number, &mut pass.stage);
        if through {
            self.passed.set(pass.number + 1);
        }
        through
    }

    /// How an operation is carried out, unless it is for the next component; the same answer at all members.
    #[inline]
    fn route(&self, lane: Lane, call: &Call) -> Option<Route> {
        let place = self.place.get()?;
        let small = &place.small.as_ref()?[lane as usize];
        if let (true, Call::Scan { .. } | Call::Exscan { .. }) = (place.reproducible, call) {
            // The expression of the one algorithm that also runs between nodes is another one.
            return None;
        }
        match small.pieces(call, self.members.count()) {
            Some(1) => Some(Route::Cells(1)),
            Some(pieces) => match self.long_way(place, lane, call) {
                LongWay(None) => Some(Route::Measured(pieces)),
                LongWay(Some(Way::Fragments)) => Some(Route::Cells(pieces)),
                LongWay(Some(Way::Copy)) => self.copies(place, call),
            },
            None => self.copies(place, call),
        }
    }

    /// The way of long data without pieces, if it is not the next component's.
    fn copies(&self, place: &Place, call: &Call) -> Option<Route> {
        let serves = place.large.serves(call, self.members.count());
        serves.then(|| Route::Copies(Large::numbers(call)))
    }

    /// The way of data that can go in pieces.
    fn long_way(&self, place: &Place, lane: Lane, call: &Call) -> LongWay {
        let moves = matches!(
            call.id(),
            CallId::Bcast | CallId::Gather | CallId::Scatter | CallId::Allgather | CallId::Alltoall
        );
        // What is combined is so here in one order, whichever way; the next component does not promise that.
        let free = moves || self.copies(place, call).is_some();
        match (&place.long, lane) {
            (Long::Always(way), _) => LongWay(Some(*way)),
            (Long::Measured(_), Lane::Blocking) if free => LongWay(None),
            (Long::Measured(ways), _) => LongWay(Some(ways.first())),
        }
    }

    /// Numbers an operation.
    #[inline]
    fn begin_data(&self, lane: Lane, route: Route) -> Option<Begun> {
        let small = &self.place.get()?.small.as_ref()?[lane as usize];
        let numbers = match route {
            Route::Cells(numbers) | Route::Copies(numbers) => numbers,
            // As many as the way needs that it will go.
            Route::Measured(_) => 0,
        };
        Some(Begun {
            route,
            lane,
            number: small.cells.begin(numbers),
        })
    }

    /// Carries a call out the way that is found to be the faster one, and finds that out.
    async fn run_measured(&self, pieces: u64, cx: &Cx, call: &Call) -> Result<(), Error> {
        let began = Instant::now();
        let Some((place, cells)) = self.place.get().zip(self.blocking().map(|s| &s.cells)) else {
            // Nothing is taken up without them.
            return Ok(());
        };
        let Long::Measured(ways) = &place.long else {
            return Ok(());
        };
        let number = cells.next();
        cells.make_room(Here, cx.engine(), number).await;
        let finished = |number| cells.all_finished(number);
        let kind = (call.id(), call.agreed_bytes().unwrap_or(0) as u64);
        let measured = ways.begin(kind, number, began, finished);
        let route = match measured.way {
            Way::Fragments => Some(Route::Cells(pieces)),
            Way::Copy => self.copies(place, call),
        };
        let begun = route.and_then(|route| self.begin_data(Lane::Blocking, route));
        let outcome = match begun {
            Some(begun) => self.carry_out(begun, Here, cx, call).await,
            None => {
                let number = cells.begin(1);
                let outcome = Table::run_next(cx, call);
                cells.end_long(&self.members, number);
                outcome
            }
        };
        ways.end(measured);
        outcome
    }

    /// An operation in the cells, unless it goes another way.
    #[inline]
    fn in_cells<'a, W>(&'a self, begun: &Begun, wait: W, cx: &'a Cx) -> Option<small::Turn<'a, W>> {
        let Route::Cells(_) = begun.route else {
            return None;
        };
        let small = self.place.get()?.small.as_ref()?;
        let small = &small[begun.lane as usize];
        Some(small::Turn {
            cells: &small.cells,
            kind: small.kind,
            members: &self.members,
            engine: cx.engine(),
            number: begun.number,
            wait,
        })
    }

    /// Passes a barrier.
    #[inline]
    fn pass(&self, engine: &Engine) {
        let mut pass = self.begin();
        wait::until(engine, || self.step(&mut pass));
        if let Some(small) = self.blocking() {
            small.cells.all_here();
        }
    }

    /// The short collectives of calls that wait.
    #[inline(always)]
    fn blocking(&self) -> Option<&Small> {
        let small = self.place.get()?.small.as_ref()?;
        Some(&small[Lane::Blocking as usize])
    }

    async fn carry_out(
        &self,
        begun: Begun,
        wait: impl Waits,
        cx: &Cx,
        call: &Call,
    ) -> Result<(), Error> {
        if let (Route::Cells(pieces), Some(turn)) = (begun.route, self.in_cells(&begun, wait, cx)) {
            return turn.run(call, pieces).await;
        }
        let place = self.place.get();
        let Some((small, large)) = place.and_then(|p| Some((p.small.as_ref()?, &p.large))) else {
            // Nothing is taken up without them.
            return Ok(());
        };
        let turn = large::Turn {
            large,
            cells: &small[begun.lane as usize].cells,
            members: &self.members,
            cx,
            number: begun.number,
            wait,
        };
        turn.run(call).await
    }

    /// Whether the place has been met at and nothing more.
    fn is_untouched(&self, place: &Place) -> bool {
        let mut lanes = place.small.iter().flatten();
        self.called.get() == 0 && lanes.all(|small| small.cells.are_untouched())
    }

    /// Finds the place that rank 0 has named.
    fn meet(&self, comm: &Comm, letter: &[u8]) -> Result<(), Refusal> {
        let Some(letter) = Letter::read(letter) else {
            return Err(Refusal("rank 0's part of the node's memory is full".into()));
        };
        let outside = || Refusal("rank 0 named a place outside of the node's memory".into());
        let (node, members) = (comm.engine().node(), &self.members);
        let left = node.hold(letter.place).ok_or_else(outside)?;
        let lease = Lease::new(left, self.block.take(), members.count());
        let at = |offset: usize| ShmOffset(letter.place.0 + offset as u64);
        let gate = Gate::at(node, at(gate::LINE), letter.kind, members).ok_or_else(outside)?;
        let large = Large {
            readers: Readers::new(node, members, node.hold(at(WORD)).ok_or_else(outside)?),
            from: letter.single_copy_from,
            room: RefCell::default(),
        };
        let behind = gate::LINE + letter.kind.len(members.count());
        let lane = |lane: Lane| -> Result<Small, Refusal> {
            let before = match lane {
                Lane::Blocking => 0,
                Lane::Nonblocking => Cells::len(members.count(), letter.cell, Lane::Blocking),
            };
            let place = at(behind + before);
            let cells = Cells::at(node, place, letter.cell, members, lane, letter.kind);
            Ok(Small {
                cells: cells.ok_or_else(outside)?,
                kind: letter.kind,
                pieces_up_to: letter.pieces_up_to,
            })
        };
        let small = match letter.cell {
            0 => None,
            _ => Some([lane(Lane::Blocking)?, lane(Lane::Nonblocking)?]),
        };
        let first = usual(letter.kind);
        let long = match letter.long_way {
            LongWay(Some(way)) => Long::Always(way),
            LongWay(None) if small.is_none() => Long::Always(first),
            LongWay(None) => {
                let lanes = [Lane::Blocking, Lane::Nonblocking];
                let lens = lanes.map(|lane| Cells::len(members.count(), letter.cell, lane));
                let place = at(behind + lens.iter().sum::<usize>());
                let memory = node.hold_all(place, ways::words(members.count()));
                let memory = memory.ok_or_else(outside)?;
                let ways = Ways::new(memory, members.me, members.count(), first);
                Long::Measured(ways.ok_or_else(outside)?)
            }
        };
        let _ = self.place.set(Place {
            gate,
            small,
            large,
            long,
            reproducible: letter.reproducible,
            lease,
        });
        Ok(())
    }

    /// Rank 0's part: takes the memory; no letter says that there was none.
    fn open(&self, comm: &Comm) -> Option<Letter> {
        self.retired.sweep();
        let fitting = || match comm.engine().is_crowded() {
            true => Kind::Counter,
            false => Kind::Flags,
        };
        let kind = self.choice.0.unwrap_or_else(fitting);
        let node = comm.engine().node();
        let gate = gate::LINE + kind.len(self.members.count());
        let count = self.members.count();
        let cell = self
            .cell
            .unwrap_or_else(|| cells::fitting_cell(count, kind));
        let lanes = [Lane::Blocking, Lane::Nonblocking];
        let cells: usize = lanes.map(|lane| Cells::len(count, cell, lane)).iter().sum();
        let ways = match self.long_way {
            LongWay(None) => ways::words(count) * WORD,
            LongWay(Some(_)) => 0,
        };
        let (block, cell) = match node.alloc(gate + cells + ways, gate::LINE) {
            Some(block) => (block, cell),
            None => (node.alloc(gate, gate::LINE)?, 0),
        };
        let place = block.place();
        self.block.set(Some(block));
        Some(Letter {
            kind,
            place,
            cell,
            single_copy_from: self.single_copy_from,
            pieces_up_to: self.pieces_up_to,
            long_way: self.long_way,
            reproducible: self.reproducible,
        })
    }
}

/// The way that long data go as long as nothing else is known.
fn usual(kind: Kind) -> Way {
    match kind {
        Kind::Flags => Way::Fragments,
        // Who gives would be switched out and in for every few pieces.
        Kind::Counter => Way::Copy,
    }
}

/// What a reduce-scatter combines, as a buffer that begins where the result goes and in place is all of the operand,
/// and which elements of it are this rank's.
fn scattered(call: &Call, members: &Members) -> Option<(RecvBuf, Range<i64>)> {
    let (recv, before, mine, total) = match call {
        Call::ReduceScatterBlock { recv, .. } => {
            let (me, count) = (i64::from(members.me), i64::from(members.count()));
            (recv, me * recv.count(), recv.count(), count * recv.count())
        }
        Call::ReduceScatter { recv, counts, .. } => {
            let (before, rest) = counts.split_at_checked(members.me as usize)?;
            let total = counts.iter().sum();
            (recv, before.iter().sum(), *rest.first()?, total)
        }
        _ => return None,
    };
    Some((recv.with_count(total), before..before + mine))
}

impl Module for ShmModule {
    fn serves(&self) -> CallSet {
        [
            CallId::Barrier,
            CallId::Bcast,
            CallId::Gather,
            CallId::Scatter,
            CallId::Allgather,
            CallId::Alltoall,
            CallId::Reduce,
            CallId::Allreduce,
            CallId::ReduceScatter,
            CallId::ReduceScatterBlock,
            CallId::Scan,
            CallId::Exscan,
        ]
        .into_iter()
        .fold(CallSet::NONE, CallSet::with)
    }

    fn give(&self, comm: &Comm, letter: &mut Vec<u8>) {
        if let Some(place) = self.0.open(comm) {
            place.write(letter);
        }
    }

    fn take(&self, comm: &Comm, letter: &[u8]) -> Result<(), Refusal> {
        self.0.meet(comm, letter)
    }

    fn explain(&self, call: CallId) -> Option<String> {
        let place = self.0.place.get()?;
        let is_scan = matches!(call, CallId::Scan | CallId::Exscan);
        if !self.serves().contains(call) || (is_scan && place.reproducible) {
            return None;
        }
        let small = match (call, &place.small, &place.gate) {
            (CallId::Barrier, _, Gate::Counter(_)) => return Some("a counter".into()),
            (CallId::Barrier, _, Gate::Flags(_)) => return Some("flags".into()),
            (_, None, _) => return None,
            (_, Some(small), _) => &small[Lane::Blocking as usize],
        };
        let members = self.0.members.count();
        let (one, fits) = (small.fits_one(call, members), small.fits(call, members));
        let from = place.large.from;
        let single = |beyond: u64| format!("from {} bytes single copies", from.max(beyond + 1));
        Some(match &place.long {
            Long::Measured(_) if fits > one => format!(
                "cells up to {one} bytes, up to {fits} bytes cells or not, whichever is measured to be faster, and {}",
                single(fits)
            ),
            Long::Always(Way::Fragments) => {
                format!("cells up to {fits} bytes, {}", single(fits))
            }
            _ => format!("cells up to {one} bytes, {}", single(one)),
        })
    }

    fn start(&self, cx: Cx, call: Call) -> Running {
        let state = self.0.clone();
        if let Call::Barrier = call {
            let mut pass = state.begin();
            return Box::pin(async move {
                // The gate rings the bell, but no message comes: somebody has to look.
                let _restless = cx.engine().restless();
                Later.until(cx.engine(), || state.step(&mut pass)).await;
                Ok(())
            });
        }
        let lane = Lane::Nonblocking;
        let route = state.route(lane, &call);
        match route.and_then(|route| state.begin_data(lane, route)) {
            // What a short call keeps is less than half of what others do, and allocators are quicker with that.
            Some(begun) if begun.route == Route::Cells(1) => Box::pin(async move {
                let _restless = cx.engine().restless();
                match state.in_cells(&begun, Later, &cx) {
                    Some(turn) => turn.run_at_once(&call).await,
                    // Nothing is taken up without them.
                    None => Ok(()),
                }
            }),
            Some(begun) => Box::pin(async move {
                let _restless = cx.engine().restless();
                state.carry_out(begun, Later, &cx, &call).await
            }),
            None => Box::pin(async move { Table::next(&cx, call).await }),
        }
    }

    #[inline]
    fn run(&self, cx: &Cx, call: &Call) -> Result<(), Error> {
        let state = &*self.0;
        if let Call::Barrier = call {
            state.pass(cx.engine());
            return Ok(());
        }
        let Some(route) = state.route(Lane::Blocking, call) else {
            return Table::run_next(cx, call);
        };
        if let Route::Measured(pieces) = route {
            return wait::now(cx.engine(), state.run_measured(pieces, cx, call));
        }
        let Some(begun) = state.begin_data(Lane::Blocking, route) else {
            return Ok(());
        };
        // Each future around a short call is a good part of it.
        match (route, state.in_cells(&begun, Here, cx)) {
            (Route::Cells(pieces), Some(turn)) => wait::now(cx.engine(), turn.run(call, pieces)),
            _ => wait::now(cx.engine(), state.carry_out(begun, Here, cx, call)),
        }
    }

    fn takes_brief(&self, call: CallId) -> Option<usize> {
        let place = self.0.place.get()?;
        let is_scan = matches!(call, CallId::Scan | CallId::Exscan);
        if is_scan && place.reproducible {
            return None;
        }
        let small = self.0.blocking();
        match call {
            CallId::Barrier => Some(0),
            _ => Some(small?.fits_one(call, self.0.members.count()) as usize),
        }
    }

    #[inline]
    fn run_brief(&self, comm: &Comm, brief: &Brief<'_>) -> Result<(), Error> {
        let (state, engine) = (&*self.0, comm.engine());
        let (false, Some(small)) = (matches!(brief, Brief::Barrier), state.blocking()) else {
            // Nothing else is taken without cells.
            state.pass(engine);
            return Ok(());
        };
        let turn = small::Turn {
            cells: &small.cells,
            kind: small.kind,
            members: &state.members,
            engine,
            number: small.cells.begin(1),
            wait: Here,
        };
        wait::now(engine, turn.run_brief(brief))
    }

    fn disable(&self) {
        if let Some(place) = self.0.place.get() {
            place.lease.end(&self.0.retired, self.0.is_untouched(place));
        }
    }
}
