//! Values of options that take a keyword, or a keyword or number; errors list accepted values.

use crate::launch::program::{EndDead, StdinTo};
use clap::ValueEnum;
use clap_complete::Shell;
use mpi_abi::initial_handler::InitialHandler;
use mpi_base::param::Value;
use std::time::Duration;

/// The order in which ranks are numbered (`--rank-by`).
/// `Slot` numbers host after host; `Node` numbers round robin over the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RankBy {
    #[value(alias = "fill")]
    Slot,
    Node,
}

/// Whether the job survives the death of ranks (`--with-ft`); `mpi` is an alias of `ulfm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FaultTolerance {
    Ulfm,
    Mpi,
    No,
}

/// Whether this library serves programs that are linked to other MPI libraries (`--compat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    Yes,
    No,
}

impl Compat {
    /// Returns the value as the ranks' environment contains it: "yes" or "no".
    pub fn word(self) -> &'static str {
        match self {
            Compat::Yes => "yes",
            Compat::No => "no",
        }
    }
}

/// The tables that are printed before the job starts (`--display`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub map: bool,
    pub bindings: bool,
    pub allocation: bool,
}

impl Shown {
    /// Parses keywords that are separated by commas or colons.
    pub fn parse(text: &str) -> Result<Shown, String> {
        let mut shown = Shown::default();
        for word in text.split([',', ':']).filter(|_| !text.is_empty()) {
            match word.to_lowercase().as_str() {
                "map" | "map-devel" | "parseable" | "parsable" => shown.map = true,
                "bind" | "bindings" => shown.bindings = true,
                "allocation" | "alloc" => shown.allocation = true,
                _ => return Err("map, bind and allocation, with commas between them".into()),
            }
        }
        Ok(shown)
    }
}

/// Parses a value of `--stdin`: a rank, `all` or `none`.
pub fn stdin(text: &str) -> Result<StdinTo, String> {
    match text {
        "all" => Ok(StdinTo::All),
        "none" => Ok(StdinTo::NoRank),
        number => match number.parse() {
            Ok(rank) => Ok(StdinTo::Rank(rank)),
            Err(_) => Err("a rank's number, all or none".into()),
        },
    }
}

/// Parses a value of `--end-dead`: the reaction to a job in which no rank can make progress.
pub fn end_dead(text: &str) -> Result<EndDead, String> {
    match text {
        "no" => Ok(EndDead::No),
        "report" => Ok(EndDead::Report),
        "yes" => Ok(EndDead::Yes),
        _ => Err("no, report or yes".into()),
    }
}

/// Returns the default of `--end-dead`.
/// At a terminal the default is `report`, since the user may attach a debugger to the stuck job.
/// Without a terminal or in CI the default is `yes`, since no user would end the job.
pub fn end_dead_by_default() -> EndDead {
    let ci = mpi_base::environment::text("CI");
    end_dead_at(
        rustix::termios::isatty(rustix::stdio::stderr()),
        ci.as_deref(),
    )
}

/// Returns the default of `--end-dead`; `ci` is the value of the variable `CI`.
fn end_dead_at(is_terminal: bool, ci: Option<&str>) -> EndDead {
    let is_ci = ci.is_some_and(|value| !matches!(value, "" | "0" | "false"));
    match is_terminal && !is_ci {
        true => EndDead::Report,
        false => EndDead::Yes,
    }
}

/// A time limit; `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

impl TimeLimit {
    /// Parses a time limit. As in other launchers, 0 means no limit.
    pub fn parse(text: &str) -> Result<TimeLimit, String> {
        if text.is_empty() {
            return Ok(TimeLimit(None));
        }
        // timeout(1) and Slurm accept the suffix `m` for minutes.
        let minutes = text.strip_suffix('m').map(|number| format!("{number}min"));
        match Duration::parse(minutes.as_deref().unwrap_or(text)) {
            Ok(limit) => Ok(TimeLimit(Some(limit).filter(|limit| !limit.is_zero()))),
            Err(_) => Err("a time such as 30, 90s or 5min".into()),
        }
    }
}

/// Parses a value of `--initial-errhandler`.
pub fn error_handler(text: &str) -> Result<InitialHandler, String> {
    InitialHandler::parse(text)
}

/// A file for packagers (`--generate`), printed instead of running a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generated {
    Manual,
    Completions(Shell),
}

impl Generated {
    /// Parses `man` or the name of a shell.
    pub fn parse(text: &str) -> Result<Generated, String> {
        match text {
            "man" => Ok(Generated::Manual),
            shell => Shell::from_str(shell, false)
                .map(Generated::Completions)
                .map_err(|_| "man, bash, zsh, fish, elvish or powershell".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_job_is_only_reported_at_a_terminal_outside_of_ci() {
        assert_eq!(end_dead_at(false, None), EndDead::Yes);
        for no_ci in [None, Some(""), Some("0"), Some("false")] {
            assert_eq!(end_dead_at(true, no_ci), EndDead::Report);
        }
        for ci in ["true", "1", "yes"] {
            assert_eq!(end_dead_at(true, Some(ci)), EndDead::Yes);
        }
    }

    #[test]
    fn words_and_numbers_have_types() {
        assert_eq!(stdin("3"), Ok(StdinTo::Rank(3)));
        assert_eq!(stdin("all"), Ok(StdinTo::All));
        assert!(stdin("-1").is_err());
        assert_eq!(end_dead("yes"), Ok(EndDead::Yes));
        assert!(end_dead("maybe").is_err());
        let limit = |text| TimeLimit::parse(text).map(|limit| limit.0);
        assert_eq!(limit("2min"), Ok(Some(Duration::from_secs(120))));
        assert_eq!(limit("2m"), limit("2min"));
        assert_eq!((limit("0"), limit("")), (Ok(None), Ok(None)));
        assert!(limit("soon").is_err());
        let shown = Shown::parse("Map:alloc").unwrap();
        assert!(shown.map && shown.allocation && !shown.bindings);
        let generated = Generated::parse("zsh");
        assert_eq!(generated, Ok(Generated::Completions(Shell::Zsh)));
        assert!(Generated::parse("csh").is_err());
    }
}
