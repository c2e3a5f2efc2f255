//! The types in Fortran and in C of the parameter kinds in the standard's tables.

use crate::table::{Parameter, Procedure};

/// The width of a procedure: the usual form, or the large-count form (`_c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Usual,
    Large,
}

/// The class of a parameter; it determines the types in Fortran and in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An INTEGER; an `int` in C.
    Int,
    /// An integer of 8 bytes; the text is the name of its Fortran kind.
    Wide(&'static str),
    Logical,
    /// A handle; the text is the name of its type without `MPI_`.
    Handle(&'static str),
    Status,
    /// A choice buffer.
    Buffer,
    /// A returned address: `TYPE(C_PTR)` or an integer.
    Address,
    /// The returned address of a detached buffer.
    Detached,
    String,
    /// Command arguments: a string array; the number is the number of dimensions, 1 or 2.
    Arguments(u8),
    Function,
    /// A LOGICAL of any kind.
    AnyLogical,
    OldStatus,
    NewStatus,
    Double,
    /// The variable arguments (`...`) of a C function; Fortran has no such parameter.
    Rest,
}

/// The Fortran type of the results of `MPI_Wtime` and `MPI_Wtick`; `double` in C.
///
/// DOUBLE PRECISION, as in the standard, has 16 bytes with flags such as `-fdefault-real-8`.
pub const CLOCK: &str = "real(selected_real_kind(15))";

const AINT: &str = "MPI_ADDRESS_KIND";
const COUNT: &str = "MPI_COUNT_KIND";
const OFFSET: &str = "MPI_OFFSET_KIND";

/// Returns the class of a kind. A kind that is not listed is an `int`.
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

    /// Returns true if the parameter exists in Fortran calls of this width.
    pub fn in_fortran(&self, width: Width) -> bool {
        !self.hidden && self.kind != "VARARGS" && (!self.large || width == Width::Large)
    }
}

impl Procedure {
    /// Returns true if the procedure has a large-count form.
    pub fn has_twin(&self) -> bool {
        self.parameters.iter().any(|p| p.kind.starts_with("POLY"))
    }

    /// Returns true if the compiler can select the large-count form by the argument types.
    pub fn distinguishable(&self) -> bool {
        let differs = |p: &Parameter| {
            p.large
                || (matches!(p.class(Width::Usual), Class::Int)
                    && matches!(p.class(Width::Large), Class::Wide(_)))
        };
        self.parameters.iter().any(differs)
    }

    /// Returns true if the procedure has a choice buffer; its `mpi_f08` name then ends in `_f08ts`.
    pub fn has_buffer(&self) -> bool {
        self.parameters
            .iter()
            .any(|p| p.class(Width::Usual) == Class::Buffer)
    }

    /// Returns the parameters that exist in Fortran.
    pub fn arguments(&self, width: Width) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(move |p| p.in_fortran(width))
    }

    /// Returns the specific name in module `mpi_f08`.
    pub fn specific(&self, width: Width) -> String {
        let twin = if width == Width::Large { "_c" } else { "" };
        let end = if self.has_buffer() { "_f08ts" } else { "_f08" };
        format!("{}{twin}{end}", self.name)
    }

    /// Returns the widths that the procedure has in module `mpi_f08`.
    pub fn widths(&self) -> &'static [Width] {
        if self.has_twin() {
            &[Width::Usual, Width::Large]
        } else {
            &[Width::Usual]
        }
    }
}
