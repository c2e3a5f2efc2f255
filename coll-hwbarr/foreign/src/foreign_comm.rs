//! The communicator that the component uses on another MPI library:
//! a duplicate of `MPI_COMM_WORLD`, and the data behind the component's services.
#![allow(unsafe_code)]

use crate::library::{Handle, Library, address, done, place};
use crate::messages::{Messages, length, rank};
use mpi_base::environment;
use mpi_base::yield_now::Backoff;
use mpi_core::plugin::abi::Param;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsString, c_int, c_void};
use std::os::unix::ffi::OsStringExt as _;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// The tag of the component's blocking messages.
const TAG: c_int = 1;

/// Prefixes of the environment variables of parameters: of Open MPI's launcher and of Portcullis.
const PREFIXES: [&str; 2] = ["OMPI_MCA_coll_hwbarr_", "PORTCULLIS_MCA_coll_hwbarr_"];

/// Number of polls of the wire for each call of MPI's progress.
const LOOKS: u32 = 8;
/// Number of polls of the wire before each poll yields the processor; 0 if the node is oversubscribed.
const PATIENCE: u32 = 4096;

pub struct ForeignComm {
    library: &'static Library,
    comm: Handle,
    rank: u32,
    size: u32,
    /// The ranks of the members on this node, ascending; the field `node` is their communicator.
    neighbours: Vec<u32>,
    node: Handle,
    windows: RefCell<Vec<Handle>>,
    pub messages: Messages,
    params: BTreeMap<CString, CString>,
    /// The pointer that the component stores in this communicator.
    pub common: Cell<*mut c_void>,
    /// True if the node is oversubscribed: it has more members than processors.
    crowded: bool,
}

impl ForeignComm {
    /// Duplicates `MPI_COMM_WORLD`; every process must call this.
    pub fn new(library: &'static Library, params: &[Param]) -> Result<ForeignComm, String> {
        let functions = &library.functions;
        let mut comm = place();
        // SAFETY: `comm` is a live, zeroed local to which the library writes a handle.
        let code = unsafe { (functions.comm_dup)(library.constants.comm_world, &raw mut comm) };
        done(code, "MPI_Comm_dup")?;
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: `comm` was just created, and `rank` is a live local.
        let code = unsafe { (functions.comm_rank)(comm, &raw mut rank) };
        done(code, "MPI_Comm_rank")?;
        // SAFETY: `comm` was just created, and `size` is a live local.
        let code = unsafe { (functions.comm_size)(comm, &raw mut size) };
        done(code, "MPI_Comm_size")?;
        let (node, neighbours) = node(library, comm, rank)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(ForeignComm {
            library,
            comm,
            rank: rank.unsigned_abs(),
            size: size.unsigned_abs(),
            crowded: neighbours.len() > processors,
            neighbours,
            node,
            windows: RefCell::default(),
            messages: Messages::new(library, comm),
            params: read_params(params),
            common: Cell::new(null_mut()),
        })
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    pub fn neighbours(&self) -> &[u32] {
        &self.neighbours
    }

    /// Returns a parameter's configured value, or its default.
    pub fn param(&self, name: &CStr) -> Option<&CStr> {
        self.params.get(name).map(CString::as_c_str)
    }

    /// Returns true if the user has enabled informational messages.
    pub fn is_verbose(&self) -> bool {
        set("verbose").is_some_and(|value| value != "0")
    }

    pub fn send(&self, dest: u32, data: &[u8]) -> Result<(), String> {
        // SAFETY: `data` is readable for the length that is passed, and `comm` is alive.
        let code = unsafe {
            (self.library.functions.send)(
                data.as_ptr().cast(),
                length(data.len())?,
                self.library.constants.byte,
                rank(dest)?,
                TAG,
                self.comm,
            )
        };
        done(code, "MPI_Send")
    }

    pub fn recv(&self, source: u32, data: &mut [u8]) -> Result<(), String> {
        // SAFETY: `data` is writable for the length that is passed, and `comm` is alive.
        let code = unsafe {
            (self.library.functions.recv)(
                data.as_mut_ptr().cast(),
                length(data.len())?,
                self.library.constants.byte,
                rank(source)?,
                TAG,
                self.comm,
                self.library.constants.status_ignore,
            )
        };
        done(code, "MPI_Recv")
    }

    /// Calls the library's own barrier on the duplicate.
    pub fn fence(&self) -> Result<(), String> {
        // SAFETY: `comm` is alive as long as the communicator.
        done(
            unsafe { (self.library.functions.barrier)(self.comm) },
            "MPI_Barrier",
        )
    }

    /// Gathers the byte `mine` of every member at every member, in the order of ranks.
    pub fn gather(&self, mine: u8) -> Result<Vec<u8>, String> {
        let mut all = vec![0u8; self.size as usize];
        allgather(self.library, self.comm, &[mine], &mut all)?;
        Ok(all)
    }

    /// Calls MPI so that the library polls for messages one time.
    pub fn progress(&self) {
        if let Some(engine) = &self.library.engine {
            // SAFETY: Open MPI allows this call in a thread that is inside an MPI call.
            return unsafe { (engine.progress)() };
        }
        let mut arrived: c_int = 0;
        // SAFETY: the flag is a live local and the status is `MPI_STATUS_IGNORE`. Only the progress matters, not the result.
        unsafe {
            (self.library.functions.iprobe)(
                self.library.constants.any_source,
                TAG,
                self.comm,
                &raw mut arrived,
                self.library.constants.status_ignore,
            )
        };
    }

    /// Polls until `ready` returns true or `limit` has passed; returns true in the first case.
    pub fn wait(&self, limit: Option<Duration>, ready: &mut dyn FnMut() -> bool) -> bool {
        let begin = limit.map(|limit| (Instant::now(), limit));
        let mut looks: u32 = 0;
        let mut backoff = Backoff::new();
        loop {
            if ready() {
                return true;
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) {
                self.progress();
                if begin.is_some_and(|(begin, limit)| begin.elapsed() >= limit) {
                    return false;
                }
            }
            if self.crowded || looks > PATIENCE {
                backoff.pause();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Allocates zeroed memory that all members on this node share; every member must call this.
    pub fn shared_memory(&self, bytes: usize, align: usize) -> Result<*mut c_void, String> {
        let functions = &self.library.functions;
        let first = self.neighbours.first() == Some(&self.rank);
        let whole = bytes
            .checked_add(align)
            .and_then(|whole| isize::try_from(whole).ok())
            .ok_or_else(|| format!("{bytes} bytes of shared memory are too many"))?;
        let (mut window, mut at) = (place(), address());
        // SAFETY: `at` and `window` are live locals, and `node` is alive.
        let code = unsafe {
            (functions.win_allocate_shared)(
                if first { whole } else { 0 },
                1,
                self.library.constants.info_null,
                self.node,
                &raw mut at,
                &raw mut window,
            )
        };
        done(code, "MPI_Win_allocate_shared")?;
        self.windows.borrow_mut().push(window);
        let (mut size, mut unit): (isize, c_int) = (0, 0);
        // SAFETY: the window is alive, and all out pointers are live locals.
        let code = unsafe {
            (functions.win_shared_query)(window, 0, &raw mut size, &raw mut unit, &raw mut at)
        };
        done(code, "MPI_Win_shared_query")?;
        if at.is_null() || size < whole {
            return Err(format!(
                "the MPI library gives {size} bytes of shared memory instead of {whole}"
            ));
        }
        // The window has the same offset within a page in every process,
        // so all processes round up by the same amount.
        let at = at.map_addr(|at| at.next_multiple_of(align));
        if first {
            // SAFETY: `whole >= bytes + align`, so `bytes` fit after the rounding; no other rank uses the memory before the barrier below.
            unsafe { at.write_bytes(0, bytes) };
        }
        // SAFETY: `node` is alive as long as the communicator.
        done(unsafe { (functions.barrier)(self.node) }, "MPI_Barrier")?;
        Ok(at)
    }

    /// Frees the shared memory, which no member may use any more; every member must call this.
    pub fn give_back(&self) {
        for mut window in self.windows.take() {
            // SAFETY: `shared_memory` created the window. `take` removes it, so it is freed once.
            unsafe { (self.library.functions.win_free)(&raw mut window) };
        }
    }
}

/// Returns the members on this node, as a communicator and as ranks of `comm`.
fn node(library: &Library, comm: Handle, rank: c_int) -> Result<(Handle, Vec<u32>), String> {
    let mut node = place();
    // SAFETY: `node` is a live, zeroed local to which the library writes a handle.
    let code = unsafe {
        (library.functions.comm_split_type)(
            comm,
            library.constants.comm_type_shared,
            rank,
            library.constants.info_null,
            &raw mut node,
        )
    };
    done(code, "MPI_Comm_split_type")?;
    let mut size: c_int = 0;
    // SAFETY: `node` was just created, and `size` is a live local.
    let code = unsafe { (library.functions.comm_size)(node, &raw mut size) };
    done(code, "MPI_Comm_size")?;
    let mut all = vec![0u8; size.unsigned_abs() as usize * size_of::<u32>()];
    allgather(library, node, &rank.unsigned_abs().to_ne_bytes(), &mut all)?;
    let (words, _) = all.as_chunks::<4>();
    let mut ranks: Vec<u32> = words.iter().map(|word| u32::from_ne_bytes(*word)).collect();
    ranks.sort_unstable();
    Ok((node, ranks))
}

/// Gathers the bytes `mine` of every member into `all`, whose length is `mine.len()` times the number of
/// members.
fn allgather(library: &Library, comm: Handle, mine: &[u8], all: &mut [u8]) -> Result<(), String> {
    let (count, byte) = (length(mine.len())?, library.constants.byte);
    // SAFETY: `mine` has the length that is passed, and `all` that length for every member, by the contract of this function.
    let code = unsafe {
        (library.functions.allgather)(
            mine.as_ptr().cast(),
            count,
            byte,
            all.as_mut_ptr().cast(),
            count,
            byte,
            comm,
        )
    };
    done(code, "MPI_Allgather")
}

/// Returns the value of a parameter of the component that is set in the environment.
pub fn set(name: &str) -> Option<OsString> {
    let mut values = PREFIXES
        .iter()
        .filter_map(|prefix| environment::var(format!("{prefix}{name}")));
    values.next()
}

/// Returns true if a parameter of the component is set to true.
pub fn is_set(name: &str) -> bool {
    set(name).is_some_and(|value| {
        matches!(
            value.to_str().unwrap_or_default(),
            "true" | "1" | "yes" | "on"
        )
    })
}

fn read_params(params: &[Param]) -> BTreeMap<CString, CString> {
    let read = |param: &Param| {
        // SAFETY: a component's parameters point to static zero-terminated texts.
        let (name, default) = unsafe {
            (
                CStr::from_ptr(param.name),
                CStr::from_ptr(param.default_value),
            )
        };
        let value =
            set(&name.to_string_lossy()).and_then(|value| CString::new(value.into_vec()).ok());
        (name.to_owned(), value.unwrap_or_else(|| default.to_owned()))
    };
    params.iter().map(read).collect()
}
