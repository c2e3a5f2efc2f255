//! Arithmetic of the two number formats without a Rust type:
//! the 80-bit `long double` of the x87 and IEEE binary128 (`REAL*16`).
//!
//! The x87 unit computes `long double`, with a 64-bit significand, as in code of C compilers.
//! For binary128, this module calls the functions that all C compilers call (`__addtf3` and others
//! of libgcc and of Rust's compiler-builtins).
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::__m128i;
use std::cmp::Ordering;

use super::fold::Number;

/// An 80-bit x87 number in sixteen bytes. The last six bytes are padding.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Extended(pub [u8; 16]);

macro_rules! x87_binary {
    ($name:ident, $instruction:literal) => {
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            let mut result = self;
            // SAFETY: two loads of ten bytes from valid values
            // and one store of ten bytes to a valid value.
            // The x87 stack is empty afterwards, as before.
            unsafe {
                asm!(
                    "fld tbyte ptr [{a}]",
                    "fld tbyte ptr [{b}]",
                    $instruction,
                    "fstp tbyte ptr [{r}]",
                    a = in(reg) &self,
                    b = in(reg) &other,
                    r = in(reg) &mut result,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }
    };
}

impl Number for Extended {
    x87_binary!(add, "faddp st(1), st");
    x87_binary!(sub, "fsubp st(1), st");
    x87_binary!(mul, "fmulp st(1), st");
}

impl PartialEq for Extended {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Extended {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let (unordered, below, equal): (u8, u8, u8);
        // SAFETY: two loads of ten bytes from valid values. The comparison pops one of them from
        // the x87 stack, and the last instruction pops the other.
        unsafe {
            asm!(
                "fld tbyte ptr [{b}]",
                "fld tbyte ptr [{a}]",
                "fucomip st, st(1)",
                "setp {unordered}",
                "setb {below}",
                "sete {equal}",
                "fstp st(0)",
                a = in(reg) self,
                b = in(reg) other,
                unordered = out(reg_byte) unordered,
                below = out(reg_byte) below,
                equal = out(reg_byte) equal,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        match (unordered, below, equal) {
            (1, ..) => None,
            (_, 1, _) => Some(Ordering::Less),
            (_, _, 1) => Some(Ordering::Equal),
            _ => Some(Ordering::Greater),
        }
    }
}

/// An IEEE binary128 number.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Quad(pub u128);

// The C functions pass their numbers in vector registers, for which stable Rust has no signature.
// The functions are declared only for their addresses, and the asm blocks below call them.
unsafe extern "C" {
    fn __addtf3();
    fn __subtf3();
    fn __multf3();
    fn __lttf2();
    fn __eqtf2();
    fn __unordtf2();
}

fn register(quad: Quad) -> __m128i {
    // SAFETY: both types have sixteen bytes, and every bit pattern is valid.
    unsafe { std::mem::transmute(quad) }
}

macro_rules! quad_binary {
    ($name:ident, $function:ident) => {
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            let mut x = register(self);
            // SAFETY: by the System V ABI, the function takes two binary128
            // in xmm0 and xmm1, and returns one in xmm0.
            // The stack is aligned at the start of an asm block,
            // and all registers that a C function may change are declared.
            unsafe {
                asm!(
                    "call {f}",
                    f = sym $function,
                    inout("xmm0") x,
                    in("xmm1") register(other),
                    clobber_abi("C"),
                );
                std::mem::transmute(x)
            }
        }
    };
}

macro_rules! quad_comparison {
    ($name:ident, $function:ident) => {
        #[inline(always)]
        fn $name(a: Quad, b: Quad) -> i32 {
            let result: i32;
            // SAFETY: by the System V ABI, the function takes two binary128
            // in xmm0 and xmm1, and returns an int in eax.
            // The stack is aligned at the start of an asm block,
            // and all registers that a C function may change are declared.
            unsafe {
                asm!(
                    "call {f}",
                    f = sym $function,
                    in("xmm0") register(a),
                    in("xmm1") register(b),
                    out("eax") result,
                    clobber_abi("C"),
                );
            }
            result
        }
    };
}

quad_comparison!(below_zero_if_less, __lttf2);
quad_comparison!(zero_if_equal, __eqtf2);
quad_comparison!(zero_if_ordered, __unordtf2);

impl Number for Quad {
    quad_binary!(add, __addtf3);
    quad_binary!(sub, __subtf3);
    quad_binary!(mul, __multf3);
}

impl PartialEq for Quad {
    fn eq(&self, other: &Self) -> bool {
        zero_if_equal(*self, *other) == 0
    }
}

impl PartialOrd for Quad {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if zero_if_ordered(*self, *other) != 0 {
            None
        } else if below_zero_if_less(*self, *other) < 0 {
            Some(Ordering::Less)
        } else if zero_if_equal(*self, *other) == 0 {
            Some(Ordering::Equal)
        } else {
            Some(Ordering::Greater)
        }
    }
}
