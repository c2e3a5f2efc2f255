//! Data of the tool interface (section 15.3): every parameter of the library is a control variable, every framework a category.
//!
//! A variable is the parameter's text, as `mpi-info` shows it, and cannot be set: the library reads its parameters at startup.
//! Counters that the engine keeps anyway are performance variables ([`pvar`]), what happens in it are events ([`event`]),
//! and names of values are enumerations ([`enumeration`]).
//!
//! The interface may be used before `MPI_Init`, after `MPI_Finalize` and from any thread,
//! so its data are collected once, at its first initialization, and do not change afterwards.
//! A handle of a variable is its index plus one, because handles have no state.

pub mod enumeration;
pub mod event;
pub mod pvar;

use crate::abi::*;
use crate::error::Failure;
use crate::frameworks;
use crate::state;
use mpi_base::param::{About, Params};
use mpi_core::{Engine, RunObserver};
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A parameter as a control variable.
#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub help: &'static str,
    pub value: String,
    pub verbosity: c_int,
}

/// A framework: its variables are a range from `first` on.
#[derive(Debug)]
pub struct Category {
    pub name: &'static str,
    pub what: &'static str,
    pub first: usize,
    pub len: usize,
}

#[derive(Debug)]
pub struct Known {
    pub variables: Vec<Variable>,
    pub categories: Vec<Category>,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

/// Number of initializations of the interface without a matching finalization.
static USERS: AtomicU32 = AtomicU32::new(0);

impl Known {
    fn gather(params: &Params) -> Known {
        let (mut variables, mut categories) = (Vec::new(), Vec::new());
        for framework in frameworks::all(params) {
            let first = variables.len();
            let of_components = framework.components.iter().flat_map(|c| &c.params);
            for about in framework.params.iter().chain(of_components) {
                variables.push(Variable::of(about, params));
            }
            categories.push(Category {
                name: framework.name,
                what: framework.what,
                first,
                len: variables.len() - first,
            });
        }
        Known {
            variables,
            categories,
        }
    }
}

impl Variable {
    fn of(about: &'static About, params: &Params) -> Variable {
        // A NUL character inside would end the C string.
        let text = |text: &str| text.replace('\0', "");
        Variable {
            name: about.full_name(),
            help: about.help,
            value: text(params.text(about)),
            verbosity: match about.level.0 {
                0 | 1 => MPI_T_VERBOSITY_USER_BASIC,
                2 => MPI_T_VERBOSITY_USER_DETAIL,
                3 => MPI_T_VERBOSITY_USER_ALL,
                4 => MPI_T_VERBOSITY_TUNER_BASIC,
                5 => MPI_T_VERBOSITY_TUNER_DETAIL,
                6 => MPI_T_VERBOSITY_TUNER_ALL,
                7 => MPI_T_VERBOSITY_MPIDEV_BASIC,
                8 => MPI_T_VERBOSITY_MPIDEV_DETAIL,
                _ => MPI_T_VERBOSITY_MPIDEV_ALL,
            },
        }
    }
}

/// Adds a user of the interface, which asks for a thread level; returns the level that it has.
///
/// The level is that of the tool and not that of the program.
/// Once `MPI_Init` has chosen a level at which calls take no lock, a tool's calls must not overlap with them.
pub fn begin(required: c_int) -> c_int {
    let params = || Params::from_process(mpi_base::installation::prefix().as_deref());
    KNOWN.get_or_init(|| Known::gather(&params()));
    USERS.fetch_add(1, Relaxed);
    match required.clamp(MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE) {
        MPI_THREAD_MULTIPLE if !state::admit_tool_threads() => MPI_THREAD_SERIALIZED,
        level => level,
    }
}

/// Removes a user of the interface.
pub fn end() -> Result<(), Failure> {
    USERS
        .fetch_update(Relaxed, Relaxed, |users| users.checked_sub(1))
        .map(|_| ())
        .map_err(|_| not_initialized())
}

/// Returns the data, while the interface is in use.
pub fn known() -> Result<&'static Known, Failure> {
    match KNOWN.get() {
        Some(known) if USERS.load(Relaxed) > 0 => Ok(known),
        _ => Err(not_initialized()),
    }
}

#[cold]
fn not_initialized() -> Failure {
    let sentence = "the tool interface is not initialized, see MPI_T_init_thread";
    Failure::new(MPI_T_ERR_NOT_INITIALIZED, sentence)
}

/// Returns the observer of a process; sets an empty one if there is none, for what a tool adds to it.
pub fn observer(engine: &Engine) -> Option<&RunObserver> {
    if engine.observer().is_none() {
        engine.set_observer(RunObserver::default());
    }
    engine.observer()
}

/// Returns the element at an index given by a tool.
pub fn at<'a, T>(all: &'a [T], index: c_int, what: &str) -> Result<&'a T, Failure> {
    let found = usize::try_from(index).ok().and_then(|i| all.get(i));
    found.ok_or_else(|| {
        Failure::new(
            MPI_T_ERR_INVALID_INDEX,
            format!("{index} is the index of none of the {} {what}", all.len()),
        )
    })
}

/// The failure for an unknown name.
#[cold]
pub fn unknown(name: &str, what: &str) -> Failure {
    Failure::new(
        MPI_T_ERR_INVALID_NAME,
        format!("there is no {what} called \"{name}\""),
    )
}

/// The failure for a handle that was never issued.
#[cold]
pub fn no_handle(handle: usize) -> Failure {
    Failure::new(
        MPI_T_ERR_INVALID_HANDLE,
        format!("{handle:#x} is not the handle of a control variable"),
    )
}
