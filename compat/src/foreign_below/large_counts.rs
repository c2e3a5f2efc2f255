//! Conversion of large counts to `int`: a larger derived datatype, or arrays of `int` counts.

use super::Foreign;
use crate::backend;
use crate::family::Kind;
use std::ffi::c_int;

/// Number of elements per chunk of a derived datatype.
const CHUNK: i64 = 1 << 30;

/// A count and a datatype for a function with `int` counts.
pub struct Fit<F: Foreign> {
    pub count: c_int,
    pub datatype: F::Below,
    is_made: bool,
}

impl<F: Foreign> Fit<F> {
    /// Returns a count and datatype for the same data, with an `int` count.
    /// A count that exceeds `int` becomes 1, with a datatype of chunks and the remaining elements.
    /// The error is a code of the backend.
    ///
    /// # Safety
    /// `datatype` is valid in the backend.
    #[inline]
    pub unsafe fn new(count: i64, datatype: F::Below) -> Result<Self, c_int> {
        match c_int::try_from(count) {
            Ok(count) => Ok(Fit {
                count,
                datatype,
                is_made: false,
            }),
            // A count below the `int` range stays negative, so that the backend reports it.
            Err(_) if count < 0 => Ok(Fit {
                count: c_int::MIN,
                datatype,
                is_made: false,
            }),
            // SAFETY: `datatype` is valid in the backend, by contract.
            Err(_) => unsafe { Self::chunks(count, datatype) },
        }
    }

    #[cold]
    unsafe fn chunks(count: i64, datatype: F::Below) -> Result<Self, c_int> {
        let ok = |code: c_int| if code == 0 { Ok(()) } else { Err(code) };
        let (mut low, mut extent) = (0, 0);
        let mut parts = [F::null(Kind::Datatype); 3];
        let [chunk, chunks, rest] = &mut parts;
        let mut whole = F::null(Kind::Datatype);
        let chunk_count = c_int::try_from(count / CHUNK).unwrap_or(c_int::MAX);
        let rest_count = (count % CHUNK) as c_int;
        // SAFETY: `datatype` is valid in the backend, by contract of `new`.
        // The other handles and variables are created here.
        unsafe {
            ok((backend::MPI_Type_get_extent::<F>())(
                datatype,
                &mut low,
                &mut extent,
            ))?;
            ok((backend::MPI_Type_contiguous::<F>())(
                CHUNK as c_int,
                datatype,
                chunk,
            ))?;
            ok((backend::MPI_Type_contiguous::<F>())(
                chunk_count,
                *chunk,
                chunks,
            ))?;
            ok((backend::MPI_Type_contiguous::<F>())(
                rest_count, datatype, rest,
            ))?;
            let lengths = [1, 1];
            let places = [0, extent * (CHUNK as isize) * chunk_count as isize];
            let types = [*chunks, *rest];
            let code = (backend::MPI_Type_create_struct::<F>())(
                2,
                lengths.as_ptr(),
                places.as_ptr(),
                types.as_ptr(),
                &raw mut whole,
            );
            for part in &mut parts {
                (backend::MPI_Type_free::<F>())(part);
            }
            ok(code)?;
            ok((backend::MPI_Type_commit::<F>())(&raw mut whole))?;
        }
        Ok(Fit {
            count: 1,
            datatype: whole,
            is_made: true,
        })
    }

    /// Frees the datatype if it is a derived one. Active operations keep it in the backend.
    ///
    /// # Safety
    /// The function is called once, after the call that used the datatype.
    #[inline]
    pub unsafe fn free(mut self) {
        if self.is_made {
            // SAFETY: `chunks` has created the datatype. This function runs once by its contract.
            unsafe { (backend::MPI_Type_free::<F>())(&raw mut self.datatype) };
        }
    }
}

/// An array of integers converted to a smaller type, or `None` if the program passed no array.
pub struct Narrow<B>(Option<Vec<B>>);

impl<B> Narrow<B> {
    /// # Safety
    /// `from` is null or has `length` elements.
    pub unsafe fn of<A: Copy>(from: *const A, length: c_int) -> Option<Self>
    where
        B: TryFrom<A>,
    {
        if from.is_null() {
            return Some(Narrow(None));
        }
        let length = usize::try_from(length).unwrap_or(0);
        // SAFETY: `i < length`, and by contract the array has `length` elements.
        let narrow = |i: usize| B::try_from(unsafe { from.add(i).read() }).ok();
        Some(Narrow(Some(
            (0..length).map(narrow).collect::<Option<_>>()?,
        )))
    }

    pub fn argument(&self) -> *const B {
        self.0
            .as_ref()
            .map_or(std::ptr::null(), |list| list.as_ptr())
    }
}
