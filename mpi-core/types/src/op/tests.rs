//! Tests of every (operator, predefined datatype) pair against a scalar reference in `i128`.
//!
//! Values are small integers, which every format represents exactly,
//! so one reference is enough for all formats.
//! The tests encode and decode the formats by their definitions, not by the code under test.
#![allow(unsafe_code)]

use mpi_base::random::SplitMix64;
#[cfg(target_arch = "x86_64")]
use std::cmp::Ordering::{Equal, Greater, Less};

#[cfg(target_arch = "x86_64")]
use super::wide::{Extended, Quad};
use super::*;
use crate::datatype::{Kind, Named, Scalar};

/// Encodes an integer in a binary floating-point format with an explicit or implicit leading bit.
fn float_bits(value: i128, exponent_bits: u32, fraction_bits: u32, explicit: bool) -> u128 {
    let sign = u128::from(value < 0) << (exponent_bits + fraction_bits);
    let magnitude = value.unsigned_abs();
    if magnitude == 0 {
        return sign;
    }
    let top = 127 - magnitude.leading_zeros();
    let bias = (1u128 << (exponent_bits - 1)) - 1;
    let leading = if explicit {
        fraction_bits - 1
    } else {
        fraction_bits
    };
    let fraction = if leading >= top {
        magnitude << (leading - top)
    } else {
        magnitude >> (top - leading)
    };
    let fraction = if explicit {
        fraction
    } else {
        fraction & !(1 << leading)
    };
    sign | (bias + top as u128) << fraction_bits | fraction
}

fn float_value(bits: u128, exponent_bits: u32, fraction_bits: u32, explicit: bool) -> i128 {
    let fraction = bits & ((1 << fraction_bits) - 1);
    let exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    if exponent == 0 {
        return 0;
    }
    let bias = (1i128 << (exponent_bits - 1)) - 1;
    let leading = if explicit {
        fraction_bits - 1
    } else {
        fraction_bits
    };
    let significand = fraction | 1 << leading;
    let shift = leading as i128 - (exponent as i128 - bias);
    let magnitude = (significand >> shift) as i128;
    assert_eq!((magnitude as u128) << shift, significand, "an integer");
    if bits >> (exponent_bits + fraction_bits) & 1 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// Returns (exponent bits, fraction bits, explicit leading bit) of a floating-point format.
fn format(scalar: Scalar) -> Option<(u32, u32, bool)> {
    match scalar {
        Scalar::F16 => Some((5, 10, false)),
        Scalar::F32 => Some((8, 23, false)),
        Scalar::F64 => Some((11, 52, false)),
        Scalar::X87 => Some((15, 64, true)),
        Scalar::F128 => Some((15, 112, false)),
        _ => None,
    }
}

fn write(scalar: Scalar, value: i128, to: &mut [u8]) {
    let bits = match format(scalar) {
        Some((e, f, explicit)) => float_bits(value, e, f, explicit),
        None => value as u128,
    };
    let n = scalar.size() as usize;
    to[..n].copy_from_slice(&bits.to_le_bytes()[..n]);
}

fn read(scalar: Scalar, from: &[u8]) -> i128 {
    let n = scalar.size() as usize;
    let mut bytes = [0; 16];
    bytes[..n].copy_from_slice(&from[..n]);
    let bits = u128::from_le_bytes(bytes);
    if let Some((e, f, explicit)) = format(scalar) {
        let used = bits & (u128::MAX >> (127 - e - f));
        return float_value(used, e, f, explicit);
    }
    let unused = 128 - 8 * n as u32;
    match scalar {
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => bits as i128,
        _ => (bits << unused) as i128 >> unused,
    }
}

/// Returns the scalars of an element and their offsets.
fn parts(kind: Kind) -> Vec<(Scalar, usize)> {
    match kind {
        Kind::CInteger(s)
        | Kind::FInteger(s)
        | Kind::Multi(s)
        | Kind::Float(s)
        | Kind::Logical(s)
        | Kind::Character(s)
        | Kind::Char(s) => vec![(s, 0)],
        Kind::Complex(s) => vec![(s, 0), (s, s.size() as usize)],
        Kind::Pair(value, index) => {
            vec![(value, 0), (index, Kind::second_at(value, index) as usize)]
        }
        Kind::Byte | Kind::Packed => vec![(Scalar::U8, 0)],
    }
}

/// The standard's table of operators and types (section 6.9.2), with two additions: logical
/// operators on multi-language types, and all operators of C integers on `MPI_CHAR`.
fn allowed(op: Predefined, kind: Kind) -> bool {
    use Kind::*;
    use Predefined::*;
    match op {
        Max | Min => matches!(
            kind,
            CInteger(_) | Char(_) | FInteger(_) | Float(_) | Multi(_)
        ),
        Sum | Prod => matches!(
            kind,
            CInteger(_) | Char(_) | FInteger(_) | Float(_) | Complex(_) | Multi(_)
        ),
        Land | Lor | Lxor => matches!(kind, CInteger(_) | Char(_) | Logical(_) | Multi(_)),
        Band | Bor | Bxor => matches!(kind, CInteger(_) | Char(_) | FInteger(_) | Byte | Multi(_)),
        Maxloc | Minloc => matches!(kind, Pair(..)),
        Replace | NoOp => true,
    }
}

fn reference(op: Predefined, kind: Kind, a: &[i128], b: &[i128]) -> Vec<i128> {
    use Predefined::*;
    let truth = |x: i128| x != 0;
    if let (Prod, Kind::Complex(_)) = (op, kind) {
        return vec![a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
    }
    if let Maxloc | Minloc = op {
        let better = if op == Maxloc {
            a[0] > b[0]
        } else {
            a[0] < b[0]
        };
        return match a[0] == b[0] {
            true => vec![a[0], a[1].min(b[1])],
            false => if better { a } else { b }.to_vec(),
        };
    }
    a.iter()
        .zip(b)
        .map(|(&a, &b)| match op {
            Max => a.max(b),
            Min => a.min(b),
            Sum => a + b,
            Prod => a.wrapping_mul(b),
            Land => (truth(a) && truth(b)) as i128,
            Lor => (truth(a) || truth(b)) as i128,
            Lxor => (truth(a) != truth(b)) as i128,
            Band => a & b,
            Bor => a | b,
            Bxor => a ^ b,
            Replace => a,
            NoOp => b,
            Maxloc | Minloc => unreachable!("handled above"),
        })
        .collect()
}

/// Generator of random values for operands.
struct Numbers(SplitMix64);

impl Numbers {
    /// Returns a number that `scalar` can represent: any value for integers, a small one for
    /// floating point, often zero for both.
    fn value(&mut self, scalar: Scalar) -> i128 {
        let bits = self.0.next_u64();
        match (bits % 4, format(scalar)) {
            (0, _) => 0,
            (1, _) | (_, Some(_)) => {
                (self.0.next_u64() % 25) as i128 - if signed(scalar) { 12 } else { 0 }
            }
            (_, None) => {
                let mut bytes = [0; 16];
                write(
                    scalar,
                    self.0.next_u64() as i128 * 0x1_0000_0001_0001,
                    &mut bytes,
                );
                read(scalar, &bytes)
            }
        }
    }
}

fn signed(scalar: Scalar) -> bool {
    !matches!(
        scalar,
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 | Scalar::U128
    )
}

const PADDING: u8 = 0xa5;

fn elements(named: Named, n: usize, numbers: &mut Numbers) -> (Vec<u8>, Vec<Vec<i128>>) {
    let info = named.info();
    let mut memory = vec![PADDING; n * info.extent as usize];
    let mut values = Vec::new();
    for element in memory.chunks_exact_mut(info.extent as usize) {
        let mut of_element = Vec::new();
        for (scalar, at) in parts(info.kind) {
            let value = numbers.value(scalar);
            write(scalar, value, &mut element[at..]);
            of_element.push(value);
        }
        values.push(of_element);
    }
    (memory, values)
}

/// Checks that all compiled versions of a loop give the same bytes.
fn agree_at_all_levels(
    op: Predefined,
    input: &[u8],
    inout: &[u8],
    result: &[u8],
    n: usize,
    t: &Datatype,
) {
    for level in Level::here() {
        let Ok(kernel) = kernel_for(op, t, level) else {
            continue; // REPLACE and NO_OP have no loop
        };
        let mut again = inout.to_vec();
        // SAFETY: the caller's buffers have `n` elements.
        let (input, mut inout) = unsafe {
            (
                SendBuf::new(input.as_ptr(), n as i64, t.clone()),
                RecvBuf::new(again.as_mut_ptr(), n as i64, t.clone()),
            )
        };
        kernel.run(&input, &mut inout, n as i64);
        assert_eq!(again, result, "{} on {t} with {level:?}", op.name());
    }
}

fn apply(op: &Op, input: &[u8], inout: &mut [u8], n: usize, t: &Datatype) -> Result<(), OpError> {
    // SAFETY: the test made both buffers for `n` elements and keeps them.
    let (input, mut inout) = unsafe {
        (
            SendBuf::new(input.as_ptr(), n as i64, t.clone()),
            RecvBuf::new(inout.as_mut_ptr(), n as i64, t.clone()),
        )
    };
    op.apply(&input, &mut inout)
}

#[test]
fn every_defined_pair_computes_what_the_reference_does() {
    let mut numbers = Numbers(SplitMix64(1));
    let mut pairs = 0;
    for op in Predefined::ALL {
        for named in Named::all().filter(|n| allowed(op, n.info().kind)) {
            let (info, t) = (named.info(), Datatype::from(named));
            let kind = info.kind;
            for n in [1, 7, 64, 133] {
                let (input, a) = elements(named, n, &mut numbers);
                let (mut inout, b) = elements(named, n, &mut numbers);
                let before = inout.clone();
                Op::from(op).check(&t).unwrap();
                apply(&op.into(), &input, &mut inout, n, &t).unwrap();
                agree_at_all_levels(op, &input, &before, &inout, n, &t);
                for i in 0..n {
                    let extent = info.extent as usize;
                    let element = &inout[i * extent..(i + 1) * extent];
                    let wanted = reference(op, kind, &a[i], &b[i]);
                    let mut expected = before[i * extent..(i + 1) * extent].to_vec();
                    for (&(scalar, at), &value) in parts(kind).iter().zip(&wanted) {
                        write(scalar, value, &mut expected[at..]);
                        // The values are compared instead of the bytes,
                        // because an unchanged minus zero equals zero.
                        assert_eq!(
                            read(scalar, &element[at..]),
                            read(scalar, &expected[at..]),
                            "{} on {} of {:?} and {:?}",
                            op.name(),
                            info.name,
                            a[i],
                            b[i]
                        );
                    }
                    let end = info.true_extent as usize;
                    assert_eq!(
                        element[end..],
                        expected[end..],
                        "{} on {} writes behind the data",
                        op.name(),
                        info.name
                    );
                }
            }
            pairs += 1;
        }
    }
    assert!(pairs > 350, "{pairs} pairs");
}

#[test]
fn forbidden_pairs_are_refused_with_both_names() {
    for op in Predefined::ALL {
        for named in Named::all().filter(|n| !allowed(op, n.info().kind)) {
            let t = Datatype::from(named);
            let refusal = Op::from(op).check(&t).unwrap_err();
            let sentence = format!("{} is not defined for {}", op.name(), named.info().name);
            assert_eq!(refusal.to_string(), sentence);
            let mut inout = [1; 32];
            assert!(apply(&op.into(), &[2; 32], &mut inout, 1, &t).is_err());
            assert_eq!(inout, [1; 32]);
        }
    }
}

#[test]
fn a_derived_type_is_refused_by_predefined_operators() {
    let t = Datatype::contiguous(2, &Named::INT.into()).unwrap();
    let refusal = Op::from(Predefined::Sum).check(&t).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "MPI_SUM is not defined for a contiguous type of 8 bytes"
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn long_double_has_a_significand_of_64_bits() {
    let (mut a, mut b) = ([0; 16], [0; 16]);
    write(Scalar::X87, 1 << 62, &mut a);
    write(Scalar::X87, 3, &mut b);
    let (a, b) = (Extended(a), Extended(b));
    use super::fold::Number;
    assert_eq!(read(Scalar::X87, &a.add(b).0), (1 << 62) + 3);
    assert_eq!(read(Scalar::X87, &a.sub(b).0), (1 << 62) - 3);
    assert_eq!(read(Scalar::X87, &b.sub(a).0), 3 - (1 << 62));
    assert_eq!(read(Scalar::X87, &a.mul(b).0), 3 << 62);
    let orders = [(a, b), (b, a), (a, a)].map(|(x, y)| x.partial_cmp(&y));
    assert_eq!(orders, [Some(Greater), Some(Less), Some(Equal)]);
    let mut infinity = [0; 16];
    infinity[7..10].copy_from_slice(&[0x80, 0xff, 0x7f]);
    let nan = Extended(infinity).sub(Extended(infinity));
    assert!(nan.partial_cmp(&a).is_none() && nan.partial_cmp(&nan).is_none());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn real16_has_a_significand_of_113_bits() {
    use super::fold::Number;
    let quad = |value| {
        let mut bytes = [0; 16];
        write(Scalar::F128, value, &mut bytes);
        Quad(u128::from_le_bytes(bytes))
    };
    let value = |quad: Quad| read(Scalar::F128, &quad.0.to_le_bytes());
    let (a, b) = (quad(1 << 110), quad(-5));
    assert_eq!(value(a.add(b)), (1 << 110) - 5);
    assert_eq!(value(a.sub(b)), (1 << 110) + 5);
    assert_eq!(value(a.mul(b)), -5 << 110);
    let orders = [(a, b), (b, a), (a, a)].map(|(x, y)| x.partial_cmp(&y));
    assert_eq!(orders, [Some(Greater), Some(Less), Some(Equal)]);
    let infinity = Quad(0x7fff << 112);
    let nan = infinity.sub(infinity);
    assert!(nan.partial_cmp(&a).is_none() && nan.partial_cmp(&nan).is_none());
}

#[test]
fn a_user_operator_sees_inout_second_and_its_datatype() {
    let t = Datatype::contiguous(2, &Named::INT32.into()).unwrap();
    t.commit().unwrap();
    let minus = Op::user(
        |input, inout, len, t| {
            assert_eq!((t.size(), len), (8, 3));
            for i in 0..2 * len as usize {
                // SAFETY: `Op::apply` passes `len` elements, each of two numbers.
                unsafe {
                    let (a, b) = (input.cast::<i32>().add(i), inout.cast::<i32>().add(i));
                    b.write_unaligned(a.read_unaligned() - b.read_unaligned());
                }
            }
        },
        false,
    );
    assert!(!minus.is_commutative());
    let input: Vec<u8> = [10, 20, 30, 40, 50, 60i32]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let mut inout: Vec<u8> = [1, 2, 3, 4, 5, 6i32]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    apply(&minus, &input, &mut inout, 3, &t).unwrap();
    let result: Vec<i32> = inout
        .chunks(4)
        .map(|c| i32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect();
    assert_eq!(result, [9, 18, 27, 36, 45, 54]);
}

#[test]
fn buffers_of_different_types_are_not_combined() {
    let (input, mut inout) = ([0u8; 8], [0u8; 8]);
    // SAFETY: each array has one element of its type.
    let (input, mut inout) = unsafe {
        (
            SendBuf::new(input.as_ptr(), 1, Named::INT.into()),
            RecvBuf::new(inout.as_mut_ptr(), 1, Named::DOUBLE.into()),
        )
    };
    let refusal = Op::from(Predefined::Sum)
        .apply(&input, &mut inout)
        .unwrap_err();
    assert!(
        refusal.to_string().contains("MPI_INT with MPI_DOUBLE"),
        "{refusal}"
    );
}

#[test]
fn handles_are_those_of_the_abi() {
    for (handle, name) in [(0x21, "MPI_SUM"), (0x39, "MPI_MAXLOC"), (0x3d, "MPI_NO_OP")] {
        assert_eq!(Op::predefined(handle).map(|op| op.name()), Some(name));
    }
    assert!(Op::predefined(0x20).is_none(), "MPI_OP_NULL is no operator");
}
