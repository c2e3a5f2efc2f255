//! Datatype objects: the engine's datatype with a name, attributes, and a handle.

use super::Attached;
use mpi_core::datatype::Datatype;
use std::cell::RefCell;
use std::rc::Rc;

/// A datatype with its attached name and attributes.
#[derive(Debug)]
pub struct TypeObject {
    pub datatype: Datatype,
    pub name: RefCell<Option<String>>,
    pub attached: Attached,
}

impl TypeObject {
    pub(crate) fn new(datatype: Datatype) -> Rc<TypeObject> {
        Rc::new(TypeObject {
            datatype,
            name: RefCell::new(None),
            attached: Attached::new(),
        })
    }
}
