//! Fallbacks for partitioned communication.
//!
//! [`crate::foreign_below::emulated_requests::partitioned`] emulates the operations.

use super::Foreign;
use crate::family::{Kind, Word};
use crate::foreign_below::emulated_requests::partitioned::{Message, Partitioned};
use crate::foreign_below::emulated_requests::{make, with_parts};
use crate::foreign_below::refusal::fail;
use crate::foreign_below::standard::class;
use std::ffi::{c_int, c_void};

/// `MPI_ANY_SOURCE` of the standard.
const ANY_SOURCE: c_int = -1;

unsafe fn initiate<F: Foreign>(
    message: Message<F>,
    partitions: c_int,
    sends: bool,
    request: *mut F::Below,
) -> c_int {
    let comm = message.comm;
    let wrong = if partitions <= 0 {
        Some(class::ARG)
    } else if message.count < 0 {
        Some(class::COUNT)
    } else if !sends && message.peer == F::word_in(Word::Rank, ANY_SOURCE) {
        Some(class::RANK)
    } else {
        None
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if let Some(class) = wrong {
            return fail::<F>(comm, class);
        }
        let Some(whole) = message.count.checked_mul(partitions.into()) else {
            return fail::<F>(comm, class::COUNT);
        };
        let message = Message {
            count: whole,
            ..message
        };
        let parts = usize::try_from(partitions).unwrap_or(0);
        request.write(make::<F>(Box::new(Partitioned::<F>::new(
            message, parts, sends,
        ))));
    }
    0
}

pub unsafe extern "C-unwind" fn MPI_Psend_init<F: Foreign>(
    buf: *const c_void,
    partitions: c_int,
    count: i64,
    datatype: F::Below,
    dest: c_int,
    tag: c_int,
    comm: F::Below,
    _info: F::Below,
    request: *mut F::Below,
) -> c_int {
    let message = Message::<F> {
        buffer: buf.cast_mut(),
        count,
        datatype,
        peer: dest,
        tag,
        comm,
    };
    // SAFETY: the message and `request` are the program's arguments, valid by the standard.
    unsafe { initiate::<F>(message, partitions, true, request) }
}

pub unsafe extern "C-unwind" fn MPI_Precv_init<F: Foreign>(
    buf: *mut c_void,
    partitions: c_int,
    count: i64,
    datatype: F::Below,
    source: c_int,
    tag: c_int,
    comm: F::Below,
    _info: F::Below,
    request: *mut F::Below,
) -> c_int {
    let message = Message::<F> {
        buffer: buf,
        count,
        datatype,
        peer: source,
        tag,
        comm,
    };
    // SAFETY: the message and `request` are the program's arguments, valid by the standard.
    unsafe { initiate::<F>(message, partitions, false, request) }
}

unsafe fn ready<F: Foreign>(request: F::Below, parts: impl Iterator<Item = c_int>) -> c_int {
    // SAFETY: the program has marked the memory of the partitions as ready.
    unsafe { with_parts::<F>(request, |known, active| known.ready(active, parts)) }
}

pub unsafe extern "C-unwind" fn MPI_Pready<F: Foreign>(
    partition: c_int,
    request: F::Below,
) -> c_int {
    // SAFETY: the request is the program's argument, valid by the standard.
    unsafe { ready::<F>(request, std::iter::once(partition)) }
}

pub unsafe extern "C-unwind" fn MPI_Pready_range<F: Foreign>(
    low: c_int,
    high: c_int,
    request: F::Below,
) -> c_int {
    // SAFETY: the request is the program's argument, valid by the standard.
    unsafe { ready::<F>(request, low..=high) }
}

pub unsafe extern "C-unwind" fn MPI_Pready_list<F: Foreign>(
    length: c_int,
    partitions: *const c_int,
    request: F::Below,
) -> c_int {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: the program's array has `length` elements.
    unsafe { ready::<F>(request, (0..length).map(|i| partitions.add(i).read())) }
}

pub unsafe extern "C-unwind" fn MPI_Parrived<F: Foreign>(
    request: F::Below,
    partition: c_int,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the request and the output argument are the program's, valid by the standard.
    unsafe {
        if request == F::null(Kind::Request) {
            flag.write(1);
            return 0;
        }
        with_parts::<F>(request, |known, active| {
            flag.write(known.arrived(active, partition)?.into());
            Ok(())
        })
    }
}
