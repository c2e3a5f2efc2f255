//! Tests of blocks that map to the same few cache sets.
//! The copy loops move such blocks in groups; the packed bytes must equal those of a simple loop.

use super::{recv_buf, send_buf};
use crate::datatype::{Datatype, Named};
use proptest::prelude::*;

/// Rows of blocks: a few long rows or many short ones.
/// The lengths of the blocks include the lengths that are moved in groups.
/// Rows are either consecutive or interleaved.
/// Interleaved rows, 192 bytes apart, put more blocks into a cache set than it has lines,
/// although all blocks are in a short range of memory.
fn grid() -> impl Strategy<Value = [usize; 5]> {
    let block = prop_oneof![Just(4), Just(8), Just(16), Just(64), 1usize..140];
    let stride = (1usize..4, 9u32..13).prop_map(|(times, power)| times << power);
    (block, stride, 1usize..1200, 1usize..21, any::<bool>()).prop_map(
        |(block, stride, count, rows, between)| {
            let count = count.min((4 << 20) / stride).max(1);
            match between {
                true => [
                    block,
                    stride,
                    count,
                    rows.min(stride / BESIDE).max(1),
                    BESIDE,
                ],
                false => [block, stride, count, rows.min(4), count * stride + BESIDE],
            }
        },
    )
}

/// The distance of interleaved rows in bytes.
const BESIDE: usize = 192;

/// Packs and unpacks a grid, in one call and in two calls, and compares with a simple loop.
fn moves_whole(
    [block, stride, count, rows, apart]: [usize; 5],
    cut: f64,
) -> Result<(), TestCaseError> {
    let row = Datatype::hvector(
        count as i64,
        block as i64,
        stride as i64,
        &Named::BYTE.into(),
    )
    .unwrap();
    let t = Datatype::hvector(rows as i64, 1, apart as i64, &row).unwrap();
    t.commit().unwrap();
    let places = || (0..rows * count).map(|i| i / count * apart + i % count * stride);
    let before: Vec<u8> = (0..rows * apart + count * stride)
        .map(|i| (i * 31 + i / 256 * 7) as u8)
        .collect();
    let expected: Vec<u8> = places()
        .flat_map(|at| before[at..at + block].to_vec())
        .collect();
    let buf = send_buf(&before, 0, 1, &t);
    prop_assert!(buf.to_vec() == expected);

    // The data are packed in one call, and in two calls.
    let cut = (expected.len() as f64 * cut) as usize;
    for cut in [expected.len(), cut] {
        let mut packer = buf.packer();
        let mut packed = vec![0; expected.len()];
        let n = packer.pack(&mut packed[..cut]);
        packer.pack(&mut packed[n..]);
        prop_assert!(packed == expected);

        let input: Vec<u8> = (0..expected.len()).map(|i| (i * 13 + 5) as u8).collect();
        let mut after = before.clone();
        for (at, data) in places().zip(input.chunks(block)) {
            after[at..at + block].copy_from_slice(data);
        }
        let mut memory = before.clone();
        let mut unpacker = recv_buf(&mut memory, 0, 1, &t).unpacker();
        unpacker.unpack(&input[..cut]);
        unpacker.unpack(&input[cut..]);
        prop_assert!(memory == after);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_crowds_a_cache_is_packed_and_unpacked_like_anything_else(grid in grid(), cut in 0.0..1.0) {
        moves_whole(grid, cut)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "long: cargo xtask test --long"]
    fn what_crowds_a_cache_is_packed_and_unpacked_like_anything_else_in_more_cases(grid in grid(), cut in 0.0..1.0) {
        moves_whole(grid, cut)?;
    }
}
