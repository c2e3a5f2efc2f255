//! The recorder's configuration in the environment, which launchers pass to all ranks.

use mpi_base::{environment, text};
use mpi_report::trace::EVENTS;
use std::path::PathBuf;
use std::time::Duration;

/// Path of the trace file; its extension selects the format.
const TRACE: &str = "PORTCULLIS_TRACE";
/// Time without progress before a report is printed, in seconds.
const HANG: &str = "PORTCULLIS_HANG";
/// Path of the report's JSON file.
const HANG_REPORT: &str = "PORTCULLIS_HANG_REPORT";
/// If 1, rank 0 prints the exit skew of `MPI_Barrier` at the end.
const EXIT_SKEW: &str = "PORTCULLIS_EXIT_SKEW";
/// Maximum number of events kept per rank, as for `mpirun --trace`.
const KEPT: &str = "PORTCULLIS_MCA_mpi_base_trace";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub trace: Option<PathBuf>,
    pub patience: Option<Duration>,
    pub report: Option<PathBuf>,
    pub kept: usize,
    pub exit_skew: bool,
}

impl Settings {
    /// Reads the configuration. Returns `None` if it enables no feature.
    /// The error message names an invalid value.
    pub fn read() -> Result<Option<Settings>, String> {
        Settings::of(|name| environment::var(name).map(text::from_os))
    }

    fn of(value: impl Fn(&str) -> Option<String>) -> Result<Option<Settings>, String> {
        let value = |name| value(name).filter(|text| !text.is_empty());
        let patience = value(HANG).map(|text| seconds(&text)).transpose()?;
        let kept = match value(KEPT) {
            None => EVENTS as usize,
            Some(text) => text
                .parse()
                .map_err(|_| format!("{KEPT}={text}: it must be the number of events to keep"))?,
        };
        let exit_skew = match value(EXIT_SKEW).as_deref() {
            None | Some("0") => false,
            Some("1") => true,
            Some(text) => return Err(format!("{EXIT_SKEW}={text}: it must be 1 or 0")),
        };
        let settings = Settings {
            trace: value(TRACE).as_deref().map(text::to_path),
            patience,
            report: value(HANG_REPORT).as_deref().map(text::to_path),
            kept,
            exit_skew,
        };
        let wanted = settings.trace.is_some() || settings.patience.is_some() || exit_skew;
        Ok(wanted.then_some(settings))
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).trim();
    let seconds: Option<f64> = number.parse().ok();
    seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{HANG}={text}: it must be a number of seconds, such as 30 or 1.5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::of(|name| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_watched_unless_it_is_asked_for() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[(HANG, ""), (HANG_REPORT, "x")]), Ok(None));
        let both = of(&[(HANG, "1.5"), (TRACE, "t.vcd")]).unwrap().unwrap();
        assert_eq!(both.patience, Some(Duration::from_millis(1500)));
        assert_eq!(both.trace, Some("t.vcd".into()));
        assert_eq!(both.kept, EVENTS as usize);
    }

    #[test]
    fn what_is_no_time_is_refused_in_a_sentence() {
        for text in ["soon", "-1", "0", "inf", "1e300"] {
            let message = of(&[(HANG, text)]).unwrap_err();
            assert!(
                message.contains(&format!("{HANG}={text}: it must be a number of seconds")),
                "{message}"
            );
        }
    }

    #[test]
    fn the_exit_skew_is_wanted_or_not() {
        let wanted = |text| of(&[(EXIT_SKEW, text)]).map(|settings| settings.is_some());
        assert_eq!((wanted("1"), wanted("0")), (Ok(true), Ok(false)));
        let refused = wanted("yes").unwrap_err();
        assert_eq!(refused, "PORTCULLIS_EXIT_SKEW=yes: it must be 1 or 0");
    }
}
