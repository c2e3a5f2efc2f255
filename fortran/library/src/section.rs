//! Choice buffers of module `mpi_f08`: arrays with a descriptor.
//!
//! A contiguous array is passed on by its address. Of another section, a message gets a datatype that describes where its elements are, so no
//! element is copied and the call may be nonblocking. Where a call has no datatype for each buffer, the elements are copied.
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

/// The buffer, the count and the datatype of a message.
pub struct Message<C: Calls> {
    pub address: Ptr,
    pub count: i64,
    pub datatype: Ptr,
    /// The datatype was made for this call.
    made: bool,
    calls: PhantomData<C>,
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
        if Descriptor::is_contiguous(buffer) {
            return Ok(Message {
                address: cells::buffer((*buffer).base()),
                count,
                datatype,
                made: false,
                calls: PhantomData,
            });
        }
        scattered(buffer, count, datatype)
    }
}

/// As [`message`], for a section that is not contiguous.
#[cold]
#[inline(never)]
unsafe fn scattered<C: Calls>(
    buffer: *const Descriptor,
    count: i64,
    datatype: Ptr,
) -> Result<Message<C>, Refused> {
    // SAFETY: the caller states that this is a compiler's descriptor.
    let (section, address, element) = unsafe {
        (
            Section::of(buffer),
            (*buffer).base(),
            (*buffer).element_size(),
        )
    };
    let plain = |count| Message {
        address,
        count,
        datatype,
        made: false,
        calls: PhantomData,
    };
    if count <= 0 {
        return Ok(plain(count));
    }
    let (mut size, mut lower, mut extent) = (0i64, 0i64, 0i64);
    // SAFETY: three variables for the results.
    unsafe {
        C::MPI_Type_size_c(datatype, (&raw mut size).cast());
        C::MPI_Type_get_extent_c(datatype, (&raw mut lower).cast(), (&raw mut extent).cast());
    }
    if size != extent || lower != 0 || size <= 0 {
        return Err(Refused {
            class: ERR_TYPE,
            reason: "a datatype with gaps describes elements of an array section that is not contiguous; pass the whole array, or a copy of the section".into(),
        });
    }
    let bytes = count * size;
    if element == 0 || bytes % element as i64 != 0 {
        return Err(Refused {
            class: ERR_TYPE,
            reason: format!(
                "{count} elements of {size} bytes are no whole number of the section's elements of {element} bytes; pass the datatype of these elements"
            ),
        });
    }
    let elements = (bytes / element as i64) as usize;
    let Some(layout) = Layout::of(section.dimensions(), elements) else {
        return Err(Refused {
            class: ERR_COUNT,
            reason: format!(
                "the count needs {elements} elements, but the array section has {}; pass a smaller count or a larger section",
                section.len()
            ),
        });
    };
    // SAFETY: the element's type is a datatype, and every type that is made is freed once.
    unsafe {
        let first = element_type::<C>(datatype, size, element);
        let made = built::<C>(&layout, first.0);
        if first.1 && made != first.0 {
            freed::<C>(first.0);
        }
        let mut made = made;
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

/// The datatype of one element of the section, and whether it was made for that.
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

unsafe fn freed<C: Calls>(mut datatype: Ptr) {
    // SAFETY: the caller has made the datatype and does not use it any more.
    unsafe { C::MPI_Type_free((&raw mut datatype).cast()) };
}

/// Makes the datatype of a layout, new in any case.
unsafe fn built<C: Calls>(layout: &Layout, element: Ptr) -> Ptr {
    let mut made: Ptr = null_mut();
    // SAFETY: the inner types are datatypes; each is freed once unless it is the element.
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
unsafe fn part<C: Calls>(layout: &Layout, element: Ptr) -> (Ptr, bool) {
    match layout {
        Layout::Element => (element, false),
        // SAFETY: the element is a datatype.
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

/// A buffer that is used after the call, without a datatype that could describe a section.
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
                reason: "the array section is not contiguous, and this procedure uses its memory after it returns; pass a contiguous array".into(),
            });
        }
        Ok(InPlace(cells::buffer((*buffer).base())))
    }
}

/// A buffer whose section, if it is not contiguous, is copied for the duration of the call.
pub struct Copied<const BACK: bool> {
    address: Ptr,
    copy: Option<(Section, Vec<u8>)>,
}

impl<const BACK: bool> Copied<BACK> {
    #[inline(always)]
    pub fn address(&self) -> Ptr {
        self.address
    }
}

impl<const BACK: bool> Drop for Copied<BACK> {
    #[inline(always)]
    fn drop(&mut self) {
        if let (true, Some((section, copy))) = (BACK, &self.copy) {
            // SAFETY: the section is the program's buffer, which the procedure may write.
            unsafe { section.unpack(copy) };
        }
    }
}

/// A buffer of a blocking call, copied if it must be.
///
/// # Safety
/// The descriptor is one that a compiler has made.
#[inline(always)]
pub unsafe fn copied<const THERE: bool, const BACK: bool>(
    buffer: *const Descriptor,
) -> Result<Copied<BACK>, Refused> {
    // SAFETY: the caller states that this is a compiler's descriptor.
    unsafe {
        if Descriptor::is_contiguous(buffer) {
            return Ok(Copied {
                address: cells::buffer((*buffer).base()),
                copy: None,
            });
        }
        Ok(copy(buffer))
    }
}

#[cold]
#[inline(never)]
unsafe fn copy<const BACK: bool>(buffer: *const Descriptor) -> Copied<BACK> {
    // SAFETY: the caller states that this is a compiler's descriptor; the program's array is readable.
    unsafe {
        let section = Section::of(buffer);
        let mut copy = section.pack();
        Copied {
            address: copy.as_mut_ptr().cast(),
            copy: Some((section, copy)),
        }
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
