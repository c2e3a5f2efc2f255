//! The predefined datatypes: one table, from which all their properties are computed.
//!
//! A row of the table is handle, name and kind (MPI 5.0, sections 3.2.2 and 20.3, and Annex A.1.1).
//! Size, alignment, extent and the runs of data
//! in an element are computed from the kind at compile time.
//! A test compares them with the values of the standard ABI on this machine (`predefined.csv`).

use super::layout::Body;

/// A number format of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Scalar {
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
    /// IEEE binary16.
    F16,
    F32,
    F64,
    /// The 80-bit x87 format in sixteen bytes: C's `long double` on x86-64.
    X87,
    /// IEEE binary128: Fortran's `REAL*16`.
    F128,
}

impl Scalar {
    /// Returns the size in bytes.
    /// It is also the alignment of every scalar in the ABIs of x86-64 and AArch64.
    pub const fn size(self) -> i64 {
        use Scalar::*;
        match self {
            I8 | U8 => 1,
            I16 | U16 | F16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
            I128 | U128 | X87 | F128 => 16,
        }
    }
}

/// The group of a predefined datatype in the standard's table of operators (section 6.9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// C integer.
    CInteger(Scalar),
    /// Fortran integer.
    FInteger(Scalar),
    /// Multi-language type: `MPI_AINT`, `MPI_OFFSET`, `MPI_COUNT`.
    Multi(Scalar),
    Float(Scalar),
    Complex(Scalar),
    /// Fortran's LOGICAL and the Booleans of C and C++.
    Logical(Scalar),
    /// Printable characters. They can be transferred, but arithmetic operators do not accept them.
    Character(Scalar),
    /// `MPI_CHAR`: a character in the standard.
    /// Open MPI and MPICH treat it as an integer, like C's `char`.
    Char(Scalar),
    Byte,
    Packed,
    /// A value and an index, for MAXLOC and MINLOC.
    Pair(Scalar, Scalar),
}

impl Kind {
    /// Returns the scalars of one element in order: two for complex numbers and pairs, otherwise one.
    const fn parts(self) -> (Scalar, Option<Scalar>) {
        match self {
            Kind::CInteger(s)
            | Kind::FInteger(s)
            | Kind::Multi(s)
            | Kind::Float(s)
            | Kind::Logical(s)
            | Kind::Character(s)
            | Kind::Char(s) => (s, None),
            Kind::Complex(s) => (s, Some(s)),
            Kind::Byte | Kind::Packed => (Scalar::U8, None),
            Kind::Pair(value, index) => (value, Some(index)),
        }
    }

    /// Returns the offset in bytes of the second scalar of a pair.
    pub const fn second_at(value: Scalar, index: Scalar) -> i64 {
        round_up(value.size(), index.size())
    }
}

const fn round_up(n: i64, to: i64) -> i64 {
    (n + to - 1) / to * to
}

/// A predefined datatype, as an index into the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Named(u8);

/// The properties of a predefined datatype.
#[derive(Debug)]
pub struct Info {
    /// The value of the datatype's handle in the standard ABI.
    pub handle: u32,
    pub name: &'static str,
    pub kind: Kind,
    pub size: i64,
    pub align: i64,
    pub extent: i64,
    pub true_extent: i64,
    offsets: [i64; 2],
    starts: [i64; 3],
    run_count: usize,
}

impl Info {
    const fn of(row: &Row) -> Info {
        let (first, second) = row.2.parts();
        let (offsets, run_count, align, end) = match second {
            None => ([0, 0], 1, first.size(), first.size()),
            Some(second) => {
                let at = Kind::second_at(first, second);
                let align = if first.size() > second.size() {
                    first.size()
                } else {
                    second.size()
                };
                // The two parts are one run if the second begins where the first ends.
                let run_count = if at == first.size() { 1 } else { 2 };
                ([0, at], run_count, align, at + second.size())
            }
        };
        let size = match second {
            None => first.size(),
            Some(second) => first.size() + second.size(),
        };
        Info {
            handle: row.0,
            name: row.1,
            kind: row.2,
            size,
            align,
            extent: round_up(end, align),
            true_extent: end,
            offsets,
            starts: [0, first.size(), size],
            run_count,
        }
    }
}

impl Named {
    /// Returns the predefined datatype with this handle value in the standard ABI.
    #[inline]
    pub fn from_handle(handle: usize) -> Option<Named> {
        let slot = *SLOT_OF_HANDLE.get(handle.checked_sub(FIRST_HANDLE)?)?;
        (slot != NO_SLOT).then_some(Named(slot))
    }

    /// Returns the size in bytes of an element of the predefined type with this handle value in the
    /// standard ABI. Returns 0 if no type has it, or if the type's elements are not contiguous.
    #[inline]
    pub fn dense_size(handle: usize) -> usize {
        let slot = handle.wrapping_sub(FIRST_HANDLE);
        DENSE_SIZE_OF_HANDLE
            .get(slot)
            .map_or(0, |size| usize::from(*size))
    }

    /// Returns the properties of this predefined datatype.
    #[inline]
    pub fn info(self) -> &'static Info {
        &TABLE[self.0 as usize]
    }

    /// Iterates over all predefined datatypes in the order of their handles.
    pub fn all() -> impl Iterator<Item = Named> {
        (0..ROWS.len() as u8).map(Named)
    }

    /// Returns the runs of data in one element.
    #[inline]
    pub(crate) fn body(self) -> Body<'static> {
        let info = self.info();
        match info.run_count {
            1 => Body::uniform_of(&info.offsets[..1], info.size),
            _ => Body::two_of(&info.offsets, &info.starts),
        }
    }

    /// Returns true if consecutive elements are contiguous: the element has no holes.
    #[inline]
    pub fn is_dense(self) -> bool {
        let info = self.info();
        info.size == info.extent
    }

    /// Returns the sizes in bytes of the basic elements
    /// of one element: two for a pair, otherwise one.
    pub(crate) fn basics(self) -> (i64, Option<i64>) {
        match self.info().kind {
            Kind::Pair(value, index) => (value.size(), Some(index.size())),
            _ => (self.info().size, None),
        }
    }
}

macro_rules! named_constants {
    ($($name:ident = $handle:expr;)*) => {
        /// The datatypes that the library itself uses.
        impl Named {
            $(
                /// The MPI datatype of this name, with its handle
                /// in the standard ABI (MPI 5.0, chapter 20).
                pub const $name: Named = Named(SLOT_OF_HANDLE[$handle - FIRST_HANDLE]);
            )*
        }
    };
}

named_constants! {
    AINT = 0x201; COUNT = 0x202; OFFSET = 0x203; PACKED = 0x207;
    INT = 0x209; LONG = 0x20a; UNSIGNED_LONG = 0x20e; LONG_INT = 0x22a; WCHAR = 0x23c; FLOAT = 0x210; DOUBLE = 0x214; CHAR = 0x243; BYTE = 0x247;
    INT32 = 0x250; UINT32 = 0x251; INT64 = 0x258; UINT64 = 0x259; SHORT_INT = 0x22c; DOUBLE_INT = 0x229;
    INTEGER1 = 0x2c1; INTEGER2 = 0x2c9; INTEGER4 = 0x2d1; INTEGER8 = 0x2d9; INTEGER16 = 0x2e1;
    REAL4 = 0x2d2; REAL8 = 0x2da; REAL16 = 0x2e2; COMPLEX8 = 0x2db; COMPLEX16 = 0x2e3; COMPLEX32 = 0x2eb;
}

const FIRST_HANDLE: usize = 0x200;
const NO_SLOT: u8 = u8::MAX;

static TABLE: [Info; ROWS.len()] = {
    let mut table = [const { Info::of(&ROWS[0]) }; ROWS.len()];
    let mut i = 0;
    while i < ROWS.len() {
        table[i] = Info::of(&ROWS[i]);
        i += 1;
    }
    table
};

const SLOT_OF_HANDLE: [u8; 256] = {
    let mut slots = [NO_SLOT; 256];
    let mut i = 0;
    while i < ROWS.len() {
        slots[ROWS[i].0 as usize - FIRST_HANDLE] = i as u8;
        i += 1;
    }
    slots
};

static DENSE_SIZE_OF_HANDLE: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut i = 0;
    while i < ROWS.len() {
        let info = &TABLE[i];
        if info.size == info.extent {
            sizes[info.handle as usize - FIRST_HANDLE] = info.size as u8;
        }
        i += 1;
    }
    sizes
};

type Row = (u32, &'static str, Kind);

use Kind::*;
use Scalar::*;

/// C's `char`, which is signed on some processors.
const CHAR: Scalar = match std::ffi::c_char::MIN {
    0 => U8,
    _ => I8,
};

#[rustfmt::skip]
const ROWS: [Row; 71] = [
    (0x201, "MPI_AINT", Multi(I64)),
    (0x202, "MPI_COUNT", Multi(I64)),
    (0x203, "MPI_OFFSET", Multi(I64)),
    (0x207, "MPI_PACKED", Packed),
    (0x208, "MPI_SHORT", CInteger(I16)),
    (0x209, "MPI_INT", CInteger(I32)),
    (0x20a, "MPI_LONG", CInteger(I64)),
    (0x20b, "MPI_LONG_LONG_INT", CInteger(I64)),
    (0x20c, "MPI_UNSIGNED_SHORT", CInteger(U16)),
    (0x20d, "MPI_UNSIGNED", CInteger(U32)),
    (0x20e, "MPI_UNSIGNED_LONG", CInteger(U64)),
    (0x20f, "MPI_UNSIGNED_LONG_LONG", CInteger(U64)),
    (0x210, "MPI_FLOAT", Float(F32)),
    (0x212, "MPI_C_COMPLEX", Complex(F32)),
    (0x213, "MPI_CXX_FLOAT_COMPLEX", Complex(F32)),
    (0x214, "MPI_DOUBLE", Float(F64)),
    (0x216, "MPI_C_DOUBLE_COMPLEX", Complex(F64)),
    (0x217, "MPI_CXX_DOUBLE_COMPLEX", Complex(F64)),
    (0x218, "MPI_LOGICAL", Logical(U32)),
    (0x219, "MPI_INTEGER", FInteger(I32)),
    (0x21a, "MPI_REAL", Float(F32)),
    (0x21b, "MPI_COMPLEX", Complex(F32)),
    (0x21c, "MPI_DOUBLE_PRECISION", Float(F64)),
    (0x21d, "MPI_DOUBLE_COMPLEX", Complex(F64)),
    (0x21e, "MPI_CHARACTER", Character(U8)),
    (0x220, "MPI_LONG_DOUBLE", Float(X87)),
    (0x224, "MPI_C_LONG_DOUBLE_COMPLEX", Complex(X87)),
    (0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", Complex(X87)),
    (0x228, "MPI_FLOAT_INT", Pair(F32, I32)),
    (0x229, "MPI_DOUBLE_INT", Pair(F64, I32)),
    (0x22a, "MPI_LONG_INT", Pair(I64, I32)),
    (0x22b, "MPI_2INT", Pair(I32, I32)),
    (0x22c, "MPI_SHORT_INT", Pair(I16, I32)),
    (0x22d, "MPI_LONG_DOUBLE_INT", Pair(X87, I32)),
    (0x230, "MPI_2REAL", Pair(F32, F32)),
    (0x231, "MPI_2DOUBLE_PRECISION", Pair(F64, F64)),
    (0x232, "MPI_2INTEGER", Pair(I32, I32)),
    (0x238, "MPI_C_BOOL", Logical(U8)),
    (0x239, "MPI_CXX_BOOL", Logical(U8)),
    (0x23c, "MPI_WCHAR", Character(U32)),
    (0x240, "MPI_INT8_T", CInteger(I8)),
    (0x241, "MPI_UINT8_T", CInteger(U8)),
    (0x243, "MPI_CHAR", Char(CHAR)),
    (0x244, "MPI_SIGNED_CHAR", CInteger(I8)),
    (0x245, "MPI_UNSIGNED_CHAR", CInteger(U8)),
    (0x247, "MPI_BYTE", Byte),
    (0x248, "MPI_INT16_T", CInteger(I16)),
    (0x249, "MPI_UINT16_T", CInteger(U16)),
    // The standard does not define this type yet, but its ABI reserves the handle.
    // MPICH and Open MPI have the type as an extension.
    (0x24a, "MPIX_C_FLOAT16", Float(F16)),
    (0x250, "MPI_INT32_T", CInteger(I32)),
    (0x251, "MPI_UINT32_T", CInteger(U32)),
    (0x258, "MPI_INT64_T", CInteger(I64)),
    (0x259, "MPI_UINT64_T", CInteger(U64)),
    (0x2c0, "MPI_LOGICAL1", Logical(U8)),
    (0x2c1, "MPI_INTEGER1", FInteger(I8)),
    (0x2c8, "MPI_LOGICAL2", Logical(U16)),
    (0x2c9, "MPI_INTEGER2", FInteger(I16)),
    (0x2ca, "MPI_REAL2", Float(F16)),
    (0x2d0, "MPI_LOGICAL4", Logical(U32)),
    (0x2d1, "MPI_INTEGER4", FInteger(I32)),
    (0x2d2, "MPI_REAL4", Float(F32)),
    (0x2d3, "MPI_COMPLEX4", Complex(F16)),
    (0x2d8, "MPI_LOGICAL8", Logical(U64)),
    (0x2d9, "MPI_INTEGER8", FInteger(I64)),
    (0x2da, "MPI_REAL8", Float(F64)),
    (0x2db, "MPI_COMPLEX8", Complex(F32)),
    (0x2e0, "MPI_LOGICAL16", Logical(U128)),
    (0x2e1, "MPI_INTEGER16", FInteger(I128)),
    (0x2e2, "MPI_REAL16", Float(F128)),
    (0x2e3, "MPI_COMPLEX16", Complex(F64)),
    (0x2eb, "MPI_COMPLEX32", Complex(F128)),
];
