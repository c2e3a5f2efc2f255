//! The descriptor of an array: `CFI_cdesc_t` of the Fortran standard.
//!
//! gfortran and flang agree on the fields that are read here; they use the bytes between rank and dimensions differently.
#![allow(unsafe_code)]

use std::ffi::c_void;

/// The largest rank of an array in Fortran.
pub const MAX_RANK: usize = 15;

/// A dimension of an array.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    lower_bound: isize,
    extent: isize,
    /// The distance in bytes between consecutive elements of this dimension; negative in a reversed section.
    stride: isize,
}

impl Dimension {
    pub fn new(extent: isize, stride: isize) -> Dimension {
        Dimension {
            lower_bound: 0,
            extent,
            stride,
        }
    }

    pub fn extent(&self) -> isize {
        self.extent
    }

    pub fn stride(&self) -> isize {
        self.stride
    }
}

/// The descriptor of an array. In memory only as many dimensions follow the head as the array has.
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor {
    base: *mut c_void,
    element_size: usize,
    version: i32,
    rank: i8,
    others: [i8; 3],
}

impl Descriptor {
    /// The address of the first element.
    #[inline(always)]
    pub fn base(&self) -> *mut c_void {
        self.base
    }

    /// The size of an element in bytes; of a CHARACTER, its length.
    #[inline(always)]
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// The dimensions.
    ///
    /// # Safety
    /// The descriptor is one that a compiler has made: its dimensions follow it in memory.
    #[inline(always)]
    pub unsafe fn dimensions<'d>(this: *const Descriptor) -> &'d [Dimension] {
        // SAFETY: the caller states that `rank` dimensions follow the head, whose size is a multiple of their alignment.
        unsafe {
            let rank = (*this).rank as u8 as usize;
            std::slice::from_raw_parts(this.add(1).cast(), rank)
        }
    }

    /// Returns true for a scalar and for a contiguous array of rank 1: the usual arguments, found without a loop.
    ///
    /// # Safety
    /// As for [`Descriptor::dimensions`].
    #[inline(always)]
    pub unsafe fn is_plain(this: *const Descriptor) -> bool {
        // SAFETY: the caller states that this is a compiler's descriptor, so one of rank 1 has a dimension.
        unsafe {
            let stride = &raw const (*this.add(1).cast::<Dimension>()).stride;
            // Each comparison reads the rank from memory, which costs an instruction less than to load it first.
            let rank = &raw const (*this).rank;
            match rank.read_volatile() == 1 {
                true => *stride == (*this).element_size as isize,
                false => rank.read_volatile() == 0,
            }
        }
    }

    /// Returns true if the elements follow each other in memory without gaps.
    ///
    /// # Safety
    /// As for [`Descriptor::dimensions`].
    #[inline(always)]
    pub unsafe fn is_contiguous(this: *const Descriptor) -> bool {
        // SAFETY: the caller states that this is a compiler's descriptor.
        let (dimensions, mut size) =
            unsafe { (Descriptor::dimensions(this), (*this).element_size as isize) };
        for dimension in dimensions {
            if dimension.stride != size && dimension.extent != 1 {
                return false;
            }
            // The last extent of an assumed-size array is -1; nothing follows it.
            size = size.wrapping_mul(dimension.extent);
        }
        true
    }
}

/// A section whose elements do not follow each other in memory.
#[derive(Clone, Debug)]
pub struct Section {
    base: *mut u8,
    element_size: usize,
    dimensions: Vec<Dimension>,
}

impl Section {
    /// The section that a descriptor describes.
    ///
    /// # Safety
    /// As for [`Descriptor::dimensions`].
    pub unsafe fn of(descriptor: *const Descriptor) -> Section {
        // SAFETY: the caller states that this is a compiler's descriptor.
        unsafe {
            Section {
                base: (*descriptor).base.cast(),
                element_size: (*descriptor).element_size,
                dimensions: Descriptor::dimensions(descriptor).to_vec(),
            }
        }
    }

    /// A section by its parts.
    pub fn new(base: *mut u8, element_size: usize, dimensions: Vec<Dimension>) -> Section {
        Section {
            base,
            element_size,
            dimensions,
        }
    }

    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The number of elements; 0 if any extent is.
    pub fn len(&self) -> usize {
        let extents = self.dimensions.iter().map(|d| d.extent.max(0) as usize);
        extents.product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.len() * self.element_size
    }

    /// The dimensions without those of extent 1, each joined to the one before that it continues.
    fn joined(&self) -> Vec<Dimension> {
        let mut joined: Vec<Dimension> = Vec::new();
        for dimension in self.dimensions.iter().filter(|d| d.extent != 1) {
            match joined.last_mut() {
                Some(last) if last.stride * last.extent == dimension.stride => {
                    last.extent *= dimension.extent;
                }
                _ => joined.push(*dimension),
            }
        }
        joined
    }

    /// Calls `each` with every row along the first dimension, in array element order: its first element, the number of elements and their distance.
    fn rows(&self, mut each: impl FnMut(*mut u8, usize, isize)) {
        if self.is_empty() {
            return;
        }
        let joined = self.joined();
        let Some((row, others)) = joined.split_first() else {
            return each(self.base, 1, self.element_size as isize);
        };
        let mut index = vec![0isize; others.len()];
        let mut at = self.base;
        loop {
            each(at, row.extent as usize, row.stride);
            let mut moved = false;
            for (i, d) in index.iter_mut().zip(others) {
                *i += 1;
                at = at.wrapping_offset(d.stride);
                if *i < d.extent {
                    moved = true;
                    break;
                }
                at = at.wrapping_offset(-d.stride * d.extent);
                *i = 0;
            }
            if !moved {
                return;
            }
        }
    }

    /// The elements in array element order, one after the other.
    ///
    /// # Safety
    /// The memory of the section is readable.
    pub unsafe fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        // SAFETY: the caller states that the memory is readable.
        unsafe { self.pack_into(&mut packed) };
        packed
    }

    /// Replaces the content of `packed` by the elements. It stays at its address if it has been filled by the same section before.
    ///
    /// # Safety
    /// The memory of the section is readable.
    pub unsafe fn pack_into(&self, packed: &mut Vec<u8>) {
        let size = self.element_size;
        let bytes = self.bytes();
        packed.clear();
        packed.reserve(bytes);
        let mut to = packed.as_mut_ptr();
        self.rows(|from, count, stride| {
            // SAFETY: the rows have `len` elements together, for which the reserved memory is enough, and the caller states that they are readable.
            unsafe {
                copy_row(from, stride, to, size as isize, count, size);
                to = to.add(count * size);
            }
        });
        // SAFETY: all rows have been written, and together they have this number of bytes.
        unsafe { packed.set_len(bytes) };
    }

    /// Sets the elements from what `pack` returned.
    ///
    /// # Safety
    /// The memory of the section is writable.
    pub unsafe fn unpack(&self, packed: &[u8]) {
        let size = self.element_size;
        if packed.len() < self.bytes() {
            return;
        }
        let mut from = packed.as_ptr();
        self.rows(|to, count, stride| {
            // SAFETY: the rows have `len` elements together, which `packed` has, and the caller states that they are writable.
            unsafe {
                copy_row(from, size as isize, to, stride, count, size);
                from = from.add(count * size);
            }
        });
    }
}

/// Copies `count` elements of `size` bytes; the parameters that follow are the distances between neighbouring elements, in bytes.
///
/// # Safety
/// The elements at `from` are readable, those at `to` are writable, and they do not overlap.
unsafe fn copy_row(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    count: usize,
    size: usize,
) {
    // SAFETY: the caller states that all elements are readable and writable; each arm copies `count` elements of `size` bytes.
    unsafe {
        if from_stride == size as isize && to_stride == from_stride {
            return std::ptr::copy_nonoverlapping(from, to, count * size);
        }
        match size {
            4 => copy_elements::<[u8; 4]>(from, from_stride, to, to_stride, count),
            8 => copy_elements::<[u8; 8]>(from, from_stride, to, to_stride, count),
            16 => copy_elements::<[u8; 16]>(from, from_stride, to, to_stride, count),
            _ => {
                for n in 0..count as isize {
                    let (from, to) = (from.offset(n * from_stride), to.offset(n * to_stride));
                    std::ptr::copy_nonoverlapping(from, to, size);
                }
            }
        }
    }
}

/// The same for elements whose size the compiler knows.
///
/// # Safety
/// As for `copy_row`, with elements of the size of `T`, which any address is aligned for.
unsafe fn copy_elements<T: Copy>(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    count: usize,
) {
    for n in 0..count as isize {
        // SAFETY: the caller states that element `n` of both is accessible; no alignment is assumed.
        unsafe {
            let element = from.offset(n * from_stride).cast::<T>().read_unaligned();
            to.offset(n * to_stride)
                .cast::<T>()
                .write_unaligned(element);
        }
    }
}
