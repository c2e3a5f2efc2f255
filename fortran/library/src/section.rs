//! Choice buffers of module `mpi_f08`, which are arrays with a descriptor.
//!
//! A contiguous array is passed by its address. A message from or to a noncontiguous section uses
//! a datatype with the positions of the elements, without a copy. `copies` handles other calls.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Ptr};
use crate::{cells, handle};
use fortran_sections::{Descriptor, Layout, Section};
use std::marker::PhantomData;
use std::ptr::null_mut;

const ERR_BUFFER: i32 = 1;
const ERR_COUNT: i32 = 2;
const ERR_TYPE: i32 = 3;
const COMM_SELF: i32 = 258;
const BYTE: usize = 583;
const DATATYPE_NULL: usize = 512;

/// The reason why a section cannot be passed: the error class, and the remedy as text.
pub struct Refused {
    class: i32,
    reason: String,
}

/// Returns true for a scalar or a contiguous array of rank 1 that is no sentinel.
///
/// # Safety
/// `buffer` is a compiler's descriptor.
#[inline(always)]
pub unsafe fn is_simple(buffer: *const Descriptor) -> bool {
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    unsafe { cells::is_outside((*buffer).base()) && Descriptor::is_plain(buffer) }
}

/// Returns true for a scalar or a contiguous array of rank 1. Callers must exclude sentinels.
///
/// # Safety
/// `buffer` is a compiler's descriptor.
#[inline(always)]
pub unsafe fn is_plain(buffer: *const Descriptor) -> bool {
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    unsafe { Descriptor::is_plain(buffer) }
}

/// The buffer address, the count and the datatype that C gets for a message.
pub struct Message<C: Calls> {
    address: Ptr,
    pub count: i64,
    pub datatype: Ptr,
    /// True if the datatype was created for this call and must be freed after it.
    made: bool,
    calls: PhantomData<C>,
}

impl<C: Calls> Message<C> {
    /// Returns the message for a contiguous buffer, with the program's count and datatype.
    ///
    /// # Safety
    /// `buffer` is a compiler's descriptor.
    #[inline(always)]
    unsafe fn plain(buffer: *const Descriptor, count: i64, datatype: Ptr) -> Message<C> {
        Message {
            // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
            address: cells::buffer(unsafe { (*buffer).base() }),
            count,
            datatype,
            made: false,
            calls: PhantomData,
        }
    }

    #[inline(always)]
    pub fn address(&self) -> Ptr {
        self.address
    }
}

impl<C: Calls> Drop for Message<C> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.made {
            // SAFETY: `scattered` created the datatype; active operations keep their own reference.
            unsafe { C::MPI_Type_free((&raw mut self.datatype).cast()) };
        }
    }
}

/// Returns the message of `count` elements of a datatype in a buffer.
///
/// # Safety
/// `buffer` is a compiler's descriptor.
#[inline(always)]
pub unsafe fn message<C: Calls>(
    buffer: *const Descriptor,
    count: i64,
    datatype: Ptr,
) -> Result<Message<C>, Refused> {
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    unsafe {
        if Descriptor::is_contiguous(buffer) || count <= 0 {
            return Ok(Message::plain(buffer, count, datatype));
        }
        scattered(buffer, None, count, datatype)
    }
}

/// Returns the message of one partition: `count` elements of a datatype in a partitioned buffer.
///
/// # Safety
/// `buffer` is a compiler's descriptor.
#[inline(always)]
pub unsafe fn partitions<C: Calls>(
    buffer: *const Descriptor,
    partitions: i32,
    count: i64,
    datatype: Ptr,
) -> Result<Message<C>, Refused> {
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    unsafe {
        if Descriptor::is_contiguous(buffer) || partitions <= 0 || count <= 0 {
            return Ok(Message::plain(buffer, count, datatype));
        }
        scattered(buffer, Some(partitions as usize), count, datatype)
    }
}

/// Returns the message of a noncontiguous section, or of one partition of a partitioned section.
///
/// # Safety
/// `buffer` is a compiler's descriptor.
#[cold]
#[inline(never)]
unsafe fn scattered<C: Calls>(
    buffer: *const Descriptor,
    parts: Option<usize>,
    count: i64,
    datatype: Ptr,
) -> Result<Message<C>, Refused> {
    let size = match size::<C>(datatype) {
        Some(size) if size > 0 => size,
        // The C function reports an invalid datatype, or transfers no data.
        // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
        _ => return Ok(unsafe { Message::plain(buffer, count, datatype) }),
    };
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    let (section, address, element) = unsafe {
        (
            Section::of(buffer),
            (*buffer).base(),
            (*buffer).element_size(),
        )
    };
    check_dense::<C>(datatype, size)?;
    let elements = elements(count, size, element)?;
    let (layout, distance) = layout(&section, parts, elements)?;
    // SAFETY: `datatype` is valid, since it has a size. Each created type is freed once.
    unsafe {
        let first = element_type::<C>(datatype, size, element);
        let mut made = built::<C>(&layout, first.0);
        if first.1 && made != first.0 {
            freed::<C>(first.0);
        }
        if let Some(distance) = distance {
            let one = made;
            C::MPI_Type_create_resized_c(one, 0, distance as i64, (&raw mut made).cast());
            freed::<C>(one);
        }
        C::MPI_Type_commit((&raw mut made).cast());
        Ok(Message {
            address,
            count: 1,
            datatype: made,
            made: true,
            calls: PhantomData,
        })
    }
}

/// Returns the size of a datatype in bytes, or `None` for an invalid one, which C then reports.
pub fn size<C: Calls>(datatype: Ptr) -> Option<i64> {
    if datatype as usize == DATATYPE_NULL {
        return None;
    }
    let mut size = 0i64;
    // SAFETY: the C library checks the handle, and `size` is a local variable.
    let code = unsafe { C::MPI_Type_size_c(datatype, (&raw mut size).cast()) };
    (code == 0).then_some(size)
}

/// Checks that a datatype of `size` bytes has no gaps.
fn check_dense<C: Calls>(datatype: Ptr, size: i64) -> Result<(), Refused> {
    let (mut lower, mut extent) = (0i64, 0i64);
    // SAFETY: the C library checks the handle; the results are local variables.
    unsafe {
        C::MPI_Type_get_extent_c(datatype, (&raw mut lower).cast(), (&raw mut extent).cast());
    }
    if size == extent && lower == 0 {
        return Ok(());
    }
    Err(Refused {
        class: ERR_TYPE,
        reason: "a datatype with gaps describes elements of an array section that is not contiguous; pass the whole array, or a copy of the section".into(),
    })
}

/// Returns the number of section elements for `count` datatype elements of `size` bytes.
fn elements(count: i64, size: i64, element: usize) -> Result<usize, Refused> {
    let bytes = count
        .checked_mul(size)
        .and_then(|b| usize::try_from(b).ok());
    let bytes = bytes.ok_or_else(|| Refused {
        class: ERR_COUNT,
        reason: format!(
            "{count} elements of {size} bytes are more than an address space has; pass the number of elements in the section"
        ),
    })?;
    if element != 0 && bytes.is_multiple_of(element) {
        return Ok(bytes / element);
    }
    Err(Refused {
        class: ERR_TYPE,
        reason: format!(
            "{count} elements of {size} bytes are no whole number of the section's elements of {element} bytes; pass the datatype of these elements"
        ),
    })
}

/// Returns the layout of `elements` elements. With `parts`, returns the layout of one partition
/// and the distance in bytes between consecutive partitions.
fn layout(
    section: &Section,
    parts: Option<usize>,
    elements: usize,
) -> Result<(Layout, Option<isize>), Refused> {
    let dimensions = section.dimensions();
    let all = elements.saturating_mul(parts.unwrap_or(1));
    if all > section.len() {
        return Err(Refused {
            class: ERR_COUNT,
            reason: format!(
                "the count needs {all} elements, but the array section has {}; pass a smaller count or a larger section",
                section.len()
            ),
        });
    }
    let found = match parts {
        None => Layout::of(dimensions, elements).map(|layout| (layout, None)),
        Some(parts) => Layout::of_parts(dimensions, parts, elements)
            .filter(|(_, distance)| *distance >= 0)
            .map(|(layout, distance)| (layout, Some(distance))),
    };
    found.ok_or_else(|| Refused {
        class: ERR_BUFFER,
        reason: "the partitions of this array section are not at equal distances in ascending order; pass a contiguous array, or partitions of whole rows or columns".into(),
    })
}

/// Returns the datatype of one section element, and true if this function created it.
///
/// # Safety
/// `datatype` is a datatype of `size` bytes.
unsafe fn element_type<C: Calls>(datatype: Ptr, size: i64, element: usize) -> (Ptr, bool) {
    let (count, of) = match element as i64 {
        whole if whole == size => return (datatype, false),
        many if many % size == 0 => (many / size, datatype),
        bytes => (bytes, std::ptr::without_provenance_mut(BYTE)),
    };
    let mut made: Ptr = null_mut();
    // SAFETY: `of` is a datatype, and `made` is a local variable.
    unsafe { C::MPI_Type_contiguous_c(count, of, (&raw mut made).cast()) };
    (made, true)
}

/// # Safety
/// `datatype` was created in this module, and is not used afterwards.
unsafe fn freed<C: Calls>(mut datatype: Ptr) {
    // SAFETY: only this module knows the handle, by this function's contract.
    unsafe { C::MPI_Type_free((&raw mut datatype).cast()) };
}

/// Creates the datatype of a layout; the result is always a new datatype.
///
/// # Safety
/// `element` is a datatype.
unsafe fn built<C: Calls>(layout: &Layout, element: Ptr) -> Ptr {
    let mut made: Ptr = null_mut();
    // SAFETY: `element` is a datatype (contract). Inner types are created from it and freed
    // once. The C functions only read the local arrays.
    unsafe {
        match layout {
            Layout::Element => {
                C::MPI_Type_contiguous_c(1, element, (&raw mut made).cast());
            }
            Layout::Vector {
                count,
                stride,
                inner,
            } => {
                let (of, own) = part::<C>(inner, element);
                let result = (&raw mut made).cast();
                C::MPI_Type_create_hvector_c(*count as i64, 1, *stride as i64, of, result);
                if own {
                    freed::<C>(of);
                }
            }
            Layout::Pair {
                first,
                second,
                displacement,
            } => {
                let parts = [part::<C>(first, element), part::<C>(second, element)];
                let (lengths, displacements) = ([1i64, 1], [0i64, *displacement as i64]);
                let types = parts.map(|p| p.0);
                C::MPI_Type_create_struct_c(
                    2,
                    lengths.as_ptr().cast_mut().cast(),
                    displacements.as_ptr().cast_mut().cast(),
                    types.as_ptr().cast_mut().cast(),
                    (&raw mut made).cast(),
                );
                for (of, own) in parts {
                    if own {
                        freed::<C>(of);
                    }
                }
            }
        }
    }
    made
}

/// Returns the datatype of an inner layout, and true if this function created the datatype.
///
/// # Safety
/// `element` is a datatype.
unsafe fn part<C: Calls>(layout: &Layout, element: Ptr) -> (Ptr, bool) {
    match layout {
        Layout::Element => (element, false),
        // SAFETY: `element` is a datatype by this function's contract.
        other => (unsafe { built::<C>(other, element) }, true),
    }
}

/// A buffer that is passed by its address.
pub struct InPlace(Ptr);

impl InPlace {
    #[inline(always)]
    pub fn address(&self) -> Ptr {
        self.0
    }
}

/// Returns a buffer for a procedure that uses only its first element or its address.
///
/// # Safety
/// `buffer` is a compiler's descriptor.
#[inline(always)]
pub unsafe fn first_element(buffer: *const Descriptor) -> Result<InPlace, Refused> {
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    Ok(InPlace(cells::buffer(unsafe { (*buffer).base() })))
}

/// Returns a buffer for a procedure that needs contiguous memory; fails if it is noncontiguous.
///
/// # Safety
/// `buffer` is a compiler's descriptor.
#[inline(always)]
pub unsafe fn in_place(buffer: *const Descriptor) -> Result<InPlace, Refused> {
    // SAFETY: `buffer` is a compiler's descriptor by this function's contract.
    unsafe {
        if !Descriptor::is_contiguous(buffer) && !Section::of(buffer).is_empty() {
            return Err(Refused {
                class: ERR_BUFFER,
                reason: "the array section is not contiguous, and this procedure uses the memory as a whole; pass a contiguous array".into(),
            });
        }
        Ok(InPlace(cells::buffer((*buffer).base())))
    }
}

/// Prints why a section cannot be passed, and calls the communicator's error handler.
/// Returns the error class.
///
/// # Safety
/// `comm` is null or points to the INTEGER of a communicator.
#[cold]
#[inline(never)]
pub unsafe fn refuse<C: Calls>(
    refused: Refused,
    procedure: &str,
    argument: &str,
    comm: *const i32,
) -> i32 {
    printable::eprintln!("{procedure}: {argument}: {}.", refused.reason);
    // SAFETY: `comm` is null or points to an INTEGER (contract); MPI_COMM_SELF always exists.
    unsafe {
        let itself = COMM_SELF;
        let comm = if comm.is_null() {
            &raw const itself
        } else {
            comm
        };
        C::MPI_Comm_call_errhandler(handle::input::<handle::Comm>(comm), refused.class);
    }
    refused.class
}
