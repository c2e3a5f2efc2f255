//! Packed copies of messages (`MPI_Pack`), from which buffered sends are made.

use crate::backend;
use crate::family::Kind;
use crate::foreign_below::Foreign;
use crate::foreign_below::standard::MPI_PACKED;
use std::ffi::{c_int, c_void};

/// Returns the maximum packed size of a message in bytes, or an error code of the backend.
///
/// # Safety
/// The handles are valid in the backend, which checks the other arguments.
pub unsafe fn size<F: Foreign>(
    count: c_int,
    datatype: F::Below,
    comm: F::Below,
) -> Result<usize, c_int> {
    let mut size = 0;
    // SAFETY: the handles are valid by the contract, and `size` is a local variable.
    match unsafe { (backend::MPI_Pack_size::<F>())(count, datatype, comm, &raw mut size) } {
        0 => Ok(usize::try_from(size).unwrap_or(0)),
        code => Err(code),
    }
}

/// A message as packed bytes, owned by this library.
pub struct Packed {
    buffer: Vec<u8>,
    length: c_int,
}

impl Packed {
    /// Packs a message into `capacity` bytes (see [`size`]). The error is a code of the backend.
    ///
    /// # Safety
    /// The message is the program's, and the handles are valid in the backend.
    pub unsafe fn new<F: Foreign>(
        data: *const c_void,
        count: c_int,
        datatype: F::Below,
        capacity: usize,
        comm: F::Below,
    ) -> Result<Self, c_int> {
        let mut packed = Packed {
            buffer: vec![0; capacity],
            length: 0,
        };
        let (place, capacity) = (
            packed.place(),
            c_int::try_from(capacity).unwrap_or(c_int::MAX),
        );
        let length = &raw mut packed.length;
        // SAFETY: the message is the program's, by contract.
        // The buffer has the length that is passed.
        match unsafe {
            (backend::MPI_Pack::<F>())(data, count, datatype, place, capacity, length, comm)
        } {
            0 => Ok(packed),
            code => Err(code),
        }
    }

    pub fn place(&mut self) -> *mut c_void {
        self.buffer.as_mut_ptr().cast()
    }

    pub fn length(&self) -> c_int {
        self.length
    }

    /// Returns the backend's `MPI_PACKED`, the datatype of a packed message.
    pub fn datatype<F: Foreign>() -> F::Below {
        F::handle_in(Kind::Datatype, MPI_PACKED)
    }
}
