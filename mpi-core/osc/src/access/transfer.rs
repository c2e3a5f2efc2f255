//! The operations put and get.
#![allow(unsafe_code)]

use crate::Error;
use crate::access::TargetLocation;
use crate::access::location::Accesses;
use crate::datatype::{self, RecvBuf, SendBuf};
use crate::direct::apply::{Memory, Reach};
use crate::error::{OscClass, OscError};
use crate::request::Req;
use crate::runs;
use crate::state::access_kind::AccessKind;
use crate::state::target::Target;
use crate::target_args::TargetArgs;
use mpi_base::cma::{self, CmaError, Region};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

impl<'a> Accesses<'a> {
    /// `MPI_Put`, fast path: contiguous bytes to mapped memory in an open epoch.
    /// Returns false, without any effect, if one of these conditions does not hold.
    ///
    /// Aligned words of 1, 2, 4 and 8 bytes are stored atomically.
    #[inline]
    pub fn put_plain(self, data: &[u8], rank: i32, disp: i64) -> bool {
        let Some((to, _)) = self.plain_address(rank, disp, data.len()) else {
            return false;
        };
        self.win().state().epochs().order.has_stored();
        macro_rules! word {
            ($t:ty, $atomic:ty) => {
                if let Some(bytes) = data.first_chunk() {
                    // SAFETY: `plain_address` checked that the word is inside the target's window, which is mapped here; the match below checks its alignment.
                    unsafe { <$atomic>::from_ptr(to.cast()) }
                        .store(<$t>::from_ne_bytes(*bytes), Relaxed);
                }
            };
        }
        let aligned = to.addr().is_multiple_of(data.len().max(1));
        match data.len() {
            8 if aligned => word!(u64, AtomicU64),
            4 if aligned => word!(u32, AtomicU32),
            2 if aligned => word!(u16, AtomicU16),
            1 => word!(u8, AtomicU8),
            // SAFETY: `plain_address` checked that `len` bytes at `to` are inside the target's window; `copy` allows overlap, as a program may put to its own memory.
            len => unsafe { std::ptr::copy(data.as_ptr(), to, len) },
        }
        true
    }

    /// `MPI_Get`, fast path; see [`Accesses::put_plain`].
    #[inline]
    pub fn get_plain(self, room: &mut [u8], rank: i32, disp: i64) -> bool {
        let Some((from, _)) = self.plain_address(rank, disp, room.len()) else {
            return false;
        };
        self.win().state().epochs().order.has_loaded();
        macro_rules! word {
            ($atomic:ty) => {{
                // SAFETY: `plain_address` checked that the word is inside the target's window, which is mapped here; the match below checks its alignment.
                let value = unsafe { <$atomic>::from_ptr(from.cast()) }.load(Relaxed);
                room.copy_from_slice(&value.to_ne_bytes());
            }};
        }
        let aligned = from.addr().is_multiple_of(room.len().max(1));
        match room.len() {
            8 if aligned => word!(AtomicU64),
            4 if aligned => word!(AtomicU32),
            2 if aligned => word!(AtomicU16),
            1 => word!(AtomicU8),
            // SAFETY: `plain_address` checked that `len` bytes at `from` are inside the target's window; `copy` allows overlap, as a program may get from its own memory.
            len => unsafe { std::ptr::copy(from, room.as_mut_ptr(), len) },
        }
        true
    }

    /// `MPI_Put`. The program may reuse the origin buffer after the return.
    pub fn put(self, origin: &SendBuf, target_args: TargetArgs<'_>) -> Result<(), Error> {
        let Some(target) = self.win().target(target_args.rank)? else {
            return Ok(());
        };
        self.check_access(target)?;
        self.check_lengths("MPI_Put", origin.bytes(), &target_args)?;
        let _ordered =
            self.win()
                .checks()
                .note("MPI_Put", AccessKind::Write, target, &target_args)?;
        self.win().passive().lock_before_message(target)?;
        match self.locate(
            target,
            target_args.disp,
            target_args.count,
            target_args.datatype,
        )? {
            TargetLocation::Direct(memory) => match memory.reach {
                Reach::Here(start) => {
                    // SAFETY: `locate` checked that the memory holds all elements; concurrent conflicting accesses are the program's responsibility.
                    let mut to = unsafe {
                        RecvBuf::new(start, target_args.count, target_args.datatype.clone())
                    };
                    datatype::copy(origin, &mut to);
                    Ok(())
                }
                Reach::Process(pid) => {
                    let bytes = origin
                        .bytes()
                        .min(target_args.datatype.bytes(target_args.count));
                    let remote = regions(&memory, &target_args, bytes);
                    let local = runs::of_send(origin, bytes).map(|run| {
                        let start = origin.ptr().wrapping_offset(run.offset as isize);
                        // SAFETY: the runs cover only elements, which are readable by the contract
                        // of `SendBuf::new`.
                        unsafe { std::slice::from_raw_parts(start, run.len as usize) }
                    });
                    let done = cma::write_all(remote, local, pid);
                    done.map_err(|why| self.unreachable(target, "write to", bytes, why))
                }
            },
            TargetLocation::Message(at) => {
                if let Some(network) = self.win().network()
                    && network.put(target, at, origin, &target_args)?
                {
                    return Ok(());
                }
                let at = (at, 0..origin.bytes());
                self.win().messages().put(target, at, origin, &target_args)
            }
            TargetLocation::Parts(parts) => self.put_parts(target, &parts, origin, &target_args),
        }
    }

    /// Implements `MPI_Get`. Returns a request if the data have not arrived yet.
    pub fn get(
        self,
        origin: &mut RecvBuf,
        target_args: TargetArgs<'_>,
    ) -> Result<Option<Req>, Error> {
        let Some(target) = self.win().target(target_args.rank)? else {
            return Ok(None);
        };
        self.check_access(target)?;
        let bytes = target_args.datatype.bytes(target_args.count);
        if bytes > origin.bytes() {
            return Err(self.too_long("MPI_Get", bytes, origin.bytes(), target_args.rank));
        }
        let _ordered =
            self.win()
                .checks()
                .note("MPI_Get", AccessKind::Read, target, &target_args)?;
        self.win().passive().lock_before_message(target)?;
        match self.locate(
            target,
            target_args.disp,
            target_args.count,
            target_args.datatype,
        )? {
            TargetLocation::Direct(memory) => match memory.reach {
                Reach::Here(start) => {
                    // SAFETY: `locate` checked that the memory holds all elements; concurrent conflicting accesses are the program's responsibility.
                    let from = unsafe {
                        SendBuf::new(start, target_args.count, target_args.datatype.clone())
                    };
                    datatype::copy(&from, origin);
                    Ok(None)
                }
                Reach::Process(pid) => {
                    let remote = regions(&memory, &target_args, bytes);
                    let local = runs::of_recv(origin, bytes).map(|run| {
                        let start = origin.ptr().wrapping_offset(run.offset as isize);
                        // SAFETY: the runs cover only elements, for exclusive use by the contract
                        // of `RecvBuf::new`; the slices are of `Cell<u8>`, so they may overlap.
                        unsafe { std::slice::from_raw_parts(start.cast(), run.len as usize) }
                    });
                    let done = cma::read_all(remote, local, pid);
                    done.map_err(|why| self.unreachable(target, "read from", bytes, why))?;
                    Ok(None)
                }
            },
            TargetLocation::Message(at) => {
                let by_network = match self.win().network() {
                    Some(network) => network.get(target, at, origin, &target_args)?,
                    None => None,
                };
                match by_network {
                    None => {
                        let at = (at, 0..bytes);
                        self.win().messages().get(target, at, origin, &target_args)
                    }
                    by_network => Ok(by_network),
                }
            }
            TargetLocation::Parts(parts) => self.get_parts(target, &parts, origin, &target_args),
        }
    }

    /// `MPI_Rget`: completion of the request also completes the get (MPI 5.0, section 12.3.5).
    /// If the get is complete at the return, later accesses do not conflict with it.
    pub fn get_on_request(
        self,
        origin: &mut RecvBuf,
        target_args: TargetArgs<'_>,
    ) -> Result<Option<Req>, Error> {
        let rank = target_args.rank;
        let open = self.win().state().open_accesses();
        let before = open.count(rank);
        let req = self.get(origin, target_args)?;
        if req.is_none() {
            open.forget_since(rank, before);
        }
        Ok(req)
    }

    /// Checks that the target elements can hold `bytes` bytes.
    pub(crate) fn check_lengths(
        self,
        call: &str,
        bytes: i64,
        target_args: &TargetArgs<'_>,
    ) -> Result<(), Error> {
        let room = target_args.datatype.bytes(target_args.count);
        match bytes > room {
            true => Err(self.too_long(call, bytes, room, target_args.rank)),
            false => Ok(()),
        }
    }

    #[cold]
    fn too_long(self, call: &str, bytes: i64, room: i64, rank: i32) -> Error {
        let sentence = format!(
            "{call} of rank {} to rank {rank} of {} moves {bytes} bytes, but there is room for {room}",
            self.win().rank(),
            self.win().label()
        );
        OscError::new(OscClass::Size, sentence).into()
    }

    #[cold]
    pub(crate) fn unreachable(
        self,
        target: &Target,
        verb: &str,
        bytes: i64,
        why: CmaError,
    ) -> Error {
        let class = match why {
            CmaError::BadAddress => OscClass::Range,
            CmaError::Gone | CmaError::Forbidden => OscClass::Gone,
        };
        let sentence = format!(
            "rank {} cannot {verb} {bytes} bytes of the memory of rank {} through {}: {why}",
            self.win().rank(),
            target.rank,
            self.win().label()
        );
        OscError::new(class, sentence).into()
    }
}

/// Returns the regions of the target's address space that hold the first `bytes` packed bytes.
fn regions<'a>(
    memory: &Memory<'_>,
    target_args: &TargetArgs<'a>,
    bytes: i64,
) -> impl Iterator<Item = Region> + use<'a> {
    let address = memory.address;
    let runs = runs::of(target_args.datatype, target_args.count, bytes);
    runs.map(move |run| Region {
        address: address.wrapping_add_signed(run.offset),
        len: run.len as u64,
    })
}
