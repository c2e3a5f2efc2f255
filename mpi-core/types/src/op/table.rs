//! The table of operators and datatypes (MPI 5.0, section 6.9.2), with the loop of each pair.
//!
//! | operators | types |
//! |---|---|
//! | MAX, MIN | C integer, Fortran integer, floating point, multi-language |
//! | SUM, PROD | the types of MAX and MIN, and complex |
//! | LAND, LOR, LXOR | C integer, logical; and multi-language |
//! | BAND, BOR, BXOR | C integer, Fortran integer, byte, multi-language |
//! | MAXLOC, MINLOC | pairs |
//!
//! The standard's table does not define logical operators on the multi-language types
//! (`MPI_AINT`, `MPI_OFFSET`, `MPI_COUNT`).
//! Open MPI and MPICH allow these combinations,
//! and programs use them, so this table allows them, too.
//! All operators of C integers are allowed on `MPI_CHAR`, as on C's `char`.
//! Combinations beyond the standard's table that only one of Open MPI and MPICH allows (logical
//! operators on floating point) are errors.

use half::f16;

use super::Predefined;
use super::fold::*;
use super::kernel::{Kernel, Level};
#[cfg(target_arch = "x86_64")]
use super::wide::{Extended, Quad};
use crate::datatype::{Kind, Scalar};

/// The result of looking up an operator and a type.
pub enum Found {
    Kernel(Kernel),
    NotDefined,
    /// The operator is defined on the type, but this build has no arithmetic for it.
    NotHere,
}

pub fn kernel(op: Predefined, kind: Kind, level: Level) -> Found {
    match op {
        Predefined::Sum => arithmetic::<Sum>(kind, level),
        Predefined::Prod => arithmetic::<Prod>(kind, level),
        Predefined::Max => choice::<Greater>(kind, level),
        Predefined::Min => choice::<Less>(kind, level),
        Predefined::Land => truth::<And>(kind, level),
        Predefined::Lor => truth::<Or>(kind, level),
        Predefined::Lxor => truth::<Xor>(kind, level),
        Predefined::Band => bits::<And>(kind, level),
        Predefined::Bor => bits::<Or>(kind, level),
        Predefined::Bxor => bits::<Xor>(kind, level),
        Predefined::Maxloc => location::<Greater>(kind, level),
        Predefined::Minloc => location::<Less>(kind, level),
        Predefined::Replace | Predefined::NoOp => Found::NotDefined,
    }
}

/// Finds the scalar in rows `Scalar => type, ...`, and returns the loop of `$fold` on that type.
macro_rules! row {
    ($level:ident, $scalar:expr, $fold:ty, $($(#[$here:meta])? $name:pat => $t:ty),* $(,)?) => {
        match $scalar {
            $($(#[$here])? $name => Found::Kernel(Kernel::of::<$t, $fold>($level)),)*
            // Unreachable on x86-64 if a table has a row for every scalar.
            #[allow(unreachable_patterns)]
            _ => Found::NotHere,
        }
    };
}

use Scalar::*;

fn arithmetic<O: Arithmetic>(kind: Kind, level: Level) -> Found {
    match kind {
        Kind::CInteger(s) | Kind::Char(s) | Kind::FInteger(s) | Kind::Multi(s) | Kind::Float(s) => {
            row!(
                level, s, Compute<O>,
                I8 | U8 => u8,
                I16 | U16 => u16,
                I32 | U32 => u32,
                I64 | U64 => u64,
                I128 | U128 => u128,
                F16 => f16,
                F32 => f32,
                F64 => f64,
                #[cfg(target_arch = "x86_64")] X87 => Extended,
                #[cfg(target_arch = "x86_64")] F128 => Quad,
            )
        }
        Kind::Complex(s) => row!(
            level, s, Compute<O>,
            F16 => Complex<f16>,
            F32 => Complex<f32>,
            F64 => Complex<f64>,
            #[cfg(target_arch = "x86_64")] X87 => Complex<Extended>,
            #[cfg(target_arch = "x86_64")] F128 => Complex<Quad>,
        ),
        _ => Found::NotDefined,
    }
}

fn choice<O: Preference>(kind: Kind, level: Level) -> Found {
    match kind {
        Kind::CInteger(s) | Kind::Char(s) | Kind::FInteger(s) | Kind::Multi(s) | Kind::Float(s) => {
            row!(
                level, s, Choose<O>,
                I8 => i8,
                U8 => u8,
                I16 => i16,
                U16 => u16,
                I32 => i32,
                U32 => u32,
                I64 => i64,
                U64 => u64,
                I128 => i128,
                U128 => u128,
                F16 => f16,
                F32 => f32,
                F64 => f64,
                #[cfg(target_arch = "x86_64")] X87 => Extended,
                #[cfg(target_arch = "x86_64")] F128 => Quad,
            )
        }
        _ => Found::NotDefined,
    }
}

/// Returns the loop of a bitwise operator. The loop depends only on the width of the scalar.
macro_rules! words {
    ($level:ident, $scalar:expr, $fold:ty) => {
        row!(
            $level, $scalar, $fold,
            I8 | U8 => u8,
            I16 | U16 => u16,
            I32 | U32 => u32,
            I64 | U64 => u64,
            I128 | U128 => u128,
        )
    };
}

fn truth<O: Bitwise>(kind: Kind, level: Level) -> Found {
    match kind {
        Kind::CInteger(s) | Kind::Char(s) | Kind::Logical(s) | Kind::Multi(s) => {
            words!(level, s, Truth<O>)
        }
        _ => Found::NotDefined,
    }
}

fn bits<O: Bitwise>(kind: Kind, level: Level) -> Found {
    match kind {
        Kind::CInteger(s) | Kind::Char(s) | Kind::FInteger(s) | Kind::Multi(s) => {
            words!(level, s, Bits<O>)
        }
        Kind::Byte => words!(level, U8, Bits<O>),
        _ => Found::NotDefined,
    }
}

fn location<O: Preference>(kind: Kind, level: Level) -> Found {
    let Kind::Pair(value, index) = kind else {
        return Found::NotDefined;
    };
    row!(
        level, (value, index), Choose<O>,
        (F32, I32) => Located<f32, i32>,
        (F64, I32) => Located<f64, i32>,
        (I64, I32) => Located<i64, i32>,
        (I32, I32) => Located<i32, i32>,
        (I16, I32) => Located<i16, i32>,
        (F32, F32) => Located<f32, f32>,
        (F64, F64) => Located<f64, f64>,
        #[cfg(target_arch = "x86_64")] (X87, I32) => Located<Extended, i32>,
    )
}
