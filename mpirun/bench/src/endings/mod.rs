//! `mpi-bench endings`: the time that a job takes to end after a fault, and the job's remains.
//!
//! Every table row is a fault ([`Deed`]): a rank ends or is killed, or the launcher gets a signal.
//! Before the fault, ranks of this same program (`leave`) wait for a message that no rank sends.
//! The figure is the time from the fault until launcher *and* all processes of the job have ended.
//! The process that causes the fault first writes its monotonic time to the job's private folder.
//! Remains are processes of the job, files in its temporary folder, and new files in `/dev/shm`.
//!
//! Other programs may create files in `/dev/shm`; `unshare -m` with a fresh tmpfs excludes them.

mod leave;
mod watch;

pub use leave::{Leave, leave};

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bounded::{ProcessError, Running};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::cli::Options;
use crate::clock::now_ms;
use crate::find;
use crate::launcher::{AS_IT_COMES, Installation, RunError, this_program};
use crate::output::{self, OutputError};
use crate::versus;
use leave::LeaveMode;
use watch::Folder;

/// The time after which a launcher counts as hanging.
const HANGS: Duration = Duration::from_secs(4);

/// The time after the launcher's end at which remaining processes count as left behind.
const STAYS: Duration = Duration::from_secs(1);

/// The wait before the fault, after which all ranks sleep in their receive.
const ASLEEP: Duration = Duration::from_millis(60);

/// The process that causes the fault or gets the signals.
#[derive(Clone, Copy, Debug)]
enum From {
    /// Rank 1 ends by itself.
    Within,
    /// A signal is sent to one rank.
    Rank(Signal),
    /// A signal is sent only to the launcher.
    Launcher(Signal),
    /// This number of SIGINTs goes to the whole foreground process group, as after Ctrl-C.
    Terminal(u32),
}

/// A row of the table: one fault.
struct Deed {
    what: &'static str,
    mode: LeaveMode,
    from: From,
}

const DEEDS: &[Deed] = &[
    deed(
        "a rank is killed",
        LeaveMode::Wait,
        From::Rank(Signal::KILL),
    ),
    deed("a rank segfaults", LeaveMode::Segv, From::Within),
    deed("a rank exits with 3", LeaveMode::Exit, From::Within),
    deed(
        "a rank exits with 0, not finalized",
        LeaveMode::Quiet,
        From::Within,
    ),
    deed("MPI_Abort with 42", LeaveMode::Abort, From::Within),
    deed("Ctrl-C", LeaveMode::Wait, From::Terminal(1)),
    deed(
        "SIGTERM to the launcher",
        LeaveMode::Wait,
        From::Launcher(Signal::TERM),
    ),
    deed(
        "SIGHUP to the launcher",
        LeaveMode::Wait,
        From::Launcher(Signal::HUP),
    ),
    deed(
        "Ctrl-C, ranks ignore signals",
        LeaveMode::Deaf,
        From::Terminal(1),
    ),
    deed(
        "Ctrl-C twice, ranks ignore signals",
        LeaveMode::Deaf,
        From::Terminal(2),
    ),
    deed(
        "a rank is killed, the others ignore signals",
        LeaveMode::Deaf,
        From::Rank(Signal::KILL),
    ),
    deed(
        "a rank is killed, its child holds its pipes",
        LeaveMode::Fork,
        From::Rank(Signal::KILL),
    ),
    deed(
        "the launcher is killed",
        LeaveMode::Wait,
        From::Launcher(Signal::KILL),
    ),
    deed(
        "the launcher is killed, ranks have children",
        LeaveMode::Fork,
        From::Launcher(Signal::KILL),
    ),
];

const fn deed(what: &'static str, mode: LeaveMode, from: From) -> Deed {
    Deed { what, mode, from }
}

/// The reason why the measurement failed.
#[derive(Debug)]
pub enum EndingsError {
    NoOwnLibrary(find::NotFound),
    Library(RunError),
    Folder(std::io::Error),
    Start(ProcessError),
    NotReady { launcher: PathBuf, reported: String },
    Output(OutputError),
}

impl fmt::Display for EndingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOwnLibrary(error) => error.fmt(f),
            Self::Library(error) => error.fmt(f),
            Self::Folder(error) => write!(f, "the job's private folder: {error}"),
            Self::Start(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
            Self::NotReady { launcher, reported } => write!(
                f,
                "the ranks that {} started did not come to where they wait: {reported}",
                launcher.display()
            ),
        }
    }
}

impl std::error::Error for EndingsError {}

/// The observations of one job's end.
#[derive(Debug, Default)]
struct Seen {
    /// Milliseconds from the fault until launcher and ranks have ended.
    /// `None` means that the launcher hangs or a process remains.
    gone: Option<f64>,
    hangs: bool,
    status: Option<i32>,
    processes: usize,
    files: usize,
}

/// Measures every row for every library and prints the table.
pub fn run(options: &Options) -> Result<(), EndingsError> {
    let own = versus::own_library(options).map_err(EndingsError::NoOwnLibrary)?;
    let folders = std::iter::once(&own).chain(&options.vs);
    let all = folders
        .map(|folder| Installation::at(folder).map_err(EndingsError::Library))
        .collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = all.iter().map(|one| one.family.name()).collect();
    let say = |text: &str| output::say(text).map_err(EndingsError::Output);
    let rule = "---|".repeat(names.len());
    say(&format!(
        "| what happens | {} |\n|---|{rule}\n",
        names.join(" | ")
    ))?;
    for deed in DEEDS {
        let mut cells = Vec::new();
        for one in &all {
            let rounds = (0..options.rounds).map(|_| measure(one, deed, options));
            cells.push(spell(&rounds.collect::<Result<Vec<_>, _>>()?));
        }
        say(&format!("| {} | {} |\n", deed.what, cells.join(" | ")))?;
    }
    Ok(())
}

fn measure(one: &Installation, deed: &Deed, options: &Options) -> Result<Seen, EndingsError> {
    let folder = Folder::new().map_err(EndingsError::Folder)?;
    let [plain] = AS_IT_COMES;
    let mut command = one.launch(plain, options.ranks(), &options.our_arg);
    if deed.mode == LeaveMode::Deaf {
        // Signals that the shell ignores stay ignored after exec, so the ranks ignore them too.
        command.args(["/bin/sh", "-c", "trap '' INT TERM HUP; exec \"$@\"", "sh"]);
    }
    command
        .arg(this_program().map_err(EndingsError::Library)?)
        .args(["leave", deed.mode.name(), "--lib"])
        .arg(&one.library)
        .arg("--folder")
        .arg(folder.path())
        .env("TMPDIR", folder.temporary());
    let segments = watch::segments();
    let running = Running::start(&mut command).map_err(EndingsError::Start)?;
    let Some(mut pids) = folder.await_ranks(options.ranks(), options.timeout) else {
        let reported = running.stderr_so_far();
        return Err(EndingsError::NotReady {
            launcher: one.launcher.clone(),
            reported,
        });
    };
    std::thread::sleep(ASLEEP);
    let group = i32::try_from(running.id()).ok().and_then(Pid::from_raw);
    let done = commit(deed, &folder, &pids, group);
    let hearing = std::time::Instant::now();
    let outcome = running.wait_while(|_| hearing.elapsed() < HANGS);
    // If a rank causes the fault, it may write its note with the time after `commit` has returned.
    let done = done.or_else(|| folder.deed_done());
    pids.extend(folder.children());
    let left = watch::living_after(&pids, STAYS);
    let ended = now_ms();
    let seen = Seen {
        hangs: outcome.is_err(),
        gone: match (&outcome, left.is_empty(), done) {
            (Ok(_), true, Some(done)) => Some(ended - done),
            _ => None,
        },
        status: outcome.ok().and_then(|outcome| outcome.status.code()),
        processes: left.len(),
        files: watch::segments().difference(&segments).count() + folder.left(),
    };
    watch::end(&left);
    Ok(seen)
}

/// Causes the fault or lets rank 1 cause it; returns the time of a fault that this process causes.
fn commit(deed: &Deed, folder: &Folder, pids: &[i32], group: Option<Pid>) -> Option<f64> {
    let at = now_ms();
    // A failure to send is ignored: a process that has already ended needs no signal.
    match deed.from {
        From::Within => {
            folder.let_go();
            return None;
        }
        From::Rank(signal) => {
            let victim = pids.get(1).or(pids.first()).copied();
            let _ = victim
                .and_then(Pid::from_raw)
                .map(|pid| kill_process(pid, signal));
        }
        From::Launcher(signal) => {
            let _ = group.map(|pid| kill_process(pid, signal));
        }
        From::Terminal(times) => {
            for time in 0..times {
                if time > 0 {
                    std::thread::sleep(Duration::from_millis(20));
                }
                let _ = group.map(|pid| kill_process_group(pid, Signal::INT));
            }
        }
    }
    Some(at)
}

/// Formats a table cell such as "12 ms, 137": the median, the exit status, and the remains.
fn spell(seen: &[Seen]) -> String {
    let mut times: Vec<f64> = seen.iter().filter_map(|seen| seen.gone).collect();
    times.sort_by(f64::total_cmp);
    let hung = seen.iter().filter(|seen| seen.hangs).count();
    let mut words = Vec::new();
    match times.get(times.len() / 2) {
        Some(median) => words.push(format!("{median:.0} ms")),
        None if hung == 0 => words.push("processes stay".into()),
        None => {}
    }
    if hung > 0 {
        words.push(match hung == seen.len() {
            true => "hangs".into(),
            false => format!("hangs {hung} of {}", seen.len()),
        });
    }
    if let Some(status) = seen.iter().find_map(|seen| seen.status) {
        words.push(format!("status {status}"));
    }
    let most = |count: fn(&Seen) -> usize| seen.iter().map(count).max().unwrap_or(0);
    for (count, what) in [
        (most(|seen| seen.processes), "process"),
        (most(|seen| seen.files), "file"),
    ] {
        match count {
            0 => {}
            1 => words.push(format!("1 {what} left")),
            more if what == "process" => words.push(format!("{more} processes left")),
            more => words.push(format!("{more} {what}s left")),
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(gone: f64) -> Seen {
        Seen {
            gone: Some(gone),
            status: Some(137),
            ..Seen::default()
        }
    }

    #[test]
    fn a_cell_shows_the_median_and_the_status() {
        assert_eq!(
            spell(&[seen(9.0), seen(12.2), seen(80.0)]),
            "12 ms, status 137"
        );
    }

    #[test]
    fn a_cell_shows_which_processes_hang_or_are_left() {
        let hung = Seen {
            hangs: true,
            processes: 3,
            files: 1,
            ..Seen::default()
        };
        assert_eq!(spell(&[hung]), "hangs, 3 processes left, 1 file left");
        let stays = Seen {
            processes: 1,
            ..Seen::default()
        };
        assert_eq!(spell(&[stays]), "processes stay, 1 process left");
    }
}
