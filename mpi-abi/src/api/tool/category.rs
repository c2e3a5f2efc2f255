//! Tool categories (section 15.3.9): one per framework, with its parameters, variables and events.

use super::{int, look_up, result, text, wanted};
use crate::abi::*;
use crate::api::args::{InOutArray, Out, SizedText, Text};
use crate::error::{Failure, Outcome};
use crate::tool::{Category, at, event, known, pvar};
use std::ffi::c_int;

/// Returns the category at an index.
fn category(index: c_int) -> Result<&'static Category, Failure> {
    at(&known()?.categories, index, "categories")
}

pub fn MPI_T_category_get_num(num_cat: Out<c_int>) -> Outcome {
    let len = int(known()?.categories.len());
    result(num_cat, len, "num_cat")
}

pub fn MPI_T_category_get_info(
    cat_index: c_int,
    name: SizedText,
    desc: SizedText,
    num_cvars: Out<c_int>,
    num_pvars: Out<c_int>,
    num_categories: Out<c_int>,
) -> Outcome {
    let category = category(cat_index)?;
    text(name, category.name);
    text(desc, category.what);
    wanted(num_cvars, int(category.len));
    wanted(num_pvars, int(pvar::of_category(category.name).1));
    wanted(num_categories, 0);
    Ok(())
}

pub fn MPI_T_category_get_num_events(cat_index: c_int, num_events: Out<c_int>) -> Outcome {
    let (_, all) = event::of_category(category(cat_index)?.name);
    result(num_events, int(all), "num_events")
}

pub fn MPI_T_category_get_index(name: Text, cat_index: Out<c_int>) -> Outcome {
    let names = known()?.categories.iter().map(|c| c.name);
    look_up(name, names, "category", cat_index)
}

pub fn MPI_T_category_get_cvars(
    cat_index: c_int,
    _len: c_int,
    indices: InOutArray<c_int>,
) -> Outcome {
    let Category {
        first, len: all, ..
    } = *category(cat_index)?;
    indices_from(first, all, indices)
}

/// Stores `all` consecutive indices that begin with `first`, or fewer if the array is shorter.
fn indices_from(first: usize, all: usize, indices: InOutArray<c_int>) -> Outcome {
    let places = indices.up_to(all).get("indices");
    let places = places.map_err(|failure| failure.with_code(MPI_T_ERR_INVALID))?;
    for (at, place) in places.iter_mut().enumerate() {
        *place = int(first + at);
    }
    Ok(())
}

pub fn MPI_T_category_get_pvars(
    cat_index: c_int,
    _len: c_int,
    indices: InOutArray<c_int>,
) -> Outcome {
    let (first, all) = pvar::of_category(category(cat_index)?.name);
    indices_from(first, all, indices)
}

pub fn MPI_T_category_get_events(
    cat_index: c_int,
    _len: c_int,
    indices: InOutArray<c_int>,
) -> Outcome {
    let (first, all) = event::of_category(category(cat_index)?.name);
    indices_from(first, all, indices)
}

pub fn MPI_T_category_get_categories(
    cat_index: c_int,
    _len: c_int,
    _indices: InOutArray<c_int>,
) -> Outcome {
    category(cat_index).map(|_| ())
}

pub fn MPI_T_category_changed(update_number: Out<c_int>) -> Outcome {
    known()?;
    result(update_number, 0, "update_number")
}
