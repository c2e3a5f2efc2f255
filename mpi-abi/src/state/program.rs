//! Process-wide state that no handle identifies, such as keyvals and the attached buffer.

use super::known_ops::KnownOps;
use crate::abi::MPI_ERRORS_RETURN;
use crate::object::Attached;
use crate::object::attribute::Keyvals;
use crate::object::buffer::UserBuffer;
use mpi_base::node::ShmBlock;
use mpi_core::io::Conversion;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Process-wide state that no handle identifies.
pub(crate) struct ProgramValues {
    datareps: RefCell<Vec<(String, Rc<dyn Conversion>)>>,
    heap: RefCell<BTreeMap<usize, ShmBlock>>,
    known_ops: KnownOps,
    keyvals: Keyvals,
    buffer: UserBuffer,
    no_file: Attached,
}

impl ProgramValues {
    pub(super) const fn new() -> ProgramValues {
        ProgramValues {
            datareps: RefCell::new(Vec::new()),
            heap: RefCell::new(BTreeMap::new()),
            known_ops: KnownOps::new(),
            keyvals: Keyvals::new(),
            buffer: UserBuffer::new(),
            no_file: Attached::with_errhandler(MPI_ERRORS_RETURN),
        }
    }

    /// Returns the data representations registered by the program, by name.
    #[inline(always)]
    pub fn datareps(&self) -> &RefCell<Vec<(String, Rc<dyn Conversion>)>> {
        &self.datareps
    }

    /// Returns the blocks of the node's shared memory from `MPI_Alloc_mem`, by address.
    #[inline(always)]
    pub fn heap(&self) -> &RefCell<BTreeMap<usize, ShmBlock>> {
        &self.heap
    }

    /// Returns the pairs of predefined operators and datatypes that have been used, with their loops.
    #[inline(always)]
    pub fn known_ops(&self) -> &KnownOps {
        &self.known_ops
    }

    /// Returns the keyvals of attributes.
    #[inline(always)]
    pub fn keyvals(&self) -> &Keyvals {
        &self.keyvals
    }

    /// Returns the buffer attached to the process by `MPI_Buffer_attach`.
    #[inline(always)]
    pub fn buffer(&self) -> &UserBuffer {
        &self.buffer
    }

    /// Returns the state of `MPI_FILE_NULL`: the error handler of new files (section 14.7).
    #[inline(always)]
    pub fn no_file(&self) -> &Attached {
        &self.no_file
    }
}
