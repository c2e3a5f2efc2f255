//! Checkpoint and restart of a job: the framework `crs`, one component for all ranks of a job.
//!
//! * `self`: the program saves its own state at a *point*, a call in its main loop at which no message is in flight; [`self_`].
//! * `criu`: CRIU writes the images of all processes of a host, and the program is not involved; [`criu`].
//!
//! | module | subject |
//! |---|---|
//! | [`self_`], [`criu`] | the two components |
//! | [`points`] | a rank's numbered points, and at which of them it stops |
//! | [`coordinator`] | the launcher's agreement with all ranks on one point |
//! | [`description`] | the programs of a job, compared between the first run and a restart |
//! | [`manifest`], [`store`] | the folder of checkpoints: what is in one, and the commit by one rename |
//! | `words` | any bytes as a printable word of a line |
//!
//! Nothing here is called on the path of a message or of a collective operation: between checkpoints a rank compares numbers at each point.

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

/// The components that may be used.
pub static SELECTION: Param<Selection> = Param::selection(
    "crs",
    "",
    "Checkpoint components that may be used; empty: all",
);

/// A component of this framework.
pub struct Component {
    pub name: &'static str,
    pub params: &'static [&'static About],
}

/// All components.
pub static COMPONENTS: &[Component] = &[
    Component {
        name: "self",
        params: &[
            self_::DIR.about(),
            self_::KEEP.about(),
            self_::JOB.about(),
            self_::RESTART.about(),
        ],
    },
    Component {
        name: "criu",
        params: &[criu::PROGRAM.about()],
    },
];
