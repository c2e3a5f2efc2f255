//! Accumulate operations: one operator on elements of one basic type in a member's window.
//!
//! Elements of 1, 2, 4 or 8 bytes at a multiple of their size use one atomic instruction
//! or a compare-and-swap loop. The same holds for elements of 16 bytes (complex numbers and
//! long doubles) if the processor has a 16-byte compare-and-swap.
//! A long access updates these elements by a pass of plain loads and stores,
//! which excludes all other updates ([`crate::state::exclusion`]).
//! All other elements are updated under the lock of their stripe. This also holds for all elements
//! in memory that a member can access only by `process_vm_readv` and `process_vm_writev`.
//! `MPI_BYTE` elements use the lock too,
//! so a structure that is sent as bytes is updated as a unit if it is inside one stripe.
//! The standard requires atomicity only per byte.
//! The method depends on the element's size, its address in the owner's address space, the kind
//! of memory and the processor. All members with direct access therefore choose the same method.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::datatype::{Datatype, Kind, Named, RecvBuf, Run, Scalar, SendBuf};
use crate::direct::word::{Instruction, instruct};
use crate::op::{DenseOp, Op, OpError, Predefined};
use crate::state::control::{STRIPE_BYTES, STRIPES};
use crate::state::exclusion::{BLOCK, Exclusion, Way};
use mpi_base::cma::{self, CmaError};
use mpi_base::node::Node;
use mpi_base::window::Stripe;
use portable_atomic::AtomicU128;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// The maximum element size in bytes: a long double and an index, with the padding between them.
const LONGEST: usize = 32;

/// Memory of a target; `address` is its start in the owner's address space.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub reach: Reach,
    pub address: u64,
    pub stripes: &'a [Stripe],
    /// The method by which an access excludes other updates of this memory.
    pub exclusion: Exclusion<'a>,
    /// The node of the processes that hold stripe locks; `None` in tests with one process.
    pub node: Option<&'a Node>,
    /// True if every update takes a stripe lock.
    pub locked: bool,
}

/// The method by which this process accesses the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The memory is mapped into this process at this address.
    Here(*mut u8),
    /// The kernel copies from and to the process with this process id,
    /// by `process_vm_readv` and `process_vm_writev`, and checks the addresses.
    Process(u32),
}

impl Memory<'_> {
    /// Runs `update` under the lock of the stripe of an address.
    fn under_stripe<R>(&self, address: u64, update: impl FnOnce() -> R) -> R {
        let stripe = &self.stripes[(address / STRIPE_BYTES) as usize % STRIPES];
        let me = self.node.map_or(0, Node::rank);
        let has_ended = |place| {
            self.node
                .is_some_and(|node| node.processes().has_ended(place))
        };
        stripe.with(me, has_ended, update)
    }

    fn address(&self, offset: i64) -> u64 {
        self.address.wrapping_add_signed(offset)
    }

    /// Returns the owner's addresses of `range`, which is relative to the start of the memory.
    pub fn span(&self, range: Range<i64>) -> Range<u64> {
        self.address(range.start)..self.address(range.end)
    }

    /// Runs `update` while no other process can update the bytes `span`; see [`Exclusion::run`].
    pub fn exclude(&self, elements: usize, span: &Range<u64>, update: &mut dyn FnMut(Way)) {
        (self.exclusion).run((self.stripes, self.node), elements, span, update)
    }

    /// # Safety
    /// The contract is that of [`Combine::run`].
    pub unsafe fn read(&self, offset: i64, bytes: &mut [u8]) -> Result<(), CmaError> {
        match self.reach {
            Reach::Here(base) => {
                let at = base.wrapping_offset(offset as isize);
                // SAFETY: `offset` is inside the mapped memory by this function's contract; concurrent writes make the values undefined, which the standard allows for conflicting accesses.
                unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) };
                Ok(())
            }
            Reach::Process(pid) => cma::read(pid, self.address(offset), bytes),
        }
    }

    /// # Safety
    /// The contract is that of [`Combine::run`].
    pub unsafe fn write(&self, offset: i64, bytes: &[u8]) -> Result<(), CmaError> {
        match self.reach {
            Reach::Here(base) => {
                let at = base.wrapping_offset(offset as isize);
                // SAFETY: `offset` is inside the mapped memory by this function's contract; concurrent conflicting accesses are the program's responsibility.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
                Ok(())
            }
            Reach::Process(pid) => cma::write(pid, self.address(offset), bytes),
        }
    }
}

/// An operator for a basic type, with its implementations and the layout of an element.
#[derive(Clone, Copy)]
pub(crate) struct Combine {
    op: Predefined,
    named: Named,
    dense: Option<DenseOp>,
    size: usize,
    /// True if the packed bytes of an element are always contiguous.
    is_contiguous: bool,
    /// The fast implementation of the operator on a word, if it exists.
    native: Option<Native>,
}

#[derive(Clone, Copy)]
enum Native {
    Alone(Instruction),
    /// Sum of reals, by a compare-and-swap loop, since processors have no atomic instruction for it.
    AddF32,
    AddF64,
}

impl Combine {
    pub fn new(op: Predefined, named: Named) -> Result<Combine, OpError> {
        let datatype = Datatype::from(named);
        let general = Op::Predefined(op);
        general.check(&datatype)?;
        let kind = named.info().kind;
        let native = match (op, kind) {
            (Predefined::Sum, Kind::Float(Scalar::F32)) => Some(Native::AddF32),
            (Predefined::Sum, Kind::Float(Scalar::F64)) => Some(Native::AddF64),
            _ => Instruction::of(op, kind).map(Native::Alone),
        };
        let size = named.info().size;
        Ok(Combine {
            op,
            named,
            dense: DenseOp::new(&general, &datatype),
            size: size as usize,
            is_contiguous: (datatype.contiguous_bytes(1)).is_some_and(|(_, len)| len == size),
            native,
        })
    }

    pub fn op(&self) -> Predefined {
        self.op
    }

    pub fn named(&self) -> Named {
        self.named
    }

    /// Returns the packed size of an element in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Computes `inout = input op inout` on whole packed elements.
    fn combine(&self, input: &[u8], inout: &mut [u8]) {
        match (self.op, &self.dense) {
            (Predefined::NoOp, _) => {}
            (Predefined::Replace, _) => inout.copy_from_slice(&input[..inout.len()]),
            (_, Some(dense)) => dense.combine(input, inout),
            (_, None) => {
                let elements = inout.chunks_exact_mut(self.size);
                for (inout, input) in elements.zip(input.chunks_exact(self.size)) {
                    self.combine_with_holes(input, inout);
                }
            }
        }
    }

    /// Computes `inout = input op inout` for one element with padding in its memory layout.
    fn combine_with_holes(&self, input: &[u8], inout: &mut [u8]) {
        let datatype = Datatype::from(self.named);
        let mut memory = [[0u8; LONGEST]; 2];
        let [a, b] = &mut memory;
        // SAFETY: both are locals of `LONGEST` bytes, the longest element, and nothing else uses them while the buffers live.
        let (mut first, mut second) = unsafe {
            (
                RecvBuf::new(a.as_mut_ptr(), 1, datatype.clone()),
                RecvBuf::new(b.as_mut_ptr(), 1, datatype.clone()),
            )
        };
        first.unpack_at(0, input);
        second.unpack_at(0, inout);
        // Both buffers have the type for which `Combine::new` checked the operator.
        let _ = Op::Predefined(self.op).apply(&first.as_send(), &mut second);
        second.as_send().pack_at(0, inout);
    }

    /// Updates the elements in `runs`, in packed order, with the elements of `input`.
    /// Stores the old elements in `result`.
    ///
    /// `input` may be empty if the operator reads none; otherwise the update stops at its end.
    ///
    /// # Safety
    /// If the memory is mapped in this process, all runs are inside the mapping.
    pub unsafe fn run(
        &self,
        memory: &Memory<'_>,
        runs: impl Iterator<Item = Run>,
        input: &[u8],
        mut result: Option<&mut [u8]>,
    ) -> Result<(), CmaError> {
        let reads_nothing = self.op == Predefined::NoOp;
        let scattered = !self.is_contiguous;
        let mut gathered = Gathered::default();
        let mut at = 0;
        for run in runs {
            let mut run = Run::new(run.offset, run.len);
            while run.len > 0 {
                let step = if scattered {
                    let taken = gathered.take(run, self.size as i64);
                    if gathered.bytes == self.size as i64 {
                        let range = at..at + self.size;
                        let Some(old) = part(&mut result, &range, reads_nothing, input) else {
                            return Ok(());
                        };
                        // SAFETY: the gathered runs are runs of this call, which are inside the memory by this function's contract.
                        unsafe { self.fragments(memory, &gathered, old.0, old.1)? };
                        gathered = Gathered::default();
                        at += self.size;
                    }
                    taken
                } else {
                    let len = self.chunk(memory, run);
                    let range = at..at + len as usize;
                    let Some((input, old)) = part(&mut result, &range, reads_nothing, input) else {
                        return Ok(());
                    };
                    // SAFETY: `len` bytes of `run` are inside the memory by this function's contract.
                    unsafe { self.contiguous(memory, run.offset, len as usize, input, old)? };
                    at += len as usize;
                    len
                };
                run = Run::new(run.offset + step, run.len - step);
            }
        }
        Ok(())
    }

    /// Returns true if atomic instructions can update aligned elements of this type.
    pub fn is_native(&self) -> bool {
        is_atomic(self.named, false, 0) && self.is_contiguous
    }

    /// Returns true if atomic instructions alone update an element at `address`.
    #[inline]
    pub fn is_atomic(&self, locked: bool, address: u64) -> bool {
        is_atomic(self.named, locked, address)
    }

    /// Returns the number of bytes of a run to update under one lock, or without a lock.
    /// Without a lock these are all whole elements of the run; under a lock, those in one stripe.
    fn chunk(&self, memory: &Memory<'_>, run: Run) -> i64 {
        let address = memory.address(run.offset);
        let size = self.size as i64;
        let block = match (self.is_atomic(memory.locked, address), memory.exclusion) {
            (false, _) => STRIPE_BYTES,
            (true, Exclusion::Guarded(..)) => BLOCK,
            // A run can be shorter than an element; then the entire run is one update.
            (true, _) => return (run.len / size * size).max(size.min(run.len)),
        };
        let in_stripe = (block - address % block) as i64;
        let whole = in_stripe.min(run.len) / size * size;
        whole.max(size.min(run.len))
    }

    /// # Safety
    /// The contract is that of [`Combine::run`].
    unsafe fn contiguous(
        &self,
        memory: &Memory<'_>,
        offset: i64,
        len: usize,
        input: &[u8],
        old: Option<&mut [u8]>,
    ) -> Result<(), CmaError> {
        let address = memory.address(offset);
        if let (Reach::Here(base), true) = (memory.reach, self.is_atomic(memory.locked, address)) {
            let at = base.wrapping_offset(offset as isize);
            let mut old = old;
            let span = address..address + len as u64;
            memory.exclude(len / self.size, &span, &mut |way| {
                let old = old.as_deref_mut();
                // SAFETY: the elements are inside the memory by this function's contract, and as aligned here as at their owner, since both map whole pages;
                // `exclude` chooses a pass only while no other process updates them.
                unsafe {
                    match way {
                        Way::Atomics => self.atomics(at, len / self.size, input, old),
                        Way::Pass => self.pass(at, len / self.size, input, old),
                    }
                }
            });
            return Ok(());
        }
        // Most updates under a lock have one element, for which a short buffer is enough.
        match len {
            // SAFETY: the `len` bytes at `offset` are inside the memory by this function's contract.
            0..=LONGEST => unsafe {
                self.under_lock(memory, offset, &mut [0; LONGEST][..len], input, old)
            },
            // SAFETY: the `len` bytes at `offset` are inside the memory by this function's contract.
            _ => unsafe {
                let mut bytes = [0; STRIPE_BYTES as usize];
                self.under_lock(memory, offset, &mut bytes[..len], input, old)
            },
        }
    }

    /// Updates the elements in one stripe under its lock, through a local buffer.
    ///
    /// # Safety
    /// The contract is that of [`Combine::run`].
    unsafe fn under_lock(
        &self,
        memory: &Memory<'_>,
        offset: i64,
        bytes: &mut [u8],
        input: &[u8],
        old: Option<&mut [u8]>,
    ) -> Result<(), CmaError> {
        memory.under_stripe(memory.address(offset), || {
            // SAFETY: the range is inside the memory by this function's contract.
            unsafe { memory.read(offset, bytes)? };
            if let Some(old) = old {
                old.copy_from_slice(bytes);
            }
            if self.op == Predefined::NoOp {
                return Ok(());
            }
            self.combine(input, bytes);
            // SAFETY: the range is inside the memory by this function's contract.
            unsafe { memory.write(offset, bytes) }
        })
    }

    /// Updates consecutive elements by atomic instructions.
    ///
    /// # Safety
    /// The contract is that of [`Combine::atomic`], for each of `count` elements.
    #[inline]
    unsafe fn atomics(&self, at: *mut u8, count: usize, input: &[u8], mut old: Option<&mut [u8]>) {
        for (i, start) in (0..count).map(|i| (i, i * self.size)) {
            let range = start..start + self.size;
            let given = input.get(range.clone()).unwrap_or(&[]);
            let old = old.as_deref_mut().and_then(|old| old.get_mut(range));
            // SAFETY: element `i` is one of the `count` elements of this function's contract.
            unsafe { self.atomic(at.wrapping_add(i * self.size), given, old) };
        }
    }

    /// Updates consecutive elements by plain loads and stores.
    ///
    /// # Safety
    /// `count` elements at `at` are mapped; no other process updates them during the call.
    unsafe fn pass(&self, at: *mut u8, count: usize, input: &[u8], old: Option<&mut [u8]>) {
        let len = count * self.size;
        if let Some(old) = old {
            let len = len.min(old.len());
            // SAFETY: the elements are mapped by this function's contract; the program must give a result buffer that does not overlap the target's memory.
            unsafe { std::ptr::copy_nonoverlapping(at, old.as_mut_ptr(), len) };
        }
        if self.op == Predefined::NoOp {
            return;
        }
        let ends = input.as_ptr_range();
        let overlap = ends.start < at.wrapping_add(len) && at.cast_const() < ends.end;
        let input = match overlap {
            true => Cow::from(input.to_vec()),
            false => Cow::from(input),
        };
        // SAFETY: the elements are mapped by this function's contract, no other process updates them, and `input` does not overlap them.
        // Other concurrent accesses of the program conflict, and the standard leaves the result undefined.
        let inout = unsafe { std::slice::from_raw_parts_mut(at, len) };
        self.combine(&input, inout);
    }

    /// Updates the elements in packed bytes `range` of `there`,
    /// a noncontiguous buffer in mapped memory.
    /// A pass packs the elements, combines them with the input and unpacks the result.
    ///
    /// # Safety
    /// The elements of `there` are inside the mapped memory, at multiples of their size.
    pub unsafe fn gathered(
        &self,
        memory: &Memory<'_>,
        there: &mut RecvBuf,
        range: Range<i64>,
        input: &[u8],
        mut old: Option<&mut [u8]>,
        packed: &mut Vec<u8>,
    ) {
        let len = (range.end - range.start) as usize;
        let span = memory.span(there.datatype().span(there.count()));
        packed.resize(len, 0);
        memory.exclude(len / self.size, &span, &mut |way| match way {
            Way::Atomics => {
                let mut from = 0;
                for run in there.runs(range.clone()) {
                    let to = from + run.len as usize;
                    let old = old.as_deref_mut().and_then(|old| old.get_mut(from..to));
                    let input = input.get(from..to).unwrap_or(&[]);
                    let at = there.ptr().wrapping_offset(run.offset as isize);
                    // SAFETY: the runs are those of `there`, whose elements are mapped and aligned by this function's contract.
                    unsafe { self.atomics(at, run.len as usize / self.size, input, old) };
                    from = to;
                }
            }
            Way::Pass => {
                there.as_send().pack_at(range.start, packed);
                if let Some(old) = &mut old {
                    old.copy_from_slice(packed);
                }
                if self.op != Predefined::NoOp {
                    self.combine(input, packed);
                    there.unpack_at(range.start, packed);
                }
            }
        });
    }

    /// # Safety
    /// The contract is that of [`Combine::run`].
    unsafe fn fragments(
        &self,
        memory: &Memory<'_>,
        element: &Gathered,
        input: &[u8],
        old: Option<&mut [u8]>,
    ) -> Result<(), CmaError> {
        memory.under_stripe(memory.address(element.runs[0].offset), || {
            let mut bytes = [0u8; LONGEST];
            let bytes = &mut bytes[..self.size];
            element.each(|run, range| {
                // SAFETY: the runs of the element are inside the memory by this function's contract.
                unsafe { memory.read(run.offset, &mut bytes[range]) }
            })?;
            if let Some(old) = old {
                old.copy_from_slice(bytes);
            }
            if self.op == Predefined::NoOp {
                return Ok(());
            }
            self.combine(input, bytes);
            element.each(|run, range| {
                // SAFETY: the runs of the element are inside the memory by this function's contract.
                unsafe { memory.write(run.offset, &bytes[range]) }
            })
        })
    }

    /// Returns the new value of an element: `input op now`.
    #[inline(always)]
    fn next<const N: usize>(&self, mut now: [u8; N], input: &[u8]) -> [u8; N] {
        macro_rules! add {
            ($t:ty) => {
                if let (Some(a), Some(b)) = (now.first_chunk(), input.first_chunk()) {
                    let sum = <$t>::from_ne_bytes(*b) + <$t>::from_ne_bytes(*a);
                    now.copy_from_slice(&sum.to_ne_bytes());
                }
            };
        }
        // `N` is always the size of the type, but the compiler cannot infer this from `native`.
        match self.native {
            Some(Native::AddF64) if N == size_of::<f64>() => add!(f64),
            Some(Native::AddF32) if N == size_of::<f32>() => add!(f32),
            _ => self.combine(input, &mut now),
        }
        now
    }

    /// Updates one element by atomic instructions.
    ///
    /// # Safety
    /// `at` points to an element for which [`is_atomic`] is true.
    #[inline]
    pub unsafe fn atomic(&self, at: *mut u8, input: &[u8], old: Option<&mut [u8]>) {
        macro_rules! word {
            ($t:ty, $atomic:ty) => {{
                // SAFETY: `at` points to an aligned element of this size by this function's contract.
                let word = unsafe { <$atomic>::from_ptr(at.cast()) };
                let given = input.first_chunk().map_or(0, |b| <$t>::from_ne_bytes(*b));
                let before = match self.native {
                    Some(Native::Alone(instruction)) => instruct!(instruction, word, given),
                    Some(Native::AddF32 | Native::AddF64) | None => {
                        let mut now = word.load(Acquire);
                        loop {
                            let next = self.next(now.to_ne_bytes(), input);
                            let next = <$t>::from_ne_bytes(next);
                            match word.compare_exchange_weak(now, next, AcqRel, Acquire) {
                                Ok(before) => break before,
                                Err(other) => now = other,
                            }
                        }
                    }
                };
                if let Some(old) = old {
                    old.copy_from_slice(&before.to_ne_bytes());
                }
            }};
        }
        match self.size {
            1 => word!(u8, AtomicU8),
            2 => word!(u16, AtomicU16),
            4 => word!(u32, AtomicU32),
            16 => word!(u128, AtomicU128),
            _ => word!(u64, AtomicU64),
        }
    }
}

/// Returns true if atomic instructions alone update an element of this type at `address`.
/// `locked` is true if every update of the memory takes a lock.
#[inline]
pub(crate) fn is_atomic(named: Named, locked: bool, address: u64) -> bool {
    let info = named.info();
    !locked
        && match info.size {
            1 | 2 | 4 | 8 => true,
            // Without the instruction, `portable_atomic` takes a process-local lock.
            // A process-local lock does not exclude other processes.
            16 => AtomicU128::is_lock_free(),
            _ => false,
        }
        && info.size == info.extent
        && !matches!(info.kind, Kind::Byte | Kind::Packed)
        && address.is_multiple_of(info.size as u64)
}

/// Returns bytes `range` of the input and of the result, or `None` if either of them is shorter.
#[allow(clippy::type_complexity)]
fn part<'a, 'b>(
    result: &'b mut Option<&mut [u8]>,
    range: &Range<usize>,
    reads_nothing: bool,
    input: &'a [u8],
) -> Option<(&'a [u8], Option<&'b mut [u8]>)> {
    let input = match reads_nothing {
        true => &[],
        false => input.get(range.clone())?,
    };
    let old = match result {
        Some(all) => Some(all.get_mut(range.clone())?),
        None => None,
    };
    Some((input, old))
}

/// The runs of an element that is noncontiguous in memory: a value, padding, an index.
#[derive(Default)]
struct Gathered {
    runs: [Fragment; 2],
    count: usize,
    bytes: i64,
}

#[derive(Clone, Copy, Default)]
struct Fragment {
    offset: i64,
    len: i64,
}

impl Gathered {
    /// Adds an element's missing bytes from the front of a run. Returns the number of added bytes.
    fn take(&mut self, run: Run, size: i64) -> i64 {
        let len = run.len.min(size - self.bytes);
        // No predefined type has elements of more than two runs; a third would replace the second.
        let last = self.count.min(self.runs.len() - 1);
        self.runs[last] = Fragment {
            offset: run.offset,
            len,
        };
        self.count = last + 1;
        self.bytes += len;
        len
    }

    fn each(
        &self,
        mut f: impl FnMut(Fragment, Range<usize>) -> Result<(), CmaError>,
    ) -> Result<(), CmaError> {
        let mut at = 0;
        for run in &self.runs[..self.count] {
            let end = at + run.len as usize;
            f(*run, at..end)?;
            at = end;
        }
        Ok(())
    }
}

/// Compares an element with `compare`. If they are equal, replaces the element by `new`.
/// Stores the previous value in `old`.
///
/// # Safety
/// If the memory is mapped in this process, it starts with an element of type `named`.
/// All three slices have the length of the element.
#[inline]
pub(crate) unsafe fn compare_and_swap(
    memory: &Memory<'_>,
    named: Named,
    [compare, new]: [&[u8]; 2],
    old: &mut [u8],
) -> Result<(), CmaError> {
    let (offset, address) = (0, memory.address);
    let size = old.len();
    let by_processor = is_atomic(named, memory.locked, address);
    if let (Reach::Here(base), true) = (memory.reach, by_processor) {
        let at = base.wrapping_offset(offset as isize);
        let span = memory.span(0..size as i64);
        memory.exclude(1, &span, &mut |_| {
            // SAFETY: the element is inside the memory by this function's contract, and `is_atomic` checked its alignment.
            unsafe { swap_word(at, [compare, new], old) }
        });
        return Ok(());
    }
    memory.under_stripe(address, || {
        // SAFETY: the element is inside the memory by this function's contract.
        unsafe { memory.read(offset, old)? };
        if old != compare {
            return Ok(());
        }
        // SAFETY: the element is inside the memory by this function's contract.
        unsafe { memory.write(offset, new) }
    })
}

/// Compares and swaps an element by one atomic instruction.
///
/// # Safety
/// `at` points to an element for which [`is_atomic`] is true. All three slices have its length.
#[inline(always)]
pub(crate) unsafe fn swap_word(at: *mut u8, [compare, new]: [&[u8]; 2], old: &mut [u8]) {
    macro_rules! word {
        ($t:ty, $atomic:ty) => {{
            // SAFETY: `at` points to an aligned element of this size by this function's contract.
            let word = unsafe { <$atomic>::from_ptr(at.cast()) };
            let value = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| <$t>::from_ne_bytes(*b));
            let before = word.compare_exchange(value(compare), value(new), AcqRel, Acquire);
            old.copy_from_slice(&before.unwrap_or_else(|now| now).to_ne_bytes());
        }};
    }
    match old.len() {
        1 => word!(u8, AtomicU8),
        2 => word!(u16, AtomicU16),
        4 => word!(u32, AtomicU32),
        16 => word!(u128, AtomicU128),
        _ => word!(u64, AtomicU64),
    }
}

/// Returns the packed bytes of a buffer; borrows them if they are contiguous.
pub(crate) fn packed(buf: &SendBuf) -> Cow<'_, [u8]> {
    match buf.contiguous() {
        Some(all) => all.into(),
        None => buf.to_vec().into(),
    }
}
