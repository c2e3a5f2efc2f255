//! Buffers: memory, count and datatype, and the transfer of their data.
//!
//! The caller guarantees the validity of user memory when it creates a buffer (`unsafe`).
//! All other operations are safe.
//! [`Scratch`](super::Scratch) is memory of the library with the same interface.
//!
//! A position in a buffer is an offset in its packed bytes. `pack_at` and `unpack_at` get the
//! position as an argument and keep no state;
//! [`Packer`](super::Packer) and [`Unpacker`](super::Unpacker) keep a position.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use super::copy::{self as loops};
use super::scratch::Block;
use super::{Datatype, Packer, Runs, Unpacker};
use mpi_base::copy::copy as copy_bytes;

/// A buffer to read from.
#[derive(Clone)]
pub struct SendBuf {
    ptr: *const u8,
    count: i64,
    datatype: Datatype,
    /// The library's scratch memory to which this buffer refers, if any, kept alive by this field.
    owner: Option<Rc<Block>>,
}

/// A buffer to write to.
#[derive(Clone)]
pub struct RecvBuf {
    ptr: *mut u8,
    count: i64,
    datatype: Datatype,
    owner: Option<Rc<Block>>,
}

impl SendBuf {
    /// Creates a buffer of `count` elements.
    /// `ptr` is the MPI buffer address; data may be before it.
    ///
    /// # Safety
    /// Until the operation that uses the buffer is complete, the data of all `count` elements must
    /// be readable, and no code may write these data.
    #[inline]
    pub unsafe fn new(ptr: *const u8, count: i64, datatype: Datatype) -> SendBuf {
        SendBuf {
            ptr,
            count,
            datatype,
            owner: None,
        }
    }

    /// Creates a buffer without elements.
    pub fn empty() -> SendBuf {
        SendBuf {
            ptr: std::ptr::null(),
            count: 0,
            datatype: super::Named::BYTE.into(),
            owner: None,
        }
    }

    /// Returns the whole buffer as one slice, if its data are contiguous.
    #[inline]
    pub fn contiguous(&self) -> Option<&[u8]> {
        let (offset, len) = self.datatype.contiguous_bytes(self.count)?;
        if len <= 0 {
            return Some(&[]);
        }
        // SAFETY: `new` guarantees that the data of the elements are readable and do not change;
        // `contiguous_bytes` gives exactly their range.
        Some(unsafe {
            std::slice::from_raw_parts(self.ptr.wrapping_offset(offset as isize), len as usize)
        })
    }

    /// Returns true if the data of all elements are contiguous.
    pub fn is_one_run(&self) -> bool {
        self.datatype.contiguous_bytes(self.count).is_some()
    }

    /// Copies packed bytes, from position `at` on, to `out`. Returns the number of copied bytes.
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
        // SAFETY: `new` guarantees that the data of the elements are readable.
        // The shape covers only these data.
        unsafe { loops::pack(self.ptr, &self.datatype.shape(self.count), at, out) }
    }

    /// Passes the first `len` packed bytes to `f` in place,
    /// if they are in few, long contiguous segments.
    pub fn in_runs<R>(&self, len: u64, f: impl FnOnce(&[&[u8]]) -> R) -> Option<R> {
        if let Some(all) = self.contiguous() {
            return Some(f(&[all.get(..usize::try_from(len).ok()?)?]));
        }
        let runs = self.long_runs(i64::try_from(len).ok()?)?.map(|run| {
            let start = self.ptr.wrapping_offset(run.offset as isize);
            // SAFETY: `new` guarantees that the data of the elements are readable and do not
            // change; the segments cover these data only.
            unsafe { std::slice::from_raw_parts(start, run.len as usize) }
        });
        Some(f(&runs.collect::<Vec<_>>()))
    }

    /// Returns a packer at the first packed byte.
    pub fn packer(&self) -> Packer {
        Packer::at_start(self.clone())
    }

    /// Returns all packed bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes() as usize];
        let n = self.pack_at(0, &mut bytes);
        bytes.truncate(n);
        bytes
    }
}

impl RecvBuf {
    /// Creates a buffer of `count` elements.
    /// `ptr` is the MPI buffer address; data may be before it.
    ///
    /// # Safety
    /// Until the operation that uses the buffer is complete, the data of all `count` elements must
    /// be writable, and no other code may use these data.
    #[inline]
    pub unsafe fn new(ptr: *mut u8, count: i64, datatype: Datatype) -> RecvBuf {
        RecvBuf {
            ptr,
            count,
            datatype,
            owner: None,
        }
    }

    /// Creates a buffer of elements in scratch memory, which stays alive as long as this buffer.
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

    /// Creates a buffer without elements.
    pub fn empty() -> RecvBuf {
        RecvBuf {
            ptr: std::ptr::null_mut(),
            count: 0,
            datatype: super::Named::BYTE.into(),
            owner: None,
        }
    }

    /// Returns the whole buffer as one slice, if its data are contiguous.
    #[inline]
    pub fn contiguous(&mut self) -> Option<&mut [u8]> {
        let (offset, len) = self.datatype.contiguous_bytes(self.count)?;
        if len <= 0 {
            return Some(&mut []);
        }
        // SAFETY: `new` guarantees that the data of the elements are writable and that no other
        // code uses them; `contiguous_bytes` gives exactly their range.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.ptr.wrapping_offset(offset as isize), len as usize)
        })
    }

    /// Copies `input` to the packed bytes from position `at` on. Returns the number of bytes that fit.
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
        // SAFETY: `new` guarantees that the data of the elements are writable.
        // The shape covers only these data.
        unsafe { loops::unpack(self.ptr, &self.datatype.shape(self.count), at, input) }
    }

    /// Passes the memory of the first `len` packed bytes to `f`,
    /// if it is in few, long contiguous segments.
    ///
    /// The slices are of cells, because the segments of an erroneous type may overlap.
    pub fn in_runs<R>(&mut self, len: u64, f: impl FnOnce(&[&[Cell<u8>]]) -> R) -> Option<R> {
        if let Some(all) = self.contiguous() {
            let all = all.get_mut(..usize::try_from(len).ok()?)?;
            return Some(f(&[Cell::from_mut(all).as_slice_of_cells()]));
        }
        let runs = self.long_runs(i64::try_from(len).ok()?)?.map(|run| {
            let start = self.ptr.wrapping_offset(run.offset as isize).cast();
            // SAFETY: `new` guarantees that the data of the elements are writable and that no other
            // code uses them; the segments cover these data only, and slices of cells may overlap.
            unsafe { std::slice::from_raw_parts(start, run.len as usize) }
        });
        Some(f(&runs.collect::<Vec<_>>()))
    }

    /// Returns an unpacker at the first packed byte.
    pub fn unpacker(&self) -> Unpacker {
        Unpacker::at_start(self.clone())
    }

    /// Returns the same memory as a buffer of bytes, if it is contiguous.
    pub fn as_bytes(&self) -> Option<RecvBuf> {
        let (offset, len) = self.datatype.contiguous_bytes(self.count)?;
        Some(RecvBuf {
            ptr: self.ptr.wrapping_offset(offset as isize),
            count: len,
            datatype: super::Named::BYTE.into(),
            owner: self.owner.clone(),
        })
    }

    /// Returns a send buffer over the same data, to forward received data.
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

/// The methods that [`SendBuf`] and [`RecvBuf`] have in common.
macro_rules! common {
    ($buf:ident, $pointer:ty) => {
        impl $buf {
            /// Returns the buffer address, for operators and for addresses that other processes read.
            #[inline]
            pub fn ptr(&self) -> $pointer {
                self.ptr
            }

            /// Returns the number of elements.
            #[inline]
            pub fn count(&self) -> i64 {
                self.count
            }

            /// Returns the datatype, which the buffer keeps alive
            /// after `MPI_Type_free` (section 5.1.9).
            #[inline]
            pub fn datatype(&self) -> &Datatype {
                &self.datatype
            }

            /// Returns the number of packed bytes of the buffer.
            #[inline]
            pub fn bytes(&self) -> i64 {
                self.datatype.bytes(self.count)
            }

            /// Returns the contiguous segments of memory, relative to [`Self::ptr`], that hold the
            /// packed bytes `range`, in packed order.
            pub fn runs(&self, range: Range<i64>) -> Runs<'_> {
                self.datatype.runs(self.count, range)
            }

            /// Returns the number of contiguous segments; adjacent segments may count as two.
            #[inline]
            pub fn run_count(&self) -> i64 {
                match self.datatype.contiguous_bytes(self.count) {
                    Some(_) => 1,
                    None => self.datatype.run_count(self.count),
                }
            }

            /// Returns true if the data are contiguous, or are at most `MOST_RUNS` segments of
            /// on average at least `LONG_RUN` bytes. A caller may then transfer each segment
            /// separately; with shorter segments, its fixed cost per segment would exceed
            /// the cost of packing the data first.
            #[inline]
            pub fn is_in_runs(&self) -> bool {
                self.datatype.contiguous_bytes(self.count).is_some() || self.has_long_runs()
            }

            #[inline]
            fn has_long_runs(&self) -> bool {
                let runs = self.datatype.run_count(self.count);
                runs <= MOST_RUNS && self.bytes() >= runs * LONG_RUN
            }

            /// Returns the segments with the first `len` packed bytes, if they are few and long.
            fn long_runs(&self, len: i64) -> Option<Runs<'_>> {
                self.has_long_runs().then(|| self.runs(0..len))
            }

            /// Returns a buffer at the same address with another count.
            /// For calls whose buffer has more elements than the count argument:
            /// the receive buffer of `MPI_Gather` has `count` elements for each rank.
            /// The caller of `new` has guaranteed the validity of all of these elements.
            pub fn with_count(&self, count: i64) -> $buf {
                $buf {
                    count,
                    ..self.clone()
                }
            }

            /// Returns the elements in the range `elements` as a buffer; the range is clamped to
            /// this buffer.
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

/// The maximum number of contiguous segments that count as few,
/// and the minimum length of a long segment in bytes.
///
/// In the kernel's cross-process copy, a segment costs about a third of a microsecond. In this time
/// sender and receiver together pack and unpack about 4 KiB.
const MOST_RUNS: i64 = 64;
const LONG_RUN: i64 = 4 << 10;

common!(SendBuf, *const u8);
common!(RecvBuf, *mut u8);

/// Copies data between buffers, up to the number of bytes of the smaller one.
/// Returns the number of copied bytes.
pub fn copy(from: &SendBuf, to: &mut RecvBuf) -> i64 {
    match (from.contiguous(), to.contiguous()) {
        (Some(run), Some(out)) => {
            let n = run.len().min(out.len());
            copy_bytes(&run[..n], &mut out[..n]);
            n as i64
        }
        (None, Some(out)) => from.pack_at(0, out) as i64,
        (Some(run), None) => to.unpack_at(0, run) as i64,
        // SAFETY: the callers of `new` guaranteed that the data of the elements are valid.
        // The shapes cover only these data.
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
