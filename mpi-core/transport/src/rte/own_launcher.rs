//! Variables that this library's mpirun sets for a rank, and the record that shows whether they describe this process.
//!
//! A rank may start another launcher, such as MPICH's mpiexec.
//! The ranks of this inner launcher inherit all variables of mpirun, but they have the `PMI_FD`, `PMI_RANK` and `PMI_SIZE` of the inner launcher,
//! or its `PMI_PORT`.
//! So mpirun records rank, size and the socket's inode number in [`RECORD`].
//! If the record differs from the PMI connection of a process, [`of_connection`] removes the other variables.
//! Without the record nothing is removed.

use super::{Env, checkpoints, deaths};
use rustix::fs::fstat;
use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The variable in which mpirun records the PMI connection of a rank, as `RANK/SIZE/INODE`.
pub const RECORD: &str = "PORTCULLIS_PMI";

/// The variables of one rank that mpirun sets, except those of PMI-1.
pub const VARIABLES: [&str; 11] = [
    RECORD,
    "PORTCULLIS_NODE_FD",
    "PORTCULLIS_LOCAL_RANKS",
    "PORTCULLIS_LOCAL_RANK",
    "PORTCULLIS_LOCAL_SIZE",
    mpi_base::cpu::SHARERS,
    "PORTCULLIS_JOB",
    "PORTCULLIS_APPNUM",
    "PORTCULLIS_UNIVERSE_SIZE",
    deaths::SERVED,
    checkpoints::SERVED,
];

/// Returns the value of [`RECORD`] for a rank with this end of a PMI socket.
///
/// Two open sockets of a machine have different inode numbers, while their descriptors in two processes may have the same number.
pub fn record(rank: u32, size: u32, socket: BorrowedFd<'_>) -> io::Result<String> {
    Ok(format!("{rank}/{size}/{}", fstat(socket)?.st_ino))
}

/// Returns true if an inner launcher serves its processes by `PMI_PORT`: mpirun passes none to its ranks.
pub(super) fn has_inner_port(env: &Env) -> bool {
    env.has(RECORD) && env.has("PMI_PORT")
}

/// Returns true if the process is a child of mpirun, so it has not inherited the variables from a rank that has started it.
pub(super) fn has_started_this_process(env: &Env) -> bool {
    let launcher = env.get("PORTCULLIS_LAUNCHER");
    let launcher = launcher.and_then(|pid| pid.parse::<i32>().ok());
    let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    env.has(RECORD) && launcher.is_some() && launcher == parent
}

/// Returns the environment of a process with this PMI connection: without the variables of mpirun if the connection is an inner launcher's.
/// `socket` is the socket of `PMI_FD`; `None` if the process has connected to a port.
pub(super) fn of_connection<'a>(
    env: &'a Env,
    rank: u32,
    size: u32,
    socket: Option<BorrowedFd<'_>>,
) -> Cow<'a, Env> {
    let Some(recorded) = env.get(RECORD) else {
        return Cow::Borrowed(env);
    };
    let own = socket.and_then(|socket| record(rank, size, socket.as_fd()).ok());
    match own.as_deref() == Some(recorded) {
        true => Cow::Borrowed(env),
        false => Cow::Owned(env.without(&VARIABLES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    const MEMORY: &str = "PORTCULLIS_NODE_FD";

    fn env(recorded: Option<&str>) -> Env {
        let recorded = recorded.map(|text| (RECORD.into(), text.into()));
        let all = [(MEMORY.into(), "7".into()), ("PATH".into(), "/bin".into())];
        all.into_iter().chain(recorded).collect()
    }

    #[test]
    fn variables_of_mpirun_count_only_with_the_connection_that_it_has_recorded() {
        let (socket, other) = UnixStream::pair().unwrap();
        let (socket, other) = (socket.as_fd(), other.as_fd());
        let recorded = env(Some(&record(1, 2, socket).unwrap()));
        let kept = |rank, size, socket| {
            let env = of_connection(&recorded, rank, size, socket);
            assert!(env.has("PATH"));
            env.has(MEMORY)
        };
        assert!(kept(1, 2, Some(socket)));
        assert!(!kept(1, 2, Some(other)) && !kept(1, 2, None));
        assert!(!kept(0, 2, Some(socket)) && !kept(1, 3, Some(socket)));
    }

    #[test]
    fn without_a_record_all_variables_count() {
        assert!(of_connection(&env(None), 0, 2, None).has(MEMORY));
    }

    #[test]
    fn a_port_belongs_to_an_inner_launcher_only_beside_a_record() {
        let has_inner_port = |variables: &[&str]| {
            let variables = variables.iter().map(|name| (name.into(), "1".into()));
            has_inner_port(&variables.collect())
        };
        assert!(has_inner_port(&[RECORD, "PMI_PORT"]));
        assert!(!has_inner_port(&["PMI_PORT"]) && !has_inner_port(&[RECORD]));
    }
}
