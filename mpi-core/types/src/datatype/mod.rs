//! Datatypes: the layout of data in user memory, and the transfer of these data.
//!
//! A [`Datatype`] is cheap to clone.
//! A predefined datatype is a table index. A derived datatype is a reference-counted value:
//! the arguments of its constructor (for `MPI_Type_get_contents`)
//! and, after [`Datatype::commit`], its normal form (`layout`).
//! All sizes and counts have 64 bits (MPI 5.0, chapter 5, large-count functions).
//!
//! | file | subject |
//! |---|---|
//! | `named` | the table of predefined types |
//! | `construct` | constructors |
//! | `bounds` | lower bound and extent |
//! | `arrays` | subarray and darray by the other constructors |
//! | `contents` | envelope and contents |
//! | `layout` | the normal form |
//! | `normalise` | the conversion to the normal form |
//! | `walk` | iteration over data from any byte to any byte |
//! | `copy` | the copy loops |
//! | `buf` | a user buffer: address, count and datatype; packing and unpacking |
//! | `cursor` | a position in a buffer |
//! | `scratch` | buffers in library memory, for temporaries |
//! | `external32` | the data representation `external32` |
//! | `f90` | Fortran kinds selected by precision and range |
//! | `signature` | counting basic elements, comparing signatures |
//!
//! A contiguous message only calls [`Datatype::contiguous_bytes`] and bypasses the packing engine.

mod arrays;
mod bounds;
mod buf;
mod bytes;
mod construct;
mod contents;
mod copy;
mod cursor;
mod error;
mod external32;
pub mod f90;
mod layout;
mod named;
mod normalise;
mod over;
mod scratch;
mod signature;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

pub use arrays::{Distribution, Order, darray, subarray};
pub use buf::{RecvBuf, SendBuf, copy};
pub use bytes::{RecvBytes, RecvTarget};
use construct::Derived;
pub use contents::{Combiner, Contents, Envelope, Form};
pub use cursor::{Packer, Unpacker};
pub use error::TypeError;
pub use external32::external_bytes;
pub use f90::FortranKind;
pub use layout::Run;
use layout::{Layout, Shape};
pub use named::{Info, Kind, Named, Scalar};
pub use over::over;
pub use scratch::{NoMemory, Scratch};
pub use signature::{Counts, Signature};
pub use walk::Runs;

/// A datatype: predefined or derived.
#[derive(Clone)]
pub struct Datatype(Repr);

#[derive(Clone)]
enum Repr {
    Named(Named),
    Derived(Rc<Derived>),
}

impl From<Named> for Datatype {
    fn from(named: Named) -> Datatype {
        Datatype(Repr::Named(named))
    }
}

impl Datatype {
    /// Returns the predefined datatype with this handle value in the standard ABI.
    pub fn named(handle: usize) -> Option<Datatype> {
        Named::from_handle(handle).map(Datatype::from)
    }

    /// Returns the predefined datatype, if this type is predefined.
    #[inline]
    pub fn as_named(&self) -> Option<Named> {
        match &self.0 {
            Repr::Named(named) => Some(*named),
            Repr::Derived(_) => None,
        }
    }

    /// Returns the predefined datatype with the same elements: a type of a Fortran kind is
    /// equivalent to the predefined type of its size.
    #[inline]
    pub fn as_basic(&self) -> Option<Named> {
        match &self.0 {
            Repr::Named(named) => Some(*named),
            Repr::Derived(derived) => derived.made.kind().map(|kind| kind.basic),
        }
    }

    /// Returns true if both values refer to the same datatype object, not only to equal datatypes.
    pub fn same(&self, other: &Datatype) -> bool {
        match (&self.0, &other.0) {
            (Repr::Named(a), Repr::Named(b)) => a == b,
            (Repr::Derived(a), Repr::Derived(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Returns the size: the number of bytes of data in one element.
    #[inline]
    pub fn size(&self) -> i64 {
        match &self.0 {
            Repr::Named(named) => named.info().size,
            Repr::Derived(derived) => derived.size,
        }
    }

    /// Returns the lower bound.
    #[inline]
    pub fn lb(&self) -> i64 {
        match &self.0 {
            Repr::Named(_) => 0,
            Repr::Derived(derived) => derived.bounds.lb(),
        }
    }

    /// Returns the extent: the distance in bytes from one element to the next.
    #[inline]
    pub fn extent(&self) -> i64 {
        match &self.0 {
            Repr::Named(named) => named.info().extent,
            Repr::Derived(derived) => derived.extent,
        }
    }

    /// Returns the offset of the lowest byte of data.
    pub fn true_lb(&self) -> i64 {
        match &self.0 {
            Repr::Named(_) => 0,
            Repr::Derived(derived) => derived.bounds.data.as_ref().map_or(0, |d| d.start),
        }
    }

    /// Returns the distance in bytes from the lowest byte of data to the end of the highest.
    pub fn true_extent(&self) -> i64 {
        match &self.0 {
            Repr::Named(named) => named.info().true_extent,
            Repr::Derived(derived) => derived.bounds.data.as_ref().map_or(0, |d| d.end - d.start),
        }
    }

    /// Returns the range of byte offsets of the data of `count` elements in the buffer.
    pub fn span(&self, count: i64) -> Range<i64> {
        if count <= 0 || self.size() == 0 {
            return 0..0;
        }
        let last = self.extent().saturating_mul(count - 1);
        let (lb, ub) = (self.true_lb(), self.true_lb() + self.true_extent());
        lb.saturating_add(last.min(0))..ub.saturating_add(last.max(0))
    }

    /// Returns true if the type may be used for communication.
    #[inline]
    pub fn is_committed(&self) -> bool {
        match &self.0 {
            Repr::Named(_) => true,
            Repr::Derived(derived) => derived.committed.get(),
        }
    }

    /// Prepares the type for communication: computes its normal form.
    pub fn commit(&self) -> Result<(), TypeError> {
        match &self.0 {
            Repr::Named(_) => Ok(()),
            Repr::Derived(derived) => derived.commit(),
        }
    }

    /// Returns the memory of `count` elements if it is contiguous:
    /// the offset from the start of the buffer, and the number of bytes.
    #[inline]
    pub fn contiguous_bytes(&self, count: i64) -> Option<(i64, i64)> {
        match &self.0 {
            Repr::Named(named) => (named.is_dense()
                || count == 1 && named.body().offsets.len() == 1)
                .then(|| (0, named.info().size.saturating_mul(count))),
            Repr::Derived(derived) => derived
                .layout()
                .contiguous(derived.extent, count)
                .map(|run| (run.offset, run.len)),
        }
    }

    /// Returns true if all contiguous segments of any number of elements begin and end at multiples
    /// of `unit` bytes from the start of the buffer.
    pub fn is_in_units_of(&self, unit: i64) -> bool {
        match &self.0 {
            Repr::Named(named) => named.is_dense() && named.info().size % unit == 0,
            Repr::Derived(derived) => derived.layout().is_in_units_of(unit, derived.extent),
        }
    }

    /// Returns the number of packed bytes of `count` elements.
    #[inline]
    pub fn bytes(&self, count: i64) -> i64 {
        self.size().saturating_mul(count.max(0))
    }

    /// Returns the number of contiguous segments of `count` elements.
    /// Adjacent segments may count as two.
    #[inline]
    fn run_count(&self, count: i64) -> i64 {
        let each = match &self.0 {
            Repr::Named(named) => named.body().offsets.len() as i64,
            Repr::Derived(derived) => derived.layout().runs(),
        };
        each.saturating_mul(count.max(0))
    }

    /// Returns the contiguous segments of memory that hold the packed bytes `range` of `count`
    /// elements, in packed order.
    pub fn runs(&self, count: i64, range: Range<i64>) -> Runs<'_> {
        Runs::new(self.shape(count), range)
    }

    /// Returns the name of the normal form, such as `contiguous` or `strided`.
    pub fn form(&self) -> &'static str {
        match &self.0 {
            Repr::Named(named) => {
                Layout::new(&named.body().runs().collect::<Vec<_>>(), vec![]).form()
            }
            Repr::Derived(derived) => derived.layout().form(),
        }
    }

    #[inline(always)]
    fn shape(&self, count: i64) -> Shape<'_> {
        match &self.0 {
            Repr::Named(named) => Shape::new(named.body(), &[], self.extent(), count),
            Repr::Derived(derived) => {
                let layout = derived.layout();
                Shape::new(layout.body(), layout.loops(), derived.extent, count)
            }
        }
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints the name of a predefined type, or the constructor of a derived type.
impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Named(named) => f.write_str(named.info().name),
            Repr::Derived(derived) => write!(
                f,
                "a {} type of {} bytes",
                derived.made.combiner().word(),
                derived.size
            ),
        }
    }
}
