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
            (*this).rank == 0 || ((*this).rank == 1 && *stride == (*this).element_size as isize)
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

    /// Copies all elements in array element order, from the section or back to it.
    fn copy(&self, mut each: impl FnMut(*mut u8)) {
        if self.is_empty() {
            return;
        }
        let mut index = vec![0isize; self.dimensions.len()];
        let mut at = self.base;
        loop {
            each(at);
            let mut moved = false;
            for (i, d) in index.iter_mut().zip(&self.dimensions) {
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
        let size = self.element_size;
        let mut packed = vec![0u8; self.len() * size];
        let mut to = packed.as_mut_ptr();
        self.copy(|from| {
            // SAFETY: `copy` calls this once for each of `len` elements, each of which the caller states to be readable.
            unsafe {
                std::ptr::copy_nonoverlapping(from, to, size);
                to = to.add(size);
            }
        });
        packed
    }

    /// Sets the elements from what `pack` returned.
    ///
    /// # Safety
    /// The memory of the section is writable.
    pub unsafe fn unpack(&self, packed: &[u8]) {
        let size = self.element_size;
        if packed.len() < self.len() * size {
            return;
        }
        let mut from = packed.as_ptr();
        self.copy(|to| {
            // SAFETY: `copy` calls this once for each of `len` elements, which `packed` has, and the caller states that they are writable.
            unsafe {
                std::ptr::copy_nonoverlapping(from, to, size);
                from = from.add(size);
            }
        });
    }
}
