//! The predefined operators on single values.
//!
//! A class of operators is a trait with a generic method,
//! so each operator is written only once for all types.
//! Integers wrap around. If a comparison involves NaN,
//! the result is `inout`, as in C's `a > b ? a : b`.

use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, BitXor};

use half::f16;

/// An operator on elements of type `T`: computes `input op inout` for one element.
pub trait Fold<T> {
    fn fold(input: T, inout: T) -> T;
}

/// A number that can be added and multiplied.
pub trait Number: Copy {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
        }
    )*};
}

// In two's complement, sums and products have the same bits for signed and unsigned integers.
integers!(u8 u16 u32 u64 u128);
floats!(f16 f32 f64);

/// A complex number in the layout of C and Fortran.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

impl<T: Number> Number for Complex<T> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Complex {
            re: self.re.add(other.re),
            im: self.im.add(other.im),
        }
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Complex {
            re: self.re.sub(other.re),
            im: self.im.sub(other.im),
        }
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re.mul(other.re).sub(self.im.mul(other.im)),
            im: self.re.mul(other.im).add(self.im.mul(other.re)),
        }
    }
}

/// The operation of SUM or PROD on two numbers.
pub trait Arithmetic {
    fn combine<T: Number>(input: T, inout: T) -> T;
}

pub struct Sum;
pub struct Prod;

impl Arithmetic for Sum {
    #[inline(always)]
    fn combine<T: Number>(input: T, inout: T) -> T {
        input.add(inout)
    }
}

impl Arithmetic for Prod {
    #[inline(always)]
    fn combine<T: Number>(input: T, inout: T) -> T {
        input.mul(inout)
    }
}

/// The comparison of MAX and MIN, and of the values in MAXLOC and MINLOC.
pub trait Preference {
    fn prefers<T: PartialOrd>(a: T, b: T) -> bool;
}

pub struct Greater;
pub struct Less;

impl Preference for Greater {
    #[inline(always)]
    fn prefers<T: PartialOrd>(a: T, b: T) -> bool {
        a > b
    }
}

impl Preference for Less {
    #[inline(always)]
    fn prefers<T: PartialOrd>(a: T, b: T) -> bool {
        a < b
    }
}

/// The operation of AND, OR or XOR on two integers, bit by bit.
pub trait Bitwise {
    fn combine<T: BitAnd<Output = T> + BitOr<Output = T> + BitXor<Output = T>>(a: T, b: T) -> T;
}

pub struct And;
pub struct Or;
pub struct Xor;

macro_rules! bitwise {
    ($($op:ident $sign:tt)*) => {$(
        impl Bitwise for $op {
            #[inline(always)]
            fn combine<T: BitAnd<Output = T> + BitOr<Output = T> + BitXor<Output = T>>(a: T, b: T) -> T {
                a $sign b
            }
        }
    )*};
}

bitwise!(And & Or | Xor ^);

/// A value and its index. They are read and written separately,
/// because padding between or after them may not belong to the buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Located<V, I> {
    pub value: V,
    pub index: I,
}

/// The fold of an [`Arithmetic`] operator.
pub struct Compute<O>(PhantomData<O>);
/// The fold that returns the operand which a [`Preference`] prefers.
pub struct Choose<O>(PhantomData<O>);
/// The fold of a [`Bitwise`] operator on the bits of integers.
pub struct Bits<O>(PhantomData<O>);
/// The fold of a [`Bitwise`] operator on truth values:
/// any nonzero value is true, and a true result is stored as 1.
pub struct Truth<O>(PhantomData<O>);

impl<T: Number, O: Arithmetic> Fold<T> for Compute<O> {
    #[inline(always)]
    fn fold(input: T, inout: T) -> T {
        O::combine(input, inout)
    }
}

/// A value that can be compared.
pub trait Ordered: PartialOrd + Copy {}
impl<T: PartialOrd + Copy> Ordered for T {}

impl<T: Ordered, O: Preference> Fold<T> for Choose<O> {
    #[inline(always)]
    fn fold(input: T, inout: T) -> T {
        if O::prefers(input, inout) {
            input
        } else {
            inout
        }
    }
}

impl<V: Ordered, I: Ordered, O: Preference> Fold<Located<V, I>> for Choose<O> {
    /// Returns the operand with the preferred value.
    /// If the values are equal, returns the one with the lower index.
    #[inline(always)]
    fn fold(input: Located<V, I>, inout: Located<V, I>) -> Located<V, I> {
        let earlier = input.value == inout.value && input.index < inout.index;
        if O::prefers(input.value, inout.value) || earlier {
            input
        } else {
            inout
        }
    }
}

macro_rules! words {
    ($($t:ty)*) => {$(
        impl<O: Bitwise> Fold<$t> for Bits<O> {
            #[inline(always)]
            fn fold(input: $t, inout: $t) -> $t {
                O::combine(input, inout)
            }
        }

        impl<O: Bitwise> Fold<$t> for Truth<O> {
            #[inline(always)]
            fn fold(input: $t, inout: $t) -> $t {
                O::combine(input != 0, inout != 0) as $t
            }
        }
    )*};
}

words!(u8 u16 u32 u64 u128);
