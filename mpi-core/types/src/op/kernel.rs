//! The loops of the operators. One generic loop is compiled for each operator and type.
//! For narrow numbers it is also compiled with AVX2 and with AVX-512;
//! the version is chosen at run time.
//!
//! Elements are read and written unaligned, because temporaries may have any alignment.
//! The compiler vectorises unaligned accesses as well as aligned ones.
#![allow(unsafe_code)]

use half::f16;

use super::fold::{Complex, Fold, Located};
use crate::datatype::{Kind, RecvBuf, Scalar, SendBuf};

/// A value in the layout of a user buffer.
pub trait Element: Copy {
    /// The distance between two elements in the buffer, in bytes.
    const STRIDE: usize;
    /// True if the loop on this type is faster with wider vectors.
    const VECTOR: bool;

    /// # Safety
    /// The data of one element must be readable at `at`.
    unsafe fn load(at: *const u8) -> Self;

    /// # Safety
    /// The data of one element must be writable at `at`.
    unsafe fn store(self, at: *mut u8);
}

/// Implements [`Element`] for types without padding.
macro_rules! plain {
    ($vector:literal: $($t:ty)*) => {$(
        impl Element for $t {
            const STRIDE: usize = size_of::<$t>();
            const VECTOR: bool = $vector;

            #[inline(always)]
            unsafe fn load(at: *const u8) -> Self {
                // SAFETY: the element is readable by the contract of `load`.
                // Every bit pattern is a valid value of this type.
                unsafe { at.cast::<$t>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(self, at: *mut u8) {
                // SAFETY: the element is writable by the contract of `store`.
                unsafe { at.cast::<$t>().write_unaligned(self) }
            }
        }
    )*};
}

plain!(true: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 Complex<f32> Complex<f64>);
plain!(false: i128 u128 f16 Complex<f16>);
#[cfg(target_arch = "x86_64")]
plain!(false: super::wide::Extended Complex<super::wide::Extended> super::wide::Quad Complex<super::wide::Quad>);

/// A scalar that can be a part of a pair.
pub trait Part: Element + PartialOrd {
    const SCALAR: Scalar;
}

macro_rules! parts {
    ($($t:ty = $scalar:ident)*) => {$(
        impl Part for $t {
            const SCALAR: Scalar = Scalar::$scalar;
        }
    )*};
}

parts!(i16 = I16 i32 = I32 i64 = I64 f32 = F32 f64 = F64);
#[cfg(target_arch = "x86_64")]
parts!(super::wide::Extended = X87);

impl<V: Part, I: Part> Located<V, I> {
    const INDEX_AT: usize = Kind::second_at(V::SCALAR, I::SCALAR) as usize;
}

impl<V: Part, I: Part> Element for Located<V, I> {
    const STRIDE: usize = {
        let align = if V::STRIDE > I::STRIDE {
            V::STRIDE
        } else {
            I::STRIDE
        };
        (Self::INDEX_AT + I::STRIDE).next_multiple_of(align)
    };
    const VECTOR: bool = false;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: both parts are readable by the contract of `load`.
        unsafe {
            Located {
                value: V::load(at),
                index: I::load(at.add(Self::INDEX_AT)),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: both parts are writable by the contract of `store`. The padding is not written.
        unsafe {
            self.value.store(at);
            self.index.store(at.add(Self::INDEX_AT));
        }
    }
}

/// Computes `inout[i] = input[i] op inout[i]` for `n` elements.
///
/// # Safety
/// `n` elements must be readable at `input` and writable at `inout`.
#[inline(always)]
unsafe fn each<T: Element, F: Fold<T>>(input: *const u8, inout: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: element `i < n` is valid on both sides by this function's contract.
        unsafe {
            let at = inout.add(i * T::STRIDE);
            let combined = F::fold(T::load(input.add(i * T::STRIDE)), T::load(at));
            combined.store(at);
        }
    }
}

/// The loop without vector extensions, for every processor.
///
/// # Safety
/// The contract of [`each`].
unsafe fn portable<T: Element, F: Fold<T>>(input: *const u8, inout: *mut u8, n: usize) {
    // SAFETY: `n` elements are valid on both sides by this function's contract.
    unsafe { each::<T, F>(input, inout, n) }
}

/// The loop with 32-byte vectors.
///
/// # Safety
/// The contract of [`each`], and the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<T: Element, F: Fold<T>>(input: *const u8, inout: *mut u8, n: usize) {
    // SAFETY: `n` elements are valid on both sides by this function's contract.
    unsafe { each::<T, F>(input, inout, n) }
}

/// The loop with 64-byte vectors.
///
/// # Safety
/// The contract of [`each`], and the processor must have the extensions in `target_feature`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512<T: Element, F: Fold<T>>(input: *const u8, inout: *mut u8, n: usize) {
    // SAFETY: `n` elements are valid on both sides by this function's contract.
    unsafe { each::<T, F>(input, inout, n) }
}

type Loop = unsafe fn(*const u8, *mut u8, usize);

/// The instruction set for which a version of the loop is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Returns the best level that this processor supports. The standard library caches the result.
    pub fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Level::Avx2;
            }
        }
        Level::Portable
    }

    /// Returns all levels that this processor supports.
    #[cfg(test)]
    pub fn here() -> Vec<Level> {
        match Level::best() {
            Level::Portable => vec![Level::Portable],
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => vec![Level::Portable, Level::Avx2],
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => vec![Level::Portable, Level::Avx2, Level::Avx512],
        }
    }
}

/// The loop of one operator on one type.
#[derive(Clone, Copy)]
pub struct Kernel(Loop);

impl Kernel {
    /// Returns the loop of operator `F` on type `T`. A type without vector
    /// code has the same loop at all levels.
    pub fn of<T: Element, F: Fold<T>>(level: Level) -> Kernel {
        #[cfg(target_arch = "x86_64")]
        if T::VECTOR {
            match level {
                Level::Avx512 => return Kernel(avx512::<T, F>),
                Level::Avx2 => return Kernel(avx2::<T, F>),
                Level::Portable => {}
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = level;
        Kernel(portable::<T, F>)
    }

    /// Combines the first `count` elements.
    /// Both buffers must have `count` elements of the loop's type.
    pub(super) fn run(self, input: &SendBuf, inout: &mut RecvBuf, count: i64) {
        // SAFETY: the callers of `SendBuf::new` and `RecvBuf::new` guaranteed valid elements.
        // `Op::apply` limited `count` to both buffers.
        // `kernel_for` chose the loop by the elements' type and by the features of the processor.
        unsafe { (self.0)(input.ptr(), inout.ptr(), count as usize) }
    }

    /// Combines contiguous elements of `size` bytes, up to the end of the shorter slice.
    /// Both slices must have elements of the type of the loop.
    #[inline]
    pub(super) fn run_dense(self, input: &[u8], inout: &mut [u8], size: usize) {
        let count = input.len().min(inout.len()) / size;
        // SAFETY: `count` elements fit in both slices. `kernel_for` chose the loop by the type of
        // the elements and by the features of the processor.
        unsafe { (self.0)(input.as_ptr(), inout.as_mut_ptr(), count) }
    }
}
