//! The launcher's own parameters.

use mpi_base::param::{About, Level, PREFIX, Param};
use std::ffi::OsString;
use std::time::Duration;

/// The time between SIGTERM and SIGKILL when a job is ended.
pub static GRACE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "grace",
    "200ms",
    Level::USER,
    "Time between the signal that asks the processes of a job to end and SIGKILL.",
);

/// The time between a signal of the user and SIGKILL, for ranks that handle the signal.
pub static SIGNAL_GRACE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "signal_grace",
    "5s",
    Level::USER,
    "The same time for processes that handle the signal, when a signal to mpirun ends a job.",
);

/// The command that reaches other hosts; the name is the one that users know from Open MPI.
pub static RSH_AGENT: Param<String> = Param::new(
    "plm",
    "rsh",
    "agent",
    "ssh",
    Level::USER,
    "Command that reaches another host; it is called with the host's name and one shell command.",
);

/// The fan-out of the tree of launchers.
pub static FANOUT: Param<usize> = Param::new(
    "mpirun",
    "",
    "fanout",
    "16",
    Level::TUNER,
    "Number of hosts that mpirun reaches itself; each of them reaches the same number of further hosts.",
);

/// The time after which a silent host is given up.
pub static SILENCE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "silence",
    "30s",
    Level::TUNER,
    "A host that has sent nothing for this time counts as lost, and the job ends; 0 is no limit.",
);

/// The time after which a host that does not answer is given up.
pub static GREETING: Param<Duration> = Param::new(
    "mpirun",
    "",
    "greeting",
    "120s",
    Level::USER,
    "A host whose launcher has not answered within this time counts as lost, and the job ends; 0 is no limit.",
);

/// The parameters that mpi-info lists.
pub static PARAMS: [&About; 5] = [
    GRACE.about(),
    SIGNAL_GRACE.about(),
    FANOUT.about(),
    GREETING.about(),
    SILENCE.about(),
];

/// The parameter that makes the library print what was selected and why; `--explain` sets it.
pub const EXPLAIN: &str = "mpi_base_explain";

/// The environment variable that `--explain` sets.
pub fn explain_variable() -> OsString {
    format!("{PREFIX}{EXPLAIN}").into()
}
