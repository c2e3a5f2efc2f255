//! Accumulating: one operator on elements of one basic type in a member's window.
//!
//! Elements of 1, 2, 4 or 8 bytes that lie at a multiple of their size are updated by a single instruction or a compare-and-swap loop,
//! and so are those of 16 bytes where the processor compares and swaps as many: complex and long doubles.
//! All others, and all of memory that some member can only reach through the system, are updated under the lock of their stripe.
//! Bytes (`MPI_BYTE`) too are updated under the lock, so that what a program treats as bytes changes as a whole as far as it lies in one stripe:
//! the standard asks for that of each byte only, but programs put structures there.
//! Which of the two it is follows from the element's address at its owner, its size, what kind of memory it is and the processor,
//! which is the same one for all that reach the memory directly; so all routes to an element decide alike.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use super::control::{STRIPE_BYTES, STRIPES};
use super::word::{Instruction, instruct};
use crate::datatype::{Datatype, Kind, Named, RecvBuf, Run, Scalar, SendBuf};
use crate::op::{DenseOp, Op, OpError, Predefined};
use mpi_base::cma::{self, CmaError};
use mpi_base::node::Node;
use mpi_base::window::Stripe;
use portable_atomic::AtomicU128;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// The longest element: a long double and an index, with the holes between them.
const LONGEST: usize = 32;

/// Memory of a target, as this process reaches it; `address` is where it begins at its owner.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    pub reach: Reach,
    pub address: u64,
    pub stripes: &'a [Stripe],
    /// Where the processes are that hold them; in some tests there is only one.
    pub node: Option<&'a Node>,
    /// Whether every update is made under a lock.
    pub locked: bool,
}

/// How memory is reached.
#[derive(Clone, Copy)]
pub(super) enum Reach {
    /// It is mapped here.
    Here(*mut u8),
    /// Through the system, which checks the addresses.
    Process(u32),
}

impl Memory<'_> {
    /// Runs `update` under the lock of what lies at an address.
    fn under_stripe<R>(&self, address: u64, update: impl FnOnce() -> R) -> R {
        let stripe = &self.stripes[(address / STRIPE_BYTES) as usize % STRIPES];
        let me = self.node.map_or(0, Node::rank);
        let has_ended = |place| self.node.is_some_and(|node| node.has_ended(place));
        stripe.with(me, has_ended, update)
    }

    fn address(&self, offset: i64) -> u64 {
        self.address.wrapping_add_signed(offset)
    }

    /// # Safety
    /// As [`Combine::run`].
    unsafe fn read(&self, offset: i64, bytes: &mut [u8]) -> Result<(), CmaError> {
        match self.reach {
            Reach::Here(base) => {
                let at = base.wrapping_offset(offset as isize);
                // SAFETY: the caller vouches for the memory; others may write it at the same time, which makes the values undefined, as the standard has it.
                unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) };
                Ok(())
            }
            Reach::Process(pid) => cma::read(pid, self.address(offset), bytes),
        }
    }

    /// # Safety
    /// As [`Combine::run`].
    unsafe fn write(&self, offset: i64, bytes: &[u8]) -> Result<(), CmaError> {
        match self.reach {
            Reach::Here(base) => {
                let at = base.wrapping_offset(offset as isize);
                // SAFETY: as for reading.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
                Ok(())
            }
            Reach::Process(pid) => cma::write(pid, self.address(offset), bytes),
        }
    }
}

/// An operator on a basic type, looked up once.
#[derive(Clone, Copy)]
pub(super) struct Combine {
    op: Predefined,
    named: Named,
    dense: Option<DenseOp>,
    size: usize,
    /// What a single instruction does on words.
    native: Option<Native>,
}

#[derive(Clone, Copy)]
enum Native {
    Alone(Instruction),
    /// Sums of reals, which no instruction does in memory, but which need no call either.
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
        Ok(Combine {
            op,
            named,
            dense: DenseOp::new(&general, &datatype),
            size: named.info().size as usize,
            native,
        })
    }

    pub fn op(&self) -> Predefined {
        self.op
    }

    pub fn named(&self) -> Named {
        self.named
    }

    /// Packed bytes of an element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// `inout = input op inout` on whole packed elements.
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

    /// The same for one element that has holes where it lies in memory.
    fn combine_with_holes(&self, input: &[u8], inout: &mut [u8]) {
        let datatype = Datatype::from(self.named);
        let mut memory = [[0u8; LONGEST]; 2];
        let [a, b] = &mut memory;
        // SAFETY: both are locals that are longer than any element, and nothing else uses them while the buffers live.
        let (mut first, mut second) = unsafe {
            (
                RecvBuf::new(a.as_mut_ptr(), 1, datatype.clone()),
                RecvBuf::new(b.as_mut_ptr(), 1, datatype.clone()),
            )
        };
        first.unpack_at(0, input);
        second.unpack_at(0, inout);
        // Both have the type that the operator was checked for.
        let _ = Op::Predefined(self.op).apply(&first.as_send(), &mut second);
        second.as_send().pack_at(0, inout);
    }

    /// Updates the elements that lie in `runs`, in packed order, with those of `input`; `result` gets what was there before.
    ///
    /// Of operators that read nothing `input` may be empty; else it ends the work where it ends.
    ///
    /// # Safety
    /// Where the memory is mapped here, all runs are inside it.
    pub unsafe fn run(
        &self,
        memory: &Memory<'_>,
        runs: impl Iterator<Item = Run>,
        input: &[u8],
        mut result: Option<&mut [u8]>,
    ) -> Result<(), CmaError> {
        let reads_nothing = self.op == Predefined::NoOp;
        let scattered = self.dense_run().is_none();
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
                        // SAFETY: passed on.
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
                    // SAFETY: passed on.
                    unsafe { self.contiguous(memory, run.offset, len as usize, input, old)? };
                    at += len as usize;
                    len
                };
                run = Run::new(run.offset + step, run.len - step);
            }
        }
        Ok(())
    }

    /// The size of an element if it never lies in two runs.
    fn dense_run(&self) -> Option<usize> {
        let (_, len) = Datatype::from(self.named).contiguous_bytes(1)?;
        (len == self.size as i64).then_some(self.size)
    }

    /// Whether an element at `address` is updated by the processor alone.
    #[inline]
    pub fn is_atomic(&self, locked: bool, address: u64) -> bool {
        is_atomic(self.named, locked, address)
    }

    /// How much of a run is updated at once: all of it by the processor, or under a lock what lies in one stripe.
    fn chunk(&self, memory: &Memory<'_>, run: Run) -> i64 {
        let address = memory.address(run.offset);
        let size = self.size as i64;
        if self.is_atomic(memory.locked, address) {
            // What is left of an element is none.
            return (run.len / size * size).max(size.min(run.len));
        }
        let in_stripe = (STRIPE_BYTES - address % STRIPE_BYTES) as i64;
        let whole = in_stripe.min(run.len) / size * size;
        whole.max(size.min(run.len))
    }

    /// # Safety
    /// As [`Combine::run`].
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
            // SAFETY: the caller vouches for the elements, whose addresses here are as aligned as at their owner.
            unsafe { self.atomics(at, len / self.size, input, old) };
            return Ok(());
        }
        // Most such updates are of one element.
        match len {
            // SAFETY: passed on.
            0..=LONGEST => unsafe {
                self.under_lock(memory, offset, &mut [0; LONGEST][..len], input, old)
            },
            // SAFETY: passed on.
            _ => unsafe {
                let mut bytes = [0; STRIPE_BYTES as usize];
                self.under_lock(memory, offset, &mut bytes[..len], input, old)
            },
        }
    }

    /// Updates what lies in one stripe with the help of memory of our own.
    ///
    /// # Safety
    /// As [`Combine::run`].
    unsafe fn under_lock(
        &self,
        memory: &Memory<'_>,
        offset: i64,
        bytes: &mut [u8],
        input: &[u8],
        old: Option<&mut [u8]>,
    ) -> Result<(), CmaError> {
        memory.under_stripe(memory.address(offset), || {
            // SAFETY: passed on.
            unsafe { memory.read(offset, bytes)? };
            if let Some(old) = old {
                old.copy_from_slice(bytes);
            }
            if self.op == Predefined::NoOp {
                return Ok(());
            }
            self.combine(input, bytes);
            // SAFETY: passed on.
            unsafe { memory.write(offset, bytes) }
        })
    }

    /// Elements that follow each other, by the processor alone.
    ///
    /// # Safety
    /// As [`Combine::atomic`], for `count` elements.
    #[inline]
    unsafe fn atomics(&self, at: *mut u8, count: usize, input: &[u8], mut old: Option<&mut [u8]>) {
        for (i, start) in (0..count).map(|i| (i, i * self.size)) {
            let range = start..start + self.size;
            let given = input.get(range.clone()).unwrap_or(&[]);
            let old = old.as_deref_mut().and_then(|old| old.get_mut(range));
            // SAFETY: passed on.
            unsafe { self.atomic(at.wrapping_add(i * self.size), given, old) };
        }
    }

    /// # Safety
    /// As [`Combine::run`].
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
                // SAFETY: passed on.
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
                // SAFETY: passed on.
                unsafe { memory.write(run.offset, &bytes[range]) }
            })
        })
    }

    /// What comes after an element.
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
        // The sizes of the words are those of the types, which the compiler need not know.
        match self.native {
            Some(Native::AddF64) if N == size_of::<f64>() => add!(f64),
            Some(Native::AddF32) if N == size_of::<f32>() => add!(f32),
            _ => self.combine(input, &mut now),
        }
        now
    }

    /// One element by the processor alone.
    ///
    /// # Safety
    /// `at` leads to an element of which [`is_atomic`] is true.
    #[inline]
    pub unsafe fn atomic(&self, at: *mut u8, input: &[u8], old: Option<&mut [u8]>) {
        macro_rules! word {
            ($t:ty, $atomic:ty) => {{
                // SAFETY: the caller vouches for it.
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

/// Whether an element of this type at `address` is updated by the processor alone, in memory that does not need locks for all.
#[inline]
pub(super) fn is_atomic(named: Named, locked: bool, address: u64) -> bool {
    let info = named.info();
    !locked
        && match info.size {
            1 | 2 | 4 | 8 => true,
            // Where the processor cannot, the crate takes a lock of this process, which is none for others.
            16 => AtomicU128::is_lock_free(),
            _ => false,
        }
        && info.size == info.extent
        && !matches!(info.kind, Kind::Byte | Kind::Packed)
        && address.is_multiple_of(info.size as u64)
}

/// Bytes `range` of the input and of the result; nothing where the input has ended.
#[allow(clippy::type_complexity)]
fn part<'a, 'b>(
    result: &'b mut Option<&mut [u8]>,
    range: &std::ops::Range<usize>,
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

/// An element that lies in several runs: a value, a hole, an index.
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
    /// Takes what is missing of an element from the front of a run; answers how much that was.
    fn take(&mut self, run: Run, size: i64) -> i64 {
        let len = run.len.min(size - self.bytes);
        // More than two runs would be a type whose elements are none of ours; what is too much is one of them.
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
        mut f: impl FnMut(Fragment, std::ops::Range<usize>) -> Result<(), CmaError>,
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

/// Compares an element with `compare` and replaces it by `new` where they are equal; `old` gets what was there.
///
/// # Safety
/// Where the memory is mapped here, the element of type `named` at its beginning is inside it. All three slices have its length.
#[inline]
pub(super) unsafe fn compare_and_swap(
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
        macro_rules! word {
            ($t:ty, $atomic:ty) => {{
                // SAFETY: the caller vouches for the element, and it is aligned.
                let word = unsafe { <$atomic>::from_ptr(at.cast()) };
                let value =
                    |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| <$t>::from_ne_bytes(*b));
                let before = word.compare_exchange(value(compare), value(new), AcqRel, Acquire);
                old.copy_from_slice(&before.unwrap_or_else(|now| now).to_ne_bytes());
            }};
        }
        match size {
            1 => word!(u8, AtomicU8),
            2 => word!(u16, AtomicU16),
            4 => word!(u32, AtomicU32),
            16 => word!(u128, AtomicU128),
            _ => word!(u64, AtomicU64),
        }
        return Ok(());
    }
    memory.under_stripe(address, || {
        // SAFETY: passed on.
        unsafe { memory.read(offset, old)? };
        if old != compare {
            return Ok(());
        }
        // SAFETY: passed on.
        unsafe { memory.write(offset, new) }
    })
}

/// The packed bytes of a buffer, where they lie if they lie together.
pub(super) fn packed(buf: &SendBuf) -> std::borrow::Cow<'_, [u8]> {
    match buf.contiguous() {
        Some(all) => all.into(),
        None => buf.to_vec().into(),
    }
}
