//! Data of a program packed into memory of this library, which are then sent from there.

use crate::below;
use crate::family::Kind;
use crate::foreign_below::Foreign;
use crate::foreign_below::standard::MPI_PACKED;
use std::ffi::{c_int, c_void};

/// The bytes that a message takes at most; else the error of the library below.
///
/// # Safety
/// The handles are those of the library below, which judges the rest.
pub unsafe fn size<F: Foreign>(
    count: c_int,
    datatype: F::Below,
    comm: F::Below,
) -> Result<usize, c_int> {
    let mut size = 0;
    // SAFETY: as the caller says.
    match unsafe { (below::MPI_Pack_size::<F>())(count, datatype, comm, &raw mut size) } {
        0 => Ok(usize::try_from(size).unwrap_or(0)),
        code => Err(code),
    }
}

/// A packed message.
pub struct Packed {
    room: Vec<u8>,
    length: c_int,
}

impl Packed {
    /// Packs into `room` bytes ([`size`]); else the error of the library below.
    ///
    /// # Safety
    /// The message is the program's; the handles are those of the library below.
    pub unsafe fn new<F: Foreign>(
        data: *const c_void,
        count: c_int,
        datatype: F::Below,
        room: usize,
        comm: F::Below,
    ) -> Result<Self, c_int> {
        let mut packed = Packed {
            room: vec![0; room],
            length: 0,
        };
        let (place, room) = (packed.place(), c_int::try_from(room).unwrap_or(c_int::MAX));
        let length = &raw mut packed.length;
        // SAFETY: as the caller says; the place has that room.
        match unsafe { (below::MPI_Pack::<F>())(data, count, datatype, place, room, length, comm) }
        {
            0 => Ok(packed),
            code => Err(code),
        }
    }

    pub fn place(&mut self) -> *mut c_void {
        self.room.as_mut_ptr().cast()
    }

    pub fn length(&self) -> c_int {
        self.length
    }

    /// What such a message is made of.
    pub fn datatype<F: Foreign>() -> F::Below {
        F::handle_in(Kind::Datatype, MPI_PACKED)
    }
}
