//! A file that the members of a communicator have opened together (MPI 5.0, sections 14.2 and 14.4).
//!
//! Protocol of collective calls: each member does its part, then all share a word that says how that went ([`File::agree`]);
//! the call ends with the class of the first member that failed. Where one member has to be first (it creates the file, or changes
//! its size), that is rank 0, and the others go on when they have its word.

use super::access::{self, RangeLock};
use super::conversion::Representation;
use super::error::{IoClass, IoError};
use super::shared::SharedPointer;
use super::two_phase::{self, Plan};
use super::view::View;
use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Datatype, RecvBuf, SendBuf};
use crate::group::Group;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, OwnedFd};

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amode {
    pub append: bool,
    pub create: bool,
    pub delete_on_close: bool,
    pub exclusive: bool,
    pub read_only: bool,
    pub read_write: bool,
    pub sequential: bool,
    pub unique_open: bool,
    pub write_only: bool,
}

impl Amode {
    fn check(self) -> Result<(), IoError> {
        let wrong = |sentence: &str| Err(IoError::new(IoClass::Amode, sentence));
        let accesses = [self.read_only, self.read_write, self.write_only];
        if accesses.iter().filter(|access| **access).count() != 1 {
            return wrong(
                "amode needs exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY",
            );
        }
        if self.read_only && (self.create || self.exclusive) {
            return wrong("amode has MPI_MODE_RDONLY with MPI_MODE_CREATE or MPI_MODE_EXCL");
        }
        if self.sequential && self.read_write {
            return wrong("amode has MPI_MODE_SEQUENTIAL with MPI_MODE_RDWR");
        }
        Ok(())
    }

    fn reads(self) -> bool {
        !self.write_only
    }

    fn writes(self) -> bool {
        !self.read_only
    }

    fn flags(self, creates: bool) -> OFlags {
        let access = match (self.read_only, self.write_only) {
            (true, _) => OFlags::RDONLY,
            // Atomic mode locks ranges for reading too.
            (_, true) => OFlags::WRONLY,
            _ => OFlags::RDWR,
        };
        let mut flags = access | OFlags::CLOEXEC;
        if creates && self.create {
            flags |= OFlags::CREATE;
            if self.exclusive {
                flags |= OFlags::EXCL;
            }
        }
        flags
    }

    fn bits(self) -> u64 {
        let all = [
            self.append,
            self.create,
            self.delete_on_close,
            self.exclusive,
            self.read_only,
            self.read_write,
            self.sequential,
            self.unique_open,
            self.write_only,
        ];
        all.iter().fold(0, |bits, bit| bits << 1 | u64::from(*bit))
    }
}

/// Where a seek counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    Set,
    Current,
    End,
}

/// Which pointer an access uses and moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An explicit offset in etypes.
    At(i64),
    Individual,
    Shared,
}

/// A split collective that has begun: what it is, and how many bytes it has moved.
struct Split {
    call: &'static str,
    bytes: i64,
}

pub struct File {
    comm: Comm,
    path: String,
    amode: Amode,
    fd: OwnedFd,
    view: RefCell<View>,
    /// The individual pointer, in etypes.
    position: Cell<i64>,
    shared: SharedPointer,
    atomic: Cell<bool>,
    split: RefCell<Option<Split>>,
}

fn system(doing: &str, errno: Errno) -> IoError {
    let said = std::io::Error::from(errno);
    IoError::new(IoClass::of(errno), format!("{doing}: {said}"))
}

fn open(path: &str, flags: OFlags, mode: u32) -> Result<OwnedFd, IoError> {
    loop {
        match rustix::fs::open(path, flags, Mode::from_raw_mode(mode)) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(system("it cannot be opened", errno)),
            Ok(fd) => {
                // A folder can be opened for reading, but is no file.
                let stat = rustix::fs::fstat(&fd).map_err(|errno| system("fstat", errno))?;
                return match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
                    rustix::fs::FileType::Directory => {
                        Err(system("it cannot be opened", Errno::ISDIR))
                    }
                    _ => Ok(fd),
                };
            }
        }
    }
}

/// Takes a name out of the file system.
pub fn delete(path: &str) -> Result<(), IoError> {
    rustix::fs::unlinkat(CWD, path, AtFlags::empty())
        .map_err(|errno| system(&format!("the file {path} cannot be deleted"), errno))
}

/// The outcome of all members' parts: the class of the first that failed, with each member's own sentence if it has one.
fn agree<T>(comm: &Comm, path: &str, outcome: Result<T, IoError>) -> Result<T, Error> {
    let mine = outcome
        .as_ref()
        .err()
        .map_or(0, |error| error.class.number());
    let all = comm.engine().block_on(comm.share(&[mine]))?;
    let Some((rank, class)) = all.iter().enumerate().find(|(_, class)| **class != 0) else {
        return outcome.map_err(Error::from);
    };
    let class = IoClass::from_number(*class);
    let sentence = match outcome {
        Err(error) => format!("rank {} on file {path}: {error}", comm.rank()),
        Ok(_) => format!("on file {path} it failed at rank {rank}, so it ends here too"),
    };
    Err(IoError::new(class, sentence).into())
}

impl File {
    /// `MPI_File_open`; every member calls. A file is created with `permissions`, less what the process's mask takes away.
    pub fn open(comm: &Comm, path: &str, amode: Amode, permissions: u32) -> Result<File, Error> {
        let own = comm.engine().block_on(comm.dup())?;
        agree(&own, path, amode.check())?;
        let modes = own.engine().block_on(own.share(&[amode.bits()]))?;
        if let Some(rank) = modes.iter().position(|bits| *bits != modes[0]) {
            let sentence = format!("on file {path} rank {rank} gives another amode than rank 0");
            return Err(IoError::new(IoClass::NotSame, sentence).into());
        }
        // One creates the file; the others find it.
        let first = match own.rank() {
            0 => open(path, amode.flags(true), permissions).map(Some),
            _ => Ok(None),
        };
        let first = agree(&own, path, first)?;
        let opened = match first {
            Some(fd) => Ok(fd),
            None => open(path, amode.flags(false), permissions),
        };
        let fd = agree(&own, path, opened)?;
        let shared = SharedPointer::new(&own)?;
        let file = File {
            comm: own,
            path: path.to_owned(),
            amode,
            fd,
            view: RefCell::new(View::of_bytes()),
            position: Cell::new(0),
            shared,
            atomic: Cell::new(false),
            split: RefCell::default(),
        };
        if amode.append {
            let end = file.agree(file.size())?;
            file.position.set(end);
            if file.comm.rank() == 0 {
                file.shared.set(end)?;
            }
            file.meet()?;
        }
        Ok(file)
    }

    /// `MPI_File_close`; every member calls.
    pub fn close(&self) -> Result<(), Error> {
        let open = match &*self.split.borrow() {
            None => Ok(()),
            Some(split) => Err(IoError::new(
                IoClass::FileInUse,
                format!("{} has begun and has not ended", split.call),
            )),
        };
        self.agree(open)?;
        self.shared.free()?;
        if self.amode.delete_on_close {
            // All have done what they wanted to do with it.
            let deleted = match self.comm.rank() {
                0 => delete(&self.path),
                _ => Ok(()),
            };
            self.agree(deleted)?;
        }
        Ok(())
    }

    fn agree<T>(&self, outcome: Result<T, IoError>) -> Result<T, Error> {
        agree(&self.comm, &self.path, outcome)
    }

    /// Adds what file and rank it is about.
    fn told<T>(&self, outcome: Result<T, IoError>) -> Result<T, Error> {
        outcome.map_err(|error| {
            let rank = self.comm.rank();
            let sentence = format!("rank {rank} on file {}: {error}", self.path);
            IoError::new(error.class, sentence).into()
        })
    }

    fn meet(&self) -> Result<(), Error> {
        self.comm.engine().block_on(self.comm.fence())
    }

    /// How error texts call it.
    pub fn label(&self) -> String {
        format!("file {}", self.path)
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn amode(&self) -> Amode {
        self.amode
    }

    pub fn group(&self) -> Group {
        self.comm.group().clone()
    }

    pub fn view(&self) -> View {
        self.view.borrow().clone()
    }

    fn size(&self) -> Result<i64, IoError> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|errno| system("fstat", errno))?;
        Ok(stat.st_size)
    }

    /// `MPI_File_get_size`.
    pub fn bytes(&self) -> Result<i64, Error> {
        self.told(self.size())
    }

    /// A collective call to which all give the same number.
    fn same(&self, name: &str, value: i64) -> Result<(), Error> {
        let all = self
            .comm
            .engine()
            .block_on(self.comm.share(&[value as u64]))?;
        match all.iter().position(|other| *other != all[0]) {
            None => Ok(()),
            Some(rank) => {
                let (there, here) = (all[rank] as i64, all[0] as i64);
                let sentence = format!(
                    "on file {} {name} is {there} at rank {rank} and {here} at rank 0",
                    self.path
                );
                Err(IoError::new(IoClass::NotSame, sentence).into())
            }
        }
    }

    /// `MPI_File_set_size`; every member calls.
    pub fn set_bytes(&self, bytes: i64) -> Result<(), Error> {
        self.same("size", bytes)?;
        let done = self
            .may_resize(bytes)
            .and_then(|()| match self.comm.rank() {
                0 => rustix::fs::ftruncate(&self.fd, bytes as u64)
                    .map_err(|errno| system("ftruncate", errno)),
                _ => Ok(()),
            });
        self.agree(done)
    }

    fn may_resize(&self, bytes: i64) -> Result<(), IoError> {
        if bytes < 0 {
            let sentence = format!("size is {bytes}, which is negative");
            return Err(IoError::new(IoClass::Arg, sentence));
        }
        self.random_access()?;
        access::within_limit(bytes as u64)?;
        match self.amode.writes() {
            true => Ok(()),
            false => Err(IoError::new(
                IoClass::ReadOnly,
                "it is open for reading only",
            )),
        }
    }

    /// `MPI_File_preallocate`; every member calls.
    pub fn preallocate(&self, bytes: i64) -> Result<(), Error> {
        self.same("size", bytes)?;
        let done = self
            .may_resize(bytes)
            .and_then(|()| match self.comm.rank() {
                0 if bytes > 0 => self.allocate(bytes),
                _ => Ok(()),
            });
        self.agree(done)
    }

    fn allocate(&self, bytes: i64) -> Result<(), IoError> {
        match rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), 0, bytes as u64) {
            // Where room cannot be set aside the size at least is as it should be.
            Err(Errno::NOSYS | Errno::OPNOTSUPP) if self.size()? < bytes => {
                rustix::fs::ftruncate(&self.fd, bytes as u64)
                    .map_err(|errno| system("ftruncate", errno))
            }
            Err(Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
            done => done.map_err(|errno| system("fallocate", errno)),
        }
    }

    /// `MPI_File_sync`; every member calls.
    pub fn sync(&self) -> Result<(), Error> {
        let done = match rustix::fs::fsync(&self.fd) {
            // What cannot be synchronised has nothing to be.
            Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
            Err(errno) => Err(system("fsync", errno)),
        };
        self.agree(done)
    }

    pub fn is_atomic(&self) -> bool {
        self.atomic.get()
    }

    /// `MPI_File_set_atomicity`; every member calls.
    pub fn set_atomic(&self, atomic: bool) -> Result<(), Error> {
        self.same("flag", atomic.into())?;
        self.atomic.set(atomic);
        Ok(())
    }

    /// `MPI_File_set_view`; every member calls. Without a displacement it is where the shared pointer is.
    pub fn set_view(
        &self,
        disp: Option<i64>,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Result<Representation, IoError>,
    ) -> Result<(), Error> {
        let disp = match disp {
            Some(disp) if self.amode.sequential => {
                let sentence = format!(
                    "disp is {disp}, but a file of MPI_MODE_SEQUENTIAL takes MPI_DISPLACEMENT_CURRENT only"
                );
                Err(IoError::new(IoClass::Arg, sentence))
            }
            Some(disp) => Ok(disp),
            None if self.amode.sequential => {
                let at = self.shared.get()?;
                let view = self.view.borrow();
                Ok(view.byte_offset(at * view.etype_bytes()))
            }
            None => Err(IoError::new(
                IoClass::Arg,
                "MPI_DISPLACEMENT_CURRENT needs MPI_MODE_SEQUENTIAL",
            )),
        };
        let name = representation.as_ref().map_or(0, |rep| {
            let bytes = rep.name().bytes();
            bytes.fold(1u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte))
        });
        let view = disp.and_then(|disp| {
            View::new(disp, etype, filetype, representation?, self.amode.writes())
        });
        let view = self.agree(view)?;
        self.same("the extent of etype", etype.extent())?;
        self.same("the sum over datarep's letters", name as i64)?;
        *self.view.borrow_mut() = view;
        self.position.set(0);
        if self.comm.rank() == 0 {
            self.shared.set(0)?;
        }
        self.meet()
    }

    fn random_access(&self) -> Result<(), IoError> {
        match self.amode.sequential {
            false => Ok(()),
            true => Err(IoError::new(
                IoClass::UnsupportedOperation,
                "a file of MPI_MODE_SEQUENTIAL is read and written at its shared pointer only",
            )),
        }
    }

    fn sought(&self, now: i64, offset: i64, whence: Whence) -> Result<i64, IoError> {
        let base = match whence {
            Whence::Set => 0,
            Whence::Current => now,
            Whence::End => {
                let view = self.view.borrow();
                view.stream_bytes(self.size()?) / view.etype_bytes().max(1)
            }
        };
        match base.checked_add(offset) {
            Some(at) if at >= 0 => Ok(at),
            _ => {
                let sentence =
                    format!("offset is {offset}, which leads to before the view's beginning");
                Err(IoError::new(IoClass::Arg, sentence))
            }
        }
    }

    /// `MPI_File_seek`.
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        let at = self.random_access();
        let at = at.and_then(|()| self.sought(self.position.get(), offset, whence));
        self.position.set(self.told(at)?);
        Ok(())
    }

    /// `MPI_File_get_position`.
    pub fn position(&self) -> Result<i64, Error> {
        self.told(self.random_access())?;
        Ok(self.position.get())
    }

    /// `MPI_File_seek_shared`; every member calls.
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        self.same("offset", offset)?;
        self.same("whence", whence as i64)?;
        let at = match self.comm.rank() {
            0 => {
                let now = self.shared.get()?;
                self.sought(now, offset, whence).map(Some)
            }
            _ => Ok(None),
        };
        if let Some(at) = self.agree(at)? {
            self.shared.set(at)?;
        }
        self.meet()
    }

    /// `MPI_File_get_position_shared`.
    pub fn position_shared(&self) -> Result<i64, Error> {
        self.shared.get()
    }

    /// `MPI_File_get_byte_offset`.
    pub fn byte_offset(&self, offset: i64) -> Result<i64, Error> {
        let view = self.view.borrow();
        let found = self.random_access().and_then(|()| {
            let at = offset.checked_mul(view.etype_bytes()).filter(|at| *at >= 0);
            let sentence = || format!("offset is {offset}, which no file has");
            at.map(|at| view.byte_offset(at))
                .ok_or_else(|| IoError::new(IoClass::Arg, sentence()))
        });
        self.told(found)
    }

    /// `MPI_File_get_type_extent`.
    pub fn type_extent(&self, datatype: &Datatype) -> Result<i64, Error> {
        let view = self.view.borrow();
        let extent = match &view.representation {
            Representation::Native | Representation::Internal => Ok(datatype.extent()),
            other => other.file_bytes(datatype, 1),
        };
        self.told(extent)
    }

    /// How many etypes a buffer is.
    fn etypes(&self, datatype: &Datatype, bytes: i64) -> Result<i64, IoError> {
        let size = self.view.borrow().etype.size().max(1);
        match bytes % size {
            0 => Ok(bytes / size),
            _ => {
                let sentence = format!(
                    "the buffer has {bytes} bytes of {datatype}, which is no multiple of the {size} of the view's etype"
                );
                Err(IoError::new(IoClass::Arg, sentence))
            }
        }
    }

    /// Takes the place of an access of so many etypes, and moves the pointer behind it.
    fn begin(&self, place: Place, etypes: i64) -> Result<Result<i64, IoError>, Error> {
        Ok(match place {
            Place::Shared => Ok(self.shared.add(etypes)?),
            Place::At(offset) if offset < 0 => {
                let sentence = format!("offset is {offset}, which is negative");
                Err(IoError::new(IoClass::Arg, sentence))
            }
            Place::At(offset) => self.random_access().map(|()| offset),
            Place::Individual => self.random_access().map(|()| {
                let at = self.position.get();
                self.position.set(at.saturating_add(etypes));
                at
            }),
        })
    }

    fn stream_place(&self, at: i64) -> Result<i64, IoError> {
        let each = self.view.borrow().etype_bytes();
        at.checked_mul(each)
            .ok_or_else(|| IoError::new(IoClass::Arg, format!("offset {at} is too far")))
    }

    fn may_read(&self) -> Result<(), IoError> {
        match self.amode.reads() {
            true => Ok(()),
            false => Err(IoError::new(IoClass::Access, "it is open for writing only")),
        }
    }

    fn may_write(&self) -> Result<(), IoError> {
        match self.amode.writes() {
            true => Ok(()),
            false => Err(IoError::new(
                IoClass::ReadOnly,
                "it is open for reading only",
            )),
        }
    }

    /// Reads from byte `from` of the stream on.
    fn read_from(&self, from: i64, buf: &mut RecvBuf) -> Result<i64, IoError> {
        let view = self.view.borrow();
        let _held = match self.atomic.get() {
            true => RangeLock::take(self.fd.as_fd(), &view, from, buf.bytes(), false)?,
            false => None,
        };
        access::read(&self.fd, &view, from, buf)
    }

    /// Writes from byte `from` of the stream on.
    fn write_from(&self, from: i64, buf: &SendBuf) -> Result<i64, IoError> {
        let view = self.view.borrow();
        let _held = match self.atomic.get() {
            true => RangeLock::take(self.fd.as_fd(), &view, from, buf.bytes(), true)?,
            false => None,
        };
        access::write(&self.fd, &view, from, buf)
    }

    /// A read by this process alone; the bytes of the buffer that were filled.
    pub fn read(&self, place: Place, buf: &mut RecvBuf) -> Result<i64, Error> {
        let about = (&buf.datatype().clone(), buf.bytes());
        let from = self.part(place, self.may_read(), about)?;
        self.told(from.and_then(|from| self.read_from(from, buf)))
    }

    /// A write by this process alone; the bytes of the buffer that were written.
    pub fn write(&self, place: Place, buf: &SendBuf) -> Result<i64, Error> {
        let from = self.part(place, self.may_write(), (buf.datatype(), buf.bytes()))?;
        self.told(from.and_then(|from| self.write_from(from, buf)))
    }

    /// Where a member's part of a collective access begins in the stream, if it can be done at all.
    fn part(
        &self,
        place: Place,
        may: Result<(), IoError>,
        (datatype, bytes): (&Datatype, i64),
    ) -> Result<Result<i64, IoError>, Error> {
        let etypes = match may.and_then(|()| self.etypes(datatype, bytes)) {
            Ok(etypes) => etypes,
            Err(error) => return Ok(Err(error)),
        };
        let at = self.begin(place, etypes)?;
        Ok(at.and_then(|at| self.stream_place(at)))
    }

    /// How the members go about it together, if not each for itself.
    fn plan(
        &self,
        view: &View,
        from: &Result<i64, IoError>,
        bytes: i64,
        converts: bool,
    ) -> Result<Option<Plan>, Error> {
        // Alone, converting or atomic: what the first two say is the same at all members, and the last too.
        if self.comm.size() == 1 || converts || self.atomic.get() {
            return Ok(None);
        }
        let (from, bytes) = match from {
            Ok(from) => (*from, bytes),
            Err(_) => (0, 0),
        };
        Plan::agree(&self.comm, view, from, bytes)
    }

    /// A read to which every member comes.
    pub fn read_all(&self, place: Place, buf: &mut RecvBuf) -> Result<i64, Error> {
        let view = self.view();
        let about = (&buf.datatype().clone(), buf.bytes());
        let from = self.part(place, self.may_read(), about)?;
        let converts = view.representation.converts_reads();
        let outcome = match self.plan(&view, &from, buf.bytes(), converts)? {
            None => from.and_then(|from| self.read_from(from, buf)),
            Some(plan) => {
                let mut none = RecvBuf::empty();
                let (at, part) = match &from {
                    Ok(from) => (*from, buf),
                    Err(_) => (0, &mut none),
                };
                let read = two_phase::read(&self.comm, &plan, self.fd.as_fd(), (&view, at), part)?;
                from.and(read)
            }
        };
        self.agree(outcome)
    }

    /// A write to which every member comes.
    pub fn write_all(&self, place: Place, buf: &SendBuf) -> Result<i64, Error> {
        let view = self.view();
        let from = self.part(place, self.may_write(), (buf.datatype(), buf.bytes()))?;
        let converts = view.representation.converts_writes();
        let outcome = match self.plan(&view, &from, buf.bytes(), converts)? {
            None => from.and_then(|from| self.write_from(from, buf)),
            Some(plan) => {
                let none = SendBuf::empty();
                let (at, part) = match &from {
                    Ok(from) => (*from, buf),
                    Err(_) => (0, &none),
                };
                let written =
                    two_phase::write(&self.comm, &plan, self.fd.as_fd(), (&view, at), part)?;
                from.and(written)
            }
        };
        self.agree(outcome)
    }

    /// Where this member's part of an ordered access begins: the members' parts follow each other in the order of their ranks.
    fn in_order(&self, etypes: Result<i64, IoError>) -> Result<i64, Error> {
        let etypes = self.agree(etypes)?;
        let all = self
            .comm
            .engine()
            .block_on(self.comm.share(&[etypes as u64]))?;
        let before: u64 = all[..self.comm.rank() as usize].iter().sum();
        let total: u64 = all.iter().sum();
        let base = match self.comm.rank() {
            0 => self.shared.add(total as i64)?,
            _ => 0,
        };
        let bases = self
            .comm
            .engine()
            .block_on(self.comm.share(&[base as u64]))?;
        Ok((bases[0] + before) as i64)
    }

    /// A read in the order of ranks at the shared pointer.
    pub fn read_ordered(&self, buf: &mut RecvBuf) -> Result<i64, Error> {
        let at = self.in_order(self.etypes(buf.datatype(), buf.bytes()))?;
        let from = self.may_read().and_then(|()| self.stream_place(at));
        self.agree(from.and_then(|from| self.read_from(from, buf)))
    }

    /// A write in the order of ranks at the shared pointer.
    pub fn write_ordered(&self, buf: &SendBuf) -> Result<i64, Error> {
        let at = self.in_order(self.etypes(buf.datatype(), buf.bytes()))?;
        let from = self.may_write().and_then(|()| self.stream_place(at));
        self.agree(from.and_then(|from| self.write_from(from, buf)))
    }

    /// Begins a split collective, of which a file has one at a time.
    pub fn split_begins(
        &self,
        call: &'static str,
        act: impl FnOnce() -> Result<i64, Error>,
    ) -> Result<(), Error> {
        if let Some(open) = &*self.split.borrow() {
            let sentence = format!(
                "{call}_begin on file {} before {} has ended",
                self.path, open.call
            );
            return Err(IoError::new(IoClass::UnsupportedOperation, sentence).into());
        }
        let bytes = act()?;
        *self.split.borrow_mut() = Some(Split { call, bytes });
        Ok(())
    }

    /// Ends it; the bytes it has moved.
    pub fn split_ends(&self, call: &'static str) -> Result<i64, Error> {
        let open = self.split.take();
        match open {
            Some(split) if split.call == call => Ok(split.bytes),
            other => {
                let what = match &other {
                    Some(split) => format!("what has begun is {}", split.call),
                    None => "nothing has begun".to_owned(),
                };
                let sentence = format!("{call}_end on file {}: {what}", self.path);
                *self.split.borrow_mut() = other;
                Err(IoError::new(IoClass::UnsupportedOperation, sentence).into())
            }
        }
    }
}
