//! Copies of array sections, for calls that have no datatype for each buffer.
//!
//! A reduction needs elements of a predefined datatype. A collective with one block per rank has
//! one datatype for all blocks. So no datatype can describe a noncontiguous section in these calls.
//! A blocking call copies the result back; `pending` keeps other copies until completion.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Pmpi, Ptr};
use crate::handle::{self, input};
use crate::section::{self, Refused};
use crate::{cells, scratch};
use fortran_sections::{Descriptor, Section};
use std::marker::PhantomData;

const SUCCESS: i32 = 0;
/// The C value of `MPI_IN_PLACE`.
const IN_PLACE: usize = 1;
/// The value MPI_ROOT, which the root of an intercommunicator passes as root.
const ROOT: i32 = -4;

/// The elements of a buffer that a collective overwrites.
/// A section that is overwritten completely need not be copied before the call.
pub struct Written<C: Calls> {
    pub sendbuf: *const Descriptor,
    pub count: i64,
    pub datatype: Ptr,
    pub calls: PhantomData<C>,
}

impl<C: Calls> Written<C> {
    /// Returns true if the call overwrites all elements of the section and reads none.
    ///
    /// # Safety
    /// `sendbuf` is a compiler's descriptor, and an argument of the same call as the section.
    unsafe fn covers(&self, section: &Section) -> bool {
        // SAFETY: `sendbuf` is a compiler's descriptor by this function's contract.
        let address = cells::buffer(unsafe { (*self.sendbuf).base() });
        let size = section::size::<C>(self.datatype).unwrap_or(0);
        address as usize != IN_PLACE
            && size > 0
            && self.count.saturating_mul(size) >= section.bytes() as i64
    }
}

/// A copy of the elements of a section.
pub struct Copy {
    section: Section,
    elements: Vec<u8>,
    /// True if the call writes to the buffer.
    back: bool,
}

// SAFETY: the section is a buffer of an operation. The standard forbids the program to access it
// until the operation is complete, so any thread may complete the operation and write the section.
unsafe impl Send for Copy {}

impl Drop for Copy {
    fn drop(&mut self) {
        scratch::give(std::mem::take(&mut self.elements));
    }
}

impl Copy {
    /// Copies a section. Returns `None` for an empty section, whose copy would have the address of
    /// a sentinel in C.
    ///
    /// # Safety
    /// `buffer` is a compiler's descriptor of a readable array.
    pub unsafe fn of<C: Calls>(
        buffer: *const Descriptor,
        back: bool,
        written: Option<Written<C>>,
    ) -> Option<Copy> {
        // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
        let section = unsafe { Section::of(buffer) };
        if section.is_empty() {
            return None;
        }
        let elements = scratch::take(section.bytes());
        let mut copy = Copy {
            section,
            elements,
            back,
        };
        // SAFETY: `Written` has the send buffer's descriptor of the same call.
        if written.is_some_and(|w| unsafe { w.covers(&copy.section) }) {
            copy.elements.resize(copy.section.bytes(), 0);
        } else {
            copy.refresh();
        }
        Some(copy)
    }

    /// Returns the address of the copied elements, which C gets as the buffer.
    pub fn address(&mut self) -> Ptr {
        self.elements.as_mut_ptr().cast()
    }

    /// Returns true if the procedure writes to the program's array.
    pub fn is_written(&self) -> bool {
        self.back
    }

    /// Copies the elements of the program's array again, before another start of the operation.
    pub fn refresh(&mut self) {
        // SAFETY: callers are `Copy::of` and starts of persistent requests. The standard requires
        // the program to keep the array until the request is freed.
        unsafe { self.section.pack_into(&mut self.elements) };
    }

    /// Copies the result to the program's array.
    pub fn restore(&self) {
        if self.back {
            // SAFETY: this call completes the operation. The standard requires the program
            // to keep the array until the completing call returns.
            unsafe { self.section.unpack(&self.elements) };
        }
    }
}

/// A buffer argument for C: the program's array, or a copy of its noncontiguous section.
pub struct Copied {
    address: Ptr,
    copy: Option<Box<Copy>>,
}

impl Copied {
    #[inline(always)]
    pub fn address(&self) -> Ptr {
        self.address
    }

    /// Returns true if the elements were copied.
    #[inline(always)]
    pub fn is_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// Returns the copy, for an operation that uses it after the call.
    pub fn into_copy(self) -> Option<Box<Copy>> {
        self.copy
    }

    /// Copies the result to the program's array, if the call succeeded.
    #[inline(always)]
    pub fn restore(&self, outcome: i32) {
        if let (SUCCESS, Some(copy)) = (outcome, &self.copy) {
            copy.restore();
        }
    }
}

/// Returns a buffer of a call, with a copy if the section is noncontiguous.
/// `root` is null unless the buffer is significant only at the root.
///
/// # Safety
/// `buffer` is a compiler's descriptor; `root` and `comm` are null or arguments of the procedure.
#[inline(always)]
pub unsafe fn copied<C: Calls, const BACK: bool>(
    buffer: *const Descriptor,
    (root, comm): (*const i32, *const i32),
    written: Option<Written<C>>,
) -> Result<Copied, Refused> {
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    unsafe {
        let whole = Descriptor::is_contiguous(buffer);
        let address = cells::buffer((*buffer).base());
        if whole || (!root.is_null() && !is_root(root, comm)) {
            return Ok(Copied {
                address,
                copy: None,
            });
        }
        Ok(copy::<C>(buffer, BACK, written))
    }
}

/// Returns true if this rank is the root.
///
/// # Safety
/// `root` and `comm` point to INTEGERs.
#[cold]
#[inline(never)]
unsafe fn is_root(root: *const i32, comm: *const i32) -> bool {
    let (mut is_inter, mut rank) = (0i32, 0i32);
    // SAFETY: both point to INTEGERs (contract); the C library checks the communicator.
    unsafe {
        let comm = input::<handle::Comm>(comm);
        Pmpi::MPI_Comm_test_inter(comm, (&raw mut is_inter).cast());
        Pmpi::MPI_Comm_rank(comm, (&raw mut rank).cast());
        *root == if is_inter == 0 { rank } else { ROOT }
    }
}

/// # Safety
/// `buffer` is a compiler's descriptor.
#[cold]
#[inline(never)]
unsafe fn copy<C: Calls>(
    buffer: *const Descriptor,
    back: bool,
    written: Option<Written<C>>,
) -> Copied {
    // SAFETY: `buffer` is a compiler's descriptor of an array that the program passes to the call.
    let copy = unsafe { Copy::of(buffer, back, written) };
    let mut copy = copy.map(Box::new);
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    let base = unsafe { (*buffer).base() };
    Copied {
        address: copy.as_mut().map_or(base, |copy| copy.address()),
        copy,
    }
}
