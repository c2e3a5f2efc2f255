//! Choice buffers of module `mpi_f08`: arrays with a descriptor.
//!
//! A contiguous array is passed on by its address. Of another section, a message gets a datatype that describes where its elements are, so no
//! element is copied and the call may be nonblocking. Where a call has no datatype for each buffer, the elements are copied (`copies`).
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

/// Why a section cannot be passed on: the error class, and what to do.
pub struct Refused {
    class: i32,
    reason: String,
}

/// Returns true for an array that is certainly passed on by its address. Arrays of more dimensions are examined by the general way.
///
/// # Safety
/// The descriptor is one that a compiler has made.
#[inline(always)]
pub unsafe fn is_simple(buffer: *const Descriptor) -> bool {
    // SAFETY: the caller states that this is a compiler's descriptor.
    unsafe { cells::is_outside((*buffer).base()) && Descriptor::is_plain(buffer) }
}

/// The same of a buffer that cannot be a sentinel.
///
/// # Safety
/// The descriptor is one that a compiler has made.
#[inline(always)]
pub unsafe fn is_plain(buffer: *const Descriptor) -> bool {
    // SAFETY: the caller states that this is a compiler's descriptor.
    unsafe { Descriptor::is_plain(buffer) }
}

/// The buffer, the count and the datatype of a message.
pub struct Message<C: Calls> {
    address: Ptr,
    pub count: i64,
    pub datatype: Ptr,
    /// The datatype was made for this call.
    made: bool,
    calls: PhantomData<C>,
}

impl<C: Calls> Message<C> {
    /// The message of a contiguous buffer.
    ///
    /// # Safety
    /// The descriptor is one that a compiler has made.
    #[inline(always)]
    unsafe fn plain(buffer: *const Descriptor, count: i64, datatype: Ptr) -> Message<C> {
        Message {
            // SAFETY: the caller states that this is a compiler's descriptor.
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
            // SAFETY: the datatype was made by `described`; operations that use it keep it.
            unsafe { C::MPI_Type_free((&raw mut self.datatype).cast()) };
        }
    }
}

/// The message of `count` elements of a datatype in a buffer.
///
/// # Safety
/// The descriptor is one that a compiler has made.
#[inline(always)]
pub unsafe fn message<C: Calls>(
    buffer: *const Descriptor,
    count: i64,
    datatype: Ptr,
) -> Result<Message<C>, Refused> {
    // SAFETY: the caller states that this is a compiler's descriptor.
    unsafe {
        if Descriptor::is_contiguous(buffer) || count <= 0 {
            return Ok(Message::plain(buffer, count, datatype));
        }
        scattered(buffer, None, count, datatype)
    }
}

/// The message of each of a number of partitions in a buffer, `count` elements of a datatype.
///
/// # Safety
/// The descriptor is one that a compiler has made.
#[inline(always)]
pub unsafe fn partitions<C: Calls>(
    buffer: *const Descriptor,
    partitions: i32,
    count: i64,
    datatype: Ptr,
) -> Result<Message<C>, Refused> {
    // SAFETY: the caller states that this is a compiler's descriptor.
    unsafe {
        if Descriptor::is_contiguous(buffer) || partitions <= 0 || count <= 0 {
            return Ok(Message::plain(buffer, count, datatype));
        }
        scattered(buffer, Some(partitions as usize), count, datatype)
    }
}

/// The same of a section that is not contiguous, whole or for each of a number of partitions.
///
/// # Safety
/// The descriptor is one that a compiler has made.
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
        // The function reports what is wrong with the datatype, or moves no byte.
        // SAFETY: the caller states that this is a compiler's descriptor.
        _ => return Ok(unsafe { Message::plain(buffer, count, datatype) }),
    };
    // SAFETY: the caller states that this is a compiler's descriptor.
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
    // SAFETY: `datatype` has a size, so it is a datatype; each type that is made here is freed once, the last one by `Message::drop`.
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

/// The size of a datatype's elements in bytes; none if the function of the call is to report that it is no datatype.
pub fn size<C: Calls>(datatype: Ptr) -> Option<i64> {
    if datatype as usize == DATATYPE_NULL {
        return None;
    }
    let mut size = 0i64;
    // SAFETY: the C library checks the handle, and `size` is a variable of this function.
    let code = unsafe { C::MPI_Type_size_c(datatype, (&raw mut size).cast()) };
    (code == 0).then_some(size)
}

/// Checks that a datatype of `size` bytes has no gaps.
fn check_dense<C: Calls>(datatype: Ptr, size: i64) -> Result<(), Refused> {
    let (mut lower, mut extent) = (0i64, 0i64);
    // SAFETY: the C library checks the handle; the results are two variables of this function.
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

/// The number of the section's elements that are `count` elements of `size` bytes.
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

/// The layout of `elements` elements; of partitions, that of the first one and the distance between two.
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

/// The datatype of one element of the section, and whether it was made for that.
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
    // SAFETY: `of` is a datatype, and `made` is a variable for the result.
    unsafe { C::MPI_Type_contiguous_c(count, of, (&raw mut made).cast()) };
    (made, true)
}

/// # Safety
/// The datatype was made here, and is not used afterwards.
unsafe fn freed<C: Calls>(mut datatype: Ptr) {
    // SAFETY: the handle is that of a datatype which only its maker knows (contract of this function).
    unsafe { C::MPI_Type_free((&raw mut datatype).cast()) };
}

/// Makes the datatype of a layout, new in any case.
///
/// # Safety
/// `element` is a datatype.
unsafe fn built<C: Calls>(layout: &Layout, element: Ptr) -> Ptr {
    let mut made: Ptr = null_mut();
    // SAFETY: `element` is a datatype (contract of this function), and so are the inner types, which are made from it; each of these is freed once. The
    // arrays are locals that the C function only reads.
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

/// The datatype of a part of a layout, and whether it was made for that.
///
/// # Safety
/// `element` is a datatype.
unsafe fn part<C: Calls>(layout: &Layout, element: Ptr) -> (Ptr, bool) {
    match layout {
        Layout::Element => (element, false),
        // SAFETY: `element` is a datatype (contract of this function).
        other => (unsafe { built::<C>(other, element) }, true),
    }
}

/// A buffer that stays where it is.
pub struct InPlace(Ptr);

impl InPlace {
    #[inline(always)]
    pub fn address(&self) -> Ptr {
        self.0
    }
}

/// A buffer of which the procedure uses one element, or only the address.
///
/// # Safety
/// The descriptor is one that a compiler has made.
#[inline(always)]
pub unsafe fn first_element(buffer: *const Descriptor) -> Result<InPlace, Refused> {
    // SAFETY: the caller states that this is a compiler's descriptor.
    Ok(InPlace(cells::buffer(unsafe { (*buffer).base() })))
}

/// A buffer that the library keeps as memory of its own, so that nothing may lie between the elements.
///
/// # Safety
/// The descriptor is one that a compiler has made.
#[inline(always)]
pub unsafe fn in_place(buffer: *const Descriptor) -> Result<InPlace, Refused> {
    // SAFETY: the caller states that this is a compiler's descriptor.
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

/// Reports a buffer that cannot be passed on, by the error handler of the communicator. Returns the error class.
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
    // SAFETY: the caller states what `comm` is; MPI_COMM_SELF is always there.
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
