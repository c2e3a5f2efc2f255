//! Fallbacks for datatypes and operators with large counts, and for `MPI_Type_get_value_index`.

use super::{Fit, Foreign};
use crate::backend;
use crate::family::{Kind, Word};
use crate::foreign_below::interposed::large_types;
use crate::foreign_below::standard::class;
use std::ffi::c_int;

pub unsafe extern "C-unwind" fn MPI_Type_get_envelope_c<F: Foreign>(
    datatype: F::Below,
    integers: *mut i64,
    addresses: *mut i64,
    large_counts: *mut i64,
    datatypes: *mut i64,
    combiner: *mut c_int,
) -> c_int {
    let mut known = [0; 3];
    let [n, a, d] = &mut known;
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if let Some((counts, elements, how)) = large_types::envelope::<F>(datatype) {
            for (place, value) in [integers, addresses, large_counts, datatypes]
                .into_iter()
                .zip([0, 0, counts, elements])
            {
                place.write(value);
            }
            combiner.write(how);
            return 0;
        }
        let code = (backend::MPI_Type_get_envelope::<F>())(datatype, n, a, d, combiner);
        if code == 0 {
            for (place, value) in [integers, addresses, datatypes].into_iter().zip(known) {
                place.write(value.into());
            }
            large_counts.write(0);
        }
        code
    }
}

pub unsafe extern "C-unwind" fn MPI_Type_get_contents_c<F: Foreign>(
    datatype: F::Below,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    integers: *mut c_int,
    addresses: *mut isize,
    large_counts: *mut i64,
    datatypes: *mut F::Below,
) -> c_int {
    let small = |count: i64| c_int::try_from(count).unwrap_or(c_int::MAX);
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if max_large_counts > 0
            && max_datatypes > 0
            && let Some((count, element)) = large_types::contents::<F>(datatype)
        {
            large_counts.write(count);
            datatypes.write(element);
            return 0;
        }
        (backend::MPI_Type_get_contents::<F>())(
            datatype,
            small(max_integers),
            small(max_addresses),
            small(max_datatypes),
            integers,
            addresses,
            datatypes,
        )
    }
}

pub unsafe extern "C-unwind" fn MPI_Type_contiguous_c<F: Foreign>(
    count: i64,
    element: F::Below,
    made: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let fit = match Fit::<F>::new(count, element) {
            Ok(fit) => fit,
            Err(code) => return code,
        };
        let is_small = c_int::try_from(count).is_ok();
        let code = (backend::MPI_Type_contiguous::<F>())(fit.count, fit.datatype, made);
        fit.free();
        if code == 0 && !is_small && count > 0 {
            large_types::remember::<F>(*made, count, element);
        }
        code
    }
}

/// Datatype handles: each value type with its pair type, such as `MPI_FLOAT` and `MPI_FLOAT_INT`.
const INT: usize = 0x209;
const PAIRS: [(usize, usize); 6] = [
    (0x210, 0x228),
    (0x214, 0x229),
    (0x20a, 0x22a),
    (0x209, 0x22b),
    (0x208, 0x22c),
    (0x220, 0x22d),
];

pub unsafe extern "C-unwind" fn MPI_Type_get_value_index<F: Foreign>(
    value: F::Below,
    index: F::Below,
    pair: *mut F::Below,
) -> c_int {
    if [value, index].contains(&F::null(Kind::Datatype)) {
        return F::word_in(Word::Error, class::TYPE);
    }
    let here = |handle: F::Below| F::handle_out(Kind::Datatype, handle);
    let known = PAIRS.iter().find(|(known, _)| here(value) == *known);
    let found = match known.filter(|_| here(index) == INT) {
        Some((_, found)) => F::handle_in(Kind::Datatype, *found),
        None => F::null(Kind::Datatype),
    };
    if pair.is_null() {
        return F::word_in(Word::Error, 13);
    }
    // SAFETY: this is an output argument of the program, valid by the standard and not null.
    unsafe { pair.write(found) };
    0
}

/// Calls the operator function `large` with a large count. Called by a trampoline with `int` count.
unsafe extern "C-unwind" fn with_large_count<F: Foreign>(
    input: *mut std::ffi::c_void,
    inout: *mut std::ffi::c_void,
    count: *mut c_int,
    datatype: *mut F::Below,
    large: *mut std::ffi::c_void,
) {
    type Large<B> =
        unsafe extern "C-unwind" fn(*mut std::ffi::c_void, *mut std::ffi::c_void, *mut i64, *mut B);
    // SAFETY: the backend passes valid arguments.
    // `large` is the program's function with large counts.
    unsafe {
        let mut count = i64::from(*count);
        let large: Large<F::Below> = std::mem::transmute(large);
        large(input, inout, &mut count, datatype);
    }
}

pub unsafe extern "C-unwind" fn MPI_Op_create_c<F: Foreign>(
    large: usize,
    commute: c_int,
    op: *mut F::Below,
) -> c_int {
    type Target<B> = unsafe extern "C-unwind" fn(
        *mut std::ffi::c_void,
        *mut std::ffi::c_void,
        *mut c_int,
        *mut B,
        *mut std::ffi::c_void,
    );
    let target: Target<F::Below> = with_large_count::<F>;
    let small = match large {
        0 => 0,
        large => match crate::trampoline::make(target as usize, large) {
            Ok(small) => small,
            Err(_) => return F::word_in(Word::Error, super::super::operators::NO_MEMORY),
        },
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { (backend::MPI_Op_create::<F>())(small, commute, op) }
}
