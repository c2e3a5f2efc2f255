//! Values of the program that belong to no handle.

use crate::abi::{MPI_Datatype, MPI_ERRORS_RETURN, MPI_Op};
use crate::object::Attached;
use crate::object::attribute::Keyvals;
use crate::object::buffer::UserBuffer;
use mpi_base::node::ShmBlock;
use mpi_core::io::Conversion;
use mpi_core::op::DenseOp;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Values of the program that belong to no handle.
pub(crate) struct ProgramValues {
    datareps: RefCell<Vec<(String, Rc<dyn Conversion>)>>,
    heap: RefCell<BTreeMap<usize, ShmBlock>>,
    last_op: Cell<Option<(MPI_Op, MPI_Datatype, DenseOp)>>,
    keyvals: Keyvals,
    buffer: UserBuffer,
    no_file: Attached,
}

impl ProgramValues {
    pub(super) const fn new() -> ProgramValues {
        ProgramValues {
            datareps: RefCell::new(Vec::new()),
            heap: RefCell::new(BTreeMap::new()),
            last_op: Cell::new(None),
            keyvals: Keyvals::new(),
            buffer: UserBuffer::new(),
            no_file: Attached::with_errhandler(MPI_ERRORS_RETURN),
        }
    }

    /// Data representations registered by the program, by name.
    #[inline(always)]
    pub fn datareps(&self) -> &RefCell<Vec<(String, Rc<dyn Conversion>)>> {
        &self.datareps
    }

    /// Blocks that `MPI_Alloc_mem` has taken from the node's memory, by address.
    #[inline(always)]
    pub fn heap(&self) -> &RefCell<BTreeMap<usize, ShmBlock>> {
        &self.heap
    }

    /// The predefined operator and datatype that were combined last, and their function.
    #[inline(always)]
    pub fn last_op(&self) -> &Cell<Option<(MPI_Op, MPI_Datatype, DenseOp)>> {
        &self.last_op
    }

    /// The keyvals of attributes.
    #[inline(always)]
    pub fn keyvals(&self) -> &Keyvals {
        &self.keyvals
    }

    /// The buffer that `MPI_Buffer_attach` attached to the process.
    #[inline(always)]
    pub fn buffer(&self) -> &UserBuffer {
        &self.buffer
    }

    /// Holds the error handler of files that are opened later, which is set on `MPI_FILE_NULL` (section 14.7).
    #[inline(always)]
    pub fn no_file(&self) -> &Attached {
        &self.no_file
    }
}
