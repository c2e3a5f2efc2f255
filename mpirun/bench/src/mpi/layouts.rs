//! Non-contiguous messages: small versions of the layouts of DDTBench.
//! Source: T. Schneider, R. Gerstenberger, T. Hoefler, EuroMPI 2012.

use super::{Handle, MpiError, World, check, count};
use std::ffi::c_int;
use std::ptr;

/// A committed datatype of doubles, with the memory that it describes.
pub struct Layout<'a> {
    world: &'a World<'a>,
    datatype: Handle,
    memory: Vec<f64>,
}

/// The number of elements in a matrix row; `EDGE` is the number along a cube's edge.
const ROW: usize = 512;
const EDGE: usize = 64;

impl World<'_> {
    /// Returns a column of a matrix: `n` doubles with a stride of one row.
    pub fn column(&self, n: usize) -> Result<Layout<'_>, MpiError> {
        let mut new = ptr::null();
        let double = self.handles().double;
        // SAFETY: `new` is a local variable that the call writes.
        check("MPI_Type_vector", unsafe {
            (self.call().type_vector)(count(n), 1, count(ROW), double, &raw mut new)
        })?;
        self.layout(new, n * ROW)
    }

    /// Returns a face inside a cube: `n` doubles in rows of 8.
    pub fn face(&self, n: usize) -> Result<Layout<'_>, MpiError> {
        let thick = 8.min(n);
        let rows = n / thick;
        let (deep, high) = (rows.div_ceil(EDGE), rows.min(EDGE));
        let sizes = [deep, EDGE, EDGE].map(count);
        let subsizes = [deep, high, thick].map(count);
        let starts = [0, 0, 1];
        let h = self.handles();
        let (double, order) = (h.double, h.order_c);
        let mut new = ptr::null();
        // SAFETY: each array has three elements; `new` is a local variable that the call writes.
        check("MPI_Type_create_subarray", unsafe {
            (self.call().type_create_subarray)(
                3,
                sizes.as_ptr(),
                subsizes.as_ptr(),
                starts.as_ptr(),
                order,
                double,
                &raw mut new,
            )
        })?;
        self.layout(new, deep * EDGE * EDGE)
    }

    /// Returns `n` doubles at irregular displacements (`MPI_Type_create_indexed_block`).
    pub fn indexed(&self, n: usize) -> Result<Layout<'_>, MpiError> {
        let places: Vec<c_int> = (0..n).map(|i| count(3 * i + i * 7 % 3)).collect();
        let mut new = ptr::null();
        let double = self.handles().double;
        // SAFETY: `places` has `n` elements; `new` is a local variable that the call writes.
        check("MPI_Type_create_indexed_block", unsafe {
            (self.call().type_create_indexed_block)(
                count(n),
                1,
                places.as_ptr(),
                double,
                &raw mut new,
            )
        })?;
        self.layout(new, 3 * n + 3)
    }

    /// Returns one index range of four separate arrays (a structure of arrays),
    /// `n` doubles in total.
    pub fn arrays(&self, n: usize) -> Result<Layout<'_>, MpiError> {
        let each = n.div_ceil(4).max(1);
        let apart = 2 * each + 8;
        let starts = [0, 1, 2, 3].map(|array| (array * apart * size_of::<f64>()) as isize);
        let mut new = ptr::null();
        let double = self.handles().double;
        // SAFETY: `starts` has four elements; `new` is a local variable that the call writes.
        check("MPI_Type_create_hindexed_block", unsafe {
            (self.call().type_create_hindexed_block)(
                4,
                count(each),
                starts.as_ptr(),
                double,
                &raw mut new,
            )
        })?;
        self.layout(new, 4 * apart)
    }

    fn layout(&self, mut datatype: Handle, doubles: usize) -> Result<Layout<'_>, MpiError> {
        // SAFETY: `datatype` is a datatype that the caller has just created.
        check("MPI_Type_commit", unsafe {
            (self.call().type_commit)(&raw mut datatype)
        })?;
        Ok(Layout {
            world: self,
            datatype,
            memory: vec![1.0; doubles],
        })
    }
}

impl Layout<'_> {
    pub fn send(&self, to: i32, tag: i32) -> Result<(), MpiError> {
        let world = self.world;
        let at = self.memory.as_ptr().cast();
        // SAFETY: the memory has every element of the datatype and is borrowed during the call.
        check("MPI_Send", unsafe {
            (world.call().send)(at, 1, self.datatype, to, tag, world.handles().world)
        })
    }

    pub fn recv(&mut self, from: i32, tag: i32) -> Result<(), MpiError> {
        let world = self.world;
        let (at, all) = (self.memory.as_mut_ptr().cast(), world.handles().world);
        // SAFETY: the memory has every element of the datatype and is exclusively borrowed.
        check("MPI_Recv", unsafe {
            (world.call().recv)(at, 1, self.datatype, from, tag, all, ptr::null_mut())
        })
    }
}

impl Drop for Layout<'_> {
    fn drop(&mut self) {
        // SAFETY: no operation with the datatype is pending, as send and receive block.
        unsafe { (self.world.call().type_free)(&raw mut self.datatype) };
    }
}
