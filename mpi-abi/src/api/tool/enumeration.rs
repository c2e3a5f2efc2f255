//! Enumeration queries of the tool interface (section 15.3.5).

use super::{int, text, wanted};
use crate::abi::*;
use crate::api::args::{Out, SizedText};
use crate::error::{Failure, Outcome};
use crate::tool::enumeration::Enumeration;
use crate::tool::known;
use std::ffi::c_int;

pub fn MPI_T_enum_get_info(enumtype: MPI_T_enum, num: Out<c_int>, name: SizedText) -> Outcome {
    known()?;
    let enumeration = Enumeration::of(enumtype)?;
    wanted(num, int(enumeration.items.len()));
    text(name, enumeration.name);
    Ok(())
}

pub fn MPI_T_enum_get_item(
    enumtype: MPI_T_enum,
    indx: c_int,
    value: Out<c_int>,
    name: SizedText,
) -> Outcome {
    known()?;
    let Enumeration { items, name: of } = Enumeration::of(enumtype)?;
    let item = usize::try_from(indx).ok().and_then(|at| items.get(at));
    let (item, of_item) = item.ok_or_else(|| {
        let sentence = format!(
            "{indx} is the index of none of the {} items of the enumeration \"{of}\"",
            items.len()
        );
        Failure::new(MPI_T_ERR_INVALID_ITEM, sentence)
    })?;
    wanted(value, *item);
    text(name, of_item);
    Ok(())
}
