//! Copies of array sections, for calls that have no datatype for each buffer.
//!
//! A reduction computes with elements of a predefined datatype, and a collective with a block for each rank has one datatype for all blocks, so no
//! datatype can describe a section that is not contiguous. A blocking call copies the result back before it returns; `pending` keeps the copies of
//! other calls until their requests are complete.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Pmpi, Ptr};
use crate::handle::{self, input};
use crate::section::{self, Refused};
use crate::{cells, scratch};
use fortran_sections::{Descriptor, Section};
use std::marker::PhantomData;

const SUCCESS: i32 = 0;
/// The address of `MPI_IN_PLACE` in C.
const IN_PLACE: usize = 1;
/// The root's own number of the root in an intercommunicator.
const ROOT: i32 = -4;

/// The message that a collective writes to a buffer. If it is as long as the section, the old elements need not be copied.
pub struct Written<C: Calls> {
    pub sendbuf: *const Descriptor,
    pub count: i64,
    pub datatype: Ptr,
    pub calls: PhantomData<C>,
}

impl<C: Calls> Written<C> {
    /// It is as long as the section, and the section is not read, too.
    ///
    /// # Safety
    /// `sendbuf` is a compiler's descriptor, of the same call as the section.
    unsafe fn covers(&self, section: &Section) -> bool {
        // SAFETY: `sendbuf` is a compiler's descriptor (contract of this function).
        let address = cells::buffer(unsafe { (*self.sendbuf).base() });
        let size = section::size::<C>(self.datatype).unwrap_or(0);
        address as usize != IN_PLACE
            && size > 0
            && self.count.saturating_mul(size) >= section.bytes() as i64
    }
}

/// The elements of a section, in memory of their own.
pub struct Copy {
    section: Section,
    elements: Vec<u8>,
    /// The call writes to the buffer.
    back: bool,
}

// SAFETY: the section is a buffer of an operation, which the standard forbids the program to touch until the operation is complete; so it does not matter
// which thread completes the operation and writes the section.
unsafe impl Send for Copy {}

impl Drop for Copy {
    fn drop(&mut self) {
        scratch::give(std::mem::take(&mut self.elements));
    }
}

impl Copy {
    /// Copies a section; none if it is empty: memory of no bytes has an address that is a sentinel in C.
    ///
    /// # Safety
    /// The descriptor is one that a compiler has made, of an array that is readable.
    pub unsafe fn of<C: Calls>(
        buffer: *const Descriptor,
        back: bool,
        written: Option<Written<C>>,
    ) -> Option<Copy> {
        // SAFETY: the caller states that this is a compiler's descriptor.
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
        // SAFETY: `Written` has the descriptor of the send buffer of the call that this buffer belongs to.
        if written.is_some_and(|w| unsafe { w.covers(&copy.section) }) {
            copy.elements.resize(copy.section.bytes(), 0);
        } else {
            copy.refresh();
        }
        Some(copy)
    }

    /// The address of the copy.
    pub fn address(&mut self) -> Ptr {
        self.elements.as_mut_ptr().cast()
    }

    /// The procedure writes to the program's array.
    pub fn is_written(&self) -> bool {
        self.back
    }

    /// Copies the elements of the program's array.
    pub fn refresh(&mut self) {
        // SAFETY: this is called by the call that gets the array (`Copy::of`) and by those that start its persistent request; the standard has the
        // program keep the array until the request is freed.
        unsafe { self.section.pack_into(&mut self.elements) };
    }

    /// Copies the result to the program's array.
    pub fn restore(&self) {
        if self.back {
            // SAFETY: the array belongs to the operation until the call that completes it returns, and that call is the caller: the standard has the
            // program keep it until then.
            unsafe { self.section.unpack(&self.elements) };
        }
    }
}

/// A buffer whose section, if it is not contiguous, is copied.
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

    /// The copy, to be kept after the call returns.
    pub fn into_copy(self) -> Option<Box<Copy>> {
        self.copy
    }

    /// Copies the result to the program's array. After an error there is none.
    #[inline(always)]
    pub fn restore(&self, outcome: i32) {
        if let (SUCCESS, Some(copy)) = (outcome, &self.copy) {
            copy.restore();
        }
    }
}

/// A buffer of a call, copied if it must be.
/// `root` is null unless the buffer is significant only at the root.
///
/// # Safety
/// The descriptor is one that a compiler has made, and `root` and `comm` are arguments of the procedure.
#[inline(always)]
pub unsafe fn copied<C: Calls, const BACK: bool>(
    buffer: *const Descriptor,
    (root, comm): (*const i32, *const i32),
    written: Option<Written<C>>,
) -> Result<Copied, Refused> {
    // SAFETY: the caller states that this is a compiler's descriptor.
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

/// This rank is the root.
///
/// # Safety
/// Both point to INTEGERs.
#[cold]
#[inline(never)]
unsafe fn is_root(root: *const i32, comm: *const i32) -> bool {
    let (mut is_inter, mut rank) = (0i32, 0i32);
    // SAFETY: both point to INTEGERs (contract of this function); the C library checks the communicator, and the results are variables of this function.
    unsafe {
        let comm = input::<handle::Comm>(comm);
        Pmpi::MPI_Comm_test_inter(comm, (&raw mut is_inter).cast());
        Pmpi::MPI_Comm_rank(comm, (&raw mut rank).cast());
        *root == if is_inter == 0 { rank } else { ROOT }
    }
}

/// # Safety
/// The descriptor is one that a compiler has made.
#[cold]
#[inline(never)]
unsafe fn copy<C: Calls>(
    buffer: *const Descriptor,
    back: bool,
    written: Option<Written<C>>,
) -> Copied {
    // SAFETY: `buffer` is a compiler's descriptor (contract of this function) of an argument of the call, which the program passes to be read or written.
    let copy = unsafe { Copy::of(buffer, back, written) };
    let mut copy = copy.map(Box::new);
    // SAFETY: `buffer` is a compiler's descriptor (contract of this function).
    let base = unsafe { (*buffer).base() };
    Copied {
        address: copy.as_mut().map_or(base, |copy| copy.address()),
        copy,
    }
}
