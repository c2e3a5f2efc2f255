//! The state pages of a node: shared memory in which each rank stores its current MPI call.
//!
//! # Protocol
//!
//! The node's first rank creates an anonymous memory file (`memfd`)
//! and sends its process id and descriptor to the other ranks, which open it through `/proc`.
//! Every rank closes its descriptor after all ranks have mapped the file,
//! so the kernel frees the memory when the last process ends or crashes.
//! Each rank writes only its own page; the first rank's watcher reads all pages.
#![allow(unsafe_code)]

use super::functions::Functions;
use coll_hwbarr_foreign::library::{Handle, Library, done, place};
use mpi_base::mem::{Held, Segment, memfd};
use mpi_base::state::StatePage;
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// The state pages of a node.
#[derive(Clone, Debug)]
pub struct Pages {
    pages: Held<[StatePage]>,
    /// The job rank of each page.
    pub ranks: Vec<u32>,
    mine: usize,
}

impl Pages {
    /// Creates or maps the pages; every rank of the job calls this function.
    /// `comm` is a duplicate of `MPI_COMM_WORLD`.
    pub fn open(
        library: &Library,
        more: &Functions,
        comm: Handle,
        rank: c_int,
    ) -> Result<Pages, String> {
        let functions = &library.functions;
        let mut node = place();
        // SAFETY: `comm` is valid, and `node` is a live local to which the library writes a handle.
        let code = unsafe {
            (functions.comm_split_type)(
                comm,
                library.constants.comm_type_shared,
                rank,
                library.constants.info_null,
                &raw mut node,
            )
        };
        done(code, "MPI_Comm_split_type")?;
        let (mut mine, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: `node` was just created, and `mine` is a live local.
        let code = unsafe { (functions.comm_rank)(node, &raw mut mine) };
        done(code, "MPI_Comm_rank")?;
        // SAFETY: `node` was just created, and `size` is a live local.
        let code = unsafe { (functions.comm_size)(node, &raw mut size) };
        done(code, "MPI_Comm_size")?;
        let count = size.unsigned_abs() as usize;
        let bytes = count * size_of::<StatePage>();
        let made = (mine == 0).then(|| memfd("portcullis-states", bytes as u64));
        let told = match &made {
            Some(Ok(file)) => [std::process::id() as i32, file.as_raw_fd(), rank],
            _ => [0, -1, rank],
        };
        let all = gather(library, node, told, count)?;
        let ranks = all.iter().map(|[_, _, rank]| rank.unsigned_abs()).collect();
        let segment = match made {
            Some(Ok(file)) => map(&file, bytes).map(|segment| (segment, Some(file))),
            Some(Err(error)) => Err(format!("memory for states cannot be made: {error}")),
            None => open(all.first(), bytes).map(|segment| (segment, None)),
        };
        // This allgather completes only after every rank has opened the file or failed.
        // If one rank failed, all ranks return an error.
        let good = gather(library, node, [segment.is_ok().into(), 0, 0], count)?;
        // SAFETY: this function created `node` and does not use the handle afterwards.
        unsafe { (more.comm_free)(&raw mut node) };
        let (segment, _file) = segment?;
        if good.iter().any(|[good, ..]| *good == 0) {
            return Err("a rank of this node cannot see what the others do".into());
        }
        let pages = Held::slice(&Arc::new(segment), 0, count).ok_or("the memory is too short")?;
        Ok(Pages {
            pages,
            ranks,
            mine: mine.unsigned_abs() as usize,
        })
    }

    pub fn mine(&self) -> &StatePage {
        &self.pages[self.mine]
    }

    pub fn all(&self) -> &[StatePage] {
        &self.pages
    }

    /// Returns true if this rank runs the node's watcher.
    pub fn is_first(&self) -> bool {
        self.mine == 0
    }
}

/// Gathers one value of each member, in rank order.
fn gather(
    library: &Library,
    comm: Handle,
    mine: [c_int; 3],
    count: usize,
) -> Result<Vec<[c_int; 3]>, String> {
    let mut all = vec![[0; 3]; count];
    let (bytes, byte) = (size_of_val(&mine) as c_int, library.constants.byte);
    // SAFETY: the receive buffer holds one value per member.
    let code = unsafe {
        (library.functions.allgather)(
            mine.as_ptr().cast(),
            bytes,
            byte,
            all.as_mut_ptr().cast(),
            bytes,
            byte,
            comm,
        )
    };
    done(code, "MPI_Allgather")?;
    Ok(all)
}

fn map(file: impl AsFd, bytes: usize) -> Result<Segment, String> {
    Segment::map(file, bytes).map_err(|error| format!("memory for states is not mapped: {error}"))
}

/// Maps the memory file that the node's first rank created.
fn open(told: Option<&[c_int; 3]>, bytes: usize) -> Result<Segment, String> {
    let Some([process, file, rank]) = told.filter(|[_, file, _]| *file >= 0) else {
        return Err("the first rank of this node has no memory for states".into());
    };
    let path = format!("/proc/{process}/fd/{file}");
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(|error| {
        format!("the memory of rank {rank} is not opened ({path}): {error}; ranks of one node have to be processes of one user")
    })?;
    map(OwnedFd::from(file), bytes)
}
