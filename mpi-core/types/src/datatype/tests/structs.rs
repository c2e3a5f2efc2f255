//! Tests of arrays of structures. They are moved in passes, with a compiled loop for each
//! combination of lengths; each of these loops must move the right bytes.

use super::{recv_buf, send_buf};
use crate::datatype::{Datatype, Named};
use proptest::prelude::*;

/// A structure: the length of each run and the gap before it,
/// whether the runs descend in memory, and the gap to the next structure.
#[derive(Clone, Debug)]
struct Recipe {
    runs: Vec<(usize, usize)>,
    backwards: bool,
    gap: usize,
    count: usize,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let len = prop_oneof![
        3 => prop::sample::select(vec![1usize, 2, 4, 8, 12, 16, 24]),
        1 => 1usize..70,
    ];
    let gap = prop_oneof![1usize..9, Just(40)];
    let few = prop::collection::vec((len.clone(), gap.clone()), 2..6);
    let many = prop::collection::vec((len, gap), 6..14);
    // A third of the structures have such large strides that a few of them fill a cache.
    let apart = prop_oneof![2 => 0usize..20, 1 => 1500usize..3000];
    (
        prop_oneof![3 => few, 1 => many],
        any::<bool>(),
        apart,
        1usize..60,
    )
        .prop_map(|(runs, backwards, gap, count)| Recipe {
            runs,
            backwards,
            gap,
            count,
        })
}

impl Recipe {
    /// Returns the offset and length of each run,
    /// in packed order, and the stride of the structures.
    fn places(&self) -> (Vec<(usize, usize)>, usize) {
        let mut end = 0;
        let mut runs: Vec<_> = (self.runs.iter())
            .map(|&(len, gap)| {
                let at = end + gap;
                end = at + len;
                (at, len)
            })
            .collect();
        if self.backwards {
            runs.reverse();
        }
        (runs, end + self.gap)
    }
}

/// Packs and unpacks the runs, in one call and in two calls, and compares with a simple loop.
fn moves_whole(recipe: Recipe, cut: f64) -> Result<(), TestCaseError> {
    let (runs, stride) = recipe.places();
    let (at, len): (Vec<i64>, Vec<i64>) = runs
        .iter()
        .map(|&(at, len)| (at as i64, len as i64))
        .unzip();
    let one = Datatype::hindexed(&len, &at, &Named::BYTE.into()).unwrap();
    let t = Datatype::resized(0, stride as i64, &one).unwrap();
    t.commit().unwrap();
    let count = recipe.count;
    let places: Vec<usize> = (0..count)
        .flat_map(|i| {
            runs.iter()
                .flat_map(move |&(at, len)| i * stride + at..i * stride + at + len)
        })
        .collect();
    let before: Vec<u8> = (0..count * stride)
        .map(|i| (i * 31 + i / 256 * 7) as u8)
        .collect();
    let expected: Vec<u8> = places.iter().map(|&at| before[at]).collect();
    let input: Vec<u8> = (0..expected.len())
        .map(|i| (i * 13 + i / 256 + 5) as u8)
        .collect();
    let mut after = before.clone();
    for (&at, &byte) in places.iter().zip(&input) {
        after[at] = byte;
    }
    let cut = (expected.len() as f64 * cut) as usize;
    for cut in [expected.len(), cut] {
        let mut packer = send_buf(&before, 0, count as i64, &t).packer();
        // The bytes after the output must not change.
        let mut packed = vec![0xa5; expected.len() + 64];
        let n = packer.pack(&mut packed[..cut]);
        packer.pack(&mut packed[n..expected.len()]);
        prop_assert!(packed[..expected.len()] == expected);
        prop_assert!(packed[expected.len()..] == [0xa5; 64]);

        let mut memory = before.clone();
        let mut unpacker = recv_buf(&mut memory, 0, count as i64, &t).unpacker();
        unpacker.unpack(&input[..cut]);
        unpacker.unpack(&input[cut..]);
        prop_assert!(memory == after);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_mixture_of_runs_is_moved_whole_and_nothing_beside_it(recipe in recipe(), cut in 0.0..1.0) {
        moves_whole(recipe, cut)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "long: cargo xtask test --long"]
    fn every_mixture_of_runs_is_moved_whole_and_nothing_beside_it_in_more_cases(recipe in recipe(), cut in 0.0..1.0) {
        moves_whole(recipe, cut)?;
    }
}
