//! Tests of `external32`, of the types of Fortran kinds, and of types rebuilt from their contents.

use proptest::prelude::*;

use super::super::*;
use super::{Both, arena, byte_places, has_overlap, nested, recv_buf, send_buf};

fn external(memory: &[u8], count: i64, datatype: &Datatype) -> Vec<u8> {
    let mut out = vec![0; external_bytes(datatype, count) as usize];
    send_buf(memory, 0, count, datatype).pack_external(&mut out);
    out
}

fn native(bytes: &[u8], len: usize, datatype: &Datatype) -> Vec<u8> {
    let mut memory = vec![0; len];
    let count = len as i64 / datatype.extent();
    recv_buf(&mut memory, 0, count, datatype).unpack_external(bytes);
    memory
}

fn named(handle: usize) -> Datatype {
    Datatype::named(handle).unwrap()
}

#[test]
fn the_sizes_are_those_of_the_standards_table() {
    // Table 14.2 gives these lengths; all other types have their native size.
    let shorter = [
        ("MPI_LONG", 4),
        ("MPI_UNSIGNED_LONG", 4),
        ("MPI_WCHAR", 2),
        ("MPI_LONG_INT", 8),
    ];
    for t in Named::all() {
        let info = t.info();
        let expected = shorter.iter().find(|(name, _)| *name == info.name);
        let expected = expected.map_or(info.size, |(_, size)| *size);
        let datatype = Datatype::from(t);
        assert_eq!(external_bytes(&datatype, 3), 3 * expected, "{datatype}");
    }
}

#[test]
fn integers_are_turned_round_and_keep_their_sign() {
    let data: Vec<u8> = [-2i64, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
    let long = named(0x20a);
    let packed = external(&data, 2, &long);
    assert_eq!(packed, [0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 7]);
    assert_eq!(native(&packed, 16, &long), data);
    let unsigned = u64::from(u32::MAX).to_le_bytes();
    let packed = external(&unsigned, 1, &named(0x20e));
    assert_eq!(native(&packed, 8, &named(0x20e)), unsigned);
    let short_int = external(&[1, 2, 9, 9, 3, 4, 5, 6], 1, &named(0x22c));
    assert_eq!(short_int, [2, 1, 6, 5, 4, 3]);
}

/// Returns an x87 number. `top` is sign and exponent.
fn x87(top: u16, significand: u64) -> [u8; 16] {
    (u128::from(top) << 64 | u128::from(significand)).to_le_bytes()
}

#[test]
fn a_long_double_travels_as_ieee_quad() {
    let t = named(0x220);
    const ONE: u64 = 1 << 63;
    for (number, quad) in [
        (x87(0x3fff, ONE), 0x3fff_u128 << 112),
        (x87(0xc000, ONE | ONE >> 1), 0xc000_8000 << 96),
        (x87(0, 0), 0),
        (x87(0x8000, 0), 1 << 127),
        (x87(0x7fff, ONE), 0x7fff << 112),
        (x87(0, 1), 1 << 49),
        (
            x87(0x7ffe, u64::MAX),
            (0x7ffe << 112) | (u128::MAX >> 65) << 49,
        ),
    ] {
        let packed = external(&number, 1, &t);
        assert_eq!(packed, quad.to_be_bytes(), "{quad:x}");
        assert_eq!(native(&packed, 16, &t), number, "{quad:x}");
    }
    // A tie is rounded to the even neighbour, and the carry reaches the exponent.
    let tie = (0x3fff_u128 << 112) | ((1 << 63) - 1) << 49 | 1 << 48;
    assert_eq!(native(&tie.to_be_bytes(), 16, &t), x87(0x4000, ONE));
    // A NaN whose payload does not fit must not become an infinity.
    let nan = (0x7fff_u128 << 112 | 1).to_be_bytes();
    assert_eq!(native(&nan, 16, &t), x87(0x7fff, ONE | ONE >> 1));
}

#[test]
fn fortran_kinds_are_chosen_by_digits_and_range() {
    let left_out = -32766;
    let basic = |t: Result<Datatype, TypeError>| t.map(|t| t.as_basic().unwrap().info().name);
    assert_eq!(basic(f90::real(6, 37)), Ok("MPI_REAL4"));
    assert_eq!(basic(f90::real(7, left_out)), Ok("MPI_REAL8"));
    assert_eq!(basic(f90::complex(left_out, 308)), Ok("MPI_COMPLEX32"));
    assert_eq!(basic(f90::integer(10)), Ok("MPI_INTEGER8"));
    let sentences = [
        f90::real(34, 1),
        f90::real(left_out, left_out),
        f90::integer(39),
    ]
    .map(|t| t.unwrap_err().to_string());
    assert_eq!(
        sentences,
        [
            "no kind of Fortran has what the f90_real type asks for: 34 digits and a range of 1",
            "no kind of Fortran has what the f90_real type asks for: neither digits nor a range are given",
            "no kind of Fortran has what the f90_integer type asks for: a range of 39",
        ]
    );
    let complex = f90::complex(15, 300).unwrap();
    assert!(complex.is_committed());
    assert_eq!((complex.size(), complex.extent()), (16, 16));
    assert_eq!(complex.contents().integers, [15, 300]);
    assert_eq!(complex.envelope().combiner, Combiner::F90Complex);
}

/// Calls the constructor of a datatype with the arguments
/// that `MPI_Type_get_contents` has returned.
fn made_again(datatype: &Datatype) -> Datatype {
    if datatype.as_named().is_some() {
        return datatype.clone();
    }
    let Contents {
        integers,
        addresses,
        types,
        ..
    } = datatype.contents();
    let types: Vec<Datatype> = types.iter().map(made_again).collect();
    let wide: Vec<i64> = integers.iter().map(|&i| i.into()).collect();
    let n = wide.first().map_or(0, |&n| n as usize);
    let (a, old) = (&addresses, types.first());
    let old = old.cloned().unwrap_or(Named::BYTE.into());
    match datatype.envelope().combiner {
        Combiner::Dup => old.dup(),
        Combiner::Contiguous => Datatype::contiguous(wide[0], &old),
        Combiner::Vector => Datatype::vector(wide[0], wide[1], wide[2], &old),
        Combiner::Hvector => Datatype::hvector(wide[0], wide[1], a[0], &old),
        Combiner::Indexed => Datatype::indexed(&wide[1..=n], &wide[n + 1..], &old),
        Combiner::Hindexed => Datatype::hindexed(&wide[1..], a, &old),
        Combiner::IndexedBlock => Datatype::indexed_block(wide[1], &wide[2..], &old),
        Combiner::HindexedBlock => Datatype::hindexed_block(wide[1], a, &old),
        Combiner::Struct => Datatype::structure(&wide[1..], a, &types),
        Combiner::Resized => Datatype::resized(a[0], a[1], &old),
        Combiner::Subarray => {
            let order = Order::from_value(wide[3 * n + 1]).unwrap();
            let part = |k: usize| &wide[1 + k * n..][..n];
            subarray(part(0), part(1), part(2), order, &old)
        }
        Combiner::Darray => {
            let n = wide[2] as usize;
            let part = |k: usize| &wide[3 + k * n..][..n];
            let how: Vec<Distribution> = part(1)
                .iter()
                .zip(part(2))
                .map(|(&kind, &argument)| Distribution::from_values(kind, argument).unwrap())
                .collect();
            let order = Order::from_value(wide[4 * n + 3]).unwrap();
            darray(wide[0], wide[1], part(0), &how, part(3), order, &old)
        }
        other => panic!("{other:?} is not among the random types"),
    }
    .unwrap()
}

fn facts(t: &Datatype) -> (i64, i64, i64, i64, i64, Signature, Vec<Run>) {
    (
        t.size(),
        t.lb(),
        t.extent(),
        t.true_lb(),
        t.true_extent(),
        t.signature(),
        t.runs(2, 0..i64::MAX).collect(),
    )
}

/// Returns true if the type contains a `long double`, for which some bit patterns are no numbers.
fn has_extended(both: &Both) -> bool {
    both.map.iter().any(|entry| {
        matches!(
            entry,
            super::Entry::Data {
                size: 16,
                align: 16,
                ..
            }
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contents_make_an_equal_type(both in nested()) {
        prop_assert_eq!(facts(&made_again(&both.datatype)), facts(&both.datatype));
    }

    #[test]
    fn external32_brings_all_data_back(both in nested(), count in 0i64..20) {
        let places = byte_places(&both, count);
        prop_assume!(!has_overlap(&places) && !has_extended(&both));
        both.datatype.commit().unwrap();
        let (memory, start) = arena(&places);
        let send = send_buf(&memory, start, count, &both.datatype);
        let mut external = vec![0; external_bytes(&both.datatype, count) as usize];
        send.pack_external(&mut external);
        let mut other = vec![0xa5; memory.len()];
        recv_buf(&mut other, start, count, &both.datatype).unpack_external(&external);
        for (at, (&got, &sent)) in other.iter().zip(&memory).enumerate() {
            let is_data = places.contains(&(at as i64 - start as i64));
            prop_assert_eq!(got, if is_data { sent } else { 0xa5 }, "byte {}", at);
        }
    }
}
