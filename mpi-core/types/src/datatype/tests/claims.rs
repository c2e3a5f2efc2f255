//! Tests of single properties of datatypes and buffers.

use super::super::*;
use super::{coordinates_of, send_buf};

#[test]
fn the_table_has_the_sizes_of_the_abi() {
    let golden: Vec<Vec<&str>> = include_str!("../predefined.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let of_the_standard = || Named::all().filter(|named| !named.info().name.starts_with("MPIX_"));
    assert_eq!(golden.len(), of_the_standard().count());
    for (named, row) in of_the_standard().zip(golden) {
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
    let face = subarray(&[9, 9, 9], &[3, 9, 1], &[1, 0, 2], Order::C, &t).unwrap();
    let plane = subarray(&[9, 9, 9], &[3, 9, 9], &[1, 0, 0], Order::C, &t).unwrap();
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
    let sub = subarray(&[3; 6], &[2; 6], &[1; 6], Order::Fortran, &byte).unwrap();
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
fn a_long_list_of_short_runs_is_kept_in_numbers_of_one_size() {
    let (lengths, places): (Vec<_>, Vec<_>) = (0..40).map(|i| (1 + i % 3, 5 * i)).unzip();
    let list = Datatype::indexed(&lengths, &places, &int()).unwrap();
    assert_eq!(form(&list), "runs");
    let numbers = list.runs(1, 0..list.size());
    assert!(numbers.map(|run| run.len).all(|len| len == 4));
    let memory: Vec<u8> = (0..=255).cycle().take(800).collect();
    let expected: Vec<u8> = (0..40)
        .flat_map(|i| 20 * i..20 * i + 4 * (1 + i % 3))
        .map(|at| memory[at])
        .collect();
    assert_eq!(send_buf(&memory, 0, 1, &list).to_vec(), expected);
    // The list is expanded into runs again in a larger type,
    // so a run can merge with an adjacent run.
    let touching = Datatype::indexed(&[1, 200], &[0, 1], &int()).unwrap();
    let both = Datatype::structure(&[1, 1], &[0, 784], &[list, touching]).unwrap();
    both.commit().unwrap();
    let last = both.runs(1, 0..both.size()).last();
    assert_eq!(last, Some(Run::new(780, 808)));
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
    assert_eq!(huge.counts().basic(1 << 43), Some(1 << 40));
    assert_eq!(huge.counts().basic((1 << 43) + 8), Some((1 << 40) + 1));
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
            subarray(&[4, 4], &[2, 5], &[0, 0], Order::C, &t),
            "in dimension 1 of an array type the subsize is 5, its limit 4",
        ),
        (
            darray(6, 0, &[8], &[Distribution::Block(None)], &[4], Order::C, &t),
            "the process grid of a distributed array has 4 places for 6 processes",
        ),
        (
            darray(4, 4, &[8], &[Distribution::Block(None)], &[4], Order::C, &t),
            "a distributed array over 4 processes has no part for rank 4",
        ),
        (
            darray(
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

/// Each cell of the array belongs to exactly one process of a darray, and each process has the
/// cells that the standard's definition gives it.
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
        let t = darray(processes, rank, global, how, grid, order, &short).unwrap();
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

    let darray = darray(
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
    // SAFETY: both arrays outlive the buffers.
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

/// The types that mpi4py builds for NumPy's structures have blocks
/// whose strides are not multiples of the alignment.
#[test]
fn a_whole_ends_behind_the_padding_of_its_last_part() {
    let int: Datatype = Named::from_handle(0x209).unwrap().into();
    assert_eq!(int.extent(), 4);
    let part = Datatype::hvector(3, 4, 25, &int).unwrap();
    assert_eq!((part.true_extent(), part.extent()), (66, 68));
    let whole = Datatype::hvector(2, 3, 4 * 68 + 1, &part).unwrap();
    // Its last component begins at 273 + 2 * 68 and takes 68 bytes.
    assert_eq!((whole.true_extent(), whole.extent()), (475, 480));
    let duplicate = Datatype::contiguous(1, &whole).unwrap();
    assert_eq!((duplicate.true_extent(), duplicate.extent()), (475, 480));
    // A structure of one byte, followed by a padded component.
    let byte: Datatype = Named::BYTE.into();
    let packed = Datatype::structure(&[1, 1], &[0, 1], &[byte, part]).unwrap();
    assert_eq!((packed.true_extent(), packed.extent()), (67, 72));
}
