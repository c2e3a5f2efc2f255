//! An open file descriptor: its system calls, each published on the state page and counted.
//!
//! While a system call runs, the rank's state page names the call and the file,
//! so that a hang report can name them.
//! If the user requests an I/O report, the calls are counted ([`super::report`]).

use super::hints::{Costs, Style, Switch, Tuning};
use super::report::{FileLog, FileRecord};
use crate::engine::Engine;
use mpi_base::clock::now_ns;
use mpi_base::state::{FILE_NAME_WORDS, FileCall, file_name_words};
use rustix::io::Errno;
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// An open file descriptor with the file's hints and counters.
pub struct Disk {
    fd: OwnedFd,
    engine: Engine,
    name: [u64; FILE_NAME_WORDS],
    tuning: Cell<Tuning>,
    costs: Costs,
    counted: Option<(Rc<FileLog>, Rc<FileRecord>)>,
    /// Numbers of bytes that system calls of this process have read (first) and written (second).
    moved: [Cell<u64>; 2],
}

/// Runs `act`, a system call with a file name, and publishes it on the state page until it returns.
pub(super) fn on_page<T>(
    engine: &Engine,
    call: FileCall,
    path: &str,
    act: impl FnOnce() -> T,
) -> T {
    engine
        .state()
        .enters_file_call(call, now_ns(), &file_name_words(path));
    let done = act();
    engine.state().leaves_file_call();
    done
}

impl Disk {
    pub(super) fn new(fd: OwnedFd, engine: &Engine, path: &str, tuning: Tuning) -> Disk {
        // An unknown file system is treated as a local disk.
        let magic = rustix::fs::fstatfs(&fd).map_or(0, |stat| stat.f_type);
        let disk = Disk {
            fd,
            tuning: Cell::new(tuning),
            costs: Costs::of(magic),
            engine: engine.clone(),
            name: file_name_words(path),
            counted: FileLog::of(engine).map(|log| {
                let record = log.record(path);
                (log, record)
            }),
            moved: [Cell::new(0), Cell::new(0)],
        };
        disk.advise();
        disk
    }

    pub(super) fn tuning(&self) -> Tuning {
        self.tuning.get()
    }

    pub(super) fn set_tuning(&self, tuning: Tuning) {
        self.tuning.set(tuning);
        self.advise();
    }

    /// Advises the kernel on the order of accesses that the hint `access_style` announces.
    fn advise(&self) {
        let advice = match self.tuning.get().styles.order() {
            Style::Unknown => return,
            Style::Sequential => rustix::fs::Advice::Sequential,
            Style::Random => rustix::fs::Advice::Random,
        };
        // The advice affects only the speed, so a failure is ignored.
        let _ = rustix::fs::fadvise(&self.fd, 0, None, advice);
    }

    /// Returns the limits of a sieving read in bytes: maximum gap between runs, and maximum span.
    /// Reading a gap of this length costs less than another system call.
    pub(super) fn read_sieve(&self) -> (i64, i64) {
        let tuning = self.tuning.get();
        let gap = match tuning.ds_read {
            Switch::Automatic => self.costs.read_gap,
            Switch::Enable => tuning.ind_rd_buffer_size,
            Switch::Disable => -1,
        };
        (gap, tuning.ind_rd_buffer_size)
    }

    /// Returns the limits of a sieving write, as [`Disk::read_sieve`]; `None` if writes must not sieve.
    /// `alone` is true if no other process has the file open.
    pub(super) fn write_sieve(&self, alone: bool) -> Option<(i64, i64)> {
        let tuning = self.tuning.get();
        match (tuning.ds_write, alone) {
            (Switch::Automatic, true) => Some((self.costs.write_gap, tuning.ind_wr_buffer_size)),
            (Switch::Enable, _) => Some((tuning.ind_wr_buffer_size, tuning.ind_wr_buffer_size)),
            _ => None,
        }
    }

    /// Adds bytes that a system call has written (`writes`) or read.
    pub(super) fn moves(&self, writes: bool, bytes: u64) {
        let [read, written] = &self.moved;
        let moved = if writes { written } else { read };
        moved.set(moved.get().wrapping_add(bytes));
    }

    /// Returns the numbers of bytes that this process's system calls have read and written.
    pub(super) fn moved(&self) -> (u64, u64) {
        let [read, written] = &self.moved;
        (read.get(), written.get())
    }

    /// Returns the counters of the file if the user requests a report or a trace.
    pub(super) fn record(&self) -> Option<&FileRecord> {
        self.counted.as_ref().map(|(_, record)| &**record)
    }

    /// Runs a system call on `bytes` bytes of the file at `offset`; publishes and counts the call.
    fn call<T>(
        &self,
        call: FileCall,
        (offset, bytes): (u64, u64),
        act: impl FnOnce(BorrowedFd<'_>) -> T,
    ) -> T {
        let began = self.counted.as_ref().map(|(log, _)| log.now());
        let begin = now_ns();
        let page = self.engine.state();
        page.enters_file_call(call, begin, &self.name);
        let done = act(self.fd.as_fd());
        page.leaves_file_call();
        if let (Some((log, record)), Some(began)) = (&self.counted, began) {
            let took = now_ns().saturating_sub(begin);
            log.system_call(record, call, (began, took), (offset, bytes));
        }
        done
    }

    pub(super) fn pwrite(&self, data: &[u8], at: u64) -> Result<usize, Errno> {
        self.call(FileCall::Pwrite, (at, data.len() as u64), |fd| {
            rustix::io::pwrite(fd, data, at)
        })
    }

    pub(super) fn pread(&self, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
        self.call(FileCall::Pread, (at, buffer.len() as u64), |fd| {
            rustix::io::pread(fd, buffer, at)
        })
    }

    /// Reads data that are in the page cache; returns an error if reading would wait for the disk.
    pub(super) fn pread_cached(&self, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
        self.call(FileCall::Pread, (at, buffer.len() as u64), |fd| {
            let mut buffer = [std::io::IoSliceMut::new(buffer)];
            rustix::io::preadv2(fd, &mut buffer, at, rustix::io::ReadWriteFlags::NOWAIT)
        })
    }

    /// Runs `wait`, a wait for an asynchronous read; until it returns, the state page shows a `pread`.
    pub(super) fn waits_for_piece<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.engine
            .state()
            .enters_file_call(FileCall::Pread, now_ns(), &self.name);
        let done = wait();
        self.engine.state().leaves_file_call();
        done
    }

    /// Counts a completed asynchronous read.
    pub(super) fn count_piece(&self, offset: u64, bytes: usize) {
        if let Some((log, record)) = &self.counted {
            let about = (offset, bytes as u64);
            log.system_call(record, FileCall::Pread, (log.now(), 0), about);
        }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn fsync(&self) -> Result<(), Errno> {
        self.call(FileCall::Fsync, (0, 0), |fd| rustix::fs::fsync(fd))
    }

    pub(super) fn ftruncate(&self, bytes: u64) -> Result<(), Errno> {
        self.call(FileCall::Ftruncate, (0, bytes), |fd| {
            rustix::fs::ftruncate(fd, bytes)
        })
    }

    pub(super) fn fallocate(&self, bytes: u64) -> Result<(), Errno> {
        let none = rustix::fs::FallocateFlags::empty();
        self.call(FileCall::Fallocate, (0, bytes), |fd| {
            rustix::fs::fallocate(fd, none, 0, bytes)
        })
    }

    /// Locks or unlocks a range of the file; waits while another process holds a conflicting lock.
    pub(super) fn lock(
        &self,
        from: i64,
        len: i64,
        act: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.call(FileCall::Lock, (from as u64, len as u64), act)
    }

    /// Returns the file's size in bytes.
    pub(super) fn len(&self) -> Result<i64, Errno> {
        rustix::fs::fstat(&self.fd).map(|stat| stat.st_size)
    }

    /// Writes the file's counters to the event ring.
    pub(super) fn write_record(&self) {
        if let Some((log, record)) = &self.counted {
            log.write(record);
        }
    }
}
