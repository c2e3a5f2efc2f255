//! What is counted of each file for `mpirun --io-report`, and the file lanes of `mpirun --trace`.
//!
//! The counters of a file live in the rank and are written to its [tape](mpi_base::node::EventRing) when the file is closed and again
//! when the rank finalizes: the launcher takes the latest. A tape of a trace forgets its oldest events, so the last writing decides.
//! In a trace each system call on a file is an event of its own.
//! While neither is wanted nothing is counted.

use crate::engine::Engine;
use crate::trace::Trace;
use mpi_base::node::{Event, EventKind, EventRing};
use mpi_base::param::{Level, Param};
use mpi_base::state::FileCall;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Set by `mpirun --io-report`.
pub static REPORT: Param<bool> = Param::new(
    "io",
    "base",
    "report",
    "false",
    Level::USER,
    "Whether each rank counts its accesses to files for mpirun --io-report",
);

/// Events of a tape that is made for counters alone: enough for [`FILES`] files with long names.
const EVENTS: u32 = 1 << 13;

/// Files beyond this number are counted together.
const FILES: usize = 256;

/// The name under which they are counted.
const OTHERS: &str = "(other files)";

/// What is counted; the numbers are those of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    Opens,
    /// Calls of MPI that read, and that write.
    Reads,
    Writes,
    /// Those of them that are collective, and that were aggregated.
    Collective,
    Aggregated,
    BytesRead,
    BytesWritten,
    /// Nanoseconds in calls of MPI, and in those of the system.
    NanosInCalls,
    NanosInSystem,
    SystemReads,
    SystemWrites,
    SystemOther,
    /// The first of [`SIZES`]: calls of MPI by their bytes.
    CallSizes,
    /// The first of [`SIZES`]: reads and writes of the system by their bytes.
    SystemSizes = Counter::CallSizes as usize + SIZES.len(),
}

/// The upper ends of the histograms' columns, in bytes; the last column has none.
pub const SIZES: [u64; 6] = [64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, u64::MAX];

/// How many counters a file has.
pub const COUNTERS: usize = Counter::SystemSizes as usize + SIZES.len();

/// Bytes of a name in one event of the tape.
pub const NAME_PIECE: usize = 24;

fn column(bytes: u64) -> usize {
    let found = SIZES.iter().position(|end| bytes <= *end);
    found.unwrap_or(SIZES.len() - 1)
}

/// What a rank has counted of a file.
pub struct FileRecord {
    number: u64,
    path: String,
    counters: [Cell<u64>; COUNTERS],
}

impl FileRecord {
    fn add_at(&self, place: usize, amount: u64) {
        if let Some(counter) = self.counters.get(place) {
            counter.set(counter.get().saturating_add(amount));
        }
    }

    pub(super) fn add(&self, counter: Counter, amount: u64) {
        self.add_at(counter as usize, amount);
    }

    /// A call of MPI has moved so many bytes.
    pub(super) fn call(&self, writes: bool, bytes: u64, nanos: u64) {
        let (calls, moved) = match writes {
            true => (Counter::Writes, Counter::BytesWritten),
            false => (Counter::Reads, Counter::BytesRead),
        };
        self.add(calls, 1);
        self.add(moved, bytes);
        self.add(Counter::NanosInCalls, nanos);
        self.add_at(Counter::CallSizes as usize + column(bytes), 1);
    }
}

/// Where events go.
enum Tape {
    /// To the tape of a trace, system calls too.
    Traced(Rc<Trace>),
    Own(EventRing),
}

/// What a rank counts of its files.
pub struct FileLog {
    tape: Tape,
    files: RefCell<Vec<Rc<FileRecord>>>,
}

struct Wanted(Option<Rc<FileLog>>);

impl FileLog {
    /// The log of this process, if one is wanted.
    pub(super) fn of(engine: &Engine) -> Option<Rc<FileLog>> {
        let wanted = engine.extension(|| Wanted(FileLog::wanted(engine).map(Rc::new)));
        wanted.0.clone()
    }

    fn wanted(engine: &Engine) -> Option<FileLog> {
        let trace = engine
            .witness()
            .and_then(|witness| witness.trace().cloned());
        let tape = match trace {
            Some(trace) => Tape::Traced(trace),
            // A value that cannot be read was refused when the process began.
            None if engine.params().get(&REPORT).unwrap_or(false) => {
                Tape::Own(engine.node().tape(EVENTS)?)
            }
            None => return None,
        };
        Some(FileLog {
            tape,
            files: RefCell::default(),
        })
    }

    fn tape(&self) -> &EventRing {
        match &self.tape {
            Tape::Traced(trace) => trace.tape(),
            Tape::Own(tape) => tape,
        }
    }

    /// The record of a file, which is that of its name's earlier openings.
    pub(super) fn record(&self, path: &str) -> Rc<FileRecord> {
        let mut files = self.files.borrow_mut();
        let path = match files.len() < FILES || files.iter().any(|file| file.path == path) {
            true => path,
            false => OTHERS,
        };
        if let Some(known) = files.iter().find(|file| file.path == path) {
            known.add(Counter::Opens, 1);
            return known.clone();
        }
        let record = Rc::new(FileRecord {
            number: files.len() as u64 + 1,
            path: path.to_owned(),
            counters: std::array::from_fn(|_| Cell::new(0)),
        });
        record.add(Counter::Opens, 1);
        self.write_name(&record);
        files.push(record.clone());
        record
    }

    /// What time it is on the tape.
    pub(super) fn now(&self) -> u64 {
        self.tape().now()
    }

    /// A system call has ended that began at a time of the tape.
    pub(super) fn system_call(
        &self,
        record: &FileRecord,
        call: FileCall,
        (began, nanos): (u64, u64),
        (offset, bytes): (u64, u64),
    ) {
        let kind = match call {
            FileCall::Pwrite => Counter::SystemWrites,
            FileCall::Pread => Counter::SystemReads,
            _ => Counter::SystemOther,
        };
        record.add(kind, 1);
        record.add(Counter::NanosInSystem, nanos);
        if kind != Counter::SystemOther {
            record.add_at(Counter::SystemSizes as usize + column(bytes), 1);
        }
        if let Tape::Traced(trace) = &self.tape {
            trace.file_call(call as u16, record.number, began, (offset, bytes));
        }
    }

    fn write_name(&self, record: &FileRecord) {
        let tape = self.tape();
        for (piece, bytes) in (0..).zip(record.path.as_bytes().chunks(NAME_PIECE)) {
            let word = |word: usize| {
                let byte = |at: usize| bytes.get(word * 8 + at).copied().unwrap_or(0);
                u64::from_le_bytes(std::array::from_fn(byte))
            };
            tape.write(&Event {
                number: record.number,
                tag: piece,
                comm: word(0),
                bytes: word(1),
                extra: word(2),
                ..Event::new(EventKind::FileName, tape.now())
            });
        }
    }

    /// Writes a file's name and counters to the tape.
    pub(super) fn write(&self, record: &FileRecord) {
        self.write_name(record);
        let tape = self.tape();
        for first in (0..COUNTERS).step_by(3) {
            let counter = |at: usize| record.counters.get(first + at).map_or(0, Cell::get);
            tape.write(&Event {
                number: record.number,
                tag: first as i32,
                comm: counter(0),
                bytes: counter(1),
                extra: counter(2),
                ..Event::new(EventKind::FileTotals, tape.now())
            });
        }
    }
}

/// Writes the counters of all files to the tape: the rank finalizes.
pub fn finish(engine: &Engine) {
    if let Some(log) = FileLog::of(engine) {
        for record in log.files.borrow().iter() {
            log.write(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_one_column_and_all_sizes_have_one() {
        assert_eq!(column(0), 0);
        assert_eq!(column(64), 0);
        assert_eq!(column(65), 1);
        assert_eq!(column(4 << 20), 4);
        assert_eq!(column(u64::MAX), SIZES.len() - 1);
    }

    #[test]
    fn all_counters_fit_a_whole_number_of_events() {
        assert_eq!(COUNTERS % 3, 0);
        assert_eq!(COUNTERS, 24);
    }
}
