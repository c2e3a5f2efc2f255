//! Constructors of derived datatypes.
//! A type stores its constructor's arguments; all other properties are computed from *placements*.
//!
//! A constructor only defines where blocks of the old types are placed ([`Derived::placements`]).
//! Bounds, size, normal form, element counts and signatures each need one traversal of these.

use std::cell::{Cell, OnceCell};

use super::arrays::{Distribution, Order};
use super::bounds::Bounds;
use super::contents::Form;
use super::error::TypeError;
use super::f90::FortranKind;
use super::layout::{Layout, Run};
use super::normalise::{Part, Sequence, TooManyRuns};
use super::signature::Signature;
use super::{Datatype, Repr};

/// The arguments of a constructor as the user gave them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Made {
    Dup,
    Contiguous {
        count: i64,
    },
    Vector {
        count: i64,
        blocklength: i64,
        stride: i64,
    },
    Hvector {
        count: i64,
        blocklength: i64,
        stride: i64,
    },
    Indexed {
        blocklengths: Box<[i64]>,
        displacements: Box<[i64]>,
    },
    Hindexed {
        blocklengths: Box<[i64]>,
        displacements: Box<[i64]>,
    },
    IndexedBlock {
        blocklength: i64,
        displacements: Box<[i64]>,
    },
    HindexedBlock {
        blocklength: i64,
        displacements: Box<[i64]>,
    },
    Struct {
        blocklengths: Box<[i64]>,
        displacements: Box<[i64]>,
    },
    Resized {
        lb: i64,
        extent: i64,
    },
    Subarray {
        sizes: Box<[i64]>,
        subsizes: Box<[i64]>,
        starts: Box<[i64]>,
        order: Order,
    },
    Darray {
        processes: i64,
        rank: i64,
        global: Box<[i64]>,
        distributions: Box<[Distribution]>,
        grid: Box<[i64]>,
        order: Order,
    },
    Fortran(FortranKind),
}

/// A derived datatype.
pub struct Derived {
    pub made: Made,
    /// Whether the large-count constructor was called (`_c`), or the one with `int` counts.
    pub counts: Cell<Form>,
    /// The old datatypes that the constructor has received.
    pub types: Box<[Datatype]>,
    /// For an array type: the same type, built by simpler constructors.
    lowered: Option<Datatype>,
    pub size: i64,
    pub bounds: Bounds,
    /// `bounds.extent()`, cached for the fast path.
    pub extent: i64,
    pub committed: Cell<bool>,
    layout: OnceCell<Layout>,
    pub signature: OnceCell<Signature>,
    pub basic: OnceCell<Option<super::Named>>,
}

/// `reps` groups of `count` elements of `child`.
/// Elements are `child.extent()` bytes apart, and groups are `stride` bytes apart.
#[derive(Clone, Copy)]
pub struct Placement<'a> {
    pub child: &'a Datatype,
    pub offset: i64,
    pub count: i64,
    pub reps: i64,
    pub stride: i64,
}

impl<'a> Placement<'a> {
    fn block(child: &'a Datatype, offset: i64, count: i64) -> Placement<'a> {
        Placement {
            child,
            offset,
            count,
            reps: 1,
            stride: 0,
        }
    }
}

impl Derived {
    /// Calls `f` for each placement in the order of the type map, until `f` returns `None`.
    pub fn placements<'a>(&'a self, mut f: impl FnMut(Placement<'a>) -> Option<()>) -> Option<()> {
        let child = self.lowered.as_ref().or(self.types.first());
        let Some(child) = child else {
            return Some(()); // a struct without fields
        };
        let extent = child.extent();
        match &self.made {
            Made::Dup
            | Made::Resized { .. }
            | Made::Subarray { .. }
            | Made::Darray { .. }
            | Made::Fortran(_) => f(Placement::block(child, 0, 1)),
            Made::Contiguous { count } => f(Placement::block(child, 0, *count)),
            Made::Vector {
                count,
                blocklength,
                stride,
            } => f(Placement {
                child,
                offset: 0,
                count: *blocklength,
                reps: *count,
                stride: stride.checked_mul(extent)?,
            }),
            Made::Hvector {
                count,
                blocklength,
                stride,
            } => f(Placement {
                child,
                offset: 0,
                count: *blocklength,
                reps: *count,
                stride: *stride,
            }),
            Made::Indexed {
                blocklengths,
                displacements,
            } => blocklengths
                .iter()
                .zip(displacements)
                .try_for_each(|(&n, d)| f(Placement::block(child, d.checked_mul(extent)?, n))),
            Made::Hindexed {
                blocklengths,
                displacements,
            } => blocklengths
                .iter()
                .zip(displacements)
                .try_for_each(|(&n, &d)| f(Placement::block(child, d, n))),
            Made::IndexedBlock {
                blocklength,
                displacements,
            } => displacements.iter().try_for_each(|d| {
                f(Placement::block(
                    child,
                    d.checked_mul(extent)?,
                    *blocklength,
                ))
            }),
            Made::HindexedBlock {
                blocklength,
                displacements,
            } => displacements
                .iter()
                .try_for_each(|&d| f(Placement::block(child, d, *blocklength))),
            Made::Struct {
                blocklengths,
                displacements,
            } => blocklengths
                .iter()
                .zip(displacements)
                .zip(&self.types)
                .try_for_each(|((&n, &d), child)| f(Placement::block(child, d, n))),
        }
    }

    fn measure(&mut self) -> Option<()> {
        let mut bounds = Bounds::default();
        let mut size = 0i64;
        self.placements(|p| {
            bounds.include(&p, &Bounds::of(p.child), p.child.extent())?;
            let bytes = p.child.size().checked_mul(p.count)?.checked_mul(p.reps)?;
            size = size.checked_add(bytes)?;
            Some(())
        })?;
        if let Made::Resized { lb, extent } = self.made {
            bounds.mark(lb..lb.checked_add(extent)?);
        }
        self.extent = bounds.extent()?;
        self.bounds = bounds;
        self.size = size;
        Some(())
    }

    pub fn commit(&self) -> Result<(), TypeError> {
        if self.layout.get().is_none() {
            let layout = self.normalise().map_err(|_| TypeError::TooManyRuns)?;
            let _ = self.layout.set(layout.finish());
        }
        self.committed.set(true);
        Ok(())
    }

    /// Returns the normal form, and computes it if the type was never committed.
    ///
    /// The normal form of a type that `commit` rejects as too irregular is empty, so an operation
    /// with such a type transfers no data.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.layout
            .get_or_init(|| self.normalise().unwrap_or_default().finish())
    }

    fn normalise(&self) -> Result<Part, TooManyRuns> {
        if self.size == 0 {
            return Ok(Part::default());
        }
        let mut sequence = Sequence::default();
        let mut failed = None;
        // An indexed type contains the same child repeatedly.
        // The child's normal form is computed once.
        let mut known: Option<(&Datatype, Part)> = None;
        self.placements(|p| {
            let placed = match &known {
                Some((child, _)) if std::ptr::eq(*child, p.child) => Ok(()),
                _ => normal_form(p.child).map(|layout| known = Some((p.child, layout))),
            }
            .and_then(|()| match &known {
                Some((_, layout)) => place(&mut sequence, &p, layout),
                None => Ok(()),
            });
            placed.map_err(|e| failed = Some(e)).ok()
        });
        match failed {
            Some(e) => Err(e),
            None => Ok(sequence.finish()),
        }
    }
}

fn normal_form(datatype: &Datatype) -> Result<Part, TooManyRuns> {
    match &datatype.0 {
        Repr::Named(named) => Ok(Part::of_runs(named.body().runs())),
        Repr::Derived(derived) => match derived.layout.get() {
            Some(layout) => Ok(Part::of_layout(layout)),
            None => derived.normalise(),
        },
    }
}

fn place(sequence: &mut Sequence, p: &Placement<'_>, child: &Part) -> Result<(), TooManyRuns> {
    let extent = p.child.extent();
    if p.reps == 1
        && let Some(run) = child.contiguous(extent, p.count)
    {
        return sequence.push_run(Run::new(run.offset + p.offset, run.len));
    }
    let part = child.clone().repeated(p.count, extent)?;
    sequence.push(part.repeated(p.reps, p.stride)?, p.offset)
}

impl Datatype {
    fn derive(
        made: Made,
        types: Box<[Datatype]>,
        lowered: Option<Datatype>,
    ) -> Result<Datatype, TypeError> {
        let combiner = made.combiner().word();
        let mut derived = Derived {
            made,
            counts: Cell::new(Form::Int),
            types,
            lowered,
            size: 0,
            bounds: Bounds::default(),
            extent: 0,
            committed: Cell::new(false),
            layout: OnceCell::new(),
            signature: OnceCell::new(),
            basic: OnceCell::new(),
        };
        derived.measure().ok_or(TypeError::Overflow { combiner })?;
        Ok(Datatype(Repr::Derived(derived.into())))
    }

    fn derive_one(made: Made, old: &Datatype) -> Result<Datatype, TypeError> {
        Datatype::derive(made, [old.clone()].into(), None)
    }

    pub(super) fn derive_array(
        made: Made,
        old: &Datatype,
        lowered: Datatype,
    ) -> Result<Datatype, TypeError> {
        Datatype::derive(made, [old.clone()].into(), Some(lowered))
    }

    pub(super) fn derive_kind(kind: FortranKind) -> Result<Datatype, TypeError> {
        let basic = Datatype::from(kind.basic);
        let datatype = Datatype::derive(Made::Fortran(kind), [].into(), Some(basic))?;
        datatype.commit()?;
        Ok(datatype)
    }

    /// `MPI_Type_dup`; the copy of a committed type is committed.
    pub fn dup(&self) -> Result<Datatype, TypeError> {
        let copy = Datatype::derive_one(Made::Dup, self)?;
        if self.is_committed() {
            copy.commit()?;
        }
        Ok(copy)
    }

    /// `MPI_Type_contiguous`
    pub fn contiguous(count: i64, old: &Datatype) -> Result<Datatype, TypeError> {
        not_negative("count", count)?;
        Datatype::derive_one(Made::Contiguous { count }, old)
    }

    /// `MPI_Type_vector`: the stride counts elements.
    pub fn vector(
        count: i64,
        blocklength: i64,
        stride: i64,
        old: &Datatype,
    ) -> Result<Datatype, TypeError> {
        not_negative("count", count)?;
        not_negative("block length", blocklength)?;
        let made = Made::Vector {
            count,
            blocklength,
            stride,
        };
        Datatype::derive_one(made, old)
    }

    /// `MPI_Type_create_hvector`: the stride counts bytes.
    pub fn hvector(
        count: i64,
        blocklength: i64,
        stride: i64,
        old: &Datatype,
    ) -> Result<Datatype, TypeError> {
        not_negative("count", count)?;
        not_negative("block length", blocklength)?;
        let made = Made::Hvector {
            count,
            blocklength,
            stride,
        };
        Datatype::derive_one(made, old)
    }

    /// `MPI_Type_indexed`: displacements count elements.
    pub fn indexed(
        blocklengths: &[i64],
        displacements: &[i64],
        old: &Datatype,
    ) -> Result<Datatype, TypeError> {
        blocks(blocklengths, displacements)?;
        let made = Made::Indexed {
            blocklengths: blocklengths.into(),
            displacements: displacements.into(),
        };
        Datatype::derive_one(made, old)
    }

    /// `MPI_Type_create_hindexed`: displacements count bytes.
    pub fn hindexed(
        blocklengths: &[i64],
        displacements: &[i64],
        old: &Datatype,
    ) -> Result<Datatype, TypeError> {
        blocks(blocklengths, displacements)?;
        let made = Made::Hindexed {
            blocklengths: blocklengths.into(),
            displacements: displacements.into(),
        };
        Datatype::derive_one(made, old)
    }

    /// `MPI_Type_create_indexed_block`
    pub fn indexed_block(
        blocklength: i64,
        displacements: &[i64],
        old: &Datatype,
    ) -> Result<Datatype, TypeError> {
        not_negative("block length", blocklength)?;
        let made = Made::IndexedBlock {
            blocklength,
            displacements: displacements.into(),
        };
        Datatype::derive_one(made, old)
    }

    /// `MPI_Type_create_hindexed_block`
    pub fn hindexed_block(
        blocklength: i64,
        displacements: &[i64],
        old: &Datatype,
    ) -> Result<Datatype, TypeError> {
        not_negative("block length", blocklength)?;
        let made = Made::HindexedBlock {
            blocklength,
            displacements: displacements.into(),
        };
        Datatype::derive_one(made, old)
    }

    /// `MPI_Type_create_struct`
    pub fn structure(
        blocklengths: &[i64],
        displacements: &[i64],
        types: &[Datatype],
    ) -> Result<Datatype, TypeError> {
        blocks(blocklengths, displacements)?;
        same_length("blocks", blocklengths.len(), "types", types.len())?;
        let made = Made::Struct {
            blocklengths: blocklengths.into(),
            displacements: displacements.into(),
        };
        Datatype::derive(made, types.into(), None)
    }

    /// `MPI_Type_create_resized`; the extent may be negative.
    pub fn resized(lb: i64, extent: i64, old: &Datatype) -> Result<Datatype, TypeError> {
        Datatype::derive_one(Made::Resized { lb, extent }, old)
    }
}

fn not_negative(what: &'static str, value: i64) -> Result<(), TypeError> {
    match value {
        0.. => Ok(()),
        _ => Err(TypeError::Negative { what, value }),
    }
}

pub fn same_length(
    what: &'static str,
    len: usize,
    other: &'static str,
    other_len: usize,
) -> Result<(), TypeError> {
    let error = TypeError::Lengths {
        what,
        len,
        other,
        other_len,
    };
    (len == other_len).then_some(()).ok_or(error)
}

fn blocks(blocklengths: &[i64], displacements: &[i64]) -> Result<(), TypeError> {
    same_length(
        "block lengths",
        blocklengths.len(),
        "displacements",
        displacements.len(),
    )?;
    blocklengths
        .iter()
        .try_for_each(|&n| not_negative("block length", n))
}
