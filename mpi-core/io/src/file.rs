//! A file that the members of a communicator have opened collectively (MPI 5.0, sections 14.2 and 14.4).
//!
//! A collective call has two steps. First, each member performs its own file operation.
//! Then all members share the error classes of their results by an allgather (`File::agree`).
//! The call returns the class of the first member that failed. If one member must act first
//! (creating the file or changing its size), that member is rank 0;
//! the other ranks continue when they have received its result.

use super::amode::{self, Amode};
use super::disk::{self, Disk};
use super::ending;
use super::error::{IoClass, IoError, class_number};
use super::hints::Tuning;
use super::shared::SharedPointer;
use super::view::View;
use crate::Error;
use crate::collective::node_map::NodeMap;
use crate::comm::Comm;
use crate::group::Group;
use crate::osc::is_direct_allowed;
use crate::split_collective::{SharedMemory, SplitCollective};
use mpi_base::state::FileCall;
use rustix::fs::OFlags;
use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;

pub struct File {
    pub(super) comm: Comm,
    pub(super) path: String,
    pub(super) amode: Amode,
    pub(super) disk: Rc<Disk>,
    pub(super) view: RefCell<View>,
    /// The individual file pointer, in etypes.
    pub(super) position: Cell<i64>,
    pub(super) shared: SharedPointer,
    pub(super) atomic: Cell<bool>,
    pub(super) split: RefCell<Option<SplitCollective>>,
    pub(super) node_map: NodeMap,
    /// The memory shared for collective accesses; the first access that needs it creates it.
    pub(super) buffers: RefCell<SharedMemory>,
}

/// The end of the error text at ranks whose own operation did not fail.
pub const ELSEWHERE: &str = "so it ends here too";

/// Agrees on the result of all members: the error class of the first member that failed.
/// A member whose own operation failed returns its own error text.
fn agree<T>(comm: &Comm, path: &str, outcome: Result<T, IoError>) -> Result<T, Error> {
    let mine = class_number(&outcome);
    let all = comm.internal().share_now(&[mine])?;
    agreed(comm, path, outcome, &all)
}

/// Returns the result of the agreement; `all` has the error class of each member, or 0 for success.
fn agreed<T>(
    comm: &Comm,
    path: &str,
    outcome: Result<T, IoError>,
    all: &[u64],
) -> Result<T, Error> {
    let Some((rank, class)) = all.iter().enumerate().find(|(_, class)| **class != 0) else {
        return outcome.map_err(Error::from);
    };
    let class = IoClass::from_number(*class);
    let sentence = match outcome {
        Err(error) => format!("rank {} on file {path}: {error}", comm.rank()),
        Ok(_) => format!("on file {path} it failed at rank {rank}, {ELSEWHERE}"),
    };
    Err(IoError::new(class, sentence).into())
}

/// Adds the rank and the file to the text of an error.
pub(super) fn told(rank: u32, path: &str, error: &IoError) -> IoError {
    let sentence = format!("rank {rank} on file {path}: {error}");
    IoError::new(error.class, sentence)
}

fn opens(comm: &Comm, path: &str, flags: OFlags, mode: u32) -> Result<OwnedFd, IoError> {
    disk::on_page(comm.engine(), FileCall::Open, path, || {
        amode::open(path, flags, mode)
    })
}

/// Replaces `cb_nodes` = 0 (automatic) by a number that depends on the members' nodes.
fn resolved(mut tuning: Tuning, node_map: &NodeMap) -> Tuning {
    if tuning.cb_nodes == 0 {
        tuning.cb_nodes = node_map.usual_aggregators();
    }
    tuning
}

impl File {
    /// Implements `MPI_File_open`; collective.
    pub fn open(comm: &Comm, path: &str, amode: Amode, tuning: Tuning) -> Result<File, Error> {
        let own = comm.constructors().dup_now()?;
        let _part = comm.failures().while_making(&own);
        let mut pointer = None;
        let made = File::open_on(&own, path, amode, tuning, &mut pointer);
        let made = made.and_then(|file| file.begin_where_amode_says());
        if made.is_err() {
            ending::leave_to_others(&own, amode, pointer)?;
        }
        made
    }

    /// Opens the file with `own`, a communicator that only this file uses.
    /// Stores the shared pointer in `pointer` as soon as the members have created it.
    fn open_on(
        own: &Comm,
        path: &str,
        amode: Amode,
        tuning: Tuning,
        pointer: &mut Option<SharedPointer>,
    ) -> Result<File, Error> {
        let engine = own.engine();
        let check = amode.check();
        let place = engine.place();
        let shares = is_direct_allowed(engine.params());
        let node_words = NodeMap::words(place.node_id(), shares, place.cores().usable);
        let mut words = vec![class_number(&check), amode.bits()];
        words.extend(node_words);
        words.extend(tuning.words());
        let all = own.internal().share_now(&words)?;
        let each = || all.chunks_exact(words.len());
        let classes: Vec<u64> = each().map(|words| words[0]).collect();
        agreed(own, path, check, &classes)?;
        let nodes = each().map(|words| std::array::from_fn(|which| words[2 + which]));
        let node_map = NodeMap::of(&nodes.collect::<Vec<_>>());
        // Hints may differ between ranks; all members use rank 0's hints.
        let tuning = resolved(Tuning::from_words(&all[2 + node_words.len()..]), &node_map);
        if let Some(rank) = each().position(|words| words[1] != all[1]) {
            let sentence = format!("on file {path} rank {rank} gives another amode than rank 0");
            return Err(IoError::new(IoClass::NotSame, sentence).into());
        }
        // Rank 0 creates the file; then the other ranks open it.
        let first = match own.rank() {
            0 => opens(own, path, amode.flags(true), tuning.permissions).map(Some),
            _ => Ok(None),
        };
        let first = agree(own, path, first)?;
        let shared = pointer.insert(SharedPointer::new(own)?).clone();
        let opened = match first {
            Some(fd) => Ok(fd),
            None => opens(own, path, amode.flags(false), tuning.permissions),
        };
        // After this agreement all members know that rank 0 has set the shared pointer to 0.
        let fd = agree(own, path, opened)?;
        let disk = Rc::new(Disk::new(fd, own.engine(), path, tuning));
        Ok(File {
            comm: own.clone(),
            path: path.to_owned(),
            amode,
            disk,
            view: RefCell::new(View::of_bytes()),
            position: Cell::new(0),
            shared,
            atomic: Cell::new(false),
            split: RefCell::default(),
            node_map,
            buffers: RefCell::default(),
        })
    }

    /// For `MPI_MODE_APPEND`, sets both file pointers to the end of the file.
    fn begin_where_amode_says(self) -> Result<File, Error> {
        if self.amode.append {
            let end = self.agree(self.storage().size())?;
            self.position.set(end);
            if self.comm.rank() == 0 {
                self.shared.set(end)?;
            }
            self.meet()?;
        }
        Ok(self)
    }

    pub(super) fn agree<T>(&self, outcome: Result<T, IoError>) -> Result<T, Error> {
        agree(&self.comm, &self.path, outcome)
    }

    pub(super) fn agreed<T>(&self, outcome: Result<T, IoError>, all: &[u64]) -> Result<T, Error> {
        agreed(&self.comm, &self.path, outcome, all)
    }

    /// Adds the file and the rank to the text of an error.
    pub(super) fn told<T>(&self, outcome: Result<T, IoError>) -> Result<T, Error> {
        outcome.map_err(|error| told(self.comm.rank(), &self.path, &error).into())
    }

    pub(super) fn meet(&self) -> Result<(), Error> {
        self.comm.internal().fence_now()
    }

    /// Implements `MPI_File_set_info`; collective. All members use rank 0's hints.
    pub fn set_tuning(&self, tuning: Tuning) -> Result<(), Error> {
        let all = self.comm.internal().share_now(&tuning.words())?;
        let mut tuning = resolved(Tuning::from_words(&all), &self.node_map);
        // The hint for permissions has an effect only when a file is created.
        tuning.permissions = self.disk.tuning().permissions;
        self.disk.set_tuning(tuning);
        Ok(())
    }

    /// Returns the hints in use for this file.
    pub fn tuning(&self) -> Tuning {
        self.disk.tuning()
    }

    /// Returns the maximum number of aggregators of a collective access.
    pub fn aggregators(&self) -> u32 {
        let most = self.node_map.aggregators(self.comm.size());
        self.disk.tuning().cb_nodes.min(most)
    }

    /// Returns the numbers of bytes that this process has read from the file and written to it.
    pub fn moved(&self) -> (u64, u64) {
        self.disk.moved()
    }

    /// Returns the name of the file for error texts.
    pub fn label(&self) -> String {
        format!("file {}", printable::name(&self.path))
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn amode(&self) -> Amode {
        self.amode
    }

    pub fn group(&self) -> Group {
        self.comm.group().clone()
    }

    pub fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// Checks that all members passed the same value; collective.
    pub(super) fn same(&self, name: &str, value: i64) -> Result<(), Error> {
        let all = self.comm.internal().share_now(&[value as u64])?;
        match all.iter().position(|other| *other != all[0]) {
            None => Ok(()),
            Some(rank) => {
                let (there, here) = (all[rank] as i64, all[0] as i64);
                let sentence = format!(
                    "on file {} {name} is {there} at rank {rank} and {here} at rank 0",
                    self.path
                );
                Err(IoError::new(IoClass::NotSame, sentence).into())
            }
        }
    }

    /// Returns an error in `MPI_MODE_SEQUENTIAL`,
    /// which allows neither explicit offsets nor the individual pointer.
    pub(super) fn random_access(&self) -> Result<(), IoError> {
        match self.amode.sequential {
            false => Ok(()),
            true => Err(IoError::new(
                IoClass::UnsupportedOperation,
                "a file of MPI_MODE_SEQUENTIAL is read and written at its shared pointer only",
            )),
        }
    }

    pub fn is_atomic(&self) -> bool {
        self.atomic.get()
    }

    /// Implements `MPI_File_set_atomicity`; collective.
    pub fn set_atomic(&self, atomic: bool) -> Result<(), Error> {
        self.same("flag", atomic.into())?;
        self.atomic.set(atomic);
        Ok(())
    }
}
