//! The engine against a naive reference: the type map written out entry by entry, as the standard defines it.
#![allow(unsafe_code)]

use proptest::prelude::*;

use super::*;

/// One entry of a type map; markers are entries, as in section 5.1.6.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Entry {
    Data { at: i64, size: i64, align: i64 },
    Lb(i64),
    Ub(i64),
}

type TypeMap = Vec<Entry>;

fn moved(map: &TypeMap, by: i64) -> TypeMap {
    map.iter()
        .map(|&entry| match entry {
            Entry::Data { at, size, align } => Entry::Data {
                at: at + by,
                size,
                align,
            },
            Entry::Lb(at) => Entry::Lb(at + by),
            Entry::Ub(at) => Entry::Ub(at + by),
        })
        .collect()
}

fn data(map: &TypeMap) -> impl Iterator<Item = (i64, i64, i64)> {
    map.iter().filter_map(|&entry| match entry {
        Entry::Data { at, size, align } => Some((at, size, align)),
        _ => None,
    })
}

fn lb_and_extent(map: &TypeMap) -> (i64, i64) {
    let lb_marks = map.iter().filter_map(|e| match e {
        Entry::Lb(at) => Some(*at),
        _ => None,
    });
    let ub_marks = map.iter().filter_map(|e| match e {
        Entry::Ub(at) => Some(*at),
        _ => None,
    });
    let lb = lb_marks
        .min()
        .or(data(map).map(|(at, ..)| at).min())
        .unwrap_or(0);
    let extent = match ub_marks.max() {
        Some(ub) => ub - lb,
        None => {
            let ub = data(map).map(|(at, size, _)| at + size).max().unwrap_or(0);
            let align = data(map).map(|(.., align)| align).max().unwrap_or(1);
            (lb..)
                .find(|end| *end >= ub && (end - lb) % align == 0)
                .unwrap_or(ub)
                - lb
        }
    };
    (lb, extent)
}

/// A datatype and, built beside it, its type map.
#[derive(Clone, Debug)]
struct Both {
    datatype: Datatype,
    map: TypeMap,
}

impl Both {
    fn blocks(&self, n: i64, at: i64) -> TypeMap {
        let (_, extent) = lb_and_extent(&self.map);
        (0..n)
            .flat_map(|k| moved(&self.map, at + k * extent))
            .collect()
    }

    fn extent(&self) -> i64 {
        lb_and_extent(&self.map).1
    }
}

fn predefined(handle: usize) -> Both {
    let named = Named::from_handle(handle).expect("a predefined type");
    let info = named.info();
    let entry = |at, size| Entry::Data {
        at,
        size,
        align: size,
    };
    let map = match info.kind {
        Kind::Pair(value, index) => vec![
            entry(0, value.size()),
            entry(Kind::second_at(value, index), index.size()),
        ],
        Kind::Complex(s) => vec![Entry::Data {
            at: 0,
            size: info.size,
            align: s.size(),
        }],
        _ => vec![entry(0, info.size)],
    };
    Both {
        datatype: named.into(),
        map,
    }
}

fn leaf() -> impl Strategy<Value = Both> {
    prop::sample::select(vec![
        0x247, 0x208, 0x209, 0x214, 0x216, 0x22c, 0x229, 0x22d, 0x22b, 0x220,
    ])
    .prop_map(predefined)
}

fn blocks() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((0i64..4, -6i64..20), 0..5)
}

fn build(old: &Both, recipe: &Recipe) -> Both {
    let t = &old.datatype;
    let extent = old.extent();
    let flat = |places: &[(i64, i64)], unit: i64| {
        places
            .iter()
            .flat_map(|&(n, d)| old.blocks(n, d * unit))
            .collect::<TypeMap>()
    };
    let (datatype, map) = match recipe {
        Recipe::Dup => (t.dup(), old.map.clone()),
        Recipe::Contiguous(n) => (Datatype::contiguous(*n, t), old.blocks(*n, 0)),
        Recipe::Vector(n, b, s) => {
            let places: Vec<_> = (0..*n).map(|k| (*b, k * s)).collect();
            (Datatype::vector(*n, *b, *s, t), flat(&places, extent))
        }
        Recipe::Hvector(n, b, s) => {
            let places: Vec<_> = (0..*n).map(|k| (*b, k * s)).collect();
            (Datatype::hvector(*n, *b, *s, t), flat(&places, 1))
        }
        Recipe::Indexed(places) => {
            let (n, d): (Vec<_>, Vec<_>) = places.iter().copied().unzip();
            (Datatype::indexed(&n, &d, t), flat(places, extent))
        }
        Recipe::Hindexed(places) => {
            let (n, d): (Vec<_>, Vec<_>) = places.iter().copied().unzip();
            (Datatype::hindexed(&n, &d, t), flat(places, 1))
        }
        Recipe::IndexedBlock(b, d) => {
            let places: Vec<_> = d.iter().map(|&d| (*b, d)).collect();
            (Datatype::indexed_block(*b, d, t), flat(&places, extent))
        }
        Recipe::HindexedBlock(b, d) => {
            let places: Vec<_> = d.iter().map(|&d| (*b, d)).collect();
            (Datatype::hindexed_block(*b, d, t), flat(&places, 1))
        }
        Recipe::Resized(lb, extent) => {
            let mut map: TypeMap = old
                .map
                .iter()
                .copied()
                .filter(|e| matches!(e, Entry::Data { .. }))
                .collect();
            map.extend([Entry::Lb(*lb), Entry::Ub(lb + extent)]);
            (Datatype::resized(*lb, *extent, t), map)
        }
        Recipe::Subarray(dims, order) => {
            let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
            let subsizes: Vec<i64> = dims.iter().map(|d| d.1).collect();
            let starts: Vec<i64> = dims.iter().map(|d| d.2).collect();
            let total: i64 = sizes.iter().product();
            let map = (0..total)
                .filter(|&cell| {
                    let at = coordinates_of(cell, &sizes, *order);
                    at.iter()
                        .zip(dims)
                        .all(|(&at, &(_, sub, start))| (start..start + sub).contains(&at))
                })
                .flat_map(|cell| old.blocks(1, cell * extent))
                .filter(|e| matches!(e, Entry::Data { .. }))
                .chain([Entry::Lb(0), Entry::Ub(total * extent)])
                .collect();
            (
                Datatype::subarray(&sizes, &subsizes, &starts, *order, t),
                map,
            )
        }
    };
    Both {
        datatype: datatype.expect("the recipe is legal"),
        map,
    }
}

/// The coordinates of a cell that is the `cell`-th in memory.
fn coordinates_of(cell: i64, sizes: &[i64], order: Order) -> Vec<i64> {
    let mut rest = cell;
    let mut at = vec![0; sizes.len()];
    let fastest_first: Vec<usize> = match order {
        Order::C => (0..sizes.len()).rev().collect(),
        Order::Fortran => (0..sizes.len()).collect(),
    };
    for d in fastest_first {
        at[d] = rest % sizes[d];
        rest /= sizes[d];
    }
    at
}

#[derive(Clone, Debug)]
enum Recipe {
    Dup,
    Contiguous(i64),
    Vector(i64, i64, i64),
    Hvector(i64, i64, i64),
    Indexed(Vec<(i64, i64)>),
    Hindexed(Vec<(i64, i64)>),
    IndexedBlock(i64, Vec<i64>),
    HindexedBlock(i64, Vec<i64>),
    Resized(i64, i64),
    Subarray(Vec<(i64, i64, i64)>, Order),
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let order = prop_oneof![Just(Order::C), Just(Order::Fortran)];
    let dim = (1i64..5)
        .prop_flat_map(|size| (Just(size), 1..=size))
        .prop_flat_map(|(size, sub)| (Just(size), Just(sub), 0..=size - sub));
    prop_oneof![
        Just(Recipe::Dup),
        (0i64..5).prop_map(Recipe::Contiguous),
        (0i64..5, 0i64..4, -5i64..8).prop_map(|(n, b, s)| Recipe::Vector(n, b, s)),
        (0i64..5, 0i64..4, -40i64..60).prop_map(|(n, b, s)| Recipe::Hvector(n, b, s)),
        blocks().prop_map(Recipe::Indexed),
        blocks().prop_map(Recipe::Hindexed),
        (0i64..4, prop::collection::vec(-6i64..20, 0..5))
            .prop_map(|(b, d)| Recipe::IndexedBlock(b, d)),
        (0i64..4, prop::collection::vec(-6i64..60, 0..5))
            .prop_map(|(b, d)| Recipe::HindexedBlock(b, d)),
        (-10i64..10, -20i64..80).prop_map(|(lb, extent)| Recipe::Resized(lb, extent)),
        (prop::collection::vec(dim, 1..4), order).prop_map(|(d, o)| Recipe::Subarray(d, o)),
    ]
}

fn structure(parts: Vec<(i64, i64, Both)>) -> Both {
    let n: Vec<i64> = parts.iter().map(|p| p.0).collect();
    let d: Vec<i64> = parts.iter().map(|p| p.1).collect();
    let types: Vec<Datatype> = parts.iter().map(|p| p.2.datatype.clone()).collect();
    let map = parts
        .iter()
        .flat_map(|(n, d, part)| part.blocks(*n, *d))
        .collect();
    Both {
        datatype: Datatype::structure(&n, &d, &types).expect("the struct is legal"),
        map,
    }
}

/// Random nested types whose type maps stay small enough to write out.
fn nested() -> impl Strategy<Value = Both> {
    let chain = |leaf: BoxedStrategy<Both>| {
        (leaf, prop::collection::vec(recipe(), 0..4)).prop_map(|(leaf, recipes)| {
            let mut both = leaf;
            for recipe in &recipes {
                let next = build(&both, recipe);
                if next.map.len() > 3000 {
                    break;
                }
                both = next;
            }
            both
        })
    };
    let simple = chain(leaf().boxed()).boxed();
    let part = (0i64..3, -50i64..200, simple.clone());
    let of_struct = prop::collection::vec(part, 0..4)
        .prop_map(structure)
        .prop_filter("small", |both| both.map.len() < 3000)
        .boxed();
    prop_oneof![2 => simple, 1 => chain(of_struct)]
}

/// The packed position behind each basic element.
fn basic_ends(both: &Both, count: i64) -> Vec<i64> {
    let mut end = 0;
    let map = both.blocks(count, 0);
    data(&map)
        .map(|(_, size, _)| {
            end += size;
            end
        })
        .collect()
}

/// Where each packed byte of `count` elements lies.
fn byte_places(both: &Both, count: i64) -> Vec<i64> {
    both.blocks(count, 0)
        .iter()
        .filter_map(|e| match *e {
            Entry::Data { at, size, .. } => Some(at..at + size),
            _ => None,
        })
        .flatten()
        .collect()
}

/// Memory around a buffer that data at `places` may use, and the index of the buffer's start in it.
fn arena(places: &[i64]) -> (Vec<u8>, usize) {
    let low = places.iter().min().copied().unwrap_or(0).min(0);
    let high = places.iter().max().copied().unwrap_or(0).max(0) + 1;
    let bytes = (0..high - low)
        .map(|i| (i * 31 + i / 256 * 7) as u8)
        .collect();
    (bytes, -low as usize)
}

fn has_overlap(places: &[i64]) -> bool {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|w| w[0] == w[1])
}

fn send_buf(memory: &[u8], start: usize, count: i64, datatype: &Datatype) -> SendBuf {
    // SAFETY: the test made the memory large enough and keeps it.
    unsafe { SendBuf::new(memory.as_ptr().wrapping_add(start), count, datatype.clone()) }
}

fn recv_buf(memory: &mut [u8], start: usize, count: i64, datatype: &Datatype) -> RecvBuf {
    // SAFETY: as above.
    unsafe {
        RecvBuf::new(
            memory.as_mut_ptr().wrapping_add(start),
            count,
            datatype.clone(),
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_and_size_are_those_of_the_type_map(both in nested()) {
        let (lb, extent) = lb_and_extent(&both.map);
        let t = &both.datatype;
        prop_assert_eq!(t.size(), data(&both.map).map(|d| d.1).sum::<i64>());
        prop_assert_eq!((t.lb(), t.extent()), (lb, extent));
        let true_lb = data(&both.map).map(|d| d.0).min().unwrap_or(0);
        let true_ub = data(&both.map).map(|d| d.0 + d.1).max().unwrap_or(0);
        prop_assert_eq!((t.true_lb(), t.true_extent()), (true_lb, true_ub - true_lb));
    }

    #[test]
    fn packing_resumes_at_any_byte(both in nested(), count in 0i64..30, cuts in prop::collection::vec(1usize..2000, 1..9)) {
        let t = &both.datatype;
        t.commit().unwrap();
        let places = byte_places(&both, count);
        let (memory, start) = arena(&places);
        let expected: Vec<u8> = places.iter().map(|&at| memory[(start as i64 + at) as usize]).collect();
        let buf = send_buf(&memory, start, count, t);
        prop_assert_eq!(buf.bytes(), expected.len() as i64);
        prop_assert_eq!(buf.to_vec(), expected.clone());

        let mut packer = buf.packer();
        let mut packed = Vec::new();
        for &cut in cuts.iter().cycle() {
            let mut piece = vec![0; cut];
            let n = packer.pack(&mut piece);
            packed.extend_from_slice(&piece[..n]);
            if n < cut {
                break;
            }
        }
        prop_assert_eq!(&packed, &expected);
        prop_assert_eq!(packer.remaining(), 0);

        let middle = expected.len() / 3;
        packer.seek(middle as i64);
        let mut rest = vec![0; expected.len()];
        let n = packer.pack(&mut rest);
        prop_assert_eq!(&rest[..n], &expected[middle..]);
    }

    #[test]
    fn unpacking_touches_the_data_and_nothing_else(both in nested(), count in 0i64..30, cuts in prop::collection::vec(1usize..2000, 1..9)) {
        let t = &both.datatype;
        t.commit().unwrap();
        let places = byte_places(&both, count);
        prop_assume!(!has_overlap(&places));
        let (before, start) = arena(&places);
        let input: Vec<u8> = (0..places.len()).map(|i| (i * 13 + 5) as u8).collect();
        let mut expected = before.clone();
        for (&at, &byte) in places.iter().zip(&input) {
            expected[(start as i64 + at) as usize] = byte;
        }
        let mut memory = before.clone();
        let mut unpacker = recv_buf(&mut memory, start, count, t).unpacker();
        let mut rest = input.as_slice();
        for &cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            prop_assert_eq!(unpacker.unpack(piece), piece.len());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(unpacker.unpack(&[1, 2, 3]), 0, "the buffer is full");
        prop_assert_eq!(memory, expected);
    }

    #[test]
    fn runs_name_every_byte_in_order(both in nested(), count in 0i64..4, from in 0i64..300, len in 0i64..500) {
        let t = &both.datatype;
        t.commit().unwrap();
        let places = byte_places(&both, count);
        let from = from.min(places.len() as i64);
        let to = (from + len).min(places.len() as i64);
        let walked: Vec<i64> = t.runs(count, from..from + len).flat_map(|r| r.offset..r.offset + r.len).collect();
        prop_assert_eq!(&walked, &places[from as usize..to as usize]);
        if let Some((offset, len)) = t.contiguous_bytes(count) {
            prop_assert_eq!((offset..offset + len).collect::<Vec<_>>(), places);
        }
    }

    #[test]
    fn a_typed_copy_moves_as_much_as_the_smaller_holds(a in nested(), b in nested(), m in 0i64..4, n in 0i64..4) {
        a.datatype.commit().unwrap();
        b.datatype.commit().unwrap();
        let (from, to) = (byte_places(&a, m), byte_places(&b, n));
        prop_assume!(!has_overlap(&to));
        let (source, source_start) = arena(&from);
        let (before, start) = arena(&to);
        let mut expected = before.clone();
        for (&f, &t) in from.iter().zip(&to) {
            expected[(start as i64 + t) as usize] = source[(source_start as i64 + f) as usize];
        }
        let mut memory = before;
        let moved = copy(
            &send_buf(&source, source_start, m, &a.datatype),
            &mut recv_buf(&mut memory, start, n, &b.datatype),
        );
        prop_assert_eq!(moved, from.len().min(to.len()) as i64);
        prop_assert_eq!(memory, expected);
    }

    #[test]
    fn elements_are_counted_in_any_part(both in nested(), count in 1i64..4) {
        let t = &both.datatype;
        let ends = basic_ends(&both, count);
        prop_assert_eq!(t.elements(0), Some(0));
        for bytes in 1..=ends.last().copied().unwrap_or(0) {
            let expected = ends.binary_search(&bytes).ok().map(|n| n as i64 + 1);
            prop_assert_eq!(t.elements(bytes), expected, "{} bytes", bytes);
        }
    }

    #[test]
    fn a_signature_does_not_depend_on_how_the_type_was_made(both in nested(), n in 0i64..6) {
        let t = &both.datatype;
        let places = Datatype::contiguous(n, t).unwrap().signature();
        prop_assert_eq!(places, t.signature().times(n));
        let one_by_one = (0..n).fold(Signature::default(), |all, _| all.then(t.signature()));
        prop_assert_eq!(places, one_by_one);
    }

    #[test]
    fn scratch_holds_exactly_the_span(both in nested(), count in 1i64..4) {
        both.datatype.commit().unwrap();
        let places = byte_places(&both, count);
        prop_assume!(!has_overlap(&places));
        let scratch = Scratch::new(count, &both.datatype).unwrap();
        let input: Vec<u8> = (0..places.len()).map(|i| (i * 7 + 1) as u8).collect();
        prop_assert_eq!(scratch.all().unpack_at(0, &input), input.len());
        prop_assert_eq!(scratch.send(0..count).to_vec(), input.clone());
        let size = both.datatype.size() as usize;
        prop_assert_eq!(scratch.send(count - 1..count).to_vec(), input[input.len() - size..].to_vec());
    }
}

#[test]
fn the_table_has_the_sizes_of_the_abi() {
    let golden: Vec<Vec<&str>> = include_str!("predefined.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(golden.len(), Named::all().count());
    for (named, row) in Named::all().zip(golden) {
        let (t, info) = (Datatype::from(named), named.info());
        let facts = [t.size(), t.lb(), t.extent(), t.true_lb(), t.true_extent()];
        let ours = format!("{:#x},{},{:?}", info.handle, info.name, facts);
        let theirs: Vec<i64> = row[2..7].iter().map(|n| n.parse().unwrap()).collect();
        assert_eq!(ours, format!("{},{},{:?}", row[0], row[1], theirs));
        assert_eq!(Named::from_handle(info.handle as usize), Some(named));
    }
    assert!(Named::from_handle(0x200).is_none());
    assert!(Named::from_handle(0x204).is_none());
    assert!(Named::from_handle(usize::MAX).is_none());
}

fn int() -> Datatype {
    Named::INT.into()
}

fn form(datatype: &Datatype) -> &'static str {
    datatype.commit().unwrap();
    datatype.form()
}

#[test]
fn types_reach_their_shortest_form() {
    let t = int();
    let column = Datatype::vector(100, 1, 100, &t).unwrap();
    let row = Datatype::vector(100, 1, 1, &t).unwrap();
    let all = Datatype::hvector(100, 1, 400, &row).unwrap();
    let face = Datatype::subarray(&[9, 9, 9], &[3, 9, 1], &[1, 0, 2], Order::C, &t).unwrap();
    let plane = Datatype::subarray(&[9, 9, 9], &[3, 9, 9], &[1, 0, 0], Order::C, &t).unwrap();
    let even = Datatype::indexed_block(1, &[0, 2, 4, 6], &t).unwrap();
    let touching = Datatype::indexed(&[2, 3, 1], &[4, 6, 9], &t).unwrap();
    let odd = Datatype::indexed(&[2, 3, 1], &[4, 7, 19], &t).unwrap();
    let many_odd = Datatype::contiguous(1_000_000, &odd).unwrap();
    let nothing = Datatype::contiguous(0, &t).unwrap();
    let forms = [
        &column, &row, &all, &face, &plane, &even, &touching, &odd, &many_odd, &nothing,
    ]
    .map(form);
    assert_eq!(
        forms,
        [
            "strided",
            "contiguous",
            "contiguous",
            "strided",
            "contiguous",
            "strided",
            "contiguous",
            "runs",
            "runs in loops",
            "empty"
        ]
    );
    assert_eq!(touching.contiguous_bytes(1), Some((16, 24)));
    assert_eq!(column.contiguous_bytes(1), None);
    assert_eq!(all.contiguous_bytes(3), Some((0, 120_000)));
}

#[test]
fn a_nest_deeper_than_the_loops_still_packs() {
    let byte = Datatype::from(Named::BYTE);
    let sub = Datatype::subarray(&[3; 6], &[2; 6], &[1; 6], Order::Fortran, &byte).unwrap();
    assert_eq!(form(&sub), "runs in loops");
    let memory: Vec<u8> = (0..=255).cycle().take(729).collect();
    let expected: Vec<u8> = (0..729)
        .filter(|&cell| {
            coordinates_of(cell, &[3; 6], Order::Fortran)
                .iter()
                .all(|&at| at >= 1)
        })
        .map(|cell| memory[cell as usize])
        .collect();
    assert_eq!(send_buf(&memory, 0, 1, &sub).to_vec(), expected);
}

#[test]
fn counts_beyond_32_bits_keep_their_size() {
    let huge = Datatype::contiguous(1 << 40, &Named::DOUBLE.into()).unwrap();
    assert_eq!((huge.size(), huge.extent()), (1 << 43, 1 << 43));
    assert_eq!(form(&huge), "contiguous");
    let sparse = Datatype::vector(1 << 35, 1, 1 << 10, &huge_gap()).unwrap();
    assert_eq!(form(&sparse), "strided");
    assert_eq!(sparse.size(), 1 << 37);
    let last = sparse.runs(1, (1 << 37) - 2..i64::MAX).last();
    let at = ((1 << 35) - 1) * (1 << 10) * 16 + 2;
    assert_eq!(last, Some(Run::new(at, 2)));
    assert_eq!(huge.elements(1 << 43), Some(1 << 40));
    assert_eq!(huge.elements((1 << 43) + 8), Some((1 << 40) + 1));
}

fn huge_gap() -> Datatype {
    Datatype::resized(0, 16, &int()).unwrap()
}

#[test]
fn what_reaches_beyond_an_address_is_refused() {
    let t = int();
    for (wrong, sentence) in [
        (
            Datatype::contiguous(i64::MAX / 2, &t),
            "the contiguous type would reach beyond the 63 bits of an address",
        ),
        (
            Datatype::vector(3, 1, i64::MAX / 7, &t),
            "the vector type would reach beyond the 63 bits of an address",
        ),
        (
            Datatype::resized(i64::MAX, 1, &t),
            "the resized type would reach beyond the 63 bits of an address",
        ),
        (
            Datatype::contiguous(-1, &t),
            "the count of a datatype is -1, below zero",
        ),
        (
            Datatype::indexed(&[1, -2], &[0, 0], &t),
            "the block length of a datatype is -2, below zero",
        ),
        (
            Datatype::hindexed(&[1, 2], &[0], &t),
            "a datatype was given 2 block lengths but 1 displacements",
        ),
        (
            Datatype::subarray(&[4, 4], &[2, 5], &[0, 0], Order::C, &t),
            "in dimension 1 of an array type the subsize is 5, its limit 4",
        ),
        (
            Datatype::darray(6, 0, &[8], &[Distribution::Block(None)], &[4], Order::C, &t),
            "the process grid of a distributed array has 4 places for 6 processes",
        ),
        (
            Datatype::darray(4, 4, &[8], &[Distribution::Block(None)], &[4], Order::C, &t),
            "a distributed array over 4 processes has no part for rank 4",
        ),
        (
            Datatype::darray(
                4,
                0,
                &[8],
                &[Distribution::Block(Some(1))],
                &[4],
                Order::C,
                &t,
            ),
            "in dimension 0 of an array type the block size is 1, its limit 2",
        ),
    ] {
        assert_eq!(wrong.map(|t| t.size()).unwrap_err().to_string(), sentence);
    }
}

/// The processes of a darray own each cell of the array exactly once, and each the cells that the definition gives it.
fn check_darray(global: &[i64], how: &[Distribution], grid: &[i64], order: Order) {
    let processes: i64 = grid.iter().product();
    let cells: i64 = global.iter().product();
    let owner = |cell: i64| -> i64 {
        let at = coordinates_of(cell, global, order);
        (0..global.len()).fold(0, |rank, d| {
            let (size, n) = (global[d], grid[d]);
            let coordinate = match how[d] {
                Distribution::None(_) => 0,
                Distribution::Block(b) => at[d] / b.unwrap_or((size + n - 1) / n),
                Distribution::Cyclic(b) => at[d] / b.unwrap_or(1) % n,
            };
            rank * n + coordinate
        })
    };
    let memory: Vec<u8> = (0..cells)
        .flat_map(|cell| (cell as i16).to_le_bytes())
        .collect();
    let short = Datatype::named(0x208).unwrap();
    for rank in 0..processes {
        let t = Datatype::darray(processes, rank, global, how, grid, order, &short).unwrap();
        t.commit().unwrap();
        assert_eq!((t.lb(), t.extent()), (0, 2 * cells));
        let mine: Vec<u8> = (0..cells)
            .filter(|&cell| owner(cell) == rank)
            .flat_map(|cell| (cell as i16).to_le_bytes())
            .collect();
        let packed = send_buf(&memory, 0, 1, &t).to_vec();
        assert_eq!(packed, mine, "rank {rank} of {grid:?}, {how:?}");
    }
}

#[test]
fn a_distributed_array_is_shared_out_without_gap_or_overlap() {
    use Distribution::{Block, Cyclic};
    let whole = Distribution::None(None);
    for order in [Order::C, Order::Fortran] {
        for first in [
            Block(None),
            Block(Some(4)),
            Cyclic(None),
            Cyclic(Some(2)),
            Cyclic(Some(5)),
        ] {
            for second in [whole, Block(None), Cyclic(Some(3))] {
                let columns = if second == whole { 1 } else { 2 };
                check_darray(&[11, 7], &[first, second], &[3, columns], order);
                check_darray(&[2, 7], &[Cyclic(None), second], &[3, columns], order);
                check_darray(
                    &[5, 4, 3],
                    &[second, Cyclic(Some(2)), Block(None)],
                    &[columns, 2, 2],
                    order,
                );
            }
        }
    }
}

#[test]
fn contents_return_what_the_constructor_was_given() {
    let t = int();
    let vector = Datatype::vector(3, 2, -5, &t).unwrap();
    let contents = vector.contents();
    assert_eq!(contents.integers, [3, 2, -5]);
    assert!(contents.types[0].same(&t));
    assert_eq!(vector.envelope().combiner as i32, 104);

    let large = Datatype::hvector(3, 2, 1 << 40, &vector)
        .unwrap()
        .with_form(Form::Count);
    let contents = large.contents();
    assert_eq!(contents.counts, [3, 2, 1 << 40]);
    assert!(contents.integers.is_empty() && contents.addresses.is_empty());
    assert!(contents.types[0].same(&vector), "the very type, not a copy");

    let structure = Datatype::structure(&[1, 2], &[0, 64], &[vector.clone(), t.clone()]).unwrap();
    let contents = structure.contents();
    assert_eq!(
        (contents.integers, contents.addresses),
        (vec![2, 1, 2], vec![0, 64])
    );
    let envelope = structure.envelope();
    let numbers = (
        envelope.integers,
        envelope.addresses,
        envelope.counts,
        envelope.types,
    );
    assert_eq!(
        (numbers, envelope.combiner),
        ((3, 2, 0, 2), Combiner::Struct)
    );

    let darray = Datatype::darray(
        2,
        1,
        &[8, 6],
        &[Distribution::Cyclic(Some(2)), Distribution::None(None)],
        &[2, 1],
        Order::Fortran,
        &t,
    )
    .unwrap();
    let all = [2, 1, 2, 8, 6, 18, 16, 2, 19, 2, 1, 15];
    assert_eq!(darray.contents().integers, all);
    assert_eq!(
        Distribution::from_values(18, 2),
        Some(Distribution::Cyclic(Some(2)))
    );
    assert_eq!(t.envelope().combiner, Combiner::Named);
}

#[test]
fn only_the_copy_of_a_committed_type_is_born_committed() {
    let t = Datatype::vector(2, 1, 2, &int()).unwrap();
    assert!(!t.is_committed());
    assert!(!t.dup().unwrap().is_committed());
    t.commit().unwrap();
    assert!(t.is_committed() && t.dup().unwrap().is_committed());
    assert!(int().is_committed());
}

#[test]
fn signatures_ignore_places_but_not_order() {
    let (a, b) = (int(), Datatype::from(Named::DOUBLE));
    let ab = Datatype::structure(&[1, 1], &[0, 8], &[a.clone(), b.clone()]).unwrap();
    let far = Datatype::structure(&[1, 1], &[800, 8], &[a.clone(), b.clone()]).unwrap();
    let ba = Datatype::structure(&[1, 1], &[0, 8], &[b.clone(), a.clone()]).unwrap();
    assert_eq!(ab.signature(), far.signature());
    assert_ne!(ab.signature(), ba.signature());
    let four = Datatype::contiguous(4, &a).unwrap();
    assert_eq!(four.signature(), a.signature().times(4));
    assert_ne!(four.signature(), a.signature().times(5));
    assert_eq!(a.signature(), Datatype::named(0x250).unwrap().signature());
    let huge = Datatype::contiguous(1 << 50, &ab).unwrap().signature();
    assert_eq!(huge, ab.signature().times(1 << 49).times(2));
    assert_eq!(huge.elements, 1 << 51);
}

#[test]
fn absolute_addresses_work_from_bottom() {
    let (x, y) = ([1u8, 2, 3], [4u8, 5]);
    let places = [
        x.as_ptr().expose_provenance() as i64,
        y.as_ptr().expose_provenance() as i64,
    ];
    let t = Datatype::hindexed(&[3, 2], &places, &Named::BYTE.into()).unwrap();
    t.commit().unwrap();
    let bottom = std::ptr::with_exposed_provenance(0);
    // SAFETY: both arrays live longer than the buffer.
    let buf = unsafe { SendBuf::new(bottom, 1, t) };
    assert_eq!(buf.to_vec(), [1, 2, 3, 4, 5]);
}

#[test]
fn slices_and_copies_count_in_elements() {
    let pair = Datatype::vector(2, 1, 2, &Named::BYTE.into()).unwrap();
    let spaced = Datatype::resized(0, 4, &pair).unwrap();
    spaced.commit().unwrap();
    let memory: Vec<u8> = (0..16).collect();
    let buf = send_buf(&memory, 0, 4, &spaced);
    assert_eq!(buf.slice(1..3).to_vec(), [4, 6, 8, 10]);
    assert_eq!(buf.slice(3..9).to_vec(), [12, 14], "cut to what there is");
    assert!(buf.slice(7..9).to_vec().is_empty());
    let bytes = Scratch::bytes(5).unwrap();
    assert_eq!(copy(&buf, &mut bytes.recv(1..5)), 4);
    assert_eq!(bytes.send(0..5).to_vec(), [0, 0, 2, 4, 6]);
    let refusal = Scratch::bytes(i64::MAX).map(|_| ()).unwrap_err();
    assert!(refusal.to_string().contains("9223372036854775807 bytes"));
}
