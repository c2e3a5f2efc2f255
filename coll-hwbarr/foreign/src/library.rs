//! The MPI library of this process, found among the files that the loader has already loaded.
//! This crate is linked with no MPI library and loads none.
//!
//! Functions are called by their profiling names (`PMPI_`), past profilers and preloaded libraries.
//! A handle is an integer or a pointer; as an argument it is one register in every ABI.
//! A variable is zeroed before MPI stores a handle in it, because some libraries store only
//! four of its eight bytes.
#![allow(unsafe_code)]

use mpi_base::environment;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// A handle of any ABI: an integer or a pointer.
pub type Handle = usize;

/// A callback that copies an attribute. Arguments: communicator, keyval, extra state, value,
/// pointer to the copied value, pointer to the flag "copied".
pub type Copied = unsafe extern "C" fn(
    Handle,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut *mut c_void,
    *mut c_int,
) -> c_int;

/// A callback that deletes an attribute. Arguments: communicator, keyval, value, extra state.
pub type Deleted = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

/// The ABI of an MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The standard ABI.
    Standard,
    /// The ABI of MPICH, Intel MPI and other derivatives.
    Mpich,
    /// The ABI of Open MPI.
    OpenMpi,
}

/// The file names under which MPI libraries are loaded, with their ABIs.
const FILES: &[(&CStr, Family)] = &[
    (c"libmpi.so.40", Family::OpenMpi),
    (c"libmpi.so.12", Family::Mpich),
    (c"libmpich.so.12", Family::Mpich),
    (STANDARD, Family::Standard),
];

const STANDARD: &CStr = c"libmpi_abi.so.1";

/// The values of MPI constants in this library.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    pub comm_world: Handle,
    pub comm_self: Handle,
    pub byte: Handle,
    pub info_null: Handle,
    pub status_ignore: usize,
    pub any_source: c_int,
    pub comm_type_shared: c_int,
    pub thread_multiple: c_int,
    /// `MPI_CONGRUENT`.
    pub congruent: c_int,
    /// `MPI_ERR_OTHER`.
    pub other_error: c_int,
}

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The MPI functions of this library.
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            fn find(file: *mut c_void) -> Result<Functions, String> {
                Ok(Functions {
                    // SAFETY: the standard defines the signature of the function with this name; a handle is one register in all ABIs.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(symbol(file, $symbol)?)
                    },)*
                })
            }
        }
    };
}

functions! {
    comm_rank = c"PMPI_Comm_rank" (Handle, *mut c_int);
    comm_size = c"PMPI_Comm_size" (Handle, *mut c_int);
    comm_dup = c"PMPI_Comm_dup" (Handle, *mut Handle);
    comm_split_type = c"PMPI_Comm_split_type" (Handle, c_int, c_int, Handle, *mut Handle);
    send = c"PMPI_Send" (*const c_void, c_int, Handle, c_int, c_int, Handle);
    recv = c"PMPI_Recv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, usize);
    isend = c"PMPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    test = c"PMPI_Test" (*mut Handle, *mut c_int, usize);
    iprobe = c"PMPI_Iprobe" (c_int, c_int, Handle, *mut c_int, usize);
    barrier = c"PMPI_Barrier" (Handle);
    allgather = c"PMPI_Allgather" (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    win_allocate_shared = c"PMPI_Win_allocate_shared" (isize, c_int, Handle, Handle, *mut *mut c_void, *mut Handle);
    win_shared_query = c"PMPI_Win_shared_query" (Handle, c_int, *mut isize, *mut c_int, *mut *mut c_void);
    win_free = c"PMPI_Win_free" (*mut Handle);
    comm_create_keyval = c"PMPI_Comm_create_keyval" (Copied, Deleted, *mut c_int, *mut c_void);
    comm_compare = c"PMPI_Comm_compare" (Handle, Handle, *mut c_int);
    comm_call_errhandler = c"PMPI_Comm_call_errhandler" (Handle, c_int);
    comm_set_attr = c"PMPI_Comm_set_attr" (Handle, c_int, *mut c_void);
    comm_get_attr = c"PMPI_Comm_get_attr" (Handle, c_int, *mut c_void, *mut c_int);
    query_thread = c"PMPI_Query_thread" (*mut c_int);
    get_library_version = c"PMPI_Get_library_version" (*mut c_char, *mut c_int);
}

/// Open MPI's progress engine: `progress` polls one time and calls the registered functions.
pub struct Engine {
    pub progress: unsafe extern "C" fn(),
    pub register: unsafe extern "C" fn(unsafe extern "C" fn() -> c_int) -> c_int,
    pub unregister: unsafe extern "C" fn(unsafe extern "C" fn() -> c_int) -> c_int,
}

/// The MPI library of this process.
pub struct Library {
    pub family: Family,
    pub constants: Constants,
    pub functions: Functions,
    /// The progress engine, if the library exports one.
    pub engine: Option<Engine>,
    /// The dynamic loader's handle of the library's file.
    file: *mut c_void,
}

// SAFETY: the fields are functions, constants, and the loader's handle of a file that stays open;
// any thread may use them.
unsafe impl Send for Library {}
// SAFETY: the fields never change after construction, and any thread may use them.
unsafe impl Sync for Library {}

static FOUND: OnceLock<Result<Library, String>> = OnceLock::new();

/// Returns the library of this process, the first of `FILES` that is loaded; searched one time.
pub fn library() -> Result<&'static Library, &'static str> {
    answer(FOUND.get_or_init(|| find(FILES.iter())))
}

/// Returns the library that the program calls; searched one time, before [`library`].
///
/// A process may contain two MPI libraries: one of the standard ABI that runs on Open MPI
/// (`mpirun --on`), or one with Open MPI's ABI that runs on Portcullis.
/// The program calls the library that the dynamic loader finds first.
/// If the program has opened its library with local scope, this search finds no library.
/// Then the program calls the library of the standard ABI if the variable `PORTCULLIS_ON` is set.
pub fn of_program() -> Result<&'static Library, &'static str> {
    let found = FOUND.get_or_init(|| {
        let on_top = first_found();
        let is_named = environment::var(ON).is_some_and(|below| !below.is_empty());
        let top = |name: &CStr| match &on_top {
            Some(file) => file.as_c_str() == name,
            None => is_named && name == STANDARD,
        };
        let (first, rest): (Vec<_>, Vec<_>) = FILES.iter().partition(|(name, _)| top(name));
        find(first.into_iter().chain(rest))
    });
    answer(found)
}

/// Environment variable with the name of the library on which a standard-ABI library runs.
const ON: &str = "PORTCULLIS_ON";

/// Returns the name of the file in which the dynamic loader finds MPI's functions first.
fn first_found() -> Option<CString> {
    // SAFETY: `dlsym` looks up a zero-terminated name in the global scope.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PMPI_Comm_rank".as_ptr()) };
    let path = file_of(found)?;
    CString::new(path.file_name()?.as_bytes()).ok()
}

/// Returns the file from which an address was loaded.
fn file_of(address: *mut c_void) -> Option<PathBuf> {
    if address.is_null() {
        return None;
    }
    // SAFETY: an all-zero `Dl_info` is valid: null pointers and zero addresses.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `about` is a live local; `dladdr` only compares the address with the loaded files.
    if unsafe { libc::dladdr(address, &raw mut about) } == 0 || about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` returned a zero-terminated name of a file that stays loaded.
    let path = unsafe { CStr::from_ptr(about.dli_fname) }.to_bytes();
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

fn answer(found: &'static Result<Library, String>) -> Result<&'static Library, &'static str> {
    match found {
        Ok(library) => Ok(library),
        Err(reason) => Err(reason),
    }
}

fn find<'a>(files: impl Iterator<Item = &'a (&'a CStr, Family)>) -> Result<Library, String> {
    for (name, family) in files {
        // SAFETY: the name is zero-terminated. `RTLD_NOLOAD` loads nothing, so no initialiser runs.
        let file = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if !file.is_null() {
            return Ok(Library {
                family: *family,
                constants: constants(*family, file)?,
                functions: Functions::find(file)?,
                engine: engine(file),
                file,
            });
        }
    }
    let names: Vec<_> = FILES
        .iter()
        .map(|(name, _)| name.to_string_lossy())
        .collect();
    Err(format!(
        "this process has loaded none of {}, so there is no MPI library to meet others by",
        names.join(", ")
    ))
}

/// Returns the address of a symbol of the library or of its dependencies.
fn symbol(file: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: `dlsym` looks up a zero-terminated name in a file that is open.
    let found = unsafe { libc::dlsym(file, name.as_ptr()) };
    if found.is_null() {
        return Err(format!(
            "the MPI library of this process has no {}",
            name.to_string_lossy()
        ));
    }
    Ok(found)
}

/// Returns the address of an Open MPI object; the address is the object's handle.
///
/// A program that is not position independent has its own copy of the object (copy relocation),
/// which the library also uses. The dynamic loader finds this copy first.
fn object(file: *mut c_void, name: &CStr) -> Result<Handle, String> {
    // SAFETY: `dlsym` looks up a zero-terminated name in the global scope.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let found = match found.is_null() {
        false => found,
        true => symbol(file, name)?,
    };
    Ok(found.expose_provenance())
}

fn constants(family: Family, file: *mut c_void) -> Result<Constants, String> {
    Ok(match family {
        Family::Standard => Constants {
            comm_world: 0x101,
            comm_self: 0x102,
            byte: 0x247,
            info_null: 0x130,
            status_ignore: 0,
            any_source: -1,
            comm_type_shared: 221,
            thread_multiple: 4096,
            congruent: 202,
            other_error: 16,
        },
        Family::Mpich => Constants {
            comm_world: 0x4400_0000,
            comm_self: 0x4400_0001,
            byte: 0x4c00_010d,
            info_null: 0x1c00_0000,
            status_ignore: 1,
            any_source: -2,
            comm_type_shared: 1,
            thread_multiple: 3,
            congruent: 1,
            other_error: 15,
        },
        Family::OpenMpi => {
            let object = |name| object(file, name);
            Constants {
                comm_world: object(c"ompi_mpi_comm_world")?,
                comm_self: object(c"ompi_mpi_comm_self")?,
                byte: object(c"ompi_mpi_byte")?,
                info_null: object(c"ompi_mpi_info_null")?,
                status_ignore: 0,
                any_source: -1,
                comm_type_shared: 0,
                thread_multiple: 3,
                congruent: 1,
                other_error: 16,
            }
        }
    })
}

fn engine(file: *mut c_void) -> Option<Engine> {
    let find = |name| symbol(file, name).ok();
    let progress = find(c"opal_progress")?;
    let register = find(c"opal_progress_register_lp")?;
    let unregister = find(c"opal_progress_unregister")?;
    // SAFETY: Open MPI has declared these three functions with these signatures since version 1.0.
    unsafe {
        Some(Engine {
            progress: std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(progress),
            register: std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(unsafe extern "C" fn() -> c_int) -> c_int,
            >(register),
            unregister: std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(unsafe extern "C" fn() -> c_int) -> c_int,
            >(unregister),
        })
    }
}

impl Library {
    /// Returns a handle that the library has passed in a register:
    /// clears the upper half if handles are 32-bit integers.
    pub fn handle(&self, register: Handle) -> Handle {
        match self.family {
            Family::Mpich => register & 0xffff_ffff,
            Family::OpenMpi | Family::Standard => register,
        }
    }

    /// Returns the address of an object whose address is a handle, as programs see it.
    pub fn object(&self, name: &CStr) -> Result<Handle, String> {
        object(self.file, name)
    }

    /// Returns the address of any other symbol of the library or of its dependencies.
    pub fn symbol(&self, name: &CStr) -> Result<*mut c_void, String> {
        symbol(self.file, name)
    }

    /// Returns the path of the library's file.
    pub fn path(&self) -> Option<PathBuf> {
        file_of(self.functions.comm_rank as *mut c_void)
    }

    /// Reports a barrier's error through the communicator's error handler;
    /// returns the error code if the handler returns.
    pub fn fail(&self, comm: Handle, reason: &str) -> c_int {
        printable::eprintln!("portcullis: hwbarr: {reason}");
        // SAFETY: `comm` is the communicator that the program passed.
        unsafe { (self.functions.comm_call_errhandler)(comm, self.constants.other_error) };
        self.constants.other_error
    }

    /// Returns the library's version string.
    pub fn version(&self) -> String {
        // The buffer is far longer than the version string of any library.
        let mut text = vec![0u8; 1 << 14];
        let mut length: c_int = 0;
        // SAFETY: the buffer is longer than `MPI_MAX_LIBRARY_VERSION_STRING` of every ABI.
        unsafe { (self.functions.get_library_version)(text.as_mut_ptr().cast(), &raw mut length) };
        let end = text.iter().position(|b| *b == 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..end]).trim().to_owned()
    }
}

/// Returns a zeroed variable in which an MPI function can store a handle.
pub fn place() -> Handle {
    0
}

/// Returns a null variable in which an MPI function can store an address.
pub fn address() -> *mut c_void {
    null_mut()
}

/// Converts the return code of an MPI function to a `Result`; the error names the function.
pub fn done(code: c_int, what: &str) -> Result<(), String> {
    match code {
        0 => Ok(()),
        code => Err(format!("{what} of the MPI library failed with code {code}")),
    }
}
