//! Performance variables (section 15.3.7): engine counters, tool sessions and handles.
//!
//! One table, [`PVARS`], is the source of the interface,
//! of `mpi-info --pvars` and of the documents.
//! Most variables are always maintained: they count rare occurrences or are computed on a read.
//! All other variables count messages.
//! The process counts messages only after the first `MPI_T_pvar_start` of any of these variables;
//! until then messages have no overhead.
//! Before `MPI_Init` and after `MPI_Finalize` there is no engine, and variables read as 0.

mod object;
mod sessions;
mod table;

pub use object::{Bound, Object};
pub use sessions::{
    Change, allocate, begin_session, change, end_session, find, meant, read, release,
};
pub use table::PVARS;

use super::enumeration::Enumeration;
use super::observer;
use crate::abi::*;
use crate::error::Failure;
use crate::lane_tools;
use crate::object::file::FileObject;
use crate::object::window::WinObject;
use crate::state;
use mpi_core::comm::Comm;
use mpi_core::matrix::{Amount, Kind, Matrix};
use mpi_core::{Engine, RunObserver};
use std::ffi::c_int;

/// A performance variable.
#[derive(Debug)]
pub struct Pvar {
    pub name: &'static str,
    /// The framework that maintains the variable, which is its category.
    pub category: &'static str,
    pub class: c_int,
    pub help: &'static str,
    read: Read,
}

/// The origin of a variable's value.
#[derive(Debug)]
enum Read {
    /// A value of the process.
    Process(fn() -> u64),
    /// An item of an enumeration.
    State(fn() -> c_int, &'static Enumeration),
    /// A value of the process that the engine counts only while its message observer is set;
    /// starting the variable sets one ([`begin_to_count`]).
    Observed(fn(&Engine) -> u64),
    /// A sum over all messages sent by this process, counted while the handle is started.
    Total(Kind, fn(Amount) -> u64),
    /// A value of a communicator.
    Comm(fn(&Comm) -> u64),
    /// One value per rank of a communicator, counted while the handle is started.
    Peers(Kind, fn(Amount) -> u64),
    /// A value of a window.
    Win(fn(&WinObject) -> u64),
    /// A value of a file.
    File(fn(&FileObject) -> u64),
}

/// Returns the index of the first variable of a category, and the number of its variables.
pub fn of_category(category: &str) -> (usize, usize) {
    let first = PVARS.iter().position(|pvar| pvar.category == category);
    let len = PVARS
        .iter()
        .filter(|pvar| pvar.category == category)
        .count();
    (first.unwrap_or(0), len)
}

/// Counts messages from now on, unless they are already counted.
fn begin_to_count() -> Result<(), Failure> {
    let engine = state::engine().map_err(|_| {
        let why = "the variable counts what the initialized library does: start it after MPI_Init or MPI_Session_init";
        Failure::new(MPI_T_ERR_PVAR_NO_STARTSTOP, why)
    })?;
    let count = |engine: &Engine| {
        if let Some(observer) = observer(engine) {
            observer.count((engine.me(), engine.size()));
        }
    };
    count(&engine);
    lane_tools::each_engine(count);
    Ok(())
}

/// Returns the sum of a value of the engines of all lanes; 0 without an engine.
fn of_engines(read: impl Fn(&Engine) -> u64) -> u64 {
    state::engine().map_or(0, |engine| read(&engine) + lane_tools::sum(&read))
}

/// Reads the communication matrix of an engine; 0 if messages are not counted.
fn of_matrix(engine: &Engine, read: impl FnOnce(&Matrix) -> u64) -> u64 {
    let matrix = engine.observer().and_then(RunObserver::matrix);
    matrix.map_or(0, |matrix| read(matrix))
}

impl Pvar {
    /// Returns true if the variable is continuous, so that it cannot be started or stopped.
    pub fn is_continuous(&self) -> bool {
        !matches!(
            self.read,
            Read::Peers(..) | Read::Total(..) | Read::Observed(_)
        )
    }

    /// Returns the object kind to which handles of the variable are bound.
    pub fn bound(&self) -> Bound {
        match self.read {
            Read::Process(_) | Read::State(..) | Read::Observed(_) | Read::Total(..) => {
                Bound::Process
            }
            Read::Comm(_) | Read::Peers(..) => Bound::Comm,
            Read::Win(_) => Bound::Win,
            Read::File(_) => Bound::File,
        }
    }

    /// Returns true if the variable has one value per rank of a communicator.
    pub fn is_of_ranks(&self) -> bool {
        matches!(self.read, Read::Peers(..))
    }

    /// Returns the enumeration of the variable's values, if there is one.
    pub fn items(&self) -> Option<&'static Enumeration> {
        match self.read {
            Read::State(_, items) => Some(items),
            _ => None,
        }
    }

    /// Returns the datatype of the variable's values.
    pub fn datatype(&self) -> MPI_Datatype {
        match self.items() {
            Some(_) => MPI_INT,
            None => MPI_UNSIGNED_LONG_LONG,
        }
    }

    /// Returns the number of the variable's values for an object.
    fn count(&self, object: Object) -> Result<usize, Failure> {
        Ok(match self.read {
            Read::Peers(..) => object.comm()?.peers().size() as usize,
            _ => {
                self.now(object)?;
                1
            }
        })
    }

    /// Returns the current values of the variable.
    /// A variable that counts messages has the counts since the first start of any of these variables.
    fn now(&self, object: Object) -> Result<Vec<u64>, Failure> {
        Ok(match self.read {
            Read::Process(read) => vec![read()],
            // An enumeration value is not negative.
            Read::State(read, _) => vec![read() as u64],
            Read::Observed(read) => vec![of_engines(read)],
            Read::Total(kind, amount) => vec![of_engines(|engine| {
                of_matrix(engine, |matrix| amount(matrix.total(kind)))
            })],
            Read::Comm(read) => vec![read(&object.comm()?)],
            Read::Peers(kind, amount) => {
                let comm = object.comm()?;
                let sent = |proc| {
                    of_engines(|engine| of_matrix(engine, |matrix| amount(matrix.sent(kind, proc))))
                };
                comm.peers().iter().map(sent).collect()
            }
            Read::Win(read) => vec![read(&*object.win()?)],
            Read::File(read) => vec![read(&*object.file()?)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_category_stand_together_under_names_of_their_own() {
        let mut names: Vec<&str> = PVARS.iter().map(|pvar| pvar.name).collect();
        names.sort_unstable();
        names.dedup();
        assert!(names.iter().eq(PVARS.iter().map(|pvar| &pvar.name)));
        for pvar in PVARS {
            let (first, len) = of_category(pvar.category);
            let all = &PVARS[first..first + len];
            assert!(all.iter().all(|other| other.category == pvar.category));
            assert!(pvar.name.starts_with(pvar.category));
        }
    }
}
