//! Envelope and contents: the constructor of a datatype and its arguments (section 5.1.13).
//!
//! The arguments have the order of the standard.
//! For a type made by a large-count constructor (`_c`),
//! counts and displacements are returned as `MPI_Count`.
//! For a type made by another constructor, they are returned as `int` and `MPI_Aint`.

use super::arrays::{Distribution, Order};
use super::construct::{Derived, Made};
use super::{Datatype, Repr};

/// Values of `MPI_COMBINER_*` in the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Combiner {
    Named = 101,
    Dup = 102,
    Contiguous = 103,
    Vector = 104,
    Hvector = 105,
    Indexed = 106,
    Hindexed = 107,
    IndexedBlock = 108,
    HindexedBlock = 109,
    Struct = 110,
    Subarray = 111,
    Darray = 112,
    F90Real = 113,
    F90Complex = 114,
    F90Integer = 115,
    Resized = 116,
    ValueIndex = 117,
}

impl Combiner {
    /// Returns the name of the constructor in the standard.
    pub fn word(self) -> &'static str {
        use Combiner::*;
        match self {
            Named => "predefined",
            Dup => "dup",
            Contiguous => "contiguous",
            Vector => "vector",
            Hvector => "hvector",
            Indexed => "indexed",
            Hindexed => "hindexed",
            IndexedBlock => "indexed_block",
            HindexedBlock => "hindexed_block",
            Struct => "struct",
            Subarray => "subarray",
            Darray => "darray",
            F90Real => "f90_real",
            F90Complex => "f90_complex",
            F90Integer => "f90_integer",
            Resized => "resized",
            ValueIndex => "value_index",
        }
    }
}

/// The C variant of a constructor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The variant with `int` counts.
    Int,
    /// The large-count variant with `MPI_Count`, whose name ends in `_c`.
    Count,
}

/// The arguments of a constructor, grouped by C type as `MPI_Type_get_contents_c` returns them.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub integers: Vec<i32>,
    pub addresses: Vec<i64>,
    pub counts: Vec<i64>,
    pub types: Vec<Datatype>,
}

/// The number of a constructor's arguments of each C type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    pub integers: usize,
    pub addresses: usize,
    pub counts: usize,
    pub types: usize,
    pub combiner: Combiner,
}

const ORDER_C: i64 = 12;
const ORDER_FORTRAN: i64 = 15;
const DISTRIBUTE_NONE: i64 = 16;
const DISTRIBUTE_BLOCK: i64 = 17;
const DISTRIBUTE_CYCLIC: i64 = 18;
const DISTRIBUTE_DFLT_DARG: i64 = 19;

impl Order {
    fn value(self) -> i64 {
        match self {
            Order::C => ORDER_C,
            Order::Fortran => ORDER_FORTRAN,
        }
    }

    /// Converts a value of `MPI_ORDER_*` to an [`Order`].
    pub fn from_value(value: i64) -> Option<Order> {
        match value {
            ORDER_C => Some(Order::C),
            ORDER_FORTRAN => Some(Order::Fortran),
            _ => None,
        }
    }
}

impl Distribution {
    fn values(self) -> (i64, i64) {
        let (value, argument) = match self {
            Distribution::None(a) => (DISTRIBUTE_NONE, a),
            Distribution::Block(a) => (DISTRIBUTE_BLOCK, a),
            Distribution::Cyclic(a) => (DISTRIBUTE_CYCLIC, a),
        };
        (value, argument.unwrap_or(DISTRIBUTE_DFLT_DARG))
    }

    /// Converts a value of `MPI_DISTRIBUTE_*` and its argument to a [`Distribution`].
    pub fn from_values(distribution: i64, argument: i64) -> Option<Distribution> {
        let argument = (argument != DISTRIBUTE_DFLT_DARG).then_some(argument);
        match distribution {
            DISTRIBUTE_NONE => Some(Distribution::None(argument)),
            DISTRIBUTE_BLOCK => Some(Distribution::Block(argument)),
            DISTRIBUTE_CYCLIC => Some(Distribution::Cyclic(argument)),
            _ => None,
        }
    }
}

/// The C types of a constructor's argument, in the two variants of the constructor.
enum Sort {
    /// `int` in both variants.
    Integer,
    /// `int`, or `MPI_Count` in the large-count variant.
    Count,
    /// `MPI_Aint`, or `MPI_Count` in the large-count variant.
    Address,
}

impl Made {
    pub fn combiner(&self) -> Combiner {
        match self {
            Made::Dup => Combiner::Dup,
            Made::Contiguous { .. } => Combiner::Contiguous,
            Made::Vector { .. } => Combiner::Vector,
            Made::Hvector { .. } => Combiner::Hvector,
            Made::Indexed { .. } => Combiner::Indexed,
            Made::Hindexed { .. } => Combiner::Hindexed,
            Made::IndexedBlock { .. } => Combiner::IndexedBlock,
            Made::HindexedBlock { .. } => Combiner::HindexedBlock,
            Made::Struct { .. } => Combiner::Struct,
            Made::Resized { .. } => Combiner::Resized,
            Made::Subarray { .. } => Combiner::Subarray,
            Made::Darray { .. } => Combiner::Darray,
            Made::Fortran(kind) => kind.combiner,
        }
    }

    /// Calls `give` with each group of arguments, in the standard's order.
    fn arguments(&self, mut give: impl FnMut(Sort, &[i64])) {
        use Sort::*;
        match self {
            Made::Dup => {}
            Made::Contiguous { count } => give(Count, &[*count]),
            Made::Vector {
                count,
                blocklength,
                stride,
            } => give(Count, &[*count, *blocklength, *stride]),
            Made::Hvector {
                count,
                blocklength,
                stride,
            } => {
                give(Count, &[*count, *blocklength]);
                give(Address, &[*stride]);
            }
            Made::Indexed {
                blocklengths,
                displacements,
            } => {
                give(Count, &[blocklengths.len() as i64]);
                give(Count, blocklengths);
                give(Count, displacements);
            }
            Made::Hindexed {
                blocklengths,
                displacements,
            }
            | Made::Struct {
                blocklengths,
                displacements,
            } => {
                give(Count, &[blocklengths.len() as i64]);
                give(Count, blocklengths);
                give(Address, displacements);
            }
            Made::IndexedBlock {
                blocklength,
                displacements,
            } => {
                give(Count, &[displacements.len() as i64, *blocklength]);
                give(Count, displacements);
            }
            Made::HindexedBlock {
                blocklength,
                displacements,
            } => {
                give(Count, &[displacements.len() as i64, *blocklength]);
                give(Address, displacements);
            }
            Made::Resized { lb, extent } => give(Address, &[*lb, *extent]),
            Made::Subarray {
                sizes,
                subsizes,
                starts,
                order,
            } => {
                give(Integer, &[sizes.len() as i64]);
                give(Count, sizes);
                give(Count, subsizes);
                give(Count, starts);
                give(Integer, &[order.value()]);
            }
            Made::Fortran(kind) => give(Integer, &kind.arguments()),
            Made::Darray {
                processes,
                rank,
                global,
                distributions,
                grid,
                order,
            } => {
                let (kinds, arguments): (Vec<i64>, Vec<i64>) =
                    distributions.iter().map(|d| d.values()).unzip();
                give(Integer, &[*processes, *rank, global.len() as i64]);
                give(Count, global);
                give(Integer, &kinds);
                give(Integer, &arguments);
                give(Integer, grid);
                give(Integer, &[order.value()]);
            }
        }
    }
}

impl Datatype {
    /// Records which variant of the constructor was called.
    pub fn with_form(self, form: Form) -> Datatype {
        if let Repr::Derived(derived) = &self.0 {
            derived.counts.set(form);
        }
        self
    }

    /// `MPI_Type_get_envelope_c`
    pub fn envelope(&self) -> Envelope {
        let contents = self.contents();
        Envelope {
            integers: contents.integers.len(),
            addresses: contents.addresses.len(),
            counts: contents.counts.len(),
            types: contents.types.len(),
            combiner: match &self.0 {
                Repr::Named(_) => Combiner::Named,
                Repr::Derived(derived) => derived.made.combiner(),
            },
        }
    }

    /// `MPI_Type_get_contents_c`. Returns no contents for a predefined type,
    /// for which the standard forbids the call.
    pub fn contents(&self) -> Contents {
        match &self.0 {
            Repr::Named(_) => Contents::default(),
            Repr::Derived(derived) => contents(derived),
        }
    }
}

fn contents(derived: &Derived) -> Contents {
    let mut all = Contents {
        types: derived.types.to_vec(),
        ..Contents::default()
    };
    let form = derived.counts.get();
    derived.made.arguments(|sort, values| match (sort, form) {
        (Sort::Integer, _) | (Sort::Count, Form::Int) => {
            // The variant with `int` counts was called, so every value fits.
            all.integers.extend(values.iter().map(|&v| v as i32));
        }
        (Sort::Address, Form::Int) => all.addresses.extend(values),
        (Sort::Count | Sort::Address, Form::Count) => all.counts.extend(values),
    });
    all
}
