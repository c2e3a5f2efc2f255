//! The data representation `external32` (MPI 5.0, section 14.5.2): big-endian integers and
//! IEEE floating-point numbers, with the same sizes on every machine.
//!
//! Packed data are the basic elements in the order of the type map,
//! in `external32` as well as in the native representation.
//! So the engine packs natively, and this module converts each basic
//! element between the packed bytes and the caller's bytes.
//! The bytes of most elements are reversed, `long` and `wchar_t` change their length, and
//! `long double` becomes IEEE binary128.
//! Truncated integers keep their less significant bytes, as the standard requires.

use super::buf::{RecvBuf, SendBuf};
use super::construct::Derived;
use super::named::{Kind, Named, Scalar};
use super::{Datatype, Repr};

/// The conversion of one basic element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// The order of the bytes is reversed.
    Turned,
    /// An integer that has another length in `external32`; the flag is true if it is signed.
    Resized { signed: bool },
    /// The 80-bit x87 floating-point format, converted to binary128.
    Extended,
}

/// The lengths in bytes of a basic element in both representations, and its conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Format {
    native: usize,
    external: usize,
    how: How,
}

impl Format {
    fn of(scalar: Scalar) -> Format {
        let size = scalar.size() as usize;
        Format {
            native: size,
            external: size,
            how: match scalar {
                Scalar::X87 => How::Extended,
                _ => How::Turned,
            },
        }
    }

    fn resized(scalar: Scalar, external: usize, signed: bool) -> Format {
        Format {
            native: scalar.size() as usize,
            external,
            how: How::Resized { signed },
        }
    }

    /// Converts native bytes to `external32`. Both slices have the lengths of this format.
    fn to_external(self, native: &[u8], external: &mut [u8]) {
        match self.how {
            How::Turned => turned(native, external),
            How::Resized { signed } => {
                let mut wide = extended(native, signed);
                wide.reverse();
                external.copy_from_slice(&wide[wide.len() - self.external..]);
            }
            How::Extended => external.copy_from_slice(&to_quad(native)),
        }
    }

    /// Converts `external32` bytes to native bytes. Both slices have the lengths of this format.
    fn to_native(self, external: &[u8], native: &mut [u8]) {
        match self.how {
            How::Turned => turned(external, native),
            How::Resized { signed } => {
                let mut little = [0; WIDEST];
                turned(external, &mut little[..self.external]);
                let wide = extended(&little[..self.external], signed);
                native.copy_from_slice(&wide[..self.native]);
            }
            How::Extended => native.copy_from_slice(&from_quad(external)),
        }
    }
}

/// The length in bytes of the longest basic element in either representation.
const WIDEST: usize = 16;

fn turned(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from.iter().rev()) {
        *to = *from;
    }
}

/// Extends a little-endian integer to [`WIDEST`] bytes.
fn extended(little: &[u8], signed: bool) -> [u8; WIDEST] {
    let negative = signed && little.last().is_some_and(|top| top & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; WIDEST];
    wide[..little.len()].copy_from_slice(little);
    wide
}

/// Number of fraction bits that binary128 has in addition to those of the x87 format.
const SPARE: u32 = 112 - 63;
const EXPONENT: u16 = 0x7fff;
const SIGN: u16 = 0x8000;
/// The leading bit of the significand, which is explicit in the x87 format.
const ONE: u64 = 1 << 63;

/// Converts `long double` of x86 to big-endian binary128.
/// Exact: both formats have the same exponents.
fn to_quad(native: &[u8]) -> [u8; 16] {
    let mut bits = [0; 16];
    bits[..10].copy_from_slice(&native[..10]);
    let bits = u128::from_le_bytes(bits);
    let (significand, top) = (bits as u64, (bits >> 64) as u16);
    let exponent = match (top & EXPONENT, significand & ONE != 0) {
        // A pseudo-denormal of x87 has the value of a normal number with exponent 1.
        (0, true) => 1,
        // Encodings that are invalid on all processors since the 80387 become NaN.
        (1.., false) => EXPONENT,
        (exponent, _) => exponent,
    };
    let mut fraction = u128::from(significand & !ONE) << SPARE;
    if exponent == EXPONENT && significand & ONE == 0 {
        fraction |= 1 << 111;
    }
    let top = u128::from(top & SIGN | exponent) << 112;
    (top | fraction).to_be_bytes()
}

/// Converts big-endian binary128 to `long double` of x86, rounded to nearest, ties to even.
fn from_quad(external: &[u8]) -> [u8; 16] {
    let mut bits = [0; 16];
    bits.copy_from_slice(&external[..16]);
    let bits = u128::from_be_bytes(bits);
    let sign = (bits >> 112) as u16 & SIGN;
    // Exponent and fraction are rounded as one integer, so a carry propagates into the exponent.
    let magnitude = bits & !(1 << 127);
    let is_nan = magnitude > u128::from(EXPONENT) << 112;
    let kept = magnitude >> SPARE;
    let (rest, half) = (magnitude & ((1 << SPARE) - 1), 1 << (SPARE - 1));
    let up = !is_nan && (rest > half || rest == half && kept & 1 == 1);
    let kept = kept + u128::from(up);
    let exponent = (kept >> 63) as u16;
    let mut significand = kept as u64 & !ONE;
    if exponent > 0 {
        significand |= ONE;
    }
    if is_nan {
        // A NaN whose payload is only in the lost bits must not become an infinity.
        significand |= 1 << 62;
    }
    (u128::from(sign | exponent) << 64 | u128::from(significand)).to_le_bytes()
}

/// Returns the basic elements of a predefined type: the format of the first, the format of the
/// second element of a pair, and the number of elements.
fn formats(named: Named) -> (Format, Option<Format>, i64) {
    let one = |format| (format, None, 1);
    match (named, named.info().kind) {
        // The predefined types that contain an element of another length in `external32`.
        (Named::LONG, _) => one(Format::resized(Scalar::I64, 4, true)),
        (Named::UNSIGNED_LONG, _) => one(Format::resized(Scalar::U64, 4, false)),
        (Named::WCHAR, _) => one(Format::resized(Scalar::U32, 2, false)),
        (Named::LONG_INT, _) => (
            Format::resized(Scalar::I64, 4, true),
            Some(Format::of(Scalar::I32)),
            1,
        ),
        (_, Kind::Pair(value, index)) => (Format::of(value), Some(Format::of(index)), 1),
        (_, Kind::Complex(part)) => (Format::of(part), None, 2),
        (
            _,
            Kind::CInteger(s)
            | Kind::FInteger(s)
            | Kind::Multi(s)
            | Kind::Float(s)
            | Kind::Logical(s)
            | Kind::Character(s)
            | Kind::Char(s),
        ) => one(Format::of(s)),
        (_, Kind::Byte | Kind::Packed) => one(Format::of(Scalar::U8)),
    }
}

/// Calls `f` for consecutive elements of one format,
/// with the format and their number, in packed order.
fn each(datatype: &Datatype, count: i64, f: &mut dyn FnMut(Format, i64)) {
    match &datatype.0 {
        Repr::Named(named) => match formats(*named) {
            (format, None, parts) => f(format, count.saturating_mul(parts)),
            (value, Some(index), _) => (0..count).for_each(|_| {
                f(value, 1);
                f(index, 1);
            }),
        },
        Repr::Derived(derived) => (0..count).for_each(|_| {
            derived.placements(|p| {
                if p.child.size() > 0 {
                    each(p.child, p.count * p.reps, f);
                }
                Some(())
            });
        }),
    }
}

/// Returns the number of bytes of one element in `external32`.
fn size(datatype: &Datatype) -> i64 {
    match &datatype.0 {
        Repr::Named(named) => {
            let (format, second, parts) = formats(*named);
            format.external as i64 * parts + second.map_or(0, |f| f.external as i64)
        }
        Repr::Derived(derived) => size_of_parts(derived),
    }
}

fn size_of_parts(derived: &Derived) -> i64 {
    let mut all = 0i64;
    // A type that has one old type in many blocks computes the old type's size once.
    let mut known: Option<(&Datatype, i64)> = None;
    derived.placements(|p| {
        let each = match known {
            Some((child, size)) if std::ptr::eq(child, p.child) => size,
            _ => size(p.child),
        };
        known = Some((p.child, each));
        let block = each.saturating_mul(p.count).saturating_mul(p.reps);
        all = all.saturating_add(block);
        Some(())
    });
    all
}

/// Returns the number of bytes of `count` elements in `external32`.
pub fn external_bytes(datatype: &Datatype, count: i64) -> i64 {
    size(datatype).saturating_mul(count.max(0))
}

/// Size in bytes of the buffer of native data between packing and conversion.
const STRETCH: usize = 8 << 10;

impl SendBuf {
    /// Packs all elements in `external32`.
    /// `out` should have [`external_bytes`] bytes; further bytes of `out` do not change.
    pub fn pack_external(&self, out: &mut [u8]) {
        let mut packer = self.packer();
        let mut native = [0; STRETCH];
        let (mut at, mut end) = (0, 0);
        let mut out = out;
        each(self.datatype(), self.count(), &mut |format, n| {
            for _ in 0..n {
                if end < at + format.native {
                    native.copy_within(at..end, 0);
                    end -= at;
                    at = 0;
                    end += packer.pack(&mut native[end..]);
                    if end < format.native {
                        return;
                    }
                }
                let Some((to, rest)) =
                    std::mem::take(&mut out).split_at_mut_checked(format.external)
                else {
                    return;
                };
                format.to_external(&native[at..at + format.native], to);
                at += format.native;
                out = rest;
            }
        });
    }
}

impl RecvBuf {
    /// Unpacks elements from `external32`: all complete basic elements in `input`.
    pub fn unpack_external(&mut self, input: &[u8]) {
        let mut unpacker = self.unpacker();
        let mut native = [0; STRETCH];
        let mut end = 0;
        let mut input = input;
        let datatype = self.datatype().clone();
        each(&datatype, self.count(), &mut |format, n| {
            for _ in 0..n {
                let Some((from, rest)) = input.split_at_checked(format.external) else {
                    input = &[];
                    return;
                };
                if STRETCH - end < format.native {
                    unpacker.unpack(&native[..end]);
                    end = 0;
                }
                format.to_native(from, &mut native[end..end + format.native]);
                end += format.native;
                input = rest;
            }
        });
        unpacker.unpack(&native[..end]);
    }
}
