//! Registration of datatypes.

use crate::abi::*;
use crate::error::Failure;
use crate::handle::{FIRST_DYNAMIC, Kind, exhausted, wrong};
use crate::object::attribute::{Carrier, Owner};
use crate::object::datatype::TypeObject;
use crate::state::{self, state};
use mpi_core::datatype::Datatype;
use std::rc::Rc;

impl TypeObject {
    /// Returns the datatype as the owner of its attributes, with the program's handle.
    pub fn owner(&self, handle: MPI_Datatype) -> Owner<'_> {
        Owner {
            carrier: Carrier::Type,
            handle: handle.0,
            attributes: &self.attached.attributes,
            keyvals: state().program().keyvals(),
        }
    }
}

/// Registers a handle for a new datatype.
pub fn register(datatype: Datatype) -> Result<MPI_Datatype, Failure> {
    state()
        .tables()
        .types()
        .borrow_mut()
        .insert(TypeObject::new(datatype))
        .map(MPI_Datatype)
        .ok_or_else(|| exhausted("datatypes"))
}

/// Returns the object of a handle. The object of a predefined datatype is created on first use.
pub fn object(handle: MPI_Datatype) -> Result<Rc<TypeObject>, Failure> {
    if handle.0 >= FIRST_DYNAMIC {
        return state()
            .tables()
            .types()
            .borrow()
            .get(handle.0)
            .cloned()
            .ok_or_else(|| wrong(Kind::Datatype, handle.0));
    }
    let datatype = state::datatype(handle)?;
    let mut named = state().tables().named_types().borrow_mut();
    if let Some((_, object)) = named.iter().find(|(h, _)| *h == handle.0) {
        return Ok(object.clone());
    }
    let object = TypeObject::new(datatype);
    named.push((handle.0, object.clone()));
    Ok(object)
}

/// Removes a derived datatype from the table. Active operations keep the engine's datatype alive.
pub fn remove(handle: MPI_Datatype) -> Result<(), Failure> {
    if handle.0 < FIRST_DYNAMIC {
        let datatype = state::datatype(handle)?;
        return Err(Failure::new(
            MPI_ERR_TYPE,
            format!("{datatype} is predefined and cannot be freed"),
        ));
    }
    let datatype = state::datatype(handle)?;
    if datatype.fortran_kind().is_some() {
        return Err(Failure::new(
            MPI_ERR_TYPE,
            format!("{datatype} is predefined and cannot be freed"),
        ));
    }
    let object = state().tables().types().borrow_mut().remove(handle.0);
    object
        .map(|_| ())
        .ok_or_else(|| wrong(Kind::Datatype, handle.0))
}

/// Returns the handle of a Fortran kind's datatype. Equal kinds have one handle.
pub fn kind_handle(datatype: &Datatype) -> Result<MPI_Datatype, Failure> {
    let known = state()
        .tables()
        .types()
        .borrow()
        .iter()
        .find(|(_, t)| t.datatype.fortran_kind() == datatype.fortran_kind())
        .map(|(handle, _)| MPI_Datatype(handle));
    known.map_or_else(|| register(datatype.clone()), Ok)
}

/// Returns a handle of a datatype for a callback of the program.
///
/// A datatype whose handle was freed gets a temporary handle for the callback.
/// The returned flag is true in that case.
pub fn handle_of(datatype: &Datatype) -> Result<(MPI_Datatype, bool), Failure> {
    if let Some(named) = datatype.as_named() {
        return Ok((MPI_Datatype(named.info().handle as usize), false));
    }
    let known = state()
        .tables()
        .types()
        .borrow()
        .iter()
        .find(|(_, t)| t.datatype.same(datatype))
        .map(|(handle, _)| MPI_Datatype(handle));
    match known {
        Some(handle) => Ok((handle, false)),
        None => Ok((register(datatype.clone())?, true)),
    }
}
