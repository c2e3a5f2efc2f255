//! Procedures with a string length argument, which in C includes the terminating zero byte.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Ptr};
use crate::convert;
use crate::handle::{self, input};
use crate::text;

pub unsafe fn info_get<C: Calls>(
    info: *mut i32,
    key: *mut u8,
    valuelen: *mut i32,
    value: *mut u8,
    flag: *mut i32,
    key_len: usize,
    value_len: usize,
) -> i32 {
    // SAFETY: `key` and `value` have the passed lengths; the rest are INTEGERs and LOGICALs.
    // `found` has space for `valuelen` characters and the zero byte.
    unsafe {
        let key = text::input_both_sides(key, key_len);
        let wanted = convert::length(i64::from(*valuelen));
        let mut found = vec![0u8; wanted + 1];
        let mut is_there = 0i32;
        let outcome = C::MPI_Info_get(
            input::<handle::Info>(info),
            key.as_ptr() as Ptr,
            *valuelen,
            found.as_mut_ptr().cast(),
            (&raw mut is_there).cast(),
        );
        if is_there != 0 {
            text::output(outcome, value, value_len, &found);
        }
        if outcome == 0 {
            convert::set_logical(flag, is_there);
        }
        outcome
    }
}

pub unsafe fn info_get_string<C: Calls>(
    info: *mut i32,
    key: *mut u8,
    buflen: *mut i32,
    value: *mut u8,
    flag: *mut i32,
    key_len: usize,
    value_len: usize,
) -> i32 {
    // SAFETY: `key` and `value` have the passed lengths; the rest are INTEGERs and LOGICALs.
    // `found` has `size` bytes, and the C function gets this size.
    unsafe {
        let key = text::input_both_sides(key, key_len);
        let wanted = convert::length(i64::from(*buflen)).min(value_len);
        let mut found = vec![0u8; wanted + 1];
        let (mut is_there, mut size) = (0i32, if wanted == 0 { 0 } else { wanted as i32 + 1 });
        let outcome = C::MPI_Info_get_string(
            input::<handle::Info>(info),
            key.as_ptr() as Ptr,
            (&raw mut size).cast(),
            found.as_mut_ptr().cast(),
            (&raw mut is_there).cast(),
        );
        if outcome == 0 {
            if is_there != 0 {
                *buflen = (size - 1).max(0);
                if wanted > 0 {
                    text::output(outcome, value, value_len, &found);
                }
            }
            convert::set_logical(flag, is_there);
        }
        outcome
    }
}

pub unsafe fn session_get_nth_pset<C: Calls>(
    session: *mut i32,
    info: *mut i32,
    n: *mut i32,
    pset_len: *mut i32,
    pset_name: *mut u8,
    pset_name_len: usize,
) -> i32 {
    // SAFETY: `pset_name` has the length that compilers pass; the other arguments are INTEGERs.
    // `found` has `size` bytes, and the C function gets this size.
    unsafe {
        let wanted = convert::length(i64::from(*pset_len)).min(pset_name_len);
        let mut found = vec![0u8; wanted + 1];
        let mut size = if wanted == 0 { 0 } else { wanted as i32 + 1 };
        let outcome = C::MPI_Session_get_nth_pset(
            input::<handle::Session>(session),
            input::<handle::Info>(info),
            *n,
            (&raw mut size).cast(),
            found.as_mut_ptr().cast(),
        );
        if outcome == 0 {
            *pset_len = (size - 1).max(0);
            if wanted > 0 {
                text::output(outcome, pset_name, pset_name_len, &found);
            }
        }
        outcome
    }
}
