//! Accelerator libraries, such as CUDA, that the program has loaded.
//!
//! The search runs at initialization, and again when the loader's list has grown ([`Tail`]).
//! For example, a Python program may import its GPU package long after MPI initialization.

use mpi_base::accelerator::{self, Accelerator, BUILT_IN, Memory, Tail};
use mpi_base::param::{Level, Param, Params, Selection};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Selects the accelerators whose memory is recognised.
pub static SELECTION: Param<Selection> = Param::selection(
    "accelerator",
    "",
    "Accelerators whose memory is recognised in buffers once the program has loaded their library; empty: all; ^cuda,rocm,level_zero: no buffer is asked about",
);

/// The memory kinds requested by `mpirun --memory-alloc-kinds`.
pub static KINDS: Param<String> = Param::new(
    "mpi",
    "base",
    "memory_alloc_kinds",
    "",
    Level::USER,
    "The kinds of memory that the program asks for, as in mpi,system,cuda; the info key mpi_memory_alloc_kinds contains the supported ones",
);

/// True if the type signatures of messages are compared; buffers then keep their datatypes.
static ARE_TYPES_COMPARED: AtomicBool = AtomicBool::new(false);

static LIBRARIES: Mutex<Libraries> = Mutex::new(Libraries {
    wanted: Vec::new(),
    found: Vec::new(),
    unusable: Vec::new(),
    requested: String::new(),
    tail: None,
});

struct Libraries {
    /// The names of the selected components.
    wanted: Vec<&'static str>,
    found: Vec<&'static dyn Accelerator>,
    /// The components whose library is loaded but unusable.
    unusable: Vec<&'static str>,
    /// The memory kinds that the job requests.
    requested: String,
    tail: Option<Tail>,
}

/// An address in device memory, and the accelerator that copies this memory.
#[derive(Clone, Copy)]
pub struct Located {
    pub by: &'static dyn Accelerator,
    pub memory: Memory,
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.memory.is_managed {
            true => "managed",
            false => "device",
        };
        write!(f, "{} {kind} memory", self.by.title())
    }
}

/// Disables the fast path for plain bytes, so that all buffers keep their datatypes.
pub fn compare_types() {
    ARE_TYPES_COMPARED.store(true, Relaxed);
}

/// Returns true after a call of [`compare_types`].
pub fn are_types_compared() -> bool {
    ARE_TYPES_COMPARED.load(Relaxed)
}

fn libraries() -> MutexGuard<'static, Libraries> {
    LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Libraries {
    /// Searches for the selected libraries.
    fn look(&mut self) {
        // The last entry of the loader's list is read before the search,
        // so a library that is loaded during the search is noticed afterwards.
        self.tail = Tail::find();
        for component in &BUILT_IN {
            let name = component.name;
            let is_known = self.found.iter().any(|found| found.name() == name)
                || self.unusable.contains(&name);
            if is_known || !self.wanted.contains(&name) {
                continue;
            }
            match (component.resident)() {
                Some(Ok(accelerator)) => {
                    let accelerator: &'static dyn Accelerator = Box::leak(accelerator);
                    self.found.push(accelerator);
                    accelerator::add(accelerator);
                }
                Some(Err(lacks)) => {
                    printable::eprintln!("process {}: {lacks}", std::process::id());
                    self.unusable.push(name);
                }
                None => {}
            }
        }
    }

    /// Returns true if a library was loaded since the last search.
    fn is_behind(&self) -> bool {
        self.tail.is_some_and(|tail| tail.word().load(Relaxed) != 0)
    }
}

/// Searches the process for the selected libraries, now and after each later `dlopen`.
/// Returns true if a library is loaded.
pub fn start(params: &Params) -> Result<bool, mpi_base::param::ParamError> {
    let selection = params.get(&SELECTION)?;
    let mut libraries = libraries();
    libraries.requested = params.get(&KINDS)?;
    libraries.wanted = (BUILT_IN.iter().map(|component| component.name))
        .filter(|name| selection.allows(name))
        .collect();
    if libraries.wanted.is_empty() {
        return Ok(false);
    }
    libraries.look();
    Ok(!libraries.found.is_empty())
}

/// Returns true if an accelerator is in use. Searches again after a `dlopen`.
pub fn is_in_use() -> bool {
    let mut libraries = libraries();
    if libraries.is_behind() {
        libraries.look();
    }
    !libraries.found.is_empty()
}

/// Returns the loader's variable that becomes nonzero when another library is loaded.
/// Returns `None` if no accelerator is selected.
pub fn loader_word() -> Option<&'static AtomicUsize> {
    libraries().tail.map(Tail::word)
}

/// Returns the device memory at an address, or `None` for host memory.
pub fn locate(at: *const u8) -> Option<Located> {
    libraries().found.iter().find_map(|by| {
        let memory = by.recognise(at)?;
        Some(Located { by: *by, memory })
    })
}

/// Returns the names of the accelerators that are in use.
pub fn names() -> Vec<&'static str> {
    match is_in_use() {
        true => libraries().found.iter().map(|found| found.name()).collect(),
        false => Vec::new(),
    }
}

/// Returns the supported memory kinds in the list `requested` (MPI 5.0, section 11.4.3).
/// Without a list, the list of the job is used.
pub fn kinds(requested: Option<&str>) -> String {
    let of_job;
    let requested = match requested {
        Some(kinds) if !kinds.is_empty() => kinds,
        _ => {
            of_job = libraries().requested.clone();
            of_job.as_str()
        }
    };
    supported(requested, &names())
}

/// Returns the host's kinds, and the requested kinds of the named accelerators.
fn supported(requested: &str, names: &[&str]) -> String {
    let mut all = vec!["mpi".to_string(), "system".to_string()];
    let kinds = requested.split(',').map(str::trim);
    for kind in kinds {
        let (name, restrictors) = kind.split_once(':').unwrap_or((kind, ""));
        if !names.contains(&name) {
            continue;
        }
        let third = match name {
            "level_zero" => "shared",
            _ => "managed",
        };
        let known = |restrictor: &&str| ["host", "device", third].contains(restrictor);
        let supported: Vec<&str> = restrictors.split(':').filter(known).collect();
        match (restrictors.is_empty(), supported.is_empty()) {
            (true, _) => all.push(name.to_string()),
            (false, false) => all.push(format!("{name}:{}", supported.join(":"))),
            (false, true) => {}
        }
    }
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_requested_kinds_the_supported_ones_are_answered_with_their_known_restrictors() {
        let answer = |requested| supported(requested, &["cuda"]);
        assert_eq!(answer(""), "mpi,system");
        assert_eq!(answer("system, cuda"), "mpi,system,cuda");
        assert_eq!(
            answer("cuda:device:frozen:managed,rocm,level_zero:host"),
            "mpi,system,cuda:device:managed"
        );
        assert_eq!(answer("cuda:frozen"), "mpi,system");
        assert_eq!(supported("cuda,rocm", &[]), "mpi,system");
        assert_eq!(
            supported("level_zero:shared:managed", &["level_zero"]),
            "mpi,system,level_zero:shared"
        );
    }
}
