//! Data of the tool interface (section 15.3): parameters are control variables.
//!
//! Every framework is a category.
//!
//! The value of a variable is the parameter's text, as printed by `mpi-info`.
//! A variable is read-only, since the library reads its parameters at startup.
//! Counters of the engine are performance variables ([`pvar`]), occurrences are events ([`event`]).
//! The names of values are enumerations ([`enumeration`]).
//!
//! The interface may be used by any thread, before `MPI_Init` and after `MPI_Finalize`.
//! So its data are collected at its first initialization, and do not change afterwards.
//! The handle of a variable is its index plus 1, since handles have no state.

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

/// A framework as a category. Its variables are a range that begins at `first`.
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

/// Number of initializations of the tool interface without a matching finalization.
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
        // A NUL character within the text would end the C string.
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

/// Adds a user of the interface that requests a thread level. Returns the provided level.
///
/// The level concerns the tool, not the program.
/// If MPI calls take no lock, a tool's calls after `MPI_Init` must not overlap with MPI calls.
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

/// Returns the data of the interface. Returns an error if the interface is not initialized.
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

/// Returns the observer of a process. If there is none, sets an empty observer for the tool.
pub fn observer(engine: &Engine) -> Option<&RunObserver> {
    if engine.observer().is_none() {
        engine.set_observer(RunObserver::default());
    }
    engine.observer()
}

/// Returns the element at an index given by the tool, or an error.
pub fn at<'a, T>(all: &'a [T], index: c_int, what: &str) -> Result<&'a T, Failure> {
    let found = usize::try_from(index).ok().and_then(|i| all.get(i));
    found.ok_or_else(|| {
        Failure::new(
            MPI_T_ERR_INVALID_INDEX,
            format!("{index} is the index of none of the {} {what}", all.len()),
        )
    })
}

/// Returns the failure for an unknown name.
#[cold]
pub fn unknown(name: &str, what: &str) -> Failure {
    Failure::new(
        MPI_T_ERR_INVALID_NAME,
        format!("there is no {what} called \"{name}\""),
    )
}

/// Returns the failure for a handle that was never issued.
#[cold]
pub fn no_handle(handle: usize) -> Failure {
    Failure::new(
        MPI_T_ERR_INVALID_HANDLE,
        format!("{handle:#x} is not the handle of a control variable"),
    )
}
