//! Buffers: memory, a count and a datatype together, and moving their data.
//!
//! The promise about a user's memory is given once, when a buffer is made (`unsafe`); everything after that is safe.
//! [`Scratch`](super::Scratch) is memory of our own with the same views.
//!
//! A position in a buffer is a packed byte: `pack_at` and `unpack_at` resume anywhere and keep no state,
//! [`Packer`](super::Packer) and [`Unpacker`](super::Unpacker) remember one.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use super::copy::{self as loops};
use super::scratch::Block;
use super::{Datatype, Packer, Runs, Unpacker};
use mpi_base::copy::copy as copy_bytes;

/// Data to be read.
#[derive(Clone)]
pub struct SendBuf {
    ptr: *const u8,
    count: i64,
    datatype: Datatype,
    /// Keeps a scratch alive that this is a view of.
    owner: Option<Rc<Block>>,
}

/// Data to be written.
#[derive(Clone)]
pub struct RecvBuf {
    ptr: *mut u8,
    count: i64,
    datatype: Datatype,
    owner: Option<Rc<Block>>,
}

impl SendBuf {
    /// `count` elements at `ptr`, which is the start of the buffer as MPI means it (data may lie before it).
    ///
    /// # Safety
    /// Until the operation that uses the buffer is complete, all data of the `count` elements must be readable and
    /// no code may write it.
    #[inline]
    pub unsafe fn new(ptr: *const u8, count: i64, datatype: Datatype) -> SendBuf {
        SendBuf {
            ptr,
            count,
            datatype,
            owner: None,
        }
    }

    /// Nothing at all.
    pub fn empty() -> SendBuf {
        SendBuf {
            ptr: std::ptr::null(),
            count: 0,
            datatype: super::Named::BYTE.into(),
            owner: None,
        }
    }

    /// The whole buffer as one slice, if its memory is one run.
    #[inline]
    pub fn contiguous(&self) -> Option<&[u8]> {
        let (offset, len) = self.datatype.contiguous_bytes(self.count)?;
        if len <= 0 {
            return Some(&[]);
        }
        // SAFETY: the maker of this buffer vouched that its data may be read and does not change;
        // the data of all elements is this one run.
        Some(unsafe {
            std::slice::from_raw_parts(self.ptr.wrapping_offset(offset as isize), len as usize)
        })
    }

    /// Whether the data of all elements lie in one run, wherever that is.
    pub fn is_one_run(&self) -> bool {
        self.datatype.contiguous_bytes(self.count).is_some()
    }

    /// Copies packed bytes from `at` on to `out`; answers how many there were.
    #[inline]
    pub fn pack_at(&self, at: i64, out: &mut [u8]) -> usize {
        if let Some(all) = self.contiguous() {
            let rest = all.get(at.max(0) as usize..).unwrap_or(&[]);
            let n = rest.len().min(out.len());
            copy_bytes(&rest[..n], &mut out[..n]);
            return n;
        }
        self.pack_scattered(at, out)
    }

    #[inline(never)]
    fn pack_scattered(&self, at: i64, out: &mut [u8]) -> usize {
        // SAFETY: the maker of this buffer vouched for the data of its elements.
        unsafe { loops::pack(self.ptr, &self.datatype.shape(self.count), at, out) }
    }

    /// Shows the first `len` packed bytes to `f` where they lie, if they are in few and long runs.
    pub fn in_runs<R>(&self, len: u64, f: impl FnOnce(&[&[u8]]) -> R) -> Option<R> {
        if let Some(all) = self.contiguous() {
            return Some(f(&[all.get(..usize::try_from(len).ok()?)?]));
        }
        let runs = self.long_runs(i64::try_from(len).ok()?)?.map(|run| {
            let start = self.ptr.wrapping_offset(run.offset as isize);
            // SAFETY: the maker of this buffer vouched that its data may be read and does not change; runs are data.
            unsafe { std::slice::from_raw_parts(start, run.len as usize) }
        });
        Some(f(&runs.collect::<Vec<_>>()))
    }

    /// A packer at the start.
    pub fn packer(&self) -> Packer {
        Packer::at_start(self.clone())
    }

    /// All packed bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes() as usize];
        let n = self.pack_at(0, &mut bytes);
        bytes.truncate(n);
        bytes
    }
}

impl RecvBuf {
    /// `count` elements at `ptr`, which is the start of the buffer as MPI means it (data may lie before it).
    ///
    /// # Safety
    /// Until the operation that uses the buffer is complete, all data of the `count` elements must be writable and
    /// no other code may use it.
    #[inline]
    pub unsafe fn new(ptr: *mut u8, count: i64, datatype: Datatype) -> RecvBuf {
        RecvBuf {
            ptr,
            count,
            datatype,
            owner: None,
        }
    }

    /// Elements of a scratch, which stays alive as long as this does.
    pub(super) fn of_scratch(
        ptr: *mut u8,
        count: i64,
        datatype: Datatype,
        owner: Rc<Block>,
    ) -> RecvBuf {
        RecvBuf {
            ptr,
            count,
            datatype,
            owner: Some(owner),
        }
    }

    /// Nothing at all.
    pub fn empty() -> RecvBuf {
        RecvBuf {
            ptr: std::ptr::null_mut(),
            count: 0,
            datatype: super::Named::BYTE.into(),
            owner: None,
        }
    }

    /// The whole buffer as one slice, if its memory is one run.
    #[inline]
    pub fn contiguous(&mut self) -> Option<&mut [u8]> {
        let (offset, len) = self.datatype.contiguous_bytes(self.count)?;
        if len <= 0 {
            return Some(&mut []);
        }
        // SAFETY: the maker of this buffer vouched that its data may be written and that no other code uses it;
        // the data of all elements is this one run.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.ptr.wrapping_offset(offset as isize), len as usize)
        })
    }

    /// Copies `input` to packed bytes from `at` on; answers how many had room.
    #[inline]
    pub fn unpack_at(&mut self, at: i64, input: &[u8]) -> usize {
        if let Some(all) = self.contiguous() {
            let rest = all.get_mut(at.max(0) as usize..).unwrap_or(&mut []);
            let n = rest.len().min(input.len());
            copy_bytes(&input[..n], &mut rest[..n]);
            return n;
        }
        self.unpack_scattered(at, input)
    }

    #[inline(never)]
    fn unpack_scattered(&mut self, at: i64, input: &[u8]) -> usize {
        // SAFETY: the maker of this buffer vouched for the data of its elements.
        unsafe { loops::unpack(self.ptr, &self.datatype.shape(self.count), at, input) }
    }

    /// Shows the places of the first `len` packed bytes to `f`, if they are in few and long runs.
    ///
    /// They are cells, because the runs of an erroneous type may overlap.
    pub fn in_runs<R>(&mut self, len: u64, f: impl FnOnce(&[&[Cell<u8>]]) -> R) -> Option<R> {
        if let Some(all) = self.contiguous() {
            let all = all.get_mut(..usize::try_from(len).ok()?)?;
            return Some(f(&[Cell::from_mut(all).as_slice_of_cells()]));
        }
        let runs = self.long_runs(i64::try_from(len).ok()?)?.map(|run| {
            let start = self.ptr.wrapping_offset(run.offset as isize).cast();
            // SAFETY: the maker of this buffer vouched that its data may be written and that no other code uses it;
            // runs are data, and cells may overlap.
            unsafe { std::slice::from_raw_parts(start, run.len as usize) }
        });
        Some(f(&runs.collect::<Vec<_>>()))
    }

    /// An unpacker at the start.
    pub fn unpacker(&self) -> Unpacker {
        Unpacker::at_start(self.clone())
    }

    /// The same memory as a buffer of bytes, if it is one run.
    pub fn as_bytes(&self) -> Option<RecvBuf> {
        let (offset, len) = self.datatype.contiguous_bytes(self.count)?;
        Some(RecvBuf {
            ptr: self.ptr.wrapping_offset(offset as isize),
            count: len,
            datatype: super::Named::BYTE.into(),
            owner: self.owner.clone(),
        })
    }

    /// The same data, to be read: what was received is sent on.
    #[inline]
    pub fn as_send(&self) -> SendBuf {
        SendBuf {
            ptr: self.ptr,
            count: self.count,
            datatype: self.datatype.clone(),
            owner: self.owner.clone(),
        }
    }
}

/// What both buffers can tell.
macro_rules! common {
    ($buf:ident, $pointer:ty) => {
        impl $buf {
            /// The start of the buffer, for operators and for addresses that other processes read.
            #[inline]
            pub fn ptr(&self) -> $pointer {
                self.ptr
            }

            /// How many elements of the datatype it has.
            #[inline]
            pub fn count(&self) -> i64 {
                self.count
            }

            /// The type of its elements, which it keeps alive after `MPI_Type_free` (MPI 5.0, section 5.1.9).
            #[inline]
            pub fn datatype(&self) -> &Datatype {
                &self.datatype
            }

            /// The packed bytes of the whole buffer.
            #[inline]
            pub fn bytes(&self) -> i64 {
                self.datatype.bytes(self.count)
            }

            /// The runs of memory, counted from [`Self::ptr`], that hold packed bytes `range`, in packed order.
            pub fn runs(&self, range: Range<i64>) -> Runs<'_> {
                self.datatype.runs(self.count, range)
            }

            /// How many runs of memory the data are; neighbours that touch may count as two.
            #[inline]
            pub fn run_count(&self) -> i64 {
                match self.datatype.contiguous_bytes(self.count) {
                    Some(_) => 1,
                    None => self.datatype.run_count(self.count),
                }
            }

            /// Whether all of it is in few and long runs, so that packing it is no more than copying it:
            /// for a caller that pays for each run more than for the bytes of a short one.
            #[inline]
            pub fn is_in_runs(&self) -> bool {
                self.datatype.contiguous_bytes(self.count).is_some() || self.has_long_runs()
            }

            #[inline]
            fn has_long_runs(&self) -> bool {
                let runs = self.datatype.run_count(self.count);
                runs <= MOST_RUNS && self.bytes() >= runs * LONG_RUN
            }

            /// The runs that hold the first `len` packed bytes, if they are few and long.
            fn long_runs(&self, len: i64) -> Option<Runs<'_>> {
                self.has_long_runs().then(|| self.runs(0..len))
            }

            /// The same start and datatype with another count, for calls whose buffer holds more than its count says:
            /// `MPI_Gather`'s receive buffer has that many elements for each rank.
            /// The maker of the buffer for such a call vouched for all of them.
            pub fn with_count(&self, count: i64) -> $buf {
                $buf {
                    count,
                    ..self.clone()
                }
            }

            /// Elements `elements` of this buffer as a buffer; the range is cut to what there is.
            pub fn slice(&self, elements: Range<i64>) -> $buf {
                let end = elements.end.clamp(0, self.count);
                let start = elements.start.clamp(0, end);
                let offset = start.wrapping_mul(self.datatype.extent());
                $buf {
                    ptr: self.ptr.wrapping_offset(offset as isize),
                    count: end - start,
                    datatype: self.datatype.clone(),
                    owner: self.owner.clone(),
                }
            }
        }
    };
}

/// What counts as few runs, and as long ones.
///
/// A run costs the system's cross-process copy about a third of a microsecond, in which the two sides together
/// pack and unpack some four KiB.
const MOST_RUNS: i64 = 64;
const LONG_RUN: i64 = 4 << 10;

common!(SendBuf, *const u8);
common!(RecvBuf, *mut u8);

/// Copies data from one buffer to another, as many bytes as the smaller has; answers how many.
pub fn copy(from: &SendBuf, to: &mut RecvBuf) -> i64 {
    match (from.contiguous(), to.contiguous()) {
        (Some(run), Some(out)) => {
            let n = run.len().min(out.len());
            copy_bytes(&run[..n], &mut out[..n]);
            n as i64
        }
        (None, Some(out)) => from.pack_at(0, out) as i64,
        (Some(run), None) => to.unpack_at(0, run) as i64,
        // SAFETY: the maker of the buffers vouched for the data of their elements.
        _ => unsafe {
            loops::copy(
                from.ptr,
                from.datatype.shape(from.count),
                to.ptr,
                to.datatype.shape(to.count),
            )
        },
    }
}
