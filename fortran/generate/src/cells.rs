//! The sentinels: constants that the library recognises by their addresses, such as `MPI_BOTTOM`.
//!
//! `mpif.h` has the sentinels in one COMMON block, because only a COMMON block gives the variables of
//! an include file a symbol.
//! The modules have one variable per sentinel, bound to a symbol of the library. Unlike a COMMON
//! block, these variables are not defined again in each shared library that uses the module.

/// A Fortran constant that the library recognises by its address.
#[derive(Debug)]
pub struct Cell {
    /// The name in Fortran.
    pub name: &'static str,
    /// The type in Fortran.
    pub of: Of,
    /// The array shape in Fortran; empty for a scalar.
    pub shape: &'static str,
    /// The size of the variable in bytes.
    pub size: usize,
    /// The value of the C constant, which is an address.
    pub value: usize,
}

/// The type of a sentinel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Integer,
    Character,
}

const fn cell(name: &'static str, of: Of, shape: &'static str, size: usize, value: usize) -> Cell {
    Cell {
        name,
        of,
        shape,
        size,
        value,
    }
}

/// The sentinels of `mpif.h` and module `mpi`, in the order of the COMMON block.
pub const CELLS: &[Cell] = &[
    cell("MPI_BOTTOM", Of::Integer, "", 4, 0),
    cell("MPI_IN_PLACE", Of::Integer, "", 4, 1),
    cell("MPI_BUFFER_AUTOMATIC", Of::Integer, "", 4, 2),
    cell("MPI_ERRCODES_IGNORE", Of::Integer, "(1)", 4, 0),
    cell("MPI_UNWEIGHTED", Of::Integer, "(1)", 4, 10),
    cell("MPI_WEIGHTS_EMPTY", Of::Integer, "(1)", 4, 11),
    cell("MPI_STATUS_IGNORE", Of::Integer, "(MPI_STATUS_SIZE)", 32, 0),
    cell(
        "MPI_STATUSES_IGNORE",
        Of::Integer,
        "(MPI_STATUS_SIZE,1)",
        32,
        0,
    ),
    cell("MPI_ARGV_NULL", Of::Character, "(1)", 1, 0),
    cell("MPI_ARGVS_NULL", Of::Character, "(1,1)", 1, 0),
];

/// The number of padding bytes that make the COMMON block 128 bytes long.
/// The linker requires that the block has the same size in the program and in the library.
pub const FILLING: usize = 38;

/// The name of the COMMON block.
pub const BLOCK: &str = "mpi_fortran_cells";

impl Cell {
    /// Returns true for statuses, which have another type in module `mpi_f08`.
    pub fn is_status(&self) -> bool {
        self.name.contains("STATUS")
    }

    /// Returns the symbol of the variable in the modules.
    pub fn symbol(&self) -> String {
        let name = self.name.to_lowercase();
        format!("mpi_fortran_{}", name.trim_start_matches("mpi_"))
    }

    /// Returns the symbol of the variable in module `mpi_f08`; statuses have another symbol there.
    pub fn symbol_f08(&self) -> String {
        self.symbol().replace("mpi_fortran_", "mpi_fortran_f08_")
    }
}
