//! The watcher: a thread in the first rank of each node that detects a hang.
//!
//! The thread polls the node's state pages and prints a report if no rank makes progress.
//! The watcher calls no MPI function and blocks all signals.
//! The report derives from the state pages, like that of `mpirun` for Portcullis's own ranks.
//! The watcher prints one report per stall.

use super::call_name;
use super::page::Pages;
use super::settings::Settings;
use mpi_base::clock::now_ns;
use mpi_report::hang::{Report, Seen};
use mpi_report::rank_snapshot::RankSnapshot;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Minimum and maximum of the polling interval.
const OFTEN: Duration = Duration::from_millis(5);
const SELDOM: Duration = Duration::from_secs(5);

/// The watcher's thread; dropping this value ends the thread.
#[derive(Debug)]
pub struct Watcher {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

struct Job {
    pages: Pages,
    hosts: Arc<Vec<String>>,
    patience: Duration,
    report: Option<PathBuf>,
}

impl Watcher {
    /// Starts the watcher in the first rank of a node, if a report is configured.
    /// `hosts[i]` is the host of rank i.
    pub fn start(
        pages: &Pages,
        hosts: &Arc<Vec<String>>,
        settings: &Settings,
    ) -> Result<Option<Watcher>, String> {
        let Some(patience) = settings.patience.filter(|_| pages.is_first()) else {
            return Ok(None);
        };
        let job = Job {
            pages: pages.clone(),
            hosts: Arc::clone(hosts),
            patience,
            report: settings.report.clone(),
        };
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let reported = Arc::clone(&over);
        let thread = without_signals(|| {
            std::thread::Builder::new()
                .name("portcullis-watch".into())
                .spawn(move || job.watch(&reported))
        });
        let thread = thread.map_err(|error| format!("no thread can watch the ranks: {error}"))?;
        Ok(Some(Watcher {
            over,
            thread: Some(thread),
        }))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Job {
    fn watch(&self, (over, ended): &(Mutex<bool>, Condvar)) {
        let interval = (self.patience / 4).clamp(OFTEN, SELDOM);
        let (mut counts, mut since, mut reported) = (self.counts(), Instant::now(), false);
        let mut over = over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            let waited = ended.wait_timeout(over, interval);
            over = waited.unwrap_or_else(PoisonError::into_inner).0;
            let seen = self.counts();
            if seen != counts {
                (counts, since, reported) = (seen, Instant::now(), false);
            } else if !*over && !reported && since.elapsed() >= self.patience {
                reported = true;
                self.print_report();
            }
        }
    }

    /// Returns the numbers of calls and progress steps of each rank of this node.
    fn counts(&self) -> Vec<(u64, u64)> {
        let pages = self.pages.all().iter().map(|page| page.snapshot());
        pages.map(|state| (state.calls, state.progress)).collect()
    }

    fn print_report(&self) {
        let report = Report::of_other_library(self.seen());
        let patience = self.patience.as_secs_f64();
        let (here, all) = (self.pages.ranks.len(), self.hosts.len());
        let scope = match here == all {
            true => String::new(),
            false => format!(
                " on {}, whose {here} of {all} ranks are seen here; ranks of other hosts are not",
                self.host()
            ),
        };
        let stuck = match report.all_seem_stuck() {
            true => ", and as far as their calls show all ranks wait for each other",
            false => "",
        };
        let text = format!(
            "portcullis: nothing has moved for {patience} s{scope}{stuck}\nportcullis: {report}\n"
        );
        printable::to_stderr(&text);
        let Some(file) = &self.report else {
            return;
        };
        let text = format!("{:#}\n", serde_json::json!({ "jobs": [report.json()] }));
        if let Err(error) = std::fs::write(file, text) {
            let name = printable::name(file);
            printable::eprintln!("portcullis: the report cannot be written to {name}: {error}");
        }
    }

    fn host(&self) -> String {
        let first = self.pages.ranks.first().copied().unwrap_or(0);
        self.hosts.get(first as usize).cloned().unwrap_or_default()
    }

    /// Returns the states of all ranks of the job; ranks of other hosts are unknown.
    fn seen(&self) -> Vec<Seen> {
        let now = now_ns();
        let mut seen: Vec<Seen> = (0u32..)
            .zip(self.hosts.iter())
            .map(|(rank, host)| Seen {
                rank,
                host: host.clone(),
                alive: true,
                lost: None,
                exception: None,
                snapshot: None,
            })
            .collect();
        for (page, rank) in self.pages.all().iter().zip(&self.pages.ranks) {
            let Some(seen) = seen.get_mut(*rank as usize) else {
                continue;
            };
            let state = page.snapshot();
            seen.alive = is_alive(state.pid);
            seen.snapshot = Some(RankSnapshot::of(&state, now, call_name));
        }
        seen
    }
}

/// Returns true if the process exists.
fn is_alive(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

/// Runs `start` with all signals blocked, so the new thread receives none.
#[allow(unsafe_code)]
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: both signal sets are live locals, and each is written before it is read.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}
