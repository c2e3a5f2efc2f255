//! Lower bound, upper bound and extent (MPI 5.0, section 5.1.6).
//!
//! If a type or one of its components is resized, only the markers (`lb_marker`
//! and `ub_marker` of the standard) define the bounds.
//! Otherwise the extent is padded to the strictest alignment of the basic types.
//!
//! The padding of a component belongs to the component, as in MPICH and Open MPI:
//! the type ends after the padding of its last component.
//! If all displacements are multiples of the alignment, an extent computed from the type map alone
//! has the same value. Otherwise it would be smaller than the components, too small for a program
//! that rebuilds the type from its components (NumPy's structures).

use std::ops::Range;

use super::construct::Placement;
use super::{Datatype, Repr};

/// The bounds of a type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// The range of byte offsets of the data, without padding.
    pub data: Option<Range<i64>>,
    /// The range of byte offsets of the components with their padding.
    parts: Option<Range<i64>>,
    /// The bounds set by resizing this type or a component.
    marks: Option<Range<i64>>,
    /// The strictest alignment among the basic types, in bytes.
    align: i64,
}

impl Bounds {
    pub fn lb(&self) -> i64 {
        self.marks
            .as_ref()
            .or(self.data.as_ref())
            .map_or(0, |r| r.start)
    }

    /// Sets the bounds that resizing defines. They replace those of the components.
    pub fn mark(&mut self, marks: Range<i64>) {
        self.marks = Some(marks);
    }

    /// Returns the extent: from the markers if there are any, else padded to the alignment.
    pub fn extent(&self) -> Option<i64> {
        match &self.marks {
            Some(marks) => marks.end.checked_sub(marks.start),
            None => self.padded_len(),
        }
    }

    fn padded_len(&self) -> Option<i64> {
        let Some(parts) = &self.parts else {
            return Some(0);
        };
        let (len, align) = (parts.end.checked_sub(parts.start)?, self.align.max(1));
        len.checked_add((align - len % align) % align)
    }

    /// Returns the range of byte offsets that this type occupies with its padding as a component.
    fn padded(&self) -> Option<Option<Range<i64>>> {
        let len = self.padded_len()?;
        match &self.parts {
            Some(parts) => Some(Some(parts.start..parts.start.checked_add(len)?)),
            None => Some(None),
        }
    }

    pub fn of(datatype: &Datatype) -> Bounds {
        match &datatype.0 {
            Repr::Named(named) => Bounds {
                data: Some(0..named.info().true_extent),
                parts: Some(0..named.info().extent),
                marks: None,
                align: named.info().align,
            },
            Repr::Derived(derived) => derived.bounds.clone(),
        }
    }

    /// Extends the bounds by a placement of `child`. Returns `None` on overflow.
    pub fn include(&mut self, p: &Placement<'_>, child: &Bounds, extent: i64) -> Option<()> {
        if p.count == 0 || p.reps == 0 {
            return Some(());
        }
        let along = (p.count - 1).checked_mul(extent)?;
        let across = (p.reps - 1).checked_mul(p.stride)?;
        let low = p
            .offset
            .checked_add(along.min(0))?
            .checked_add(across.min(0))?;
        let high = p
            .offset
            .checked_add(along.max(0))?
            .checked_add(across.max(0))?;
        for (mine, theirs) in [
            (&mut self.data, &child.data),
            (&mut self.parts, &child.padded()?),
            (&mut self.marks, &child.marks),
        ] {
            if let Some(theirs) = theirs {
                let (start, end) = (
                    theirs.start.checked_add(low)?,
                    theirs.end.checked_add(high)?,
                );
                *mine = Some(match mine.take() {
                    None => start..end,
                    Some(old) => old.start.min(start)..old.end.max(end),
                });
            }
        }
        self.align = self.align.max(child.align);
        Some(())
    }
}
