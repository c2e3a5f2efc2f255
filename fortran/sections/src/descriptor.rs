//! The descriptor of an array: `CFI_cdesc_t` of the Fortran standard.
//!
//! gfortran and flang agree on the fields that this module reads; other fields differ.
#![allow(unsafe_code)]

use std::ffi::c_void;

/// The maximum rank of an array in Fortran.
pub const MAX_RANK: usize = 15;

/// A dimension of an array: `CFI_dim_t` of the Fortran standard.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    lower_bound: isize,
    extent: isize,
    /// The distance in bytes between consecutive elements of this dimension;
    /// negative in a reversed section.
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

/// The header of an array's descriptor. In memory, `rank` dimensions follow it.
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
    /// Returns the address of the first element.
    #[inline(always)]
    pub fn base(&self) -> *mut c_void {
        self.base
    }

    /// Returns the size of an element in bytes; for a CHARACTER, its length.
    #[inline(always)]
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// Returns the dimensions that follow the header.
    ///
    /// # Safety
    /// `this` is a compiler's descriptor, so its dimensions follow it in memory.
    #[inline(always)]
    pub unsafe fn dimensions<'d>(this: *const Descriptor) -> &'d [Dimension] {
        // SAFETY: `rank` dimensions follow the header, whose size is a multiple of their alignment.
        unsafe {
            let rank = (*this).rank as u8 as usize;
            std::slice::from_raw_parts(this.add(1).cast(), rank)
        }
    }

    /// Returns true for a scalar or a contiguous array of rank 1, the most frequent arguments.
    ///
    /// # Safety
    /// The contract is that of [`Descriptor::dimensions`].
    #[inline(always)]
    pub unsafe fn is_plain(this: *const Descriptor) -> bool {
        // SAFETY: `this` is a compiler's descriptor (contract), so one of rank 1 has a dimension.
        unsafe {
            let stride = &raw const (*this.add(1).cast::<Dimension>()).stride;
            // Each comparison reads the rank from memory, which saves one instruction.
            let rank = &raw const (*this).rank;
            match rank.read_volatile() == 1 {
                true => *stride == (*this).element_size as isize,
                false => rank.read_volatile() == 0,
            }
        }
    }

    /// Returns true if the elements are contiguous in memory.
    ///
    /// # Safety
    /// The contract is that of [`Descriptor::dimensions`].
    #[inline(always)]
    pub unsafe fn is_contiguous(this: *const Descriptor) -> bool {
        // SAFETY: `this` is a compiler's descriptor by this function's contract.
        let (dimensions, mut size) =
            unsafe { (Descriptor::dimensions(this), (*this).element_size as isize) };
        for dimension in dimensions {
            if dimension.stride != size && dimension.extent != 1 {
                return false;
            }
            // The last extent of an assumed-size array is -1, and no dimension follows it.
            size = size.wrapping_mul(dimension.extent);
        }
        true
    }
}

/// An array section, which may be noncontiguous.
#[derive(Clone, Debug)]
pub struct Section {
    base: *mut u8,
    element_size: usize,
    dimensions: Vec<Dimension>,
}

impl Section {
    /// Returns the section of a descriptor.
    ///
    /// # Safety
    /// The contract is that of [`Descriptor::dimensions`].
    pub unsafe fn of(descriptor: *const Descriptor) -> Section {
        // SAFETY: `descriptor` is a compiler's descriptor by this function's contract.
        unsafe {
            Section {
                base: (*descriptor).base.cast(),
                element_size: (*descriptor).element_size,
                dimensions: Descriptor::dimensions(descriptor).to_vec(),
            }
        }
    }

    /// Creates a section from its first element, element size and dimensions.
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

    /// Returns the number of elements; 0 if any extent is 0.
    pub fn len(&self) -> usize {
        let extents = self.dimensions.iter().map(|d| d.extent.max(0) as usize);
        extents.product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of all elements in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * self.element_size
    }

    /// Returns the dimensions without those of extent 1. A dimension that continues the previous
    /// one (stride = previous stride * previous extent) is joined with it.
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

    /// Calls `each` for every row along the first dimension, in array element order.
    /// The arguments are the first element, the number of elements, and their distance in bytes.
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

    /// Returns a contiguous copy of the elements, in array element order.
    ///
    /// # Safety
    /// The memory of the section is readable.
    pub unsafe fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        // SAFETY: the memory is readable by this function's contract.
        unsafe { self.pack_into(&mut packed) };
        packed
    }

    /// Replaces the contents of `packed` by the elements.
    /// A second call for the same section does not move the memory of `packed`.
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
            // SAFETY: the rows have `len` readable elements; `packed` has reserved memory for them.
            unsafe {
                copy_row(from, stride, to, size as isize, count, size);
                to = to.add(count * size);
            }
        });
        // SAFETY: all rows have been written, and they have `bytes` bytes in total.
        unsafe { packed.set_len(bytes) };
    }

    /// Overwrites the elements of the section with the result of `pack`.
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
            // SAFETY: all rows have `len` elements, as `packed` has; they are writable (contract).
            unsafe {
                copy_row(from, size as isize, to, stride, count, size);
                from = from.add(count * size);
            }
        });
    }
}

/// Copies `count` elements of `size` bytes. The strides are distances between elements in bytes.
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
    // SAFETY: all elements are readable and writable (contract); each arm copies `count` elements.
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

/// Copies `count` elements of type `T`, whose size the compiler knows.
///
/// # Safety
/// The contract is that of `copy_row`, with elements of the size of `T`. Any alignment is allowed.
unsafe fn copy_elements<T: Copy>(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    count: usize,
) {
    for n in 0..count as isize {
        // SAFETY: element `n` of both is accessible (contract); no alignment is assumed.
        unsafe {
            let element = from.offset(n * from_stride).cast::<T>().read_unaligned();
            to.offset(n * to_stride)
                .cast::<T>()
                .write_unaligned(element);
        }
    }
}
