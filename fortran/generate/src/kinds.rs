//! What the kinds of the standard's tables are in Fortran and in C.

use crate::table::{Parameter, Procedure};

/// The width of a call: the usual one or its large-count twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Usual,
    Large,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An INTEGER, C's `int`.
    Int,
    /// An integer of 8 bytes; the name of its kind.
    Wide(&'static str),
    Logical,
    /// A handle; the name of its type without `MPI_`.
    Handle(&'static str),
    Status,
    /// A choice buffer.
    Buffer,
    /// An address that is returned: `TYPE(C_PTR)` or an integer.
    Address,
    /// The address of a buffer that has been detached.
    Detached,
    String,
    /// The arguments of commands: one or two dimensions of strings.
    Arguments(u8),
    Function,
    /// A LOGICAL of any kind.
    AnyLogical,
    OldStatus,
    NewStatus,
    Double,
    /// What only C has: a variable number of arguments.
    Rest,
}

/// The type of the clock's results, which are C's `double`.
///
/// The standard writes DOUBLE PRECISION, which has 16 bytes under a flag such as gfortran's `-fdefault-real-8`.
pub const CLOCK: &str = "real(selected_real_kind(15))";

const AINT: &str = "MPI_ADDRESS_KIND";
const COUNT: &str = "MPI_COUNT_KIND";
const OFFSET: &str = "MPI_OFFSET_KIND";

/// The class of a kind. A kind that is not listed is an `int`.
pub fn class(kind: &str, width: Width) -> Class {
    use Class::*;
    let large = width == Width::Large;
    let poly = |small: Class, wide: &'static str| if large { Wide(wide) } else { small };
    match kind {
        "COMMUNICATOR" => Handle("Comm"),
        "DATATYPE" => Handle("Datatype"),
        "ERRHANDLER" => Handle("Errhandler"),
        "FILE" => Handle("File"),
        "GROUP" => Handle("Group"),
        "INFO" => Handle("Info"),
        "MESSAGE" => Handle("Message"),
        "OPERATION" => Handle("Op"),
        "REQUEST" => Handle("Request"),
        "SESSION" => Handle("Session"),
        "WINDOW" => Handle("Win"),
        "STATUS" => Status,
        "F90_STATUS" => OldStatus,
        "F08_STATUS" => NewStatus,
        "BUFFER" => Buffer,
        "C_BUFFER" | "C_BUFFER3" | "C_BUFFER4" => Address,
        "C_BUFFER2" => Detached,
        "STRING" => String,
        "STRING_ARRAY" => Arguments(1),
        "STRING_2DARRAY" => Arguments(2),
        "LOGICAL" => Logical,
        "LOGICAL_VOID" => AnyLogical,
        "FUNCTION" | "POLYFUNCTION" => Function,
        "VARARGS" => Rest,
        "WALL_TIME" | "TICK_RESOLUTION" => Double,
        "LOCATION_SMALL"
        | "DISPLACEMENT"
        | "ALLOC_MEM_NUM_BYTES"
        | "WINDOW_SIZE"
        | "WIN_ATTACH_SIZE"
        | "EXTRA_STATE"
        | "ATTRIBUTE_VAL"
        | "RMA_DISPLACEMENT_NNI"
        | "DISPOFFSET_SMALL" => Wide(AINT),
        "OFFSET" => Wide(OFFSET),
        "XFER_NUM_ELEM" | "XFER_NUM_ELEM_NNI" | "NUM_BYTES" | "GENERIC_DTYPE_COUNT" => Wide(COUNT),
        "POLYDISPLACEMENT" | "POLYRMA_DISPLACEMENT" => poly(Int, AINT),
        "POLYDISPLACEMENT_AINT_COUNT"
        | "POLYDISPOFFSET"
        | "POLYDTYPE_STRIDE_BYTES"
        | "POLYDTYPE_PACK_SIZE"
        | "POLYLOCATION" => poly(Wide(AINT), COUNT),
        _ if kind.starts_with("POLY") => poly(Int, COUNT),
        _ => Int,
    }
}

impl Parameter {
    pub fn class(&self, width: Width) -> Class {
        class(&self.kind, width)
    }

    /// Fortran has it in calls of this width.
    pub fn in_fortran(&self, width: Width) -> bool {
        !self.hidden && self.kind != "VARARGS" && (!self.large || width == Width::Large)
    }
}

impl Procedure {
    /// It has a large-count twin.
    pub fn has_twin(&self) -> bool {
        self.parameters.iter().any(|p| p.kind.starts_with("POLY"))
    }

    /// The compiler can distinguish the large-count twin by the types of its arguments.
    pub fn distinguishable(&self) -> bool {
        let differs = |p: &Parameter| {
            p.large
                || (matches!(p.class(Width::Usual), Class::Int)
                    && matches!(p.class(Width::Large), Class::Wide(_)))
        };
        self.parameters.iter().any(differs)
    }

    /// It has a choice buffer, so its name in module `mpi_f08` ends in `_f08ts`.
    pub fn has_buffer(&self) -> bool {
        self.parameters
            .iter()
            .any(|p| p.class(Width::Usual) == Class::Buffer)
    }

    /// The parameters that Fortran has.
    pub fn arguments(&self, width: Width) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(move |p| p.in_fortran(width))
    }

    /// The specific name in module `mpi_f08`.
    pub fn specific(&self, width: Width) -> String {
        let twin = if width == Width::Large { "_c" } else { "" };
        let end = if self.has_buffer() { "_f08ts" } else { "_f08" };
        format!("{}{twin}{end}", self.name)
    }

    /// The widths in which module `mpi_f08` has it.
    pub fn widths(&self) -> &'static [Width] {
        if self.has_twin() {
            &[Width::Usual, Width::Large]
        } else {
            &[Width::Usual]
        }
    }
}
