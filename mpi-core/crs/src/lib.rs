//! Checkpoint and restart of a job: the framework `crs`, one component for all ranks of a job.
//!
//! * `self`: the program saves its own state at a *point*; [`self_`].
//!   A point is a library call in the program's main loop at which no message is in flight.
//! * `criu`: CRIU writes the images of all processes of a host, and the program is not involved; [`criu`].
//!
//! | module | subject |
//! |---|---|
//! | [`self_`], [`criu`] | the two components |
//! | [`points`] | the count of points that a rank has entered, and the point where it stops |
//! | [`coordinator`] | the launcher's agreement with all ranks on one point |
//! | [`description`] | the programs of a job, compared between the first run and a restart |
//! | [`manifest`], [`store`] | the folder of checkpoints: the list of files, and the commit by rename |
//! | `words` | encoding of any bytes as one printable word |
//!
//! No function of this crate is on the path of a message or of a collective operation.
//! Between checkpoints a rank only increments and compares a counter at each point.

#![deny(unsafe_code)]

pub mod coordinator;
pub mod criu;
pub mod description;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod manifest;
pub mod points;
pub mod self_;
pub mod store;
mod words;

use mpi_base::param::{About, Param, Selection};

/// Parameter `crs`: the checkpoint components that may be used.
pub static SELECTION: Param<Selection> = Param::selection(
    "crs",
    "",
    "Checkpoint components that may be used; empty: all",
);

/// A checkpoint component and its parameters.
pub struct Component {
    pub name: &'static str,
    pub params: &'static [&'static About],
}

/// All checkpoint components.
pub static COMPONENTS: &[Component] = &[
    Component {
        name: self_::NAME,
        params: &[
            self_::DIR.about(),
            self_::KEEP.about(),
            self_::JOB.about(),
            self_::RESTART.about(),
        ],
    },
    Component {
        name: criu::NAME,
        params: &[criu::PROGRAM.about(), criu::LIMIT.about()],
    },
];
