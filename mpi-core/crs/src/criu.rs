//! `criu`: the component that saves images of all processes of a job on one host, with CRIU.
//!
//! The program is not involved. This module builds CRIU's arguments and interprets its output;
//! mpirun runs CRIU (`mpirun/src/launch/images`).
//!
//! The dumped process tree begins with the launcher's supervisor, the leader of its session.
//! So the tree contains sockets, pipes and shared memory between the supervisor and the ranks.
//! The front end is outside the tree. The dump lists its socket to the supervisor as external.
//! A restart passes a new socket, and new pipes for the output. Each process gets its old
//! process id, so a restart happens in a PID namespace of its own.
//!
//! Each version of CRIU fails on some newer kernels.
//! On Linux 6.18, CRIU 4.2 is the first version that works:
//! CRIU 3.17 does not start on this kernel, and CRIU 4.1 cannot dump TCP sockets.

pub mod open_files;

use mpi_base::param::{Level, Param};
use printable::name;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Parameter `crs_criu_program`: the CRIU executable.
pub static PROGRAM: Param<PathBuf> = Param::new(
    "crs",
    "criu",
    "program",
    "criu",
    Level::USER,
    "The CRIU program: a path, or a name that is searched in PATH",
);

/// Parameter `crs_criu_limit`: the time limit of each step on a host. There is none by default, because the time of a dump
/// depends on the job and the file system, and the end of a late dump is the end of the job.
pub static LIMIT: Param<Duration> = Param::new(
    "crs",
    "criu",
    "limit",
    "0",
    Level::USER,
    "The time in which a host dumps, syncs or restores its processes; a host that takes longer has failed. 0 is no limit.",
);

/// The name of this component, in manifests and in the parameter `crs`.
pub const NAME: &str = "criu";

/// The folder of the images in a checkpoint.
pub const IMAGES: &str = "images";

/// Returns the folder of a host's images in a checkpoint. Host 0 is that of mpirun.
pub fn images_of(host: u32) -> String {
    match host {
        0 => IMAGES.to_owned(),
        host => format!("{IMAGES}-{host}"),
    }
}

/// A version of CRIU: major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

/// The first CRIU version that can dump and restore processes with this library.
pub const NEEDED: Version = Version(4, 2);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// Reads the output of `criu --version`, whose first line is `Version: 4.2.1`.
    pub fn read(output: &str) -> Option<Version> {
        let line = output
            .lines()
            .find_map(|line| line.trim().strip_prefix("Version:"))?;
        let mut numbers = line.trim().split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next().map_or(Some(0), |minor| {
            let digits = minor.len() - minor.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            minor[..digits].parse().ok()
        });
        Some(Version(major, minor?))
    }
}

/// The reasons why CRIU cannot dump or restore a job; each displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CriuError {
    Absent {
        program: String,
    },
    Unreadable {
        program: String,
        output: String,
    },
    TooOld {
        program: String,
        version: String,
        why: String,
    },
    NoPrivilege,
    /// `what` names a program or a device that the job uses.
    Unserved {
        what: String,
    },
    ForeignDescriptor {
        what: String,
    },
    /// CRIU has exceeded its time limit, and mpirun has killed it.
    Late {
        doing: &'static str,
        limit: Duration,
        log: String,
    },
    /// CRIU was killed. The processes may still contain code that CRIU has inserted.
    Killed {
        by: String,
        doing: &'static str,
        log: String,
    },
    Failed {
        doing: &'static str,
        line: String,
        log: String,
    },
}

impl fmt::Display for CriuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CriuError::Absent { program } => write!(
                f,
                "checkpoints of processes need CRIU {NEEDED} or later, and there is no program {} (--mca crs_criu_program names it)",
                name(program)
            ),
            CriuError::Unreadable { program, output } => write!(
                f,
                "{} does not report its version as CRIU does, but \"{}\"",
                name(program),
                name(output)
            ),
            CriuError::TooOld {
                program,
                version,
                why,
            } => write!(
                f,
                "checkpoints of processes need CRIU {NEEDED} or later, and {} is {version}, {why}",
                name(program)
            ),
            CriuError::NoPrivilege => f.write_str(
                "checkpoints of processes need the capability CAP_SYS_ADMIN, which this process has not; run mpirun as root, or use --checkpoint-dir without --mca crs criu",
            ),
            CriuError::Unserved { what } => {
                write!(f, "the job uses {what}, and checkpoints of processes cannot contain it")
            }
            CriuError::ForeignDescriptor { what } => write!(f, "{what}, which CRIU cannot save"),
            CriuError::Late { doing, limit, log } => write!(
                f,
                "CRIU took more than {} s to {doing} the job ({}); --mca crs_criu_limit sets another limit",
                limit.as_secs_f64(),
                name(log)
            ),
            CriuError::Killed { by, doing, log } => write!(
                f,
                "CRIU was killed by {by} before it could {doing} the job ({})",
                name(log)
            ),
            CriuError::Failed { doing, line, log } => {
                write!(f, "CRIU has failed to {doing} the job: {} ({})", name(line), name(log))
            }
        }
    }
}

impl std::error::Error for CriuError {}

/// Errors of the system in CRIU's log that a repetition would meet again.
const LASTING: [&str; 7] = [
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Input/output error",
];

impl CriuError {
    /// Returns true if CRIU may have left changes in the processes.
    pub fn is_damage(&self) -> bool {
        matches!(self, CriuError::Killed { .. } | CriuError::Late { .. })
    }

    /// Returns true if a later attempt may succeed: CRIU cannot dump a process in the middle of some steps,
    /// such as the change of an epoll's descriptors. A CRIU that logs no error has not begun.
    pub fn may_pass(&self) -> bool {
        let CriuError::Failed { line, .. } = self else {
            return false;
        };
        let is_lasting = LASTING.iter().any(|error| line.contains(error));
        !is_lasting && !line.starts_with(NO_ERROR)
    }
}

/// The beginning of the message about a CRIU that has logged no error.
pub const NO_ERROR: &str = "it has ended with status";

/// Reads the output of `criu --version`. Returns the version as text.
/// Fails if this version cannot dump and restore processes with this library.
pub fn admit(program: &Path, output: &str) -> Result<String, CriuError> {
    let shown = program.display().to_string();
    let Some(version) = Version::read(output) else {
        let output = output.lines().next().unwrap_or_default().to_owned();
        return Err(CriuError::Unreadable {
            program: shown,
            output,
        });
    };
    let text = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("Version:"));
    let text = text.map_or_else(|| version.to_string(), |text| text.trim().to_owned());
    if version >= NEEDED {
        return Ok(text);
    }
    let why = match version {
        version if version < Version(4, 1) => {
            "which does not start on Linux 6.13 and later (its memory layout of the vDSO is older)"
        }
        _ => "which dumps no TCP socket on Linux 6.16 and later",
    };
    Err(CriuError::TooOld {
        program: shown,
        version: text,
        why: why.into(),
    })
}

/// Fails if CRIU cannot dump descriptor `number`; `target` is the link target in `/proc/PID/fd`.
pub fn check_descriptor(process: &str, number: u32, target: &str) -> Result<(), CriuError> {
    let what = match target {
        target if target.starts_with("anon_inode:[io_uring]") => "io_uring",
        target if target.starts_with("anon_inode:[userfaultfd]") => "userfaultfd",
        target if target.starts_with("/dev/nvidia") => "a CUDA device",
        target if target.starts_with("/dev/kfd") || target.starts_with("/dev/dri") => "a GPU",
        target if target.starts_with("/dev/infiniband") => "an InfiniBand device",
        target if target.starts_with("/dev/xpmem") => "XPMEM",
        target if target.starts_with("/dev/parport") => "a parallel port",
        target if target.starts_with("/dev/gpiochip") => "a GPIO port",
        target if target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") => "a terminal",
        _ => return Ok(()),
    };
    let what = format!("{process} has descriptor {number} ({what})");
    Err(CriuError::ForeignDescriptor { what })
}

/// The state of the processes after a successful dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// They continue immediately.
    Running,
    /// They are stopped, so that they are either killed or continued by SIGCONT.
    Stopped,
}

/// Returns the CRIU arguments that dump the process tree of a supervisor.
///
/// `outside` contains the inodes of both ends of the supervisor's socket to the front end.
/// Both ends of each loopback connection are in the tree, so CRIU need not lock the network.
pub fn dump_arguments(
    supervisor: i32,
    images: &Path,
    log: &Path,
    outside: &[u64],
    after: After,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        "dump".into(),
        "-t".into(),
        supervisor.to_string().into(),
        "-D".into(),
        images.into(),
        "-o".into(),
        log.into(),
        "--tcp-established".into(),
        "--network-lock".into(),
        "skip".into(),
        "--file-locks".into(),
    ];
    for inode in outside {
        arguments.extend(["--external".into(), format!("unix[{inode}]").into()]);
    }
    let after = match after {
        After::Running => "--leave-running",
        After::Stopped => "--leave-stopped",
    };
    arguments.push(after.into());
    arguments
}

/// A descriptor of the front end that takes the place of one of the dumped tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    pub descriptor: i32,
    /// The name of the dumped file as `/proc/PID/fd` shows it: `socket:[7]`, `pipe:[8]`.
    pub dumped: String,
}

/// Returns the CRIU arguments that restore a process tree.
/// CRIU runs `script` at each of its stages, with the name of the stage in [`STAGE`].
pub fn restore_arguments(
    images: &Path,
    log: &Path,
    replaced: &[Replacement],
    script: Option<&Path>,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        "restore".into(),
        "-d".into(),
        "-S".into(),
        "-D".into(),
        images.into(),
        "-o".into(),
        log.into(),
        "--tcp-established".into(),
        "--file-locks".into(),
    ];
    for Replacement { descriptor, dumped } in replaced {
        let pair = format!("fd[{descriptor}]:{dumped}");
        arguments.extend(["--inherit-fd".into(), pair.into()]);
    }
    if let Some(script) = script {
        arguments.extend(["--action-script".into(), script.into()]);
    }
    arguments
}

/// The environment variable in which CRIU tells a script the stage.
pub const STAGE: &str = "CRTOOLS_SCRIPT_ACTION";

/// The stage at which all sockets exist and none has sent a packet: TCP repair is still on.
pub const ALL_SOCKETS_EXIST: &str = "post-restore";

/// The error that CRIU logs without the capability CAP_SYS_RESOURCE. CRIU continues after it.
const HARMLESS: &str = "Can't setup RLIMIT_NOFILE";

/// Returns the first error in a CRIU log; that line names the cause.
pub fn first_error(log: &str) -> Option<&str> {
    let is_error = |line: &&str| line.contains("Error (") && !line.contains(HARMLESS);
    let line = log.lines().find(is_error)?;
    Some(line.split_once("): ").map_or(line, |(_, text)| text).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_cannot_work_are_refused_by_name() {
        let read = |text: &str| Version::read(&format!("Version: {text}\nGitID: v{text}\n"));
        assert_eq!(read("3.17.1"), Some(Version(3, 17)));
        assert_eq!(read("4.2"), Some(Version(4, 2)));
        assert_eq!(read("5"), Some(Version(5, 0)));
        assert_eq!(Version::read("criu\n"), None);
        let admitted =
            |text: &str| admit(Path::new("/usr/sbin/criu"), &format!("Version: {text}\n"));
        let sentence = |text: &str| admitted(text).unwrap_err().to_string();
        assert_eq!(
            sentence("3.17.1"),
            "checkpoints of processes need CRIU 4.2 or later, and /usr/sbin/criu is 3.17.1, which does not start on Linux 6.13 and later (its memory layout of the vDSO is older)"
        );
        assert!(sentence("4.1.1").ends_with(
            "/usr/sbin/criu is 4.1.1, which dumps no TCP socket on Linux 6.16 and later"
        ));
        assert_eq!(admitted("4.2.1"), Ok("4.2.1".into()));
        assert_eq!(admitted("4.10"), Ok("4.10".into()));
        let other = admit(Path::new("criu"), "cargo 1\n")
            .unwrap_err()
            .to_string();
        assert_eq!(
            other,
            "criu does not report its version as CRIU does, but \"cargo 1\""
        );
    }

    #[test]
    fn the_front_end_stays_outside_of_the_dumped_tree() {
        let text = |arguments: Vec<OsString>| {
            let words = arguments
                .into_iter()
                .map(|word| word.into_string().unwrap());
            words.collect::<Vec<_>>().join(" ")
        };
        let (images, log) = (Path::new("/d/1.tmp/images"), Path::new("/d/log"));
        assert_eq!(
            text(dump_arguments(17, images, log, &[5, 6], After::Running)),
            "dump -t 17 -D /d/1.tmp/images -o /d/log --tcp-established --network-lock skip --file-locks \
             --external unix[5] --external unix[6] --leave-running"
        );
        let replaced = [(3, "socket:[5]"), (4, "pipe:[6]")];
        let replaced = replaced.map(|(descriptor, dumped)| Replacement {
            descriptor,
            dumped: dumped.into(),
        });
        let restored = text(restore_arguments(images, log, &replaced, None));
        assert!(
            restored.ends_with("--inherit-fd fd[3]:socket:[5] --inherit-fd fd[4]:pipe:[6]"),
            "{restored}"
        );
    }

    #[test]
    fn devices_are_refused_before_anything_is_written() {
        let refused =
            |target| check_descriptor("rank 2", 7, target).map_err(|error| error.to_string());
        let sentence = "rank 2 has descriptor 7 (io_uring), which CRIU cannot save";
        assert_eq!(refused("anon_inode:[io_uring]"), Err(sentence.into()));
        for device in [
            "/dev/nvidia0",
            "/dev/infiniband/uverbs0",
            "/dev/parport0",
            "/dev/gpiochip0",
            "/dev/kfd",
            "/dev/xpmem",
            "/dev/pts/3",
        ] {
            assert!(refused(device).is_err(), "{device}");
        }
        for plain in [
            "/dev/null",
            "socket:[17]",
            "pipe:[3]",
            "/memfd:portcullis-node (deleted)",
            "anon_inode:[eventfd]",
        ] {
            assert_eq!(refused(plain), Ok(()), "{plain}");
        }
    }

    #[test]
    fn a_full_disk_is_no_reason_for_another_attempt_and_an_epoll_in_change_is() {
        let failed = |line: &str| CriuError::Failed {
            doing: "dump",
            line: line.into(),
            log: "log".into(),
        };
        let full = "img: Can't write: No space left on device";
        assert!(!failed(full).may_pass());
        assert!(!failed(&format!("{NO_ERROR} 3")).may_pass());
        assert!(failed("epoll: Escaped/closed fd descriptor 7 on pid 9").may_pass());
        let late = CriuError::Late {
            doing: "dump",
            limit: Duration::from_secs(2),
            log: "log".into(),
        };
        assert!(late.is_damage() && !late.may_pass());
        assert_eq!(
            late.to_string(),
            "CRIU took more than 2 s to dump the job (log); --mca crs_criu_limit sets another limit"
        );
    }

    #[test]
    fn the_first_error_of_a_log_is_found() {
        let log = "(00.1) Dumping\n(00.1) Error (criu/util.c:1): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted\n(00.2) Error (criu/sk-inet.c:1): inet: Can't get 1:16 opt\n(00.3) Error (criu/x.c:2): later\n";
        assert_eq!(first_error(log), Some("inet: Can't get 1:16 opt"));
        assert_eq!(first_error("(00.1) fine\n"), None);
    }
}
