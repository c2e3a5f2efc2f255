//! Reports to debuggers: the job's process table and its abort ([`mpir`]).

use super::Supervisor;
use crate::launch::mpir::{self, Entry, JOB_IS_ABORTED, TABLE_IS_WRITTEN, TableFile};
use crate::pmi::Job;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The state of the reports to debuggers.
pub(super) struct Debuggers {
    /// The table's memfd; `None` for an adopted process or if memfds are unavailable.
    table: Option<TableFile>,
    has_aborted: bool,
}

impl Debuggers {
    pub(super) fn new(table: Option<TableFile>) -> Debuggers {
        Debuggers {
            table,
            has_aborted: false,
        }
    }
}

impl Supervisor<'_> {
    /// Writes the table when all ranks of the first job have started.
    /// If a debugger has started mpirun, waits until the debugger has read the table.
    pub(super) fn show_debuggers_the_ranks(&mut self) {
        let jobs = &self.control.ranks.jobs;
        if self.debuggers.table.is_none() || jobs.of(Job(0)).any(|rank| rank.pid == 0) {
            return;
        }
        let here = rustix::system::uname();
        let here = here.nodename().to_string_lossy();
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        let entries = jobs.of(Job(0)).map(|rank| Entry {
            host: match rank.here {
                true => here.clone().into_owned(),
                false => jobs.host_name(rank.host),
            },
            program: paths
                .entry(&rank.program)
                .or_insert_with(|| full_path(&rank.program))
                .clone(),
            pid: rank.pid,
        });
        let entries: Vec<Entry> = entries.collect();
        let table = self.debuggers.table.take();
        if table.is_some_and(|table| table.write(&entries).is_ok()) {
            self.front.send(TABLE_IS_WRITTEN);
            if mpir::is_debugged() {
                self.front.wait_for_release();
                // Handles the signals that arrived during the wait.
                self.read_front_end();
            }
        }
    }

    /// Reports the first failure of the job to debuggers; later calls have no effect.
    pub(super) fn show_debuggers_an_abort(&mut self) {
        let ending = &self.control.ending;
        if !self.debuggers.has_aborted && !ending.is_running() && ending.status() != 0 {
            self.debuggers.has_aborted = true;
            self.front.send(JOB_IS_ABORTED);
        }
    }
}

/// Returns the full path of a program, from which debuggers read its symbols.
fn full_path(program: &str) -> String {
    let found = match program.contains('/') {
        true => Some(PathBuf::from(program)),
        false => {
            let path = mpi_base::environment::var("PATH").unwrap_or_default();
            let mut all = std::env::split_paths(&path).map(|folder| folder.join(program));
            all.find(|file| file.is_file())
        }
    };
    let found = found.as_deref().and_then(|file| file.canonicalize().ok());
    let found = found.as_deref().map(Path::to_string_lossy);
    found.map_or_else(|| program.to_owned(), |path| path.into_owned())
}
