//! Counters of each file for `mpirun --io-report`, and the file events of `mpirun --trace`.
//!
//! Each rank counts in its private memory. When a file is closed and when the rank finalizes,
//! the rank writes the counters to its [event ring](mpi_base::node::EventRing).
//! The launcher uses the latest values, because the ring of a trace overwrites its oldest events.
//! In a trace, each system call on a file is a separate event.
//! If the user requests neither a report nor a trace, nothing is counted.

use crate::RunObserver;
use crate::engine::Engine;
use crate::trace::Trace;
use mpi_base::node::{Event, EventKind, EventRing};
use mpi_base::param::{Level, Param};
use mpi_base::state::FileCall;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Parameter `io_base_report`, set by `mpirun --io-report`.
pub static REPORT: Param<bool> = Param::new(
    "io",
    "base",
    "report",
    "false",
    Level::USER,
    "Whether each rank counts its file accesses; set by mpirun --io-report",
);

/// The capacity in events of an event ring that is created only for these counters.
/// It suffices for [`FILES`] files with long names.
const EVENTS: u32 = 1 << 13;

/// The maximum number of files with a record of their own; all further files share one record.
const FILES: usize = 256;

/// The name of the record that all further files share.
const OTHERS: &str = "(other files)";

/// The I/O counters of a file. The discriminant is the index in the record and in the event ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    Opens,
    /// The number of MPI calls that read.
    Reads,
    /// The number of MPI calls that write.
    Writes,
    /// The number of collective accesses, which are also counted in `Reads` and `Writes`.
    Collective,
    /// The number of collective accesses that used aggregation.
    Aggregated,
    BytesRead,
    BytesWritten,
    /// The time in MPI calls, in ns.
    NanosInCalls,
    /// The time in system calls, in ns.
    NanosInSystem,
    SystemReads,
    SystemWrites,
    SystemOther,
    /// The first of [`SIZES`] counters, a histogram of MPI calls by their number of bytes.
    CallSizes,
    /// The first of [`SIZES`] counters, a histogram of system calls by their number of bytes.
    SystemSizes = Counter::CallSizes as usize + SIZES.len(),
}

/// The upper bounds of the histogram columns in bytes; the last column is unbounded.
pub const SIZES: [u64; 6] = [64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, u64::MAX];

/// The number of counters of a file.
pub const COUNTERS: usize = Counter::SystemSizes as usize + SIZES.len();

/// The maximum number of bytes of a file name in one event of the ring.
pub const NAME_PIECE: usize = 24;

fn column(bytes: u64) -> usize {
    let found = SIZES.iter().position(|end| bytes <= *end);
    found.unwrap_or(SIZES.len() - 1)
}

/// The counters of a rank for one file.
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

    /// Counts an MPI call that transferred `bytes` bytes.
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

/// The event ring to which the counters are written.
enum EventSink {
    /// The event ring of a trace, which also receives an event for each system call.
    Traced(Rc<Trace>),
    Own(Rc<EventRing>),
}

/// The file counters of a rank.
pub struct FileLog {
    sink: EventSink,
    files: RefCell<Vec<Rc<FileRecord>>>,
}

struct Wanted(Option<Rc<FileLog>>);

impl FileLog {
    /// Returns the file counters of this process, if a report or a trace is requested.
    pub(super) fn of(engine: &Engine) -> Option<Rc<FileLog>> {
        let wanted = engine.extension(|| Wanted(FileLog::wanted(engine).map(Rc::new)));
        wanted.0.clone()
    }

    fn wanted(engine: &Engine) -> Option<FileLog> {
        let trace = engine
            .observer()
            .and_then(|observer| observer.trace().cloned());
        let matrix = engine.observer().and_then(RunObserver::matrix);
        let ring = matrix.and_then(|matrix| matrix.ring());
        let sink = match trace {
            Some(trace) => EventSink::Traced(trace),
            // An invalid value counts as false, because startup has already reported it.
            None if engine.params().get(&REPORT).unwrap_or(false) => EventSink::Own(match ring {
                Some(ring) => ring.clone(),
                None => Rc::new(engine.node().event_ring(EVENTS)?),
            }),
            None => return None,
        };
        Some(FileLog {
            sink,
            files: RefCell::default(),
        })
    }

    fn event_ring(&self) -> &EventRing {
        match &self.sink {
            EventSink::Traced(trace) => trace.event_ring(),
            EventSink::Own(ring) => ring,
        }
    }

    /// Returns the record of a file name; all opens of the same name share one record.
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

    /// Returns the current time by the event ring's clock.
    pub(super) fn now(&self) -> u64 {
        self.event_ring().now()
    }

    /// Counts a system call that began at time `began` (event ring's clock) and took `nanos` ns.
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
        if let EventSink::Traced(trace) = &self.sink {
            trace.file_call(call as u16, record.number, began, (offset, bytes));
        }
    }

    fn write_name(&self, record: &FileRecord) {
        let ring = self.event_ring();
        for (piece, bytes) in (0..).zip(record.path.as_bytes().chunks(NAME_PIECE)) {
            let word = |word: usize| {
                let byte = |at: usize| bytes.get(word * 8 + at).copied().unwrap_or(0);
                u64::from_le_bytes(std::array::from_fn(byte))
            };
            ring.write(&Event {
                number: record.number,
                tag: piece,
                comm: word(0),
                bytes: word(1),
                extra: word(2),
                ..Event::new(EventKind::FileName, ring.now())
            });
        }
    }

    /// Writes the name and the counters of a file to the event ring.
    pub(super) fn write(&self, record: &FileRecord) {
        self.write_name(record);
        let ring = self.event_ring();
        for first in (0..COUNTERS).step_by(3) {
            let counter = |at: usize| record.counters.get(first + at).map_or(0, Cell::get);
            ring.write(&Event {
                number: record.number,
                tag: first as i32,
                comm: counter(0),
                bytes: counter(1),
                extra: counter(2),
                ..Event::new(EventKind::FileTotals, ring.now())
            });
        }
    }
}

/// Writes the counters of all files to the event ring. The rank calls this when it finalizes.
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
