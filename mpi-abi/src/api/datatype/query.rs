//! Datatype queries: size, extent, name and matching size (sections 5.1.5 to 5.1.7, and 7.8).

use crate::abi::*;
use crate::api::args::{Out, Text, TextOut};
use crate::error::{Failure, Outcome};
use crate::registry::datatype::object;
use crate::state;
use std::ffi::c_int;

pub fn MPI_Type_size_c(datatype: MPI_Datatype, size: Out<MPI_Count>) -> Outcome {
    size.set(state::datatype(datatype)?.size(), "size")
}

pub fn MPI_Type_size_x(datatype: MPI_Datatype, size: Out<MPI_Count>) -> Outcome {
    MPI_Type_size_c(datatype, size)
}

pub fn MPI_Type_get_extent_c(
    datatype: MPI_Datatype,
    lb: Out<MPI_Count>,
    extent: Out<MPI_Count>,
) -> Outcome {
    let datatype = state::datatype(datatype)?;
    lb.set(datatype.lb(), "lb")?;
    extent.set(datatype.extent(), "extent")
}

pub fn MPI_Type_get_extent_x(
    datatype: MPI_Datatype,
    lb: Out<MPI_Count>,
    extent: Out<MPI_Count>,
) -> Outcome {
    MPI_Type_get_extent_c(datatype, lb, extent)
}

pub fn MPI_Type_get_true_extent_c(
    datatype: MPI_Datatype,
    true_lb: Out<MPI_Count>,
    true_extent: Out<MPI_Count>,
) -> Outcome {
    let datatype = state::datatype(datatype)?;
    true_lb.set(datatype.true_lb(), "true_lb")?;
    true_extent.set(datatype.true_extent(), "true_extent")
}

pub fn MPI_Type_get_true_extent_x(
    datatype: MPI_Datatype,
    true_lb: Out<MPI_Count>,
    true_extent: Out<MPI_Count>,
) -> Outcome {
    MPI_Type_get_true_extent_c(datatype, true_lb, true_extent)
}

pub fn MPI_Type_set_name(datatype: MPI_Datatype, type_name: Text) -> Outcome {
    let object = object(datatype)?;
    let name = type_name.name("type_name")?;
    *object.name.borrow_mut() = Some(name);
    Ok(())
}

pub fn MPI_Type_get_name(
    datatype: MPI_Datatype,
    type_name: TextOut,
    resultlen: Out<c_int>,
) -> Outcome {
    // The name of MPI_DATATYPE_NULL can be queried too (section 7.8).
    let name = match datatype {
        MPI_DATATYPE_NULL => "MPI_DATATYPE_NULL".to_string(),
        _ => {
            let object = object(datatype)?;
            let given = object.name.borrow().clone();
            given
                .or_else(|| {
                    object
                        .datatype
                        .as_named()
                        .map(|n| n.info().name.to_string())
                })
                .unwrap_or_default()
        }
    };
    type_name.set_with_length(resultlen, &name, "type_name")
}

pub fn MPI_Type_match_size(typeclass: c_int, size: c_int, datatype: Out<MPI_Datatype>) -> Outcome {
    // Sized Fortran types such as INTEGER*4 (section 19.1.9).
    let handle = match (typeclass, size) {
        (MPI_TYPECLASS_INTEGER, 1) => MPI_INTEGER1,
        (MPI_TYPECLASS_INTEGER, 2) => MPI_INTEGER2,
        (MPI_TYPECLASS_INTEGER, 4) => MPI_INTEGER4,
        (MPI_TYPECLASS_INTEGER, 8) => MPI_INTEGER8,
        (MPI_TYPECLASS_INTEGER, 16) => MPI_INTEGER16,
        (MPI_TYPECLASS_REAL, 2) => MPI_REAL2,
        (MPI_TYPECLASS_REAL, 4) => MPI_REAL4,
        (MPI_TYPECLASS_REAL, 8) => MPI_REAL8,
        (MPI_TYPECLASS_REAL, 16) => MPI_REAL16,
        (MPI_TYPECLASS_COMPLEX, 4) => MPI_COMPLEX4,
        (MPI_TYPECLASS_COMPLEX, 8) => MPI_COMPLEX8,
        (MPI_TYPECLASS_COMPLEX, 16) => MPI_COMPLEX16,
        (MPI_TYPECLASS_COMPLEX, 32) => MPI_COMPLEX32,
        (MPI_TYPECLASS_INTEGER | MPI_TYPECLASS_REAL | MPI_TYPECLASS_COMPLEX, _) => {
            return Err(Failure::new(
                MPI_ERR_ARG,
                format!("no datatype of this class has {size} bytes"),
            ));
        }
        _ => {
            return Err(Failure::new(
                MPI_ERR_ARG,
                format!("typeclass is {typeclass}, which is no MPI_TYPECLASS_ constant"),
            ));
        }
    };
    datatype.set(handle, "datatype")
}

/// The predefined pair types (section 5.1.2).
/// Each element has the types of the value, of the index and of the pair.
const PAIRS: [(MPI_Datatype, MPI_Datatype, MPI_Datatype); 9] = [
    (MPI_FLOAT, MPI_INT, MPI_FLOAT_INT),
    (MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT),
    (MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT),
    (MPI_SHORT, MPI_INT, MPI_SHORT_INT),
    (MPI_INT, MPI_INT, MPI_2INT),
    (MPI_LONG, MPI_INT, MPI_LONG_INT),
    (MPI_REAL, MPI_REAL, MPI_2REAL),
    (
        MPI_DOUBLE_PRECISION,
        MPI_DOUBLE_PRECISION,
        MPI_2DOUBLE_PRECISION,
    ),
    (MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER),
];

pub fn MPI_Type_get_value_index(
    value_type: MPI_Datatype,
    index_type: MPI_Datatype,
    pair_type: Out<MPI_Datatype>,
) -> Outcome {
    state::datatype(value_type)?;
    state::datatype(index_type)?;
    let pair = PAIRS
        .iter()
        .find(|(value, index, _)| (*value, *index) == (value_type, index_type));
    // Returns MPI_DATATYPE_NULL if no predefined pair has these two types.
    let handle = pair.map_or(MPI_DATATYPE_NULL, |(_, _, pair)| *pair);
    pair_type.set(handle, "pair_type")
}
