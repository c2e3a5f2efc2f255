//! Tests of descriptors against element-wise packing: sections of rank 1 to 15, with negative
//! strides, and empty sections.

use fortran_sections::{Descriptor, Dimension, Layout, MAX_RANK, Section};
use proptest::prelude::*;

/// A descriptor with its dimensions, in the memory layout of compilers.
#[repr(C)]
struct Made {
    base: *mut u8,
    element_size: usize,
    version: i32,
    rank: i8,
    others: [i8; 3],
    dimensions: [Dimension; MAX_RANK],
}

/// A generated section of an array.
#[derive(Clone, Debug)]
struct Case {
    element_size: usize,
    /// For each dimension: extent of the array, extent of the section, step, and true if reversed.
    dimensions: Vec<(usize, usize, usize, bool)>,
}

impl Case {
    fn memory(&self) -> Vec<u8> {
        let elements: usize = self.dimensions.iter().map(|d| d.0).product();
        (0..elements * self.element_size)
            .map(|n| (n * 7 + n / 251) as u8)
            .collect()
    }

    /// Returns the dimensions in bytes, and the offset of the first element.
    fn section(&self) -> (Vec<Dimension>, usize) {
        let (mut size, mut first) = (self.element_size as isize, 0);
        let mut dimensions = Vec::new();
        for (whole, extent, step, reversed) in &self.dimensions {
            let mut stride = size * *step as isize;
            if *reversed && *extent > 0 {
                first += stride * (*extent as isize - 1);
                stride = -stride;
            }
            dimensions.push(Dimension::new(*extent as isize, stride));
            size *= *whole as isize;
        }
        (dimensions, first as usize)
    }

    /// Returns the elements of the section, computed from indices only.
    fn expected(&self, memory: &[u8]) -> Vec<u8> {
        let extents: Vec<usize> = self.dimensions.iter().map(|d| d.1).collect();
        let total: usize = extents.iter().product();
        let mut found = Vec::new();
        for n in 0..total {
            let (mut rest, mut offset, mut size) = (n, 0, self.element_size);
            for (whole, extent, step, reversed) in &self.dimensions {
                let index = rest % extent;
                rest /= extent;
                let index = if *reversed { extent - 1 - index } else { index };
                offset += index * step * size;
                size *= whole;
            }
            found.extend_from_slice(&memory[offset..offset + self.element_size]);
        }
        found
    }
}

/// Generates a dimension of an array and of its section.
/// Most extents are small, so an array of 15 dimensions fits in memory.
fn dimension() -> impl Strategy<Value = (usize, usize, usize, bool)> {
    prop_oneof![
        4 => Just((1, 1, 1, false)),
        1 => (1usize..5, 1usize..4, any::<bool>()).prop_map(|(extent, step, reversed)| {
            ((extent - 1) * step + 1 + step % 2, extent, step, reversed)
        }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let sizes = prop_oneof![Just(1usize), Just(4), Just(8), Just(16), Just(3)];
    let dimensions = proptest::collection::vec(dimension(), 1..=MAX_RANK);
    let small = dimensions.prop_filter("more than fits", |d| {
        d.iter().map(|d| d.0).product::<usize>() < 200_000
    });
    (sizes, small, 0usize..40, 0usize..MAX_RANK).prop_map(
        |(element_size, mut dimensions, empty, at)| {
            // One of 40 cases has an extent of 0.
            if empty == 0 {
                let at = at % dimensions.len();
                dimensions[at].1 = 0;
            }
            Case {
                element_size,
                dimensions,
            }
        },
    )
}

fn made(case: &Case, memory: &mut [u8]) -> Made {
    let (dimensions, first) = case.section();
    let mut all = [Dimension::default(); MAX_RANK];
    all[..dimensions.len()].copy_from_slice(&dimensions);
    Made {
        // An empty section may begin after the end of the array.
        base: memory.as_mut_ptr().wrapping_add(first),
        element_size: case.element_size,
        version: 1,
        rank: dimensions.len() as i8,
        others: [0; 3],
        dimensions: all,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn packing_takes_the_elements_in_array_element_order(case in case()) {
        let mut memory = case.memory();
        let expected = case.expected(&memory);
        let made = made(&case, &mut memory);
        // SAFETY: `made` has the layout of a compiler's descriptor, and its section is in `memory`.
        let packed = unsafe { Section::of((&raw const made).cast::<Descriptor>()).pack() };
        prop_assert_eq!(packed, expected);
    }

    #[test]
    fn unpacking_restores_what_packing_took_and_touches_nothing_else(case in case()) {
        let mut memory = case.memory();
        let before = memory.clone();
        let made = made(&case, &mut memory);
        // SAFETY: `made` has the layout of a compiler's descriptor, and its section is in `memory`.
        unsafe {
            let section = Section::of((&raw const made).cast::<Descriptor>());
            let packed = section.pack();
            section.unpack(&vec![0u8; packed.len()]);
            section.unpack(&packed);
        }
        prop_assert_eq!(memory, before);
    }

    #[test]
    fn a_layout_lists_the_elements_that_packing_takes(case in case(), part in 1usize..=8) {
        let mut memory = case.memory();
        let expected = case.expected(&memory);
        let elements = expected.len() / case.element_size;
        let count = elements * part / 8;
        let (dimensions, first) = case.section();
        let layout = Layout::of(&dimensions, count);
        prop_assert_eq!(layout.is_some(), count > 0);
        let mut found = Vec::new();
        if let Some(layout) = layout {
            layout.displacements(first as isize, &mut |at| {
                found.extend_from_slice(&memory[at as usize..at as usize + case.element_size]);
            });
        }
        prop_assert_eq!(&found, &expected[..count * case.element_size]);
        memory.clear();
    }

    #[test]
    fn parts_at_equal_distances_have_the_elements_of_the_whole(case in case(), parts in 1usize..5, count in 1usize..7) {
        let (dimensions, _) = case.section();
        let elements: usize = case.dimensions.iter().map(|d| d.1).product();
        // The parts are pieces of a row, whole rows, or any other number of elements.
        let row = dimensions[0].extent().max(1) as usize;
        for count in [count, count * row, elements / parts] {
            let mut expected = Vec::new();
            if let Some(all) = Layout::of(&dimensions, parts * count) {
                all.displacements(0, &mut |at| expected.push(at));
            }
            let Some((layout, distance)) = Layout::of_parts(&dimensions, parts, count) else {
                continue;
            };
            let mut found = Vec::new();
            for part in 0..parts as isize {
                layout.displacements(part * distance, &mut |at| found.push(at));
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_layout_of_more_elements_than_the_section_has_is_refused(case in case()) {
        let (dimensions, _) = case.section();
        let elements: usize = case.dimensions.iter().map(|d| d.1).product();
        prop_assert_eq!(Layout::of(&dimensions, elements + 1), None);
    }

    #[test]
    fn a_section_is_contiguous_exactly_if_its_elements_follow_each_other(case in case()) {
        let mut memory = case.memory();
        let made = made(&case, &mut memory);
        let (dimensions, _) = case.section();
        let elements: usize = case.dimensions.iter().map(|d| d.1).product();
        prop_assume!(elements > 0);
        let mut offsets = Vec::new();
        if let Some(layout) = Layout::of(&dimensions, elements) {
            layout.displacements(0, &mut |at| offsets.push(at));
        }
        let size = case.element_size as isize;
        let follows = offsets.iter().enumerate().all(|(n, at)| *at == n as isize * size);
        // SAFETY: `made` has the layout of a compiler's descriptor.
        let contiguous = unsafe { Descriptor::is_contiguous((&raw const made).cast()) };
        prop_assert_eq!(contiguous, follows);
    }
}

#[test]
fn parts_of_rows_and_of_columns_are_at_equal_distances() {
    // The section is a(2:3, :) of a(4, 6), with elements of 8 bytes.
    let dimensions = [Dimension::new(2, 8), Dimension::new(6, 32)];
    let distance = |parts, count| Layout::of_parts(&dimensions, parts, count).map(|found| found.1);
    assert_eq!(distance(3, 4), Some(64), "two columns each");
    assert_eq!(distance(2, 1), Some(8), "parts of one column");
    assert_eq!(distance(3, 1), None, "the third is in another column");
    assert_eq!(distance(4, 3), None, "one and a half columns each");
    assert_eq!(distance(4, 4), None, "more than the section has");
}

#[test]
fn a_dense_section_is_one_vector() {
    // The section is a(1:10:2, 1:3) of a(10, 3): the columns continue each other.
    let dimensions = [Dimension::new(5, 8), Dimension::new(3, 40)];
    let expected = Layout::Vector {
        count: 15,
        stride: 8,
        inner: Box::new(Layout::Element),
    };
    assert_eq!(Layout::of(&dimensions, 15), Some(expected));
}
