//! The layout of the first elements of a section as nested vectors, like MPI vector datatypes.

use crate::descriptor::Dimension;

/// The positions of elements relative to the first one, in array element order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A single element, at displacement 0.
    Element,
    /// `count` copies of `inner`, `stride` bytes apart.
    Vector {
        count: usize,
        stride: isize,
        inner: Box<Layout>,
    },
    /// `first`, then `second` at a displacement in bytes.
    Pair {
        first: Box<Layout>,
        second: Box<Layout>,
        displacement: isize,
    },
}

impl Layout {
    /// Returns the layout of the first `count` elements of a section.
    /// Returns `None` if the section has fewer elements, or if `count` is 0.
    pub fn of(dimensions: &[Dimension], count: usize) -> Option<Layout> {
        let elements: usize = dimensions
            .iter()
            .map(|d| d.extent().max(0) as usize)
            .product();
        (count > 0 && count <= elements).then(|| prefix(dimensions, count))
    }

    /// Divides the first elements of a section into `parts` parts of `count` elements each.
    /// Returns the layout of the first part, and the distance in bytes between parts.
    /// Returns `None` if the section is too short, or if the parts differ in layout or distance.
    pub fn of_parts(
        dimensions: &[Dimension],
        parts: usize,
        count: usize,
    ) -> Option<(Layout, isize)> {
        let layout = Layout::of(dimensions, count)?;
        Layout::of(dimensions, count.checked_mul(parts)?)?;
        if parts == 1 {
            return Some((layout, 0));
        }
        // The number of elements in the dimensions visited so far.
        let mut slab = 1;
        for dimension in dimensions {
            let extent = dimension.extent() as usize;
            if !count.is_multiple_of(slab) {
                return None;
            }
            let slabs = count / slab;
            if slabs * parts <= extent {
                return Some((layout, slabs as isize * dimension.stride()));
            }
            if !slabs.is_multiple_of(extent) {
                return None;
            }
            slab *= extent;
        }
        None
    }

    /// Calls `each` with the displacement of every element.
    pub fn displacements(&self, from: isize, each: &mut impl FnMut(isize)) {
        match self {
            Layout::Element => each(from),
            Layout::Vector {
                count,
                stride,
                inner,
            } => {
                for n in 0..*count as isize {
                    inner.displacements(from + n * stride, each);
                }
            }
            Layout::Pair {
                first,
                second,
                displacement,
            } => {
                first.displacements(from, each);
                second.displacements(from + displacement, each);
            }
        }
    }
}

/// Returns the layout of the first `count` elements; `count` is at least 1.
fn prefix(dimensions: &[Dimension], count: usize) -> Layout {
    let Some((last, inner)) = dimensions.split_last() else {
        return Layout::Element;
    };
    let slab: usize = inner.iter().map(|d| d.extent() as usize).product();
    let (slabs, rest) = (count / slab, count % slab);
    if slabs == 0 {
        return prefix(inner, rest);
    }
    let whole = vector(slabs, last.stride(), prefix(inner, slab));
    if rest == 0 {
        return whole;
    }
    Layout::Pair {
        first: Box::new(whole),
        second: Box::new(prefix(inner, rest)),
        displacement: slabs as isize * last.stride(),
    }
}

/// Creates a vector layout; count 1 gives `inner`. A vector that continues `inner` is merged.
fn vector(count: usize, stride: isize, inner: Layout) -> Layout {
    if count == 1 {
        return inner;
    }
    match inner {
        Layout::Vector {
            count: few,
            stride: step,
            inner,
        } if few as isize * step == stride => Layout::Vector {
            count: few * count,
            stride: step,
            inner,
        },
        inner => Layout::Vector {
            count,
            stride,
            inner: Box::new(inner),
        },
    }
}
