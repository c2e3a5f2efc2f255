//! Client of the control socket, `mpi-ctl`: finds the job, sends a request, prints the reply.

use super::command::{Command, Options};
use super::{DONE, NAME, address, is_trusted, running};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use rustix::process::{Pid, getuid};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

/// The maximum time for which a request waits for the control socket of a running mpirun.
const LIMIT: Duration = Duration::from_secs(10);

/// The reason why a request failed.
#[derive(Debug)]
pub enum ControlError {
    /// No mpirun of this user runs on this host.
    NoJob,
    /// Several mpiruns of this user run on this host; the value contains their pids.
    Several(Vec<i32>),
    /// The process is not an mpirun of this user, or has ended.
    NotThere(i32),
    /// The process is an mpirun of this user, and has had no control socket for `LIMIT`.
    NoSocket(i32),
    /// The mpirun has closed the connection without a reply: the request must be repeated.
    NoReply(i32),
    /// Another user's process has bound the socket's name.
    NotTrusted(i32),
    /// A system call failed with this error.
    System(io::Error),
    /// The mpirun refused the request with this message.
    Refused(String),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::NoJob => f.write_str("no mpirun of this user runs on this host"),
            ControlError::Several(jobs) => {
                let jobs: Vec<String> = jobs.iter().map(i32::to_string).collect();
                write!(
                    f,
                    "several mpiruns of this user run on this host: {}; name one of them",
                    jobs.join(", ")
                )
            }
            ControlError::NotThere(job) => {
                write!(
                    f,
                    "process {job} is no mpirun of this user on this host, or has ended"
                )
            }
            ControlError::NoSocket(job) | ControlError::NoReply(job) => write!(
                f,
                "mpirun (process {job}) accepts no request at this time: it starts, restores or ends its job; ask again"
            ),
            ControlError::NotTrusted(job) => {
                write!(f, "the control socket of process {job} is of another user")
            }
            ControlError::System(error) => write!(f, "speaking to mpirun failed: {error}"),
            ControlError::Refused(why) => f.write_str(why.trim_end()),
        }
    }
}

impl std::error::Error for ControlError {}

/// Runs `mpi-ctl`; returns the exit code. `sentence` formats an error of the command line.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    sentence: fn(&clap::Error) -> String,
) -> i32 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|word| word == "--generate") {
        let mut page = Vec::new();
        let written = clap_mangen::Man::new(Options::command()).render(&mut page);
        // A closed stdout pipe is not an error.
        let _ = written.map(|()| printable::to_stdout(&String::from_utf8_lossy(&page)));
        return 0;
    }
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        // Without arguments: the usage, and the status of an error.
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            printable::to_stderr(&error.render().to_string());
            return 2;
        }
        Err(error) if error.use_stderr() => {
            printable::eprintln!("mpi-ctl: {}", sentence(&error));
            return 2;
        }
        Err(error) => {
            let _ = printable::to_stdout(&error.render().to_string());
            return 0;
        }
    };
    let (command, job) = options.command.request();
    match ask(command, job) {
        Ok(reply) => {
            let _ = printable::to_stdout(&reply);
            0
        }
        Err(error) => {
            printable::eprintln!("mpi-ctl: {error}");
            1
        }
    }
}

/// Sends a request to a job; returns the reply.
/// Repeats it for `LIMIT` while the job's mpirun runs without a control socket.
pub fn ask(command: Command, job: Option<i32>) -> Result<String, ControlError> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut begun = Instant::now();
    loop {
        let asked = Instant::now();
        let error = match ask_once(command, job) {
            Err(ControlError::NoReply(job)) if running::is_mpirun(job) => {
                // While the job is saved, a connection may wait for longer than the limit.
                begun += asked.elapsed();
                ControlError::NoReply(job)
            }
            Err(ControlError::NoReply(job)) => return Err(ControlError::NotThere(job)),
            Err(ControlError::NotThere(job)) if running::is_mpirun(job) => {
                ControlError::NoSocket(job)
            }
            Err(ControlError::NoJob) => match running::mpiruns().as_slice() {
                [] => return Err(ControlError::NoJob),
                [job] => ControlError::NoSocket(*job),
                jobs => return Err(ControlError::Several(jobs.to_vec())),
            },
            done => return done,
        };
        if begun.elapsed() > LIMIT {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
}

fn ask_once(command: Command, job: Option<i32>) -> Result<String, ControlError> {
    let job = match job {
        Some(job) => job,
        None => the_only_one()?,
    };
    let socket = connect(job)?;
    let request = format!("{}\n", command.word());
    // An mpirun that closes its socket drops the connections that it has not accepted.
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ControlError::NotThere(job),
        _ => ControlError::System(error),
    };
    let sent = rustix::net::send(&socket, request.as_bytes(), SendFlags::NOSIGNAL);
    sent.map_err(|error| failed(error.into()))?;
    let mut reply = Vec::new();
    let read = File::from(socket).read_to_end(&mut reply);
    read.map_err(failed)?;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    match reply.split_once('\n') {
        Some((DONE, text)) => Ok(text.to_owned()),
        Some((_, why)) => Err(ControlError::Refused(why.to_owned())),
        None => Err(ControlError::NoReply(job)),
    }
}

fn connect(job: i32) -> Result<OwnedFd, ControlError> {
    // Rejects a negative pid here, since rustix panics on a negative raw pid.
    let pid = Some(job).filter(|job| *job > 0).and_then(Pid::from_raw);
    let pid = pid.ok_or(ControlError::NotThere(job))?;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let socket = socket.map_err(|error| ControlError::System(error.into()))?;
    let address = address(pid).map_err(|error| ControlError::System(error.into()))?;
    rustix::net::connect(&socket, &address).map_err(|error| match error {
        Errno::CONNREFUSED | Errno::NOENT => ControlError::NotThere(job),
        error => ControlError::System(error.into()),
    })?;
    match is_trusted(&socket) {
        true => Ok(socket),
        false => Err(ControlError::NotTrusted(job)),
    }
}

/// Returns the pid of the only mpirun of this user on this host.
fn the_only_one() -> Result<i32, ControlError> {
    let table = std::fs::read_to_string("/proc/net/unix").map_err(ControlError::System)?;
    let jobs = jobs_in(&table, getuid().as_raw());
    if jobs.is_empty() {
        return Err(ControlError::NoJob);
    }
    // A job that is restored has no socket yet; the request may be meant for that job.
    let mut all = [running::mpiruns(), jobs].concat();
    all.sort_unstable();
    all.dedup();
    match all.as_slice() {
        [job] => Ok(*job),
        _ => Err(ControlError::Several(all)),
    }
}

/// Returns the pids of a user's mpiruns, which `/proc/net/unix` lists by their socket names.
fn jobs_in(table: &str, user: u32) -> Vec<i32> {
    let prefix = format!("@{NAME}-{user}-");
    let names = table
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7));
    let jobs = names.filter_map(|name| name.strip_prefix(&prefix)?.parse().ok());
    let mut jobs: Vec<i32> = jobs.collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_found_in_the_table_of_sockets() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 17 @portcullis-control-0-42\n\
             0000000000000000: 00000003 00000000 00000000 0001 03 18 @portcullis-control-0-42\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 19 @portcullis-control-1-43\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 20 /run/x\n";
        assert_eq!(jobs_in(table, 0), [42]);
        assert_eq!(jobs_in(table, 1), [43]);
        assert_eq!(jobs_in(table, 2), [] as [i32; 0]);
    }

    #[test]
    fn a_process_that_is_no_mpirun_is_named() {
        let error = ask(Command::Status, Some(i32::MAX))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            format!(
                "process {} is no mpirun of this user on this host, or has ended",
                i32::MAX
            )
        );
        assert!(matches!(
            ask(Command::Stop, Some(-1)),
            Err(ControlError::NotThere(-1))
        ));
    }

    #[test]
    fn the_words_on_the_socket_name_one_command_each() {
        for word in ["status", "checkpoint", "checkpoint-stop", "hang", "stop"] {
            assert_eq!(Command::read(word).map(Command::word), Some(word));
        }
        assert_eq!(Command::read("halt"), None);
        Options::command().debug_assert();
    }
}
