//! Categories (section 15.3.9): the library's frameworks, each with its parameters.

use super::{int, look_up, result, text, wanted};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::tool::{Category, at, known, pvar};
use std::ffi::{c_char, c_int};

/// Returns the category at an index.
fn category(index: c_int) -> Result<&'static Category, Failure> {
    at(&known()?.categories, index, "categories")
}

pub unsafe fn MPI_T_category_get_num(num_cat: *mut c_int) -> Outcome {
    let len = int(known()?.categories.len());
    // SAFETY: `num_cat` is valid as the C binding of MPI_T_category_get_num requires of its caller.
    unsafe { result(num_cat, len, "num_cat") }
}

pub unsafe fn MPI_T_category_get_info(
    cat_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    num_cvars: *mut c_int,
    num_pvars: *mut c_int,
    num_categories: *mut c_int,
) -> Outcome {
    let category = category(cat_index)?;
    // SAFETY: all pointers are null or writable, `name` and `desc` for the lengths in `name_len` and `desc_len`: the C binding of MPI_T_category_get_info requires it of the caller.
    unsafe {
        text(name, name_len, category.name);
        text(desc, desc_len, category.what);
        wanted(num_cvars, int(category.len));
        wanted(num_pvars, int(pvar::of_category(category.name).1));
        wanted(num_categories, 0);
    }
    Ok(())
}

pub unsafe fn MPI_T_category_get_num_events(cat_index: c_int, num_events: *mut c_int) -> Outcome {
    category(cat_index)?;
    // SAFETY: `num_events` is valid as the C binding of MPI_T_category_get_num_events requires of its caller.
    unsafe { result(num_events, 0, "num_events") }
}

pub unsafe fn MPI_T_category_get_index(name: *const c_char, cat_index: *mut c_int) -> Outcome {
    let names = known()?.categories.iter().map(|c| c.name);
    // SAFETY: `name` and `cat_index` are valid as the C binding of MPI_T_category_get_index requires of its caller.
    unsafe { look_up(name, names, "category", cat_index) }
}

pub unsafe fn MPI_T_category_get_cvars(
    cat_index: c_int,
    len: c_int,
    indices: *mut c_int,
) -> Outcome {
    let Category {
        first, len: all, ..
    } = *category(cat_index)?;
    // SAFETY: `indices` is valid as the C binding of MPI_T_category_get_cvars requires of its caller.
    unsafe { indices_from(first, all, len, indices) }
}

/// Stores the indices from `first` on, at most `len` of `all`.
///
/// # Safety
/// A pointer that is not null is valid for `len` indices.
unsafe fn indices_from(first: usize, all: usize, len: c_int, indices: *mut c_int) -> Outcome {
    let room = usize::try_from(len).unwrap_or(0).min(all);
    if room > 0 && indices.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "indices is a null pointer"));
    }
    for i in 0..room {
        // SAFETY: not null, so valid for `len` indices by the `# Safety` contract of this function.
        unsafe { indices.add(i).write(int(first + i)) };
    }
    Ok(())
}

pub unsafe fn MPI_T_category_get_pvars(
    cat_index: c_int,
    len: c_int,
    indices: *mut c_int,
) -> Outcome {
    let (first, all) = pvar::of_category(category(cat_index)?.name);
    // SAFETY: `indices` is valid as the C binding of MPI_T_category_get_pvars requires of its caller.
    unsafe { indices_from(first, all, len, indices) }
}

pub unsafe fn MPI_T_category_get_events(
    cat_index: c_int,
    _len: c_int,
    _indices: *mut c_int,
) -> Outcome {
    category(cat_index).map(|_| ())
}

pub unsafe fn MPI_T_category_get_categories(
    cat_index: c_int,
    _len: c_int,
    _indices: *mut c_int,
) -> Outcome {
    category(cat_index).map(|_| ())
}

pub unsafe fn MPI_T_category_changed(update_number: *mut c_int) -> Outcome {
    known()?;
    // SAFETY: `update_number` is valid as the C binding of MPI_T_category_changed requires of its caller.
    unsafe { result(update_number, 0, "update_number") }
}
