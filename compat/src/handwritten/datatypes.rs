//! Struct datatypes, and envelopes and contents of derived datatypes.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::{HandleOut, ShortArray, code_out, handles_in, of};
use crate::family::{Family, Kind, Word};
use std::ffi::c_int;

/// `MPI_COMBINER_SUBARRAY` and `MPI_COMBINER_DARRAY`, whose integers include constants.
const SUBARRAY: c_int = 111;
const DARRAY: c_int = 112;

/// Calls `make`, which creates a datatype from several datatypes.
/// `make` receives the converted input handles and the address for the new handle.
///
/// # Safety
/// `types` is null or has `count` datatypes. `made` is null or points to a handle.
unsafe fn of_several<F: Family>(
    count: impl TryInto<c_int>,
    types: *const F::Handle,
    made: *mut F::Handle,
    make: impl FnOnce(*const F::Below, *mut F::Below) -> c_int,
) -> c_int {
    let mut short = ShortArray::new();
    // More than `c_int::MAX` datatypes and their lengths would not fit into memory.
    let length = count.try_into().unwrap_or(0);
    // SAFETY: `types` is null or has `length` datatypes, by contract.
    let list = unsafe { handles_in::<F>(&mut short, Kind::Datatype, types, length) };
    // SAFETY: `made` is null or points to a handle, by contract.
    let mut new = unsafe { HandleOut::<F, of::Datatype>::new(made) };
    code_out::<F>(make(list.argument(), new.argument()))
}

pub unsafe fn MPI_Type_create_struct<F: Family>(
    count: c_int,
    lengths: *const c_int,
    displacements: *const isize,
    types: *const F::Handle,
    made: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        of_several::<F>(count, types, made, |list, new| {
            (backend::MPI_Type_create_struct::<F>())(count, lengths, displacements, list, new)
        })
    }
}

pub unsafe fn MPI_Type_create_struct_c<F: Family>(
    count: i64,
    lengths: *const i64,
    displacements: *const i64,
    types: *const F::Handle,
    made: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        of_several::<F>(count, types, made, |list, new| {
            (backend::MPI_Type_create_struct_c::<F>())(count, lengths, displacements, list, new)
        })
    }
}

/// Converts the handles that the backend has returned, and stores them in the program's array.
unsafe fn datatypes_out<F: Family>(from: &[F::Below], to: *mut F::Handle) {
    for (i, datatype) in from.iter().enumerate() {
        // SAFETY: the MPI standard requires that the program passes valid arguments.
        unsafe { to.add(i).write(F::handle_out(Kind::Datatype, *datatype)) };
    }
}

/// Returns which of a datatype's integers are constants: first index, number, and kind (`Word`).
fn constants(combiner: c_int, integers: &[c_int], large: bool) -> Vec<(usize, usize, Word)> {
    let at = |i: usize| {
        integers
            .get(i)
            .map_or(0, |n| usize::try_from(*n).unwrap_or(0))
    };
    match (combiner, large) {
        (SUBARRAY, false) => vec![(3 * at(0) + 1, 1, Word::Order)],
        (SUBARRAY, true) => vec![(1, 1, Word::Order)],
        (DARRAY, large) => {
            let dimensions = at(2);
            // With large counts, the sizes of the global array are not among the integers.
            let first = 3 + if large { 0 } else { dimensions };
            vec![
                (first, dimensions, Word::Distribution),
                (first + dimensions, dimensions, Word::Darg),
                (first + 3 * dimensions, 1, Word::Order),
            ]
        }
        _ => Vec::new(),
    }
}

unsafe fn integers_out<F: Family>(
    combiner: c_int,
    integers: *mut c_int,
    count: usize,
    large: bool,
) {
    if integers.is_null() {
        return;
    }
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    let integers = unsafe { std::slice::from_raw_parts_mut(integers, count) };
    for (first, many, word) in constants(combiner, integers, large) {
        for value in integers.iter_mut().skip(first).take(many) {
            *value = F::word_out(word, *value);
        }
    }
}

/// The envelope of a datatype (`MPI_Type_get_envelope`).
struct Found {
    combiner: c_int,
    integers: usize,
    datatypes: usize,
    /// True if the large counts are in an array of their own, and not among the integers.
    is_large: bool,
}

fn count_of(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(0)
}

impl Found {
    /// Converts the contents that the backend returned with the code `code`.
    /// Integers are converted in place. The handles in `list` are stored in `datatypes`.
    ///
    /// # Safety
    /// `integers` and `datatypes` are null or have at least the lengths in the envelope.
    unsafe fn hand_out<F: Family>(
        &self,
        code: c_int,
        list: &[F::Below],
        integers: *mut c_int,
        datatypes: *mut F::Handle,
    ) -> c_int {
        if code == 0 {
            // SAFETY: both arrays have the lengths of the envelope, by contract.
            unsafe {
                if !datatypes.is_null() {
                    datatypes_out::<F>(&list[..self.datatypes], datatypes);
                }
                let combiner = F::standard(Word::Combiner, self.combiner);
                integers_out::<F>(combiner, integers, self.integers, self.is_large);
            }
        }
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Type_get_contents<F: Family>(
    datatype: F::Handle,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut isize,
    datatypes: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let datatype = F::handle_in(Kind::Datatype, datatype);
        let (mut many, mut addressed, mut typed, mut combiner) = (0, 0, 0, 0);
        let code = (backend::MPI_Type_get_envelope::<F>())(
            datatype,
            &mut many,
            &mut addressed,
            &mut typed,
            &mut combiner,
        );
        if code != 0 {
            return code_out::<F>(code);
        }
        // The backend writes all datatypes of the envelope, even if the program's array is shorter.
        let mut list = vec![F::null(Kind::Datatype); count_of(typed).max(1)];
        let code = (backend::MPI_Type_get_contents::<F>())(
            datatype,
            max_integers,
            max_addresses,
            max_datatypes,
            integers,
            addresses,
            if datatypes.is_null() {
                std::ptr::null_mut()
            } else {
                list.as_mut_ptr()
            },
        );
        let found = Found {
            combiner,
            integers: count_of(many),
            datatypes: count_of(typed),
            is_large: false,
        };
        found.hand_out::<F>(code, &list, integers, datatypes)
    }
}

pub unsafe fn MPI_Type_get_contents_c<F: Family>(
    datatype: F::Handle,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    integers: *mut c_int,
    addresses: *mut isize,
    large_counts: *mut i64,
    datatypes: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let datatype = F::handle_in(Kind::Datatype, datatype);
        let (mut many, mut addressed, mut large, mut typed, mut combiner) = (0, 0, 0, 0, 0);
        let code = (backend::MPI_Type_get_envelope_c::<F>())(
            datatype,
            &mut many,
            &mut addressed,
            &mut large,
            &mut typed,
            &mut combiner,
        );
        if code != 0 {
            return code_out::<F>(code);
        }
        let mut list = vec![F::null(Kind::Datatype); count_of(typed).max(1)];
        let code = (backend::MPI_Type_get_contents_c::<F>())(
            datatype,
            max_integers,
            max_addresses,
            max_large_counts,
            max_datatypes,
            integers,
            addresses,
            large_counts,
            if datatypes.is_null() {
                std::ptr::null_mut()
            } else {
                list.as_mut_ptr()
            },
        );
        let found = Found {
            combiner,
            integers: count_of(many),
            datatypes: count_of(typed),
            is_large: large > 0,
        };
        found.hand_out::<F>(code, &list, integers, datatypes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_among_the_integers_of_a_datatype_are_found_where_the_standard_puts_them() {
        // The integers are size, rank, ndims, gsizes, distribs, dargs, psizes, order.
        let darray = [4, 1, 2, 10, 20, 17, 18, 19, 3, 2, 2, 12];
        let found = constants(DARRAY, &darray, false);
        assert_eq!(
            found,
            [
                (5, 2, Word::Distribution),
                (7, 2, Word::Darg),
                (11, 1, Word::Order)
            ]
        );
        let large = [4, 1, 2, 17, 18, 19, 3, 2, 2, 12];
        assert_eq!(constants(DARRAY, &large, true)[2], (9, 1, Word::Order));
        assert_eq!(
            constants(SUBARRAY, &[2, 9, 9, 3, 3, 0, 0, 12], false),
            [(7, 1, Word::Order)]
        );
        assert_eq!(constants(SUBARRAY, &[2, 12], true), [(1, 1, Word::Order)]);
    }
}
