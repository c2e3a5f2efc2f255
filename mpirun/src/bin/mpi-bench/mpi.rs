//! The few MPI functions that a benchmark calls, bound when the program runs.
//!
//! All `unsafe` of `mpi-bench` is here: calls through C function pointers whose prototypes are those of the MPI standard, identical in every library.
//! What differs between libraries is the value of a handle, which is therefore data: constants in the standard ABI (MPI 5.0, chapter 20), addresses of exported objects in Open MPI.
//!
//! Every public function is safe because it completes what it begins: no request outlives the call that made it, so no buffer is in the library's hands afterwards.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::{Duration, Instant};

/// An MPI handle; a pointer in the standard ABI as well as in Open MPI.
type Handle = *const c_void;

/// Why a library cannot be measured.
#[derive(Debug)]
pub enum LoadError {
    /// The dynamic linker refused.
    Open {
        path: PathBuf,
        reason: libloading::Error,
    },
    /// A function or object is not there.
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

/// The text of an error together with what caused it, which is where libloading keeps the linker's words.
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

/// An MPI function returned something else than `MPI_SUCCESS`.
#[derive(Debug, Clone, Copy)]
pub struct MpiError {
    function: &'static str,
    code: c_int,
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} returned error code {}", self.function, self.code)
    }
}

impl std::error::Error for MpiError {}

/// `MPI_ERRORS_ARE_FATAL` normally ends the job before we see a code; this is for handlers that return.
fn check(function: &'static str, code: c_int) -> Result<(), MpiError> {
    if code == 0 {
        Ok(())
    } else {
        Err(MpiError { function, code })
    }
}

macro_rules! functions {
    ($($field:ident = $name:literal($($argument:ty),*);)*) => {
        /// Function pointers with the standard's prototypes.
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            fn bind(library: &libloading::Library, path: &Path) -> Result<Self, LoadError> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the symbol is an MPI function, and the type is its prototype in the MPI standard.
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
    init = "MPI_Init"(*mut c_int, *mut *mut *mut c_char);
    finalize = "MPI_Finalize"();
    library_version = "MPI_Get_library_version"(*mut c_char, *mut c_int);
    comm_rank = "MPI_Comm_rank"(Handle, *mut c_int);
    comm_size = "MPI_Comm_size"(Handle, *mut c_int);
    send = "MPI_Send"(*const c_void, c_int, Handle, c_int, c_int, Handle);
    recv = "MPI_Recv"(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut c_void);
    isend = "MPI_Isend"(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    irecv = "MPI_Irecv"(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    waitall = "MPI_Waitall"(c_int, *mut Handle, *mut c_void);
    barrier = "MPI_Barrier"(Handle);
    bcast = "MPI_Bcast"(*mut c_void, c_int, Handle, c_int, Handle);
    allreduce = "MPI_Allreduce"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
}

/// The predefined objects that the benchmarks use.
struct Handles {
    world: Handle,
    char_: Handle,
    float: Handle,
    double: Handle,
    sum: Handle,
    min: Handle,
    max: Handle,
}

impl Handles {
    /// The MPI 5.0 standard ABI's values.
    fn standard() -> Self {
        let constant = ptr::without_provenance;
        Self {
            world: constant(0x101),
            char_: constant(0x243),
            float: constant(0x210),
            double: constant(0x214),
            sum: constant(0x21),
            min: constant(0x22),
            max: constant(0x23),
        }
    }

    /// Open MPI's handles are the addresses of these objects.
    fn open_mpi(library: &libloading::Library, path: &Path) -> Result<Self, LoadError> {
        let address = |name: &'static str| -> Result<Handle, LoadError> {
            // SAFETY: a symbol read as a pointer is its own address, which is never dereferenced here.
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
            char_: address("ompi_mpi_char")?,
            float: address("ompi_mpi_float")?,
            double: address("ompi_mpi_double")?,
            sum: address("ompi_mpi_op_sum")?,
            min: address("ompi_mpi_op_min")?,
            max: address("ompi_mpi_op_max")?,
        })
    }
}

/// A loaded library that is not initialised yet.
pub struct Library {
    call: Functions,
    handles: Handles,
}

impl Library {
    /// Loads the library and binds what is needed.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: an MPI library's constructors have no preconditions; this is what linking to it would run.
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
        // Some libraries keep threads and exit handlers in their code, so it stays mapped until the process ends;
        // the function pointers stay valid with it.
        std::mem::forget(library);
        Ok(Self { call, handles })
    }

    /// `MPI_Init`, and how long it took.
    pub fn init(&self) -> Result<(World<'_>, Duration), MpiError> {
        let begin = Instant::now();
        // SAFETY: MPI 5.0 11.2.1 allows null for both arguments; init is called once, by main.
        check("MPI_Init", unsafe {
            (self.call.init)(ptr::null_mut(), ptr::null_mut())
        })?;
        let took = begin.elapsed();
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the library is initialised and the results are ours to write.
        check("MPI_Comm_rank", unsafe {
            (self.call.comm_rank)(self.handles.world, &raw mut rank)
        })?;
        // SAFETY: as above.
        check("MPI_Comm_size", unsafe {
            (self.call.comm_size)(self.handles.world, &raw mut size)
        })?;
        Ok((
            World {
                library: self,
                rank,
                size,
            },
            took,
        ))
    }

    /// The library's own words about itself, first line.
    pub fn version(&self) -> String {
        // MPI_MAX_LIBRARY_VERSION_STRING is 8192 in the standard ABI and 256 in Open MPI.
        let mut text = vec![0_u8; 8193];
        let mut len = 0;
        // SAFETY: the buffer is as long as any library's maximum, and its last byte stays zero.
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

/// "MPICH Version:      5.0.2\nMPICH Release date: ..." becomes "MPICH Version: 5.0.2".
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

/// `MPI_COMM_WORLD` between init and finalize.
pub struct World<'a> {
    library: &'a Library,
    rank: c_int,
    size: c_int,
}

/// How values are combined over the ranks.
#[derive(Clone, Copy, Debug)]
pub enum Combine {
    Sum,
    Min,
    Max,
}

/// A C int from a length; sizes were limited when the command line was read.
fn count(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(c_int::MAX)
}

impl World<'_> {
    pub fn rank(&self) -> i32 {
        self.rank
    }

    pub fn size(&self) -> i32 {
        self.size
    }

    pub fn version(&self) -> String {
        self.library.version()
    }

    fn call(&self) -> &Functions {
        &self.library.call
    }

    fn handles(&self) -> &Handles {
        &self.library.handles
    }

    pub fn barrier(&self) -> Result<(), MpiError> {
        // SAFETY: the library is initialised for as long as a `World` exists.
        check("MPI_Barrier", unsafe {
            (self.call().barrier)(self.handles().world)
        })
    }

    pub fn send(&self, data: &[u8], to: i32, tag: i32) -> Result<(), MpiError> {
        let h = self.handles();
        // SAFETY: the buffer has the length that is given and is borrowed until the call returns.
        let code = unsafe {
            (self.call().send)(
                data.as_ptr().cast(),
                count(data.len()),
                h.char_,
                to,
                tag,
                h.world,
            )
        };
        check("MPI_Send", code)
    }

    pub fn recv(&self, data: &mut [u8], from: i32, tag: i32) -> Result<(), MpiError> {
        let (h, data_len) = (self.handles(), count(data.len()));
        // SAFETY: the buffer has the length that is given and is ours alone; a null status is MPI_STATUS_IGNORE.
        let code = unsafe {
            (self.call().recv)(
                data.as_mut_ptr().cast(),
                data_len,
                h.char_,
                from,
                tag,
                h.world,
                ptr::null_mut(),
            )
        };
        check("MPI_Recv", code)
    }

    /// Sends the same bytes once for each request slot, all in flight together.
    pub fn send_many(
        &self,
        data: &[u8],
        to: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_sends(data, to, tag, &mut flights.sends)?;
        self.wait_all(&mut flights.sends)
    }

    /// Receives once for each request slot into the same bytes, as the OSU loops do.
    pub fn recv_many(
        &self,
        data: &mut [u8],
        from: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_recvs(data, from, tag, &mut flights.recvs)?;
        self.wait_all(&mut flights.recvs)
    }

    /// Both at once: receives are posted first, then the sends.
    pub fn exchange_many(
        &self,
        (sent, sent_tag): (&[u8], i32),
        (received, received_tag): (&mut [u8], i32),
        peer: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_recvs(received, peer, received_tag, &mut flights.recvs)?;
        self.post_sends(sent, peer, sent_tag, &mut flights.sends)?;
        self.wait_all(&mut flights.sends)?;
        self.wait_all(&mut flights.recvs)
    }

    fn post_sends(
        &self,
        data: &[u8],
        to: i32,
        tag: i32,
        requests: &mut [Handle],
    ) -> Result<(), MpiError> {
        let h = self.handles();
        for request in requests {
            // SAFETY: our callers wait for the request before the borrow of `data` ends.
            let code = unsafe {
                (self.call().isend)(
                    data.as_ptr().cast(),
                    count(data.len()),
                    h.char_,
                    to,
                    tag,
                    h.world,
                    request,
                )
            };
            check("MPI_Isend", code)?;
        }
        Ok(())
    }

    fn post_recvs(
        &self,
        data: &mut [u8],
        from: i32,
        tag: i32,
        requests: &mut [Handle],
    ) -> Result<(), MpiError> {
        let h = self.handles();
        for request in requests {
            // SAFETY: our callers wait for the request before the borrow of `data` ends; nobody reads it meanwhile.
            let code = unsafe {
                (self.call().irecv)(
                    data.as_mut_ptr().cast(),
                    count(data.len()),
                    h.char_,
                    from,
                    tag,
                    h.world,
                    request,
                )
            };
            check("MPI_Irecv", code)?;
        }
        Ok(())
    }

    fn wait_all(&self, requests: &mut [Handle]) -> Result<(), MpiError> {
        // SAFETY: every slot was filled by isend or irecv just now; null statuses are MPI_STATUSES_IGNORE.
        let code = unsafe {
            (self.call().waitall)(
                count(requests.len()),
                requests.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("MPI_Waitall", code)
    }

    pub fn bcast(&self, data: &mut [u8], root: i32) -> Result<(), MpiError> {
        let (h, len) = (self.handles(), count(data.len()));
        // SAFETY: the buffer has the length that is given and is ours alone until the call returns.
        check("MPI_Bcast", unsafe {
            (self.call().bcast)(data.as_mut_ptr().cast(), len, h.char_, root, h.world)
        })
    }

    /// Sums as many `MPI_FLOAT` as fit into the bytes.
    pub fn allreduce_floats(&self, sent: &[u8], received: &mut [u8]) -> Result<(), MpiError> {
        let h = self.handles();
        let floats = count(sent.len().min(received.len()) / size_of::<f32>());
        // SAFETY: both buffers hold that many floats (any bytes are floats) and begin on a page, so they are aligned.
        let code = unsafe {
            (self.call().allreduce)(
                sent.as_ptr().cast(),
                received.as_mut_ptr().cast(),
                floats,
                h.float,
                h.sum,
                h.world,
            )
        };
        check("MPI_Allreduce", code)
    }

    /// One number combined over all ranks.
    pub fn combine(&self, value: f64, how: Combine) -> Result<f64, MpiError> {
        let h = self.handles();
        let op = match how {
            Combine::Sum => h.sum,
            Combine::Min => h.min,
            Combine::Max => h.max,
        };
        let mut result = 0.0;
        // SAFETY: one double each, alive until the call returns.
        let code = unsafe {
            (self.call().allreduce)(
                (&raw const value).cast(),
                (&raw mut result).cast(),
                1,
                h.double,
                op,
                h.world,
            )
        };
        check("MPI_Allreduce", code)?;
        Ok(result)
    }

    /// Rank 0's number on every rank.
    pub fn bcast_number(&self, value: u64) -> Result<u64, MpiError> {
        let mut bytes = value.to_ne_bytes();
        self.bcast(&mut bytes, 0)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    pub fn finalize(self) -> Result<(), MpiError> {
        // SAFETY: every request was waited for; `self` is consumed, so nothing is called afterwards.
        check("MPI_Finalize", unsafe { (self.call().finalize)() })
    }
}

/// Request slots, kept between windows so that the loop allocates nothing.
pub struct Flights {
    sends: Vec<Handle>,
    recvs: Vec<Handle>,
}

impl Flights {
    /// Room for `window` sends and `window` receives.
    pub fn new(window: usize) -> Self {
        Self {
            sends: vec![ptr::null(); window],
            recvs: vec![ptr::null(); window],
        }
    }
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
