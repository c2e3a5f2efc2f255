//! Data transfer between memory and the runs (contiguous ranges) of a file view, with data sieving.
//!
//! Adjacent runs are merged. Contiguous memory is read and written in place.
//! Other memory is packed through a buffer of `STAGE` bytes.
//! Data sieving: if runs and the gaps between them are short, a read also reads the gaps, as long as
//! that costs less than another system call (`Disk::read_sieve`).
//! A write also writes the gaps with their old contents, which other processes may be changing.
//! So a write sieves only if no other process has the file open or a hint requests sieving.
//! Loops handle short counts, `EINTR` and the kernel's maximum length of one call.
#![allow(unsafe_code)]

use super::disk::Disk;
use super::error::{IoClass, IoError};
use super::view::View;
use crate::datatype::{RecvBuf, Run, SendBuf};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The size in bytes of the buffer through which noncontiguous memory is packed.
const STAGE: i64 = 1 << 20;

/// The program's buffer of a write, from which data are copied.
enum Source<'a> {
    Bytes(&'a [u8]),
    Packed(&'a SendBuf, Vec<u8>),
}

/// The program's buffer of a read, into which data are copied.
enum Sink<'a> {
    Bytes(&'a mut [u8]),
    Unpacked(&'a mut RecvBuf, Vec<u8>),
}

/// Returns the error of a failed system call; `doing` describes the operation.
pub(super) fn failed(doing: &str, errno: Errno) -> IoError {
    let said = std::io::Error::from(errno);
    IoError::new(IoClass::of(errno), format!("{doing} failed: {said}"))
}

pub(super) fn write_all(disk: &Disk, mut data: &[u8], mut at: i64) -> Result<(), IoError> {
    within_limit(at as u64 + data.len() as u64)?;
    while !data.is_empty() {
        match disk.pwrite(data, at as u64) {
            Ok(0) => return Err(failed("pwrite", Errno::IO)),
            Ok(written) => {
                data = &data[written..];
                at += written as i64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed("pwrite", errno)),
        }
    }
    Ok(())
}

/// Returns an error if a file of `bytes` bytes exceeds the user's limit (`ulimit -f`).
/// A write beyond the limit would end the process by SIGXFSZ (setrlimit(2)).
pub(super) fn within_limit(bytes: u64) -> Result<(), IoError> {
    match mpi_base::mem::file_limit() {
        Some(limit) if bytes > limit => {
            let sentence = format!(
                "the file would have {bytes} bytes, and files may have {limit} (ulimit -f)"
            );
            Err(IoError::new(IoClass::of(Errno::FBIG), sentence))
        }
        _ => Ok(()),
    }
}

/// Reads from file offset `at` until `dest` is full or the file ends. Returns the bytes read.
pub(super) fn read_all(disk: &Disk, dest: &mut [u8], at: i64) -> Result<usize, IoError> {
    let mut done = 0;
    while done < dest.len() {
        match disk.pread(&mut dest[done..], at as u64 + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed("pread", errno)),
        }
    }
    Ok(done)
}

impl Source<'_> {
    /// Writes a run of the file from the memory that starts at byte `from` of the buffer.
    fn write(&mut self, disk: &Disk, mut run: Run, mut from: i64) -> Result<(), IoError> {
        match self {
            Source::Bytes(bytes) => {
                let end = (from + run.len) as usize;
                write_all(disk, &bytes[from as usize..end], run.offset)
            }
            Source::Packed(buf, buffer) => {
                while run.len > 0 {
                    let part = run.len.min(STAGE);
                    buffer.resize(part as usize, 0);
                    buf.pack_at(from, buffer);
                    write_all(disk, buffer, run.offset)?;
                    from += part;
                    run = Run::new(run.offset + part, run.len - part);
                }
                Ok(())
            }
        }
    }
}

impl Source<'_> {
    /// Copies bytes of the buffer, from byte `at` on, to `dest`.
    fn copy(&self, dest: &mut [u8], at: i64) {
        match self {
            Source::Bytes(bytes) => {
                dest.copy_from_slice(&bytes[at as usize..at as usize + dest.len()]);
            }
            Source::Packed(buf, _) => {
                buf.pack_at(at, dest);
            }
        }
    }
}

impl Sink<'_> {
    /// Copies file data into the buffer, from byte `at` on.
    fn put(&mut self, data: &[u8], at: i64) {
        match self {
            Sink::Bytes(dest) => dest[at as usize..at as usize + data.len()].copy_from_slice(data),
            Sink::Unpacked(buf, _) => {
                buf.unpack_at(at, data);
            }
        }
    }

    /// Reads a run of the file into the buffer, from byte `at` on. Returns the bytes read.
    fn read(&mut self, disk: &Disk, mut run: Run, mut at: i64) -> Result<i64, IoError> {
        if let Sink::Bytes(dest) = self {
            let dest = &mut dest[at as usize..(at + run.len) as usize];
            return Ok(read_all(disk, dest, run.offset)? as i64);
        }
        let mut done = 0;
        while run.len > 0 {
            let part = run.len.min(STAGE);
            let mut buffer = match self {
                Sink::Unpacked(_, buffer) => std::mem::take(buffer),
                Sink::Bytes(_) => Vec::new(),
            };
            buffer.resize(part as usize, 0);
            let read = read_all(disk, &mut buffer, run.offset)?;
            self.put(&buffer[..read], at);
            if let Sink::Unpacked(_, kept) = self {
                *kept = buffer;
            }
            done += read as i64;
            if (read as i64) < part {
                break;
            }
            at += part;
            run = Run::new(run.offset + part, run.len - part);
        }
        Ok(done)
    }
}

/// Calls `act` with the runs of a view that contain `len` bytes from stream byte `from` on.
/// Adjacent runs are merged. The second argument of `act` is the position in the transfer.
fn merged(
    view: &View,
    from: i64,
    len: i64,
    mut act: impl FnMut(Run, i64) -> Result<bool, IoError>,
) -> Result<(), IoError> {
    let mut open: Option<(Run, i64)> = None;
    let mut outcome = Ok(true);
    let mut at = 0;
    view.runs(from, len, |run| {
        match &mut open {
            Some((last, _)) if last.offset + last.len == run.offset => last.len += run.len,
            _ => {
                if let Some((last, begin)) = open.replace((run, at)) {
                    outcome = act(last, begin);
                }
            }
        }
        at += run.len;
        matches!(outcome, Ok(true))
    });
    match (outcome?, open) {
        (true, Some((last, begin))) => act(last, begin).map(drop),
        _ => Ok(()),
    }
}

/// Writes a buffer to a view, from stream byte `from` on.
/// If `sieve` is given, gaps of limited length between runs are read and written back.
pub(super) fn write(
    disk: &Disk,
    sieve: Option<(i64, i64)>,
    view: &View,
    from: i64,
    buf: &SendBuf,
) -> Result<i64, IoError> {
    let encoded = match view.representation.converts_writes() {
        true => Some(view.representation.encode(buf)?),
        false => None,
    };
    let len = encoded
        .as_ref()
        .map_or(buf.bytes(), |bytes| bytes.len() as i64);
    let mut source = match (&encoded, buf.contiguous()) {
        (Some(bytes), _) => Source::Bytes(bytes),
        (None, Some(bytes)) => Source::Bytes(bytes),
        (None, None) => Source::Packed(buf, Vec::new()),
    };
    let Some(limits) = sieve else {
        merged(view, from, len, |run, at| {
            source.write(disk, run, at)?;
            Ok(true)
        })?;
        return Ok(buf.bytes());
    };
    let mut open: Option<Sieve> = None;
    merged(view, from, len, |run, at| {
        match &mut open {
            Some(sieve) if sieve.takes(run, limits) => sieve.take(run, at),
            _ => {
                if let Some(ready) = open.replace(Sieve::of(run, at)) {
                    write_back(disk, &ready, &mut source)?;
                }
            }
        }
        Ok(true)
    })?;
    if let Some(ready) = open {
        write_back(disk, &ready, &mut source)?;
    }
    Ok(buf.bytes())
}

/// Reads the gaps between the runs of a sieve, and then writes runs and gaps by one system call.
/// A range lock excludes sieving writes of other processes from the same range.
fn write_back(disk: &Disk, sieve: &Sieve, source: &mut Source<'_>) -> Result<(), IoError> {
    if let [(run, at)] = sieve.parts[..] {
        return source.write(disk, run, at);
    }
    let _held = RangeLock::hold(disk, sieve.span, true)?;
    let mut bytes = vec![0; sieve.span.len as usize];
    read_all(disk, &mut bytes, sieve.span.offset)?;
    for (run, at) in &sieve.parts {
        let begin = (run.offset - sieve.span.offset) as usize;
        source.copy(&mut bytes[begin..begin + run.len as usize], *at);
    }
    write_all(disk, &bytes, sieve.span.offset)
}

/// Runs with short gaps between them, which one system call reads or writes.
struct Sieve {
    span: Run,
    parts: Vec<(Run, i64)>,
    wanted: i64,
}

impl Sieve {
    /// Returns true if the sieve can include a run: it follows the last one, the gap is short,
    /// and the span does not exceed the maximum.
    fn takes(&self, run: Run, (gap, most): (i64, i64)) -> bool {
        let between = run.offset - self.span.offset - self.span.len;
        let span = run.offset + run.len - self.span.offset;
        between >= 0 && between <= gap && span <= most
    }

    fn of(run: Run, at: i64) -> Sieve {
        Sieve {
            span: run,
            parts: vec![(run, at)],
            wanted: run.len,
        }
    }

    fn take(&mut self, run: Run, at: i64) {
        self.span.len = run.offset + run.len - self.span.offset;
        self.parts.push((run, at));
        self.wanted += run.len;
    }
}

/// Reads from a view into a buffer, from stream byte `from` on.
/// Returns the number of bytes of the buffer that were filled.
pub(super) fn read(disk: &Disk, view: &View, from: i64, buf: &mut RecvBuf) -> Result<i64, IoError> {
    if view.representation.converts_reads() {
        let file = view
            .representation
            .file_bytes(buf.datatype(), buf.count())?;
        let mut bytes = vec![0; file as usize];
        let mut sink = Sink::Bytes(&mut bytes);
        let read = read_to(disk, view, from, file, &mut sink)?;
        view.representation
            .decode(buf, &mut bytes[..read as usize])?;
        let each = view.representation.file_bytes(buf.datatype(), 1)?.max(1);
        return Ok(read / each * buf.datatype().size());
    }
    let len = buf.bytes();
    let mut twin = buf.clone();
    let mut sink = match buf.contiguous() {
        Some(dest) => Sink::Bytes(dest),
        None => Sink::Unpacked(&mut twin, Vec::new()),
    };
    read_to(disk, view, from, len, &mut sink)
}

fn read_to(
    disk: &Disk,
    view: &View,
    from: i64,
    len: i64,
    sink: &mut Sink<'_>,
) -> Result<i64, IoError> {
    let mut done = 0;
    let limits = disk.read_sieve();
    let mut sieve: Option<Sieve> = None;
    let mut whole = true;
    merged(view, from, len, |run, at| {
        if let Some(open) = &mut sieve
            && open.takes(run, limits)
        {
            open.take(run, at);
            return Ok(true);
        }
        if let Some(ready) = sieve.replace(Sieve::of(run, at)) {
            let read = fetch(disk, &ready, sink)?;
            done += read;
            whole = read == ready.wanted;
        }
        Ok(whole)
    })?;
    if let (true, Some(ready)) = (whole, sieve) {
        done += fetch(disk, &ready, sink)?;
    }
    Ok(done)
}

/// Reads the runs of a sieve and the gaps between them by one system call.
/// Returns the number of bytes read in the runs, without the gaps.
fn fetch(disk: &Disk, sieve: &Sieve, sink: &mut Sink<'_>) -> Result<i64, IoError> {
    if let [(run, at)] = sieve.parts[..] {
        return sink.read(disk, run, at);
    }
    let mut bytes = vec![0; sieve.span.len as usize];
    let read = read_all(disk, &mut bytes, sieve.span.offset)? as i64;
    let mut done = 0;
    for (run, at) in &sieve.parts {
        let begin = run.offset - sieve.span.offset;
        let len = (read - begin).clamp(0, run.len);
        sink.put(&bytes[begin as usize..(begin + len) as usize], *at);
        done += len;
        if len < run.len {
            break;
        }
    }
    Ok(done)
}

/// A lock of a file range against other processes, for an access in atomic mode or a sieving write.
pub(super) struct RangeLock<'f> {
    disk: &'f Disk,
    range: (i64, i64),
}

fn lock(fd: BorrowedFd<'_>, kind: i32, (from, end): (i64, i64)) -> Result<(), Errno> {
    // SAFETY: every bit pattern is a valid `flock`.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = from;
    range.l_len = end - from;
    loop {
        // SAFETY: the descriptor is open while it is borrowed, and the command only reads `range`.
        let done = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLKW, &range) };
        match done {
            -1 => match Errno::from_io_error(&std::io::Error::last_os_error()) {
                Some(Errno::INTR) => {}
                Some(errno) => return Err(errno),
                None => return Err(Errno::IO),
            },
            _ => return Ok(()),
        }
    }
}

impl<'f> RangeLock<'f> {
    /// Locks the file range of an access that has `len` bytes from stream byte `from` on.
    pub fn take(
        disk: &'f Disk,
        view: &View,
        from: i64,
        len: i64,
        writes: bool,
    ) -> Result<Option<RangeLock<'f>>, IoError> {
        if len <= 0 {
            return Ok(None);
        }
        let (begin, end) = (view.byte_offset(from), view.byte_offset(from + len - 1) + 1);
        RangeLock::hold(disk, Run::new(begin, end - begin), writes).map(Some)
    }

    /// Locks a run of the file.
    fn hold(disk: &'f Disk, run: Run, writes: bool) -> Result<RangeLock<'f>, IoError> {
        let range = (run.offset, run.offset + run.len);
        let kind = if writes { libc::F_WRLCK } else { libc::F_RDLCK };
        disk.lock(range.0, range.1 - range.0, |fd| lock(fd, kind, range))
            .map_err(|errno| failed("locking a range", errno))?;
        Ok(RangeLock { disk, range })
    }
}

impl Drop for RangeLock<'_> {
    fn drop(&mut self) {
        // If unlocking fails, the kernel releases the lock with the open file description.
        let (from, end) = self.range;
        let _ = self
            .disk
            .lock(from, end - from, |fd| lock(fd, libc::F_UNLCK, self.range));
    }
}
