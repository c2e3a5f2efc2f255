//! Loaded MPI library: its functions and the values of its handles.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::{Duration, Instant};

use super::files::FileModes;
use super::{Handle, MpiError, World, check};

/// The reason why a library cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The dynamic loader failed to load the file.
    Open {
        path: PathBuf,
        reason: libloading::Error,
    },
    /// The library lacks a function or object.
    Symbol { path: PathBuf, name: &'static str },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, reason } => {
                write!(f, "cannot load {}: {}", path.display(), Cause(reason))
            }
            Self::Symbol { path, name } => write!(
                f,
                "{} has no {name}: it is neither a standard ABI library nor Open MPI's",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LoadError {}

/// An error with its chain of causes, which contains the dynamic loader's message.
struct Cause<'a>(&'a dyn std::error::Error);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            write!(f, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

macro_rules! functions {
    ($($field:ident = $name:literal($($argument:ty),*);)*) => {
        /// Function pointers with the prototypes of the MPI standard.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            /// Returns functions that do nothing and return success.
            #[cfg(test)]
            pub(super) fn stubs() -> Self {
                Self {
                    $($field: {
                        unsafe extern "C" fn stub($(_: $argument),*) -> c_int { 0 }
                        stub
                    },)*
                }
            }

            fn bind(library: &libloading::Library, path: &Path) -> Result<Self, LoadError> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the symbol is an MPI function with this standard prototype.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> c_int>($name)
                        };
                        *symbol.map_err(|_| LoadError::Symbol { path: path.to_owned(), name: $name })?
                    },)*
                })
            }
        }
    };
}

functions! {
    init = "MPI_Init_thread"(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize = "MPI_Finalize"();
    abort = "MPI_Abort"(Handle, c_int);
    error_string = "MPI_Error_string"(c_int, *mut c_char, *mut c_int);
    library_version = "MPI_Get_library_version"(*mut c_char, *mut c_int);
    comm_rank = "MPI_Comm_rank"(Handle, *mut c_int);
    comm_size = "MPI_Comm_size"(Handle, *mut c_int);
    comm_dup = "MPI_Comm_dup"(Handle, *mut Handle);
    comm_free = "MPI_Comm_free"(*mut Handle);
    send = "MPI_Send"(*const c_void, c_int, Handle, c_int, c_int, Handle);
    recv = "MPI_Recv"(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void);
    sendrecv = "MPI_Sendrecv"(*const c_void, c_int, Handle, c_int, c_int, *mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void);
    isend = "MPI_Isend"(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    irecv = "MPI_Irecv"(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    wait = "MPI_Wait"(*mut Handle, *mut c_void);
    cancel = "MPI_Cancel"(*mut Handle);
    waitall = "MPI_Waitall"(c_int, *mut Handle, *mut c_void);
    barrier = "MPI_Barrier"(Handle);
    bcast = "MPI_Bcast"(*mut c_void, c_int, Handle, c_int, Handle);
    allreduce = "MPI_Allreduce"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    reduce = "MPI_Reduce"(*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle);
    scan = "MPI_Scan"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    exscan = "MPI_Exscan"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    reduce_scatter_block = "MPI_Reduce_scatter_block"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    gather = "MPI_Gather"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    scatter = "MPI_Scatter"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    allgather = "MPI_Allgather"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    alltoall = "MPI_Alltoall"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    gatherv = "MPI_Gatherv"(*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, c_int, Handle);
    scatterv = "MPI_Scatterv"(*const c_void, *const c_int, *const c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    allgatherv = "MPI_Allgatherv"(*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
    alltoallv = "MPI_Alltoallv"(*const c_void, *const c_int, *const c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
    iallreduce = "MPI_Iallreduce"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle, *mut Handle);
    ibarrier = "MPI_Ibarrier"(Handle, *mut Handle);
    ibcast = "MPI_Ibcast"(*mut c_void, c_int, Handle, c_int, Handle, *mut Handle);
    ireduce = "MPI_Ireduce"(*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle, *mut Handle);
    iallgather = "MPI_Iallgather"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle, *mut Handle);
    ialltoall = "MPI_Ialltoall"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle, *mut Handle);
    test = "MPI_Test"(*mut Handle, *mut c_int, *mut c_void);
    type_vector = "MPI_Type_vector"(c_int, c_int, c_int, Handle, *mut Handle);
    type_create_subarray = "MPI_Type_create_subarray"(c_int, *const c_int, *const c_int, *const c_int, c_int, Handle, *mut Handle);
    type_create_indexed_block = "MPI_Type_create_indexed_block"(c_int, c_int, *const c_int, Handle, *mut Handle);
    type_create_hindexed_block = "MPI_Type_create_hindexed_block"(c_int, c_int, *const isize, Handle, *mut Handle);
    type_commit = "MPI_Type_commit"(*mut Handle);
    type_free = "MPI_Type_free"(*mut Handle);
    comm_group = "MPI_Comm_group"(Handle, *mut Handle);
    group_free = "MPI_Group_free"(*mut Handle);
    win_create = "MPI_Win_create"(*mut c_void, isize, c_int, Handle, Handle, *mut Handle);
    win_allocate = "MPI_Win_allocate"(isize, c_int, Handle, Handle, *mut c_void, *mut Handle);
    win_allocate_shared = "MPI_Win_allocate_shared"(isize, c_int, Handle, Handle, *mut c_void, *mut Handle);
    win_create_dynamic = "MPI_Win_create_dynamic"(Handle, Handle, *mut Handle);
    win_attach = "MPI_Win_attach"(Handle, *mut c_void, isize);
    win_free = "MPI_Win_free"(*mut Handle);
    win_lock = "MPI_Win_lock"(c_int, c_int, c_int, Handle);
    win_unlock = "MPI_Win_unlock"(c_int, Handle);
    win_lock_all = "MPI_Win_lock_all"(c_int, Handle);
    win_unlock_all = "MPI_Win_unlock_all"(Handle);
    win_flush = "MPI_Win_flush"(c_int, Handle);
    win_fence = "MPI_Win_fence"(c_int, Handle);
    win_post = "MPI_Win_post"(Handle, c_int, Handle);
    win_start = "MPI_Win_start"(Handle, c_int, Handle);
    win_complete = "MPI_Win_complete"(Handle);
    win_wait = "MPI_Win_wait"(Handle);
    put = "MPI_Put"(*const c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle);
    get = "MPI_Get"(*mut c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle);
    accumulate = "MPI_Accumulate"(*const c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle, Handle);
    get_accumulate = "MPI_Get_accumulate"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle, Handle);
    fetch_and_op = "MPI_Fetch_and_op"(*const c_void, *mut c_void, Handle, c_int, isize, Handle, Handle);
    compare_and_swap = "MPI_Compare_and_swap"(*const c_void, *const c_void, *mut c_void, Handle, c_int, isize, Handle);
    file_open = "MPI_File_open"(Handle, *const c_char, c_int, Handle, *mut Handle);
    file_close = "MPI_File_close"(*mut Handle);
    file_set_size = "MPI_File_set_size"(Handle, i64);
    file_set_view = "MPI_File_set_view"(Handle, i64, Handle, Handle, *const c_char, Handle);
    file_seek_shared = "MPI_File_seek_shared"(Handle, i64, c_int);
    file_write_at = "MPI_File_write_at"(Handle, i64, *const c_void, c_int, Handle, *mut c_void);
    file_write_at_all = "MPI_File_write_at_all"(Handle, i64, *const c_void, c_int, Handle, *mut c_void);
    file_write_shared = "MPI_File_write_shared"(Handle, *const c_void, c_int, Handle, *mut c_void);
    file_read_at = "MPI_File_read_at"(Handle, i64, *mut c_void, c_int, Handle, *mut c_void);
    file_read_at_all = "MPI_File_read_at_all"(Handle, i64, *mut c_void, c_int, Handle, *mut c_void);
    file_read_shared = "MPI_File_read_shared"(Handle, *mut c_void, c_int, Handle, *mut c_void);
}

/// The predefined handles and constants that the benchmarks use.
pub(super) struct Handles {
    pub(super) world: Handle,
    pub(super) self_: Handle,
    pub(super) char_: Handle,
    pub(super) float: Handle,
    pub(super) double: Handle,
    /// `MPI_LONG`, with 8 bytes.
    pub(super) long: Handle,
    pub(super) info_null: Handle,
    /// `MPI_LOCK_EXCLUSIVE`.
    pub(super) lock_exclusive: c_int,
    pub(super) sum: Handle,
    pub(super) min: Handle,
    pub(super) max: Handle,
    /// `MPI_THREAD_SINGLE`; the next field is `MPI_THREAD_MULTIPLE`.
    pub(super) single: c_int,
    pub(super) multiple: c_int,
    /// `MPI_ORDER_C`.
    pub(super) order_c: c_int,
    pub(super) file: FileModes,
}

impl Handles {
    /// Returns the values of the MPI 5.0 standard ABI.
    fn standard() -> Self {
        let constant = ptr::without_provenance;
        Self {
            world: constant(0x101),
            self_: constant(0x102),
            char_: constant(0x243),
            float: constant(0x210),
            double: constant(0x214),
            long: constant(0x20a),
            info_null: constant(0x130),
            lock_exclusive: 301,
            sum: constant(0x21),
            min: constant(0x22),
            max: constant(0x23),
            single: 0,
            multiple: 0x1000,
            order_c: 12,
            file: FileModes::STANDARD,
        }
    }

    /// Looks up the objects whose addresses are Open MPI's handles.
    fn open_mpi(library: &libloading::Library, path: &Path) -> Result<Self, LoadError> {
        let address = |name: &'static str| -> Result<Handle, LoadError> {
            // SAFETY: a symbol read as a pointer yields its address, which is not dereferenced.
            let symbol = unsafe { library.get::<Handle>(name) };
            symbol
                .map(|address| *address)
                .map_err(|_| LoadError::Symbol {
                    path: path.to_owned(),
                    name,
                })
        };
        Ok(Self {
            world: address("ompi_mpi_comm_world")?,
            self_: address("ompi_mpi_comm_self")?,
            char_: address("ompi_mpi_char")?,
            float: address("ompi_mpi_float")?,
            double: address("ompi_mpi_double")?,
            long: address("ompi_mpi_long")?,
            info_null: address("ompi_mpi_info_null")?,
            lock_exclusive: 1,
            sum: address("ompi_mpi_op_sum")?,
            min: address("ompi_mpi_op_min")?,
            max: address("ompi_mpi_op_max")?,
            single: 0,
            multiple: 3,
            order_c: 0,
            file: FileModes::OPEN_MPI,
        })
    }
}

/// A loaded library before `MPI_Init`.
pub struct Library {
    pub(super) call: Functions,
    pub(super) handles: Handles,
}

impl Library {
    /// Returns a library for tests with the given functions.
    #[cfg(test)]
    pub(super) fn of(call: Functions) -> Self {
        let handles = Handles::standard();
        Self { call, handles }
    }

    /// Returns MPI_COMM_WORLD of this library for tests: rank 0 of 2 ranks.
    #[cfg(test)]
    pub(super) fn world(&self) -> World<'_> {
        World {
            library: self,
            rank: 0,
            size: 2,
            threads: false,
        }
    }

    /// Loads the library and looks up the functions that the benchmarks use.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: constructors of MPI libraries have no preconditions; linking would run them too.
        let library = unsafe { libloading::Library::new(path) };
        let library = library.map_err(|reason| LoadError::Open {
            path: path.to_owned(),
            reason,
        })?;
        let standard = path
            .file_name()
            .is_some_and(|f| f.to_string_lossy().starts_with("libmpi_abi"));
        let handles = if standard {
            Handles::standard()
        } else {
            Handles::open_mpi(&library, path)?
        };
        let call = Functions::bind(&library, path)?;
        // The library is never unloaded, as it may have threads and exit handlers.
        // So its code stays mapped, and the function pointers stay valid until exit.
        std::mem::forget(library);
        Ok(Self { call, handles })
    }

    /// Calls `MPI_Init_thread`, for several threads if `threads`.
    /// Returns MPI_COMM_WORLD and the time of the call.
    pub fn init(&self, threads: bool) -> Result<(World<'_>, Duration), MpiError> {
        let level = if threads {
            self.handles.multiple
        } else {
            self.handles.single
        };
        let mut provided = 0;
        let begin = Instant::now();
        // SAFETY: MPI 5.0 section 11.2.1 allows null for the first two arguments.
        // The last argument points to a local variable, and main calls this function once.
        check("MPI_Init_thread", unsafe {
            (self.call.init)(ptr::null_mut(), ptr::null_mut(), level, &raw mut provided)
        })?;
        let took = begin.elapsed();
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI_Init_thread has succeeded above; `rank` is a local variable.
        check("MPI_Comm_rank", unsafe {
            (self.call.comm_rank)(self.handles.world, &raw mut rank)
        })?;
        // SAFETY: MPI_Init_thread has succeeded above; `size` is a local variable.
        check("MPI_Comm_size", unsafe {
            (self.call.comm_size)(self.handles.world, &raw mut size)
        })?;
        Ok((
            World {
                library: self,
                rank,
                size,
                threads: provided == self.handles.multiple,
            },
            took,
        ))
    }

    /// Returns the name and version in the library's version text, such as "MPICH Version: 5.0.2".
    pub fn version(&self) -> String {
        // MPI_MAX_LIBRARY_VERSION_STRING is 8192 in the standard ABI and 256 in Open MPI.
        let mut text = vec![0_u8; 8193];
        let mut len = 0;
        // SAFETY: the buffer is longer than any library's maximum, so its last byte stays zero.
        let code = unsafe { (self.call.library_version)(text.as_mut_ptr().cast(), &raw mut len) };
        let text = CStr::from_bytes_until_nul(&text)
            .map(CStr::to_string_lossy)
            .unwrap_or_default();
        if code == 0 {
            first_line(&text)
        } else {
            "unknown library".into()
        }
    }
}

/// Shortens "MPICH Version:   5.0.2\nMPICH Release date: ..." to "MPICH Version: 5.0.2".
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line
        .split(',')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_refused_with_its_name() {
        let file = tempfile::NamedTempFile::with_suffix(".so").unwrap();
        let refusal = Library::load(file.path())
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(
            refusal.contains(&file.path().display().to_string()),
            "{refusal}"
        );
    }

    #[test]
    fn a_library_without_mpi_is_refused_with_the_missing_name() {
        let refusal = Library::load(Path::new("libc.so.6"))
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(refusal.contains("ompi_mpi_comm_world"), "{refusal}");
    }

    #[test]
    fn a_version_is_cut_to_its_first_clause() {
        assert_eq!(
            first_line("MPICH Version:      5.0.2\nMPICH Release date: x"),
            "MPICH Version: 5.0.2"
        );
        assert_eq!(
            first_line("Open MPI v5.0.11, package: Open MPI x"),
            "Open MPI v5.0.11"
        );
    }
}
