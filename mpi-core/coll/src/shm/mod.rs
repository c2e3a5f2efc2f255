//! `shm`: collectives of ranks on one node, through the node's shared memory.
//!
//! `shm` supports communicators whose members are all on one node.
//! Short data are sent through [`cells`] (see [`small`]).
//! Long data are sent through cells in pieces, or by single copies between processes (see [`large`]);
//! [`protocol_choice`] measures which is faster.
//! `MPI_Barrier` and `MPI_Ibarrier` use one of two algorithms:
//! with a core per rank, [`flags`], which takes log n rounds of one cache line each;
//! when ranks are oversubscribed, [`counter`], which costs each rank one atomic addition and, in the best case, one context switch.
//!
//! Rank 0 allocates a block from its arena, chooses the barrier's algorithm, and sends the [`segment`] and the algorithm in its config blob.
//! Only rank 0 frees the block: when all members have left it, or if a member has refused it in the vote.
//!
//! Operations are numbered when they are called or started, in the same order on all members; [`route`] selects the protocol of each.
//! Barriers of one communicator run one after another: an `MPI_Ibarrier` begins when the previous barrier has completed.
//! Other requests run concurrently if there are enough free cells.

mod barrier;
mod cells;
mod cma_access;
mod counter;
mod flags;
mod large;
mod layout;
mod members;
mod params;
mod poll_delay;
mod protocol_choice;
mod route;
mod segment;
mod segment_config;
mod segment_lease;
mod small;
#[cfg(test)]
mod tests;
mod wait;

use super::priority;
use super::reproducible::REPRODUCIBLE;
use super::{
    Call, CallId, CallSet, Component, FastCall, FastCarrier, FastSlot, Invocation, Module, Refusal,
    Running, Table, Unserved,
};
use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Named, RecvBuf, RecvBytes};
use crate::engine::Engine;
use crate::op::{DenseOp, Predefined};
use crate::trial::Way;
use barrier::ShmBarrier;
use layout::{Lane, Sizes};
use members::{Members, Stage};
use mpi_base::atomic::prefetch_value;
use mpi_base::node::{RetiredBlocks, ShmBlock};
use mpi_base::param::{self, About};
pub use params::{
    BARRIER, BarrierChoice, CELL_SIZE, LONG_WAY, LongWay, OCCUPANCY, OccupancyChoice, PIECES_UP_TO,
    SINGLE_COPY_FROM,
};
use route::Route;
use segment::{Long, Segment};
use small::{Shape, Small};
use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use wait::{Blocking, Polled, Wait};

const WORD: usize = size_of::<u64>();

/// A large odd factor, so that different numbers of operations give different sums in [`Module::progress`].
const HASH_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

static PRIORITY: About = priority::about("shm", "60");

/// The component `shm`.
#[derive(Default)]
pub struct Shm {
    retired: Rc<RetiredBlocks>,
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
            &PRIORITY,
            BARRIER.about(),
            OCCUPANCY.about(),
            SINGLE_COPY_FROM.about(),
            PIECES_UP_TO.about(),
            LONG_WAY.about(),
            CELL_SIZE.about(),
        ]
    }

    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        Ok(Rc::new(self.module(comm)?))
    }
}

impl Shm {
    /// Creates the module of a communicator, which has no segment yet.
    fn module(&self, comm: &Comm) -> Result<ShmModule, Refusal> {
        if comm.size() < 2 {
            return Err(Refusal("the communicator has one member".into()));
        }
        let members = Members::of(comm.engine(), comm.group(), comm.rank()).map_err(Refusal)?;
        let refuse = |e: param::ParamError| Refusal(e.to_string());
        let params = comm.engine().params();
        let barrier = params.get(&BARRIER).map_err(refuse)?;
        let occupancy = params.get(&OCCUPANCY).map_err(refuse)?;
        let single_copy_from = params.get(&SINGLE_COPY_FROM).map_err(refuse)?;
        let pieces_up_to = params.get(&PIECES_UP_TO).map_err(refuse)?;
        let sizes = match params.get(&CELL_SIZE).map_err(refuse)? {
            0 => None,
            wish => Some(Sizes::wished(wish)),
        };
        // With fault tolerance, an operation that fails on one member returns
        // while other members may still read that member's buffers.
        // So no single copies are used.
        let survives = comm.engine().is_fault_tolerant();
        let (single_copy_from, long_way) = match survives {
            true => (u64::MAX, LongWay(Some(Way::Fragments))),
            false => (
                single_copy_from as u64,
                params.get(&LONG_WAY).map_err(refuse)?,
            ),
        };
        Ok(ShmModule(Rc::new(State {
            members,
            barrier,
            occupancy,
            survives,
            single_copy_from,
            pieces_up_to: pieces_up_to as u64,
            long_way,
            sizes,
            reproducible: params.get(&REPRODUCIBLE).map_err(refuse)?,
            retired: self.retired.clone(),
            block: Cell::default(),
            place: OnceCell::new(),
            called: Cell::new(0),
            passed: Cell::new(0),
        })))
    }
}

/// The module of one communicator; barriers in progress share its state.
struct ShmModule(Rc<State>);

struct State {
    members: Members,
    barrier: BarrierChoice,
    occupancy: OccupancyChoice,
    /// True if the job is fault tolerant, so that the communicator may lose members.
    survives: bool,
    single_copy_from: u64,
    pieces_up_to: u64,
    long_way: LongWay,
    /// The cell sizes, if the user has set one.
    sizes: Option<Sizes>,
    reproducible: bool,
    retired: Rc<RetiredBlocks>,
    /// On rank 0, the allocated block between the export and the import of the config blob.
    block: Cell<Option<ShmBlock>>,
    place: OnceCell<Segment>,
    /// The number of barriers that this rank has called; `passed` counts those of them that have completed.
    called: Cell<u64>,
    passed: Cell<u64>,
}

impl Drop for State {
    /// In a fault-tolerant job, the block that rank 0 still owns at this point is never freed:
    /// the members have not agreed on this component, and some members may access the block.
    fn drop(&mut self) {
        if let (true, Some(block)) = (self.survives, self.block.take()) {
            block.abandon();
        }
    }
}

/// This rank's progress in a barrier.
struct Pass {
    /// Index of the barrier among the communicator's barriers, counted from 0.
    number: u64,
    stage: Stage,
}

impl State {
    fn begin(&self) -> Pass {
        let number = self.called.get();
        self.called.set(number + 1);
        Pass {
            number,
            stage: Stage::default(),
        }
    }

    /// Returns the segment, or the error of a barrier on a communicator without one.
    #[inline]
    fn segment(&self, comm: &Comm) -> Result<&Segment, Error> {
        let place = self.place.get();
        place.ok_or_else(|| Unserved::on(comm, CallId::Barrier))
    }

    /// Advances the barrier as far as possible; returns true if it is complete.
    #[inline]
    fn step(&self, place: &Segment, pass: &mut Pass) -> bool {
        // Returns true if a completed barrier is polled again,
        // and false if an earlier barrier has not completed.
        let passed = self.passed.get();
        if passed != pass.number {
            return passed > pass.number;
        }
        let through = place
            .barrier
            .step(&self.members, pass.number, &mut pass.stage);
        if through {
            self.passed.set(pass.number + 1);
        }
        through
    }

    /// Same as [`Self::step`]; also reports progress to the engine if the barrier has reached another stage without being complete.
    #[inline]
    fn step_visibly(&self, place: &Segment, engine: &Engine, pass: &mut Pass) -> bool {
        let stage = pass.stage;
        let through = self.step(place, pass);
        if !through && stage != pass.stage {
            engine.published().has_stepped();
        }
        through
    }

    #[inline]
    fn pass(&self, comm: &Comm) -> Result<(), Error> {
        let place = self.segment(comm)?;
        let mut pass = self.begin();
        wait::until(comm, || self.step_visibly(place, comm.engine(), &mut pass))?;
        if let Some(small) = self.blocking() {
            small.cells.all_here();
        }
        Ok(())
    }

    /// Returns the cells of blocking calls, if the communicator has cells.
    #[inline(always)]
    fn blocking(&self) -> Option<&Small> {
        let small = self.place.get()?.small.as_ref()?;
        Some(&small[Lane::Blocking as usize])
    }

    /// Returns the cells of requests, if the communicator has cells.
    fn requests(&self) -> Option<&Small> {
        let small = self.place.get()?.small.as_ref()?;
        Some(&small[Lane::Nonblocking as usize])
    }

    /// Returns the future that completes a barrier.
    fn rest_of_barrier(self: Rc<Self>, comm: Comm, mut pass: Pass) -> Running {
        Box::pin(async move {
            // The barrier sends no message (it rings the doorbell), so the engine must keep polling memory.
            let (place, engine) = (self.segment(&comm)?, comm.engine());
            let _polled = engine.operations().poll_memory();
            let through = || self.step_visibly(place, engine, &mut pass);
            let passed = pin!(Polled.until(engine, through));
            wait::unless_broken(&comm, passed).await
        })
    }

    /// Returns true if no operation has used the segment.
    fn is_untouched(&self, place: &Segment) -> bool {
        self.called.get() == 0 && place.is_untouched()
    }
}

/// Returns the buffer of a reduce-scatter from its first element on (with MPI_IN_PLACE the whole operand),
/// and the range of elements that is this rank's part.
fn scattered(call: &Call, members: &Members) -> Option<(RecvBuf, Range<i64>)> {
    let (recv, before, mine, total) = match call {
        Call::ReduceScatterBlock { recv, .. } => {
            let (me, count) = (i64::from(members.me()), i64::from(members.count()));
            (recv, me * recv.count(), recv.count(), count * recv.count())
        }
        Call::ReduceScatter { recv, counts, .. } => {
            let (before, rest) = counts.split_at_checked(members.me() as usize)?;
            let total = counts.iter().sum();
            (recv, before.iter().sum(), *rest.first()?, total)
        }
        _ => return None,
    };
    Some((recv.with_count(total), before..before + mine))
}

#[allow(unsafe_code)]
impl FastCarrier for ShmModule {
    #[inline]
    unsafe fn carry_out(&self, comm: &Comm, call: &FastCall<'_>) -> Result<(), Error> {
        self.run_fast_call(comm, call)
    }

    unsafe fn begin(&self, comm: &Comm, call: FastCall<'static>) -> Result<Option<Running>, Error> {
        let state = &self.0;
        if let FastCall::Barrier = call {
            // The first step needs no future, and completes the barrier on the last of two ranks.
            let place = state.segment(comm)?;
            let mut pass = state.begin();
            return Ok(match state.step_visibly(place, comm.engine(), &mut pass) {
                true => None,
                false => Some(state.clone().rest_of_barrier(comm.clone(), pass)),
            });
        }
        let Some(small) = state.requests() else {
            return Err(Unserved::on(comm, call.id()));
        };
        let number = small.cells.begin(1);
        let (state, comm) = (state.clone(), comm.clone());
        Ok(Some(Box::pin(async move {
            let _polled = comm.engine().operations().poll_memory();
            let Some(small) = state.requests() else {
                return Err(Unserved::on(&comm, call.id()));
            };
            let operation = small::SmallOp {
                cells: &small.cells,
                occupancy: small.occupancy,
                members: &state.members,
                engine: comm.engine(),
                comm: &comm,
                number,
                wait: Polled,
            };
            let running = pin!(operation.run_fast_call(&call));
            wait::unless_broken(&comm, running).await
        })))
    }
}

impl ShmModule {
    #[inline]
    fn run_fast_call(&self, comm: &Comm, call: &FastCall<'_>) -> Result<(), Error> {
        let (state, engine) = (&*self.0, comm.engine());
        if let FastCall::Barrier = call {
            return state.pass(comm);
        }
        let Some(small) = state.blocking() else {
            return Err(Unserved::on(comm, call.id()));
        };
        let operation = small::SmallOp {
            cells: &small.cells,
            occupancy: small.occupancy,
            members: &state.members,
            engine,
            comm,
            number: small.cells.begin(1),
            wait: Blocking(comm),
        };
        wait::now(comm, operation.run_fast_call(call))
    }
}

impl Module for ShmModule {
    fn serves(&self) -> CallSet {
        [
            CallId::Barrier,
            CallId::Bcast,
            CallId::Gather,
            CallId::Gatherv,
            CallId::Scatter,
            CallId::Scatterv,
            CallId::Allgather,
            CallId::Allgatherv,
            CallId::Alltoall,
            CallId::Alltoallv,
            CallId::Alltoallw,
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

    fn export_config(&self, comm: &Comm, config: &mut Vec<u8>) {
        if let Some(place) = self.0.open(comm) {
            place.write(config);
        }
    }

    fn import_config(&self, comm: &Comm, config: &[u8]) -> Result<(), Refusal> {
        self.0.meet(comm, config)
    }

    fn explain(&self, call: CallId) -> Option<String> {
        let place = self.0.place.get()?;
        if !self.serves().contains(call) || place.leaves(call) {
            return None;
        }
        let small = match (call, &place.small, &place.barrier) {
            (CallId::Barrier, _, ShmBarrier::Counter(_)) => return Some("a counter".into()),
            (CallId::Barrier, _, ShmBarrier::Flags(_)) => return Some("flags".into()),
            (_, None, _) => return None,
            (_, Some(small), _) => &small[Lane::Blocking as usize],
        };
        let members = self.0.members.count();
        let (one, fits) = (small.fits_one(call, members), small.fits(call, members));
        if small::knows_only_its_own(call) {
            let cells = format!("cells up to {one} bytes, from {} bytes messages", one + 1);
            return Some(cells);
        }
        let from = place.large.from;
        let single = |beyond: u64| match place.large.readers.all_can() {
            true => format!("from {} bytes single copies", from.max(beyond + 1)),
            false => format!("from {} bytes messages", beyond + 1),
        };
        Some(match &place.long {
            Long::Measured(_) if fits > one => format!(
                "cells up to {one} bytes, up to {fits} bytes cells or single copies, whichever is measured to be faster, and {}",
                single(fits)
            ),
            Long::Always(Way::Fragments) => {
                format!("cells up to {fits} bytes, {}", single(fits))
            }
            _ => format!("cells up to {one} bytes, {}", single(one)),
        })
    }

    fn serves_alone(&self) -> bool {
        self.0.place.get().is_some()
    }

    fn start(&self, invocation: Invocation, mut call: Call) -> Running {
        let state = self.0.clone();
        if let Call::Barrier = call {
            let pass = state.begin();
            return state.rest_of_barrier(invocation.comm().clone(), pass);
        }
        let lane = Lane::Nonblocking;
        let route = state.route(lane, &call);
        match route.and_then(|route| state.begin_data(lane, route)) {
            // A short call has a future type of its own, less than half as large as that of other calls, so it is allocated faster.
            Some(begun) if begun.route == Route::Cells(Shape::Whole) => {
                if let Some(emptied) = invocation.emptied(&call) {
                    call = emptied;
                }
                Box::pin(async move {
                    let _polled = invocation.engine().operations().poll_memory();
                    match state.in_cells(&begun, Polled, &invocation) {
                        Some(operation) => {
                            let running = pin!(operation.run_at_once(&call));
                            wait::unless_broken(invocation.comm(), running).await
                        }
                        // Unreachable: `begin_data` returns `None` without cells.
                        None => Err(Unserved::on(invocation.comm(), call.id())),
                    }
                })
            }
            Some(begun) => Box::pin(async move {
                let _polled = invocation.engine().operations().poll_memory();
                let running = pin!(state.carry_out(begun, Polled, &invocation, &call));
                wait::unless_broken(invocation.comm(), running).await
            }),
            None => Box::pin(async move { Table::next(&invocation, call).await }),
        }
    }

    #[inline]
    fn run(&self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        let (state, comm) = (&*self.0, invocation.comm());
        if let Call::Barrier = call {
            return state.pass(comm);
        }
        let Some(route) = state.route(Lane::Blocking, call) else {
            return Table::run_next(invocation, call);
        };
        if let Route::Measured(shape) = route {
            return wait::now(comm, state.run_measured(shape, invocation, call));
        }
        let Some(begun) = state.begin_data(Lane::Blocking, route) else {
            // Unreachable: `route` returns `None` without cells.
            return Err(Unserved::on(comm, call.id()));
        };
        if route == Route::Cells(Shape::Whole)
            && let Some(emptied) = invocation.emptied(call)
        {
            let emptied = state.carry_out(begun, Blocking(comm), invocation, &emptied);
            return wait::now(comm, emptied);
        }
        // `run` and `carry_out` are called separately: each nested future lengthens a short call considerably.
        match (route, state.in_cells(&begun, Blocking(comm), invocation)) {
            (Route::Cells(shape), Some(operation)) if shape != Shape::Counts => {
                wait::now(comm, operation.run(call, shape))
            }
            _ => wait::now(
                comm,
                state.carry_out(begun, Blocking(comm), invocation, call),
            ),
        }
    }

    fn fast_slot(self: Rc<Self>, call: CallId) -> Option<FastSlot> {
        let place = self.0.place.get()?;
        if place.leaves(call) {
            return None;
        }
        let fits = |small: &Small| small.fits_one(call, self.0.members.count()) as usize;
        let (limit, limit_of_requests) = match call {
            CallId::Barrier => (0, Some(0)),
            _ => (fits(self.0.blocking()?), self.0.requests().map(fits)),
        };
        Some(FastSlot {
            limit,
            limit_of_requests,
            carrier: self,
        })
    }

    /// Uses each short cell one time, populates pages of later calls, then runs a barrier.
    fn rehearse(&self, comm: &Comm) -> Result<(), Error> {
        let state = &*self.0;
        let sum = DenseOp::new(&Predefined::Sum.into(), &Named::DOUBLE.into());
        let (Some(op), Some(_)) = (sum, state.blocking()) else {
            return Ok(());
        };
        if state.members.count() > layout::FEW || state.survives {
            return Ok(());
        }
        for _ in 0..layout::DEPTH {
            let (send, recv) = (&[][..], RecvBytes::empty());
            self.run_fast_call(comm, &FastCall::Allreduce { send, recv, op })?;
        }
        if let Some(place) = state.place.get() {
            place.populate_ahead(comm.engine().node(), state.members.count());
            if let Long::Measured(choice) = &place.long {
                choice.map();
            }
        }
        state.pass(comm)
    }

    /// The segments of many members are long, so they are freed instead.
    fn is_reusable(&self) -> bool {
        let state = &*self.0;
        !state.survives && state.members.count() <= layout::FEW && state.blocking().is_some()
    }

    fn progress(&self, parent: &Comm) -> Option<u64> {
        let (state, place) = (&*self.0, self.0.place.get()?);
        // Rank 0 chose the segment's occupancy from its own cores; those of another member may differ.
        let suits = state.members.me() != 0
            || place.occupancy() == Some(state.occupancy_now(parent.engine()));
        let barriers = state.called.get();
        let [blocking, requests] = place.finished_operations(state.members.me())?;
        let counts = [barriers, blocking, requests];
        let hash = |hash: u64, count| hash.wrapping_mul(HASH_FACTOR).wrapping_add(count);
        (suits && barriers == state.passed.get()).then(|| counts.into_iter().fold(0, hash))
    }

    fn prefetch_next(&self) {
        let state = &*self.0;
        prefetch_value(state);
        if let Some(place) = state.place.get() {
            place.barrier.prefetch_next(state.called.get());
        }
        if let Some(small) = state.blocking() {
            small.cells.prefetch_next_short();
        }
    }

    fn disable(&self) {
        if let Some(place) = self.0.place.get() {
            place
                .lease
                .end(&self.0.retired, place.used(self.0.is_untouched(place)));
        }
    }
}
