//! Tests of the engine against a naive reference: the type map as the standard defines it.
#![allow(unsafe_code)]

mod claims;
mod crowd;
mod external;
mod fragments;
mod structs;

use proptest::prelude::*;

use super::*;

/// An entry of a type map: data, a marker as in section 5.1.6, or the padded end of a component.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Entry {
    Data { at: i64, size: i64, align: i64 },
    Lb(i64),
    Ub(i64),
    PartEnd(i64),
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
            Entry::PartEnd(at) => Entry::PartEnd(at + by),
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
            let part_ends = map.iter().filter_map(|e| match e {
                Entry::PartEnd(at) => Some(*at),
                _ => None,
            });
            let ends = data(map).map(|(at, size, _)| at + size).chain(part_ends);
            let ub = ends.max().unwrap_or(0);
            let align = data(map).map(|(.., align)| align).max().unwrap_or(1);
            (lb..)
                .find(|end| *end >= ub && (end - lb) % align == 0)
                .unwrap_or(ub)
                - lb
        }
    };
    (lb, extent)
}

/// A datatype and its type map, which are built together.
#[derive(Clone, Debug)]
struct Both {
    datatype: Datatype,
    map: TypeMap,
}

impl Both {
    fn blocks(&self, n: i64, at: i64) -> TypeMap {
        let (lb, extent) = lb_and_extent(&self.map);
        let mut part = self.map.clone();
        if data(&part).next().is_some() {
            part.push(Entry::PartEnd(lb + extent));
        }
        (0..n).flat_map(|k| moved(&part, at + k * extent)).collect()
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
            (subarray(&sizes, &subsizes, &starts, *order, t), map)
        }
    };
    Both {
        datatype: datatype.expect("the recipe is legal"),
        map,
    }
}

/// Returns the coordinates of the cell with index `cell` in memory.
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

/// Random nested types whose type maps stay small.
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

/// Returns the packed position at the end of each basic element.
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

/// Returns the offset of each packed byte of `count` elements.
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

/// Returns memory for a buffer with data at the offsets `places`,
/// and the index of the buffer's start in this memory.
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
    // SAFETY: `arena` allocated memory for all data of the buffer, and the test keeps the memory.
    unsafe { SendBuf::new(memory.as_ptr().wrapping_add(start), count, datatype.clone()) }
}

fn recv_buf(memory: &mut [u8], start: usize, count: i64, datatype: &Datatype) -> RecvBuf {
    // SAFETY: `arena` allocated memory for all data of the buffer, and the test keeps the memory.
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
        prop_assert_eq!(t.counts().basic(0), Some(0));
        for bytes in 1..=ends.last().copied().unwrap_or(0) {
            let expected = ends.binary_search(&bytes).ok().map(|n| n as i64 + 1);
            prop_assert_eq!(t.counts().basic(bytes), expected, "{} bytes", bytes);
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
