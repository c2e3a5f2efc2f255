//! Test components in Rust, which the tests use through the C tables.

use crate::plugin::abi;
use crate::plugin::guest::{
    Begun, Buffer, BuiltIn, Call, CallMessage, Comm, Guest, InProgress, Module, Served,
    SharedMemory, Started, nonblocking, operation, param,
};
use mpi_base::atomic::{AtomicU64, Ordering};
use std::cell::Cell;
use std::ffi::CStr;
use std::task::Poll;

/// Barrier with a counter per member in shared memory: barrier n is complete when all counters are at least n.
pub struct Counter {
    comm: Comm,
    memory: Cell<Option<SharedMemory>>,
    started: Cell<u64>,
}

impl Counter {
    #[allow(unsafe_code)]
    fn arrivals(&self) -> &[AtomicU64] {
        let memory = self.memory.get().expect("enabled");
        // SAFETY: the memory is zeroed and aligned, has `len` bytes, is accessed as atomics by all members, and stays valid as long as the module.
        unsafe {
            std::slice::from_raw_parts(memory.at.cast().as_ptr(), memory.len / size_of::<u64>())
        }
    }

    fn come(&self) -> u64 {
        let (me, number) = (self.comm.rank(), self.started.get() + 1);
        self.started.set(number);
        self.arrivals()[me as usize].store(number, Ordering::SeqCst);
        if self.is_over(number) {
            let others = (0..self.comm.size()).filter(|rank| *rank != me);
            others.for_each(|rank| self.comm.ring(rank));
        }
        number
    }

    fn is_over(&self, number: u64) -> bool {
        let come = |arrived: &AtomicU64| arrived.load(Ordering::SeqCst) >= number;
        self.arrivals().iter().all(come)
    }
}

impl Module for Counter {
    fn enable(&self) -> Result<(), String> {
        let bytes = self.comm.size() as usize * size_of::<u64>();
        self.memory.set(Some(self.comm.shared_memory(bytes, 64)?));
        Ok(())
    }

    fn barrier(&self) -> Result<Served, String> {
        let number = self.come();
        self.comm.wait(None, || self.is_over(number))?;
        Ok(Served::Here)
    }

    fn start(&self) -> Result<Started, String> {
        match self.comm.param(c"misbehave").as_str() {
            "panic" => panic!("the counter lost count"),
            "block" => self.comm.fence().map(|()| Started::Next),
            "next" => Ok(Started::Next),
            _ => Ok(Started::Ticket(self.come())),
        }
    }

    fn test(&self, ticket: u64) -> Result<Poll<Served>, String> {
        Ok(if self.is_over(ticket) {
            Poll::Ready(Served::Here)
        } else {
            Poll::Pending
        })
    }

    fn disable(&self) {}
}

pub struct CounterComponent;

impl Guest for CounterComponent {
    const NAME: &'static CStr = c"counter";
    const VERSION: &'static CStr = c"1.0";
    const PRIORITY: i32 = 80;
    const PARAMS: &'static [abi::Param] = &[param(
        c"misbehave",
        c"",
        c"string",
        c"What to do wrong in MPI_Ibarrier",
    )];
    type Module = Counter;

    fn query(comm: Comm) -> Result<Counter, String> {
        if comm.node_ranks().len() != comm.size() as usize {
            return Err("some members are on another node".into());
        }
        Ok(Counter {
            comm,
            memory: Cell::new(None),
            started: Cell::new(0),
        })
    }
}

pub const COUNTER: BuiltIn = BuiltIn::of::<CounterComponent>();

/// Component in safe Rust with broadcasts and reductions;
/// in reductions rank 0 combines the operands in the order of ranks.
pub struct Adder(Comm);

impl Adder {
    fn spread(&self, call: &Call<'_>, root: u32) -> Result<(), String> {
        let data = call.recv().first().ok_or("no buffer")?;
        if self.0.rank() != root {
            return call.wait([call.receive_from(root, data)?]);
        }
        let others = (0..self.0.size()).filter(|rank| *rank != root);
        let sent: Result<Vec<_>, _> = others.map(|rank| call.send_to(rank, data)).collect();
        call.wait(sent?)
    }
}

impl Module for Adder {
    const BARRIER: bool = false;
    const OPERATIONS: &'static [abi::Operation] = &[
        operation::<Adder>(abi::BCAST),
        operation::<Adder>(abi::ALLREDUCE),
    ];

    fn run(&self, call: &Call<'_>) -> Result<Served, String> {
        if let Some(root) = call.root() {
            self.spread(call, root)?;
            return Ok(Served::Here);
        }
        let to = call.recv().first().ok_or("no buffer")?;
        let own = call.send().first().unwrap_or(to);
        if self.0.rank() > 0 {
            call.wait([call.send_to(0, own)?])?;
        } else {
            let (mut sum, mut next) = (call.temporary(own)?, call.temporary(own)?);
            for rank in (0..self.0.size()).rev() {
                match rank {
                    0 => call.copy(own, &next).map(|_| ())?,
                    rank => call.wait([call.receive_from(rank, &next)?])?,
                }
                match rank + 1 == self.0.size() {
                    true => std::mem::swap(&mut sum, &mut next),
                    false => call.reduce(&next, &sum)?,
                }
            }
            call.copy(&sum, to)?;
            let with_itself = call.reduce(&sum, &sum);
            assert!(with_itself.is_err() || call.bytes() == 0);
        }
        self.spread(call, 0)?;
        Ok(Served::Here)
    }
}

/// Component in safe Rust with nonblocking operations:
/// a broadcast in which the root sends to every other rank, and a scan in which each rank sends to the next.
pub struct Eager(Comm);

struct Spreading<'c> {
    call: Call<'c>,
    messages: Vec<CallMessage>,
}

impl<'c> Spreading<'c> {
    fn of(comm: &Comm, call: Call<'c>, root: u32) -> Result<Spreading<'c>, String> {
        let data = call.recv().first().ok_or("no buffer")?;
        let others = (0..comm.size()).filter(|rank| *rank != root);
        let messages = match comm.rank() == root {
            true => others.map(|rank| call.send_to(rank, data)).collect(),
            false => call.receive_from(root, data).map(|message| vec![message]),
        };
        let messages = messages?;
        Ok(Spreading { call, messages })
    }
}

impl InProgress for Spreading<'_> {
    fn test(&mut self) -> Result<Poll<()>, String> {
        self.call.test_all(&mut self.messages)
    }
}

struct Scanning<'c> {
    comm: &'c Comm,
    call: Call<'c>,
    before: Buffer<'c>,
    sum: Buffer<'c>,
    step: Step,
}

enum Step {
    Receiving(CallMessage),
    Summed,
    Sending(CallMessage),
    Complete,
}

impl<'c> Scanning<'c> {
    fn of(comm: &'c Comm, call: Call<'c>) -> Result<Scanning<'c>, String> {
        let to = *call.recv().first().ok_or("no buffer")?;
        let own = *call.send().first().unwrap_or(&to);
        let (before, sum) = (call.temporary(&own)?, call.temporary(&own)?);
        call.copy(&own, &sum)?;
        let step = match comm.rank() {
            0 => Step::Summed,
            rank => Step::Receiving(call.receive_from(rank - 1, &before)?),
        };
        Ok(Scanning {
            comm,
            call,
            before,
            sum,
            step,
        })
    }
}

impl InProgress for Scanning<'_> {
    fn test(&mut self) -> Result<Poll<()>, String> {
        loop {
            self.step = match &self.step {
                Step::Receiving(message) | Step::Sending(message)
                    if self.call.test(message)?.is_pending() =>
                {
                    return Ok(Poll::Pending);
                }
                Step::Receiving(_) => {
                    self.call.reduce(&self.before, &self.sum)?;
                    Step::Summed
                }
                Step::Summed => {
                    self.call.copy(&self.sum, &self.call.recv()[0])?;
                    match self.comm.rank() + 1 {
                        next if next == self.comm.size() => Step::Complete,
                        next => Step::Sending(self.call.send_to(next, &self.sum)?),
                    }
                }
                Step::Sending(_) | Step::Complete => return Ok(Poll::Ready(())),
            }
        }
    }
}

impl Module for Eager {
    const BARRIER: bool = false;
    const OPERATIONS: &'static [abi::Operation] = &[
        nonblocking::<Eager>(abi::BCAST),
        nonblocking::<Eager>(abi::SCAN),
        // Gather has no implementation: `begin` passes it to the next component.
        nonblocking::<Eager>(abi::GATHER),
    ];

    fn begin<'c>(&'c self, call: Call<'c>) -> Result<Begun<'c>, String> {
        Ok(match (call.operation(), call.root()) {
            (abi::BCAST, Some(root)) => Begun::Here(Box::new(Spreading::of(&self.0, call, root)?)),
            (abi::SCAN, _) => Begun::Here(Box::new(Scanning::of(&self.0, call)?)),
            _ => Begun::Next,
        })
    }
}

pub struct EagerComponent;

impl Guest for EagerComponent {
    const NAME: &'static CStr = c"eager";
    const VERSION: &'static CStr = c"1.0";
    const PRIORITY: i32 = 95;
    type Module = Eager;

    fn query(comm: Comm) -> Result<Eager, String> {
        Ok(Eager(comm))
    }
}

pub const EAGER: BuiltIn = BuiltIn::of::<EagerComponent>();

pub struct AdderComponent;

impl Guest for AdderComponent {
    const NAME: &'static CStr = c"adder";
    const VERSION: &'static CStr = c"1.0";
    const PRIORITY: i32 = 95;
    type Module = Adder;

    fn query(comm: Comm) -> Result<Adder, String> {
        Ok(Adder(comm))
    }
}

pub const ADDER: BuiltIn = BuiltIn::of::<AdderComponent>();

/// Component that carries out no call itself; on members with an even rank it passes a barrier down late.
pub struct Waverer {
    comm: Comm,
    looks: Cell<u64>,
}

/// Number of tests of a started barrier before the barrier is passed down.
const WAVERING: u64 = 50;

impl Module for Waverer {
    fn enable(&self) -> Result<(), String> {
        Ok(())
    }

    fn barrier(&self) -> Result<Served, String> {
        Ok(Served::Next)
    }

    fn start(&self) -> Result<Started, String> {
        Ok(match self.comm.rank() % 2 {
            0 => Started::Ticket(self.looks.get() + WAVERING),
            _ => Started::Next,
        })
    }

    fn test(&self, ticket: u64) -> Result<Poll<Served>, String> {
        self.looks.set(self.looks.get() + 1);
        Ok(match self.looks.get() < ticket {
            true => Poll::Pending,
            false => Poll::Ready(Served::Next),
        })
    }

    fn disable(&self) {}
}

pub struct WavererComponent;

impl Guest for WavererComponent {
    const NAME: &'static CStr = c"waverer";
    const VERSION: &'static CStr = c"1.0";
    const PRIORITY: i32 = 80;
    type Module = Waverer;

    fn query(comm: Comm) -> Result<Waverer, String> {
        Ok(Waverer {
            comm,
            looks: Cell::new(0),
        })
    }
}

pub const WAVERER: BuiltIn = BuiltIn::of::<WavererComponent>();

/// A component that refuses every communicator.
pub struct Old;

impl Guest for Old {
    const NAME: &'static CStr = c"old";
    const VERSION: &'static CStr = c"1.9";
    const PRIORITY: i32 = 1;
    type Module = Counter;

    fn query(_: Comm) -> Result<Counter, String> {
        Err("it refuses everything".into())
    }
}

pub const OLD: BuiltIn = BuiltIn::of::<Old>();
