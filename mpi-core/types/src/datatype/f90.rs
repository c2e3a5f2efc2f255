//! Datatypes of Fortran kinds, selected by precision and range (MPI 5.0, section 19.1.9).
//!
//! Types of Fortran kinds are unnamed predefined types: committed from the start, never freed, and
//! allowed with the predefined operators.
//! However, they have an envelope, so they are represented as derived types with one basic element.

use super::construct::Made;
use super::contents::Combiner;
use super::error::TypeError;
use super::named::Named;
use super::{Datatype, Repr};

/// The arguments of an `MPI_Type_create_f90_*` call, and the predefined type that they select.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FortranKind {
    pub combiner: Combiner,
    /// The number of decimal digits; `None` for integers.
    precision: Option<i64>,
    /// The decimal exponent range of a real or complex kind,
    /// or the decimal range of an integer kind.
    range: i64,
    pub basic: Named,
}

impl FortranKind {
    /// Returns the arguments as `MPI_Type_get_contents` does.
    pub fn arguments(&self) -> Vec<i64> {
        self.precision.into_iter().chain([self.range]).collect()
    }
}

/// The value of `MPI_UNDEFINED` in the standard ABI, passed for an omitted argument.
const UNDEFINED: i64 = -32766;

/// The decimal digits and decimal exponent range of each real type, with the real and complex type.
const REALS: [(i64, i64, Named, Named); 3] = [
    (6, 37, Named::REAL4, Named::COMPLEX8),
    (15, 307, Named::REAL8, Named::COMPLEX16),
    (33, 4931, Named::REAL16, Named::COMPLEX32),
];

/// The decimal range of each integer type: the number of digits that always fit.
const INTEGERS: [(i64, Named); 5] = [
    (2, Named::INTEGER1),
    (4, Named::INTEGER2),
    (9, Named::INTEGER4),
    (18, Named::INTEGER8),
    (38, Named::INTEGER16),
];

fn floating(combiner: Combiner, p: i64, r: i64) -> Result<Datatype, TypeError> {
    let nothing = p == UNDEFINED && r == UNDEFINED;
    let row = REALS.iter().find(|(digits, range, ..)| {
        (p == UNDEFINED || p <= *digits) && (r == UNDEFINED || r <= *range)
    });
    let Some((_, _, real, complex)) = row.filter(|_| !nothing) else {
        return Err(TypeError::NoKind {
            combiner: combiner.word(),
            asked: match nothing {
                true => "neither digits nor a range are given".to_string(),
                false => format!("{p} digits and a range of {r}"),
            },
        });
    };
    Datatype::derive_kind(FortranKind {
        combiner,
        precision: Some(p),
        range: r,
        basic: match combiner {
            Combiner::F90Complex => *complex,
            _ => *real,
        },
    })
}

impl Made {
    pub fn kind(&self) -> Option<&FortranKind> {
        match self {
            Made::Fortran(kind) => Some(kind),
            _ => None,
        }
    }
}

/// `MPI_Type_create_f90_real`
pub fn real(p: i64, r: i64) -> Result<Datatype, TypeError> {
    floating(Combiner::F90Real, p, r)
}

/// `MPI_Type_create_f90_complex`
pub fn complex(p: i64, r: i64) -> Result<Datatype, TypeError> {
    floating(Combiner::F90Complex, p, r)
}

/// `MPI_Type_create_f90_integer`
pub fn integer(r: i64) -> Result<Datatype, TypeError> {
    let combiner = Combiner::F90Integer;
    let row = INTEGERS.iter().find(|(range, _)| r <= *range);
    let (_, basic) = row.ok_or_else(|| TypeError::NoKind {
        combiner: combiner.word(),
        asked: format!("a range of {r}"),
    })?;
    Datatype::derive_kind(FortranKind {
        combiner,
        precision: None,
        range: r,
        basic: *basic,
    })
}

impl Datatype {
    /// Returns the arguments that selected this type, if it is a type of a Fortran kind.
    pub fn fortran_kind(&self) -> Option<&FortranKind> {
        match &self.0 {
            Repr::Named(_) => None,
            Repr::Derived(derived) => derived.made.kind(),
        }
    }
}
