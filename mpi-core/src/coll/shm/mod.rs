//! `shm`: collectives of ranks that share a node, by hand, in the node's memory.
//!
//! It serves communicators whose members all are on one node: short data through [`cells`], as [`small`] tells,
//! long data straight from the others' memory, as [`large`] tells, and `MPI_Barrier` and `MPI_Ibarrier` by one of two gates:
//! where every rank has a core, [`flags`] passes in log n rounds of one cache line each;
//! where ranks share cores, [`counter`] costs each rank one atomic addition and, if all goes well, one switch.
//!
//! Protocol: rank 0 takes a block of its arena, chooses the gate and tells the others place and choice in the hidden plane.
//! The first line of the block counts the members that have left (see [`retired`]) and those that can read the others' memory (see [`readers`]);
//! behind it are the gate and the cells.
//! Rank 0 alone gives the block back, when all have left.
//!
//! Barriers of one communicator pass the gate one after another, in the order in which they were called:
//! an `MPI_Ibarrier` enters when the one before it has left.

mod cells;
mod counter;
mod flags;
mod gate;
mod large;
mod readers;
mod retired;
mod small;
#[cfg(test)]
mod tests;
mod wait;

use super::algo::{self, bcast_binomial};
use super::{Call, CallId, CallSet, Component, Cx, Module, Refusal, Running, Table};
use crate::Error;
use crate::comm::Comm;
use crate::datatype::RecvBuf;
use cells::Cells;
use gate::{Gate, Kind, Members};
use large::Large;
use mpi_base::node::ShmOffset;
use mpi_base::param::{self, About, Level, Param, Value};
use readers::Readers;
use retired::{Lease, Retired};
use small::Small;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// Which gate the ranks of a node pass.
pub static GATE: Param<GateChoice> = Param::new(
    "coll",
    "shm",
    "gate",
    "auto",
    Level::TUNER,
    "How barriers in shared memory are made: by a counter, best where ranks share cores; by flags, best where each has its own; or as fits.",
);

/// From how many bytes on data are read from where they lie.
pub static SINGLE_COPY_FROM: Param<usize> = Param::new(
    "coll",
    "shm",
    "single_copy_from",
    "4k",
    Level::TUNER,
    "Blocks of so many bytes that do not fit a cell are read from the other ranks' memory in one copy, where the system allows it; rank 0's value counts.",
);

/// How long cells are.
pub static CELL_SIZE: Param<usize> = Param::new(
    "coll",
    "shm",
    "cell_size",
    "0",
    Level::TUNER,
    "Bytes of the cells in which ranks of a node show each other short data; 0 is what fits the number of ranks; rank 0's value counts.",
);

/// A value of [`GATE`]; `None` is what fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateChoice(Option<Kind>);

impl Value for GateChoice {
    const KIND: param::Kind = param::Kind::OneOf(&["auto", "counter", "flags"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(GateChoice(None)),
            "counter" => Ok(GateChoice(Some(Kind::Counter))),
            "flags" => Ok(GateChoice(Some(Kind::Flags))),
            _ => Err("auto, counter or flags".into()),
        }
    }
}

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
        vec![GATE.about(), SINGLE_COPY_FROM.about(), CELL_SIZE.about()]
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
        let cell = match params.get(&CELL_SIZE).map_err(refuse)? {
            0 => cells::fitting_cell(members.count()),
            wish => cells::possible_cell(wish),
        };
        Ok(Rc::new(ShmModule(Rc::new(State {
            members,
            choice,
            single_copy_from: single_copy_from as u64,
            cell,
            retired: self.retired.clone(),
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
    cell: usize,
    retired: Rc<Retired>,
    place: OnceCell<Place>,
    /// How many barriers have been called here, and how many have let this rank pass.
    called: Cell<u64>,
    passed: Cell<u64>,
}

/// Where the members meet.
struct Place {
    gate: Gate,
    /// Unless the node's memory had no room for it.
    small: Option<Small>,
    large: Large,
    lease: Lease,
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

    /// Takes this rank's part in setting the gate up.
    async fn meet(&self, comm: &Comm) -> Result<(), Refusal> {
        let failed = |e: Error| Refusal(format!("setting up: {e}"));
        let letter = algo::bytes(Letter::BYTES as i64).map_err(failed)?.all();
        let block = (comm.rank() == 0)
            .then(|| self.open(comm, &letter))
            .flatten();
        bcast_binomial::bcast(&comm.hidden(), &letter, 0)
            .await
            .map_err(failed)?;
        let Some(letter) = Letter::read(&letter) else {
            return Err(Refusal("rank 0's part of the node's memory is full".into()));
        };
        let outside = || Refusal("rank 0 named a place outside of the node's memory".into());
        let (node, members) = (comm.engine().node(), &self.members);
        let lease = Lease::new(node, letter.place, block, members.count()).ok_or_else(outside)?;
        let at = |offset: usize| ShmOffset(letter.place.0 + offset as u64);
        let gate = Gate::at(node, at(gate::LINE), letter.kind, members).ok_or_else(outside)?;
        let large = Large {
            readers: Readers::new(node, members, node.hold(at(WORD)).ok_or_else(outside)?),
            from: letter.single_copy_from,
            room: RefCell::default(),
        };
        let small = (letter.cell > 0).then(|| {
            let behind = gate::LINE + letter.kind.len(members.count());
            let arrivals = node.hold(at(behind))?;
            let cells = Cells::at(node, at(behind + gate::LINE), letter.cell, members)?;
            Some(Small::new(cells, letter.kind, arrivals))
        });
        let small = small.map(|s| s.ok_or_else(outside)).transpose()?;
        let _ = self.place.set(Place {
            gate,
            small,
            large,
            lease,
        });
        Ok(())
    }

    /// Rank 0's part: takes the memory and writes the letter; an empty letter says that there was none.
    fn open(&self, comm: &Comm, letter: &RecvBuf) -> Option<mpi_base::node::ShmBlock> {
        self.retired.sweep();
        let fitting = || match comm.engine().is_crowded() {
            true => Kind::Counter,
            false => Kind::Flags,
        };
        let kind = self.choice.0.unwrap_or_else(fitting);
        let node = comm.engine().node();
        let gate = gate::LINE + kind.len(self.members.count());
        let both = gate + gate::LINE + Cells::len(self.members.count(), self.cell);
        let (block, cell) = match node.alloc(both, gate::LINE) {
            Some(block) => (block, self.cell),
            None => (node.alloc(gate, gate::LINE)?, 0),
        };
        let place = block.place();
        Letter {
            kind,
            place,
            cell,
            single_copy_from: self.single_copy_from,
        }
        .write(letter);
        Some(block)
    }
}

/// What rank 0 tells the others; all zero if there is no place.
struct Letter {
    place: ShmOffset,
    kind: Kind,
    /// Bytes in the cells behind the gate; zero if there are none.
    cell: usize,
    single_copy_from: u64,
}

impl Letter {
    const BYTES: usize = 4 * WORD;

    fn write(&self, letter: &RecvBuf) {
        let words = [
            self.place.0,
            self.kind as u64,
            self.cell as u64,
            self.single_copy_from,
        ];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        letter.clone().unpack_at(0, &bytes);
    }

    fn read(letter: &RecvBuf) -> Option<Letter> {
        let bytes = letter.as_send().to_vec();
        let mut words = bytes.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w));
        Some(Letter {
            place: ShmOffset(words.next()?),
            kind: Kind::from_number(words.next()?)?,
            cell: words.next()? as usize,
            single_copy_from: words.next()?,
        })
    }
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
        ]
        .into_iter()
        .fold(CallSet::NONE, CallSet::with)
    }

    fn enable<'a>(
        &'a self,
        comm: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        Box::pin(self.0.meet(comm))
    }

    fn start(&self, cx: Cx, call: Call) -> Running {
        if call.id() != CallId::Barrier {
            return Box::pin(async move { Table::next(&cx, call).await });
        }
        let state = self.0.clone();
        let mut pass = state.begin();
        Box::pin(async move {
            // The gate rings the bell, but no message comes: somebody has to look.
            let _restless = cx.engine().restless();
            poll_fn(|_| match state.step(&mut pass) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            Ok(())
        })
    }

    fn run(&self, cx: Cx, call: Call) -> Result<(), Error> {
        if call.id() != CallId::Barrier {
            let members = &self.0.members;
            return match self.0.place.get() {
                Some(Place {
                    small: Some(small), ..
                }) if small.serves(&call, cx.size()) => small.run(members, &cx, call),
                Some(Place {
                    small: Some(small),
                    large,
                    ..
                }) if large.serves(&call) => {
                    let cells = &small.cells;
                    let turn = large::Turn {
                        large,
                        cells,
                        members,
                        cx: &cx,
                    };
                    turn.run(call)
                }
                _ => Table::run_next(&cx, call),
            };
        }
        let mut pass = self.0.begin();
        wait::until(cx.engine(), &mut || self.0.step(&mut pass));
        Ok(())
    }

    fn disable(&self) {
        if let Some(place) = self.0.place.get() {
            place.lease.end(&self.0.retired);
        }
    }
}
