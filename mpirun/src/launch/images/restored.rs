//! The restart of a job from images of its processes.

use super::attend::{Attendant, Input};
use super::front::{Connections, connections};
use super::relay::Relay;
use super::run::{Run, log_of};
use super::take::{SOCKET, STDERR, STDOUT, SUPERVISOR};
use crate::launch::FORWARDED;
use crate::launch::descendants;
use crate::launch::frontend::raise_open_files;
use crate::launch::hold::{self, Go};
use crate::launch::program::Images;
use crate::launch::sys::{self, Forked};
use mpi_core::crs::criu::open_files::{self, OpenFile};
use mpi_core::crs::criu::{self, CriuError, Replacement};
use mpi_core::crs::manifest::Manifest;
use mpi_core::crs::store::{Damage, Found, Store, verify};
use printable::name;
use rustix::fd::{AsFd as _, AsRawFd as _};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::ffi::CStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file with the last process number of a PID namespace.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// CRIU's error if a TCP connection with the same addresses exists.
const IN_USE: &str = "Can't connect inet socket back: Cannot assign requested address";

/// A checkpoint of process images to restart from.
#[derive(Debug)]
pub struct Restart {
    pub(crate) found: Found,
    pub(crate) images: Images,
    /// The folder of the job's checkpoints.
    pub(crate) dir: PathBuf,
    pub(crate) is_quiet: bool,
    /// Whether files that have grown since the checkpoint are cut to their old length.
    pub(crate) truncates: bool,
}

/// The reason why a job cannot be restarted from images.
#[derive(Debug)]
enum RestartError {
    Damaged {
        set: String,
        damage: Damage,
    },
    /// An entry of the manifest is missing or malformed.
    Entry {
        set: String,
        entry: &'static str,
    },
    Image {
        set: String,
    },
    Grown {
        set: String,
        file: OpenFile,
        now: u64,
    },
    Shrunk {
        set: String,
        file: OpenFile,
        now: Option<u64>,
    },
    Cut {
        file: PathBuf,
        error: io::Error,
    },
}

impl fmt::Display for RestartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestartError::Damaged { set, damage } => {
                write!(f, "the checkpoint {} is not complete: {damage}", name(set))
            }
            RestartError::Entry { set, entry } => write!(
                f,
                "the manifest of the checkpoint {} has no valid entry \"{entry}\"",
                name(set)
            ),
            RestartError::Image { set } => write!(
                f,
                "the list of open files in the checkpoint {} cannot be read",
                name(set)
            ),
            RestartError::Grown { set, file, now } => write!(
                f,
                "the file {} has {now} bytes and had {} at the checkpoint {}; --checkpoint-truncate cuts it",
                name(&file.path),
                file.len,
                name(set)
            ),
            RestartError::Shrunk { set, file, now } => {
                let now = now.map_or("does not exist".to_owned(), |now| {
                    format!("has {now} bytes")
                });
                write!(
                    f,
                    "the file {} {now} and had {} at the checkpoint {}, which does not contain it",
                    name(&file.path),
                    file.len,
                    name(set)
                )
            }
            RestartError::Cut { file, error } => {
                write!(f, "the file {} cannot be cut: {error}", name(file))
            }
        }
    }
}

impl std::error::Error for RestartError {}

/// Restarts a job; returns the exit code.
pub fn run(restart: &Restart) -> i32 {
    let plan = match Plan::of(restart) {
        Ok(plan) => plan,
        Err(error) => {
            printable::eprintln!("mpirun: {error}");
            return 2;
        }
    };
    for (set, damage) in restart.found.skipped.iter().filter(|_| !restart.is_quiet) {
        printable::eprintln!("mpirun: the checkpoint {set} is passed over: {damage}");
    }
    launch(restart, &plan).unwrap_or_else(|error| {
        printable::eprintln!("mpirun: starting the launcher's second process failed: {error}");
        1
    })
}

/// What the manifest says about the dumped processes.
struct Plan {
    supervisor: i32,
    /// The names of the supervisor's connections with its front end, as CRIU knows them.
    dumped: [String; 3],
    /// The highest number of a process or thread.
    highest: u32,
}

impl Plan {
    /// Reads and checks the checkpoint, and the files that the processes have open.
    fn of(restart: &Restart) -> Result<Plan, RestartError> {
        let (folder, manifest) = (&restart.found.folder, &restart.found.manifest);
        let set = || folder.display().to_string();
        verify(folder, manifest, 0)
            .map_err(|damage| RestartError::Damaged { set: set(), damage })?;
        let plan = Plan {
            supervisor: number(manifest, SUPERVISOR)
                .and_then(|pid| i32::try_from(pid).ok())
                .ok_or_else(|| RestartError::Entry {
                    set: set(),
                    entry: SUPERVISOR,
                })?,
            dumped: [
                dumped(restart, SOCKET, "socket")?,
                dumped(restart, STDOUT, "pipe")?,
                dumped(restart, STDERR, "pipe")?,
            ],
            highest: highest(manifest),
        };
        check_files(restart)?;
        Ok(plan)
    }
}

fn number(manifest: &Manifest, entry: &str) -> Option<u64> {
    manifest.system(entry)?.to_str()?.parse().ok()
}

fn dumped(
    restart: &Restart,
    entry: &'static str,
    kind: &'static str,
) -> Result<String, RestartError> {
    let inode = number(&restart.found.manifest, entry).ok_or_else(|| RestartError::Entry {
        set: restart.found.folder.display().to_string(),
        entry,
    })?;
    Ok(format!("{kind}:[{inode}]"))
}

/// Returns the highest number of a process or thread: each one has an image `core-NUMBER.img`.
fn highest(manifest: &Manifest) -> u32 {
    let names = manifest.files.iter().filter_map(|file| file.name.to_str());
    let numbers = names.filter_map(|name| {
        let number = name.strip_prefix("core-")?.strip_suffix(".img")?;
        number.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// Checks that the files open for writing have their old lengths, or cuts those that have grown.
fn check_files(restart: &Restart) -> Result<(), RestartError> {
    let folder = &restart.found.folder;
    let set = || folder.display().to_string();
    let image = fs::read(folder.join(criu::IMAGES).join("files.img")).ok();
    let files = image.and_then(|image| open_files::read(&image));
    let files = files.ok_or_else(|| RestartError::Image { set: set() })?;
    for file in files {
        let Ok(there) = fs::metadata(&file.path) else {
            // A file without a name is part of the images.
            let is_deleted = file.path.to_string_lossy().ends_with(" (deleted)");
            match is_deleted {
                true => continue,
                false => {
                    return Err(RestartError::Shrunk {
                        set: set(),
                        file,
                        now: None,
                    });
                }
            }
        };
        let now = there.len();
        if !there.is_file() || now == file.len {
            continue;
        }
        if now < file.len {
            return Err(RestartError::Shrunk {
                set: set(),
                file,
                now: Some(now),
            });
        }
        if !restart.truncates {
            return Err(RestartError::Grown {
                set: set(),
                file,
                now,
            });
        }
        let cut = File::options().write(true).open(&file.path);
        let cut = cut.and_then(|there| there.set_len(file.len));
        cut.map_err(|error| RestartError::Cut {
            file: file.path,
            error,
        })?;
    }
    Ok(())
}

fn launch(restart: &Restart, plan: &Plan) -> io::Result<i32> {
    sys::adopt_orphans()?;
    raise_open_files();
    let (inside, ours, outside) = connections()?;
    let mut waited = FORWARDED.to_vec();
    waited.push(libc::SIGCHLD);
    let signals = sys::signal_file(&waited)?;
    // All children from here on, the keeper and later CRIU, are in the new namespace.
    sys::make_pid_namespace()?;
    match sys::fork()? {
        Forked::Child => {
            drop((ours, signals));
            sys::exit_now(keep(restart, plan, inside))
        }
        Forked::Parent(keeper) => {
            drop(inside);
            let folder = &restart.found.folder;
            let outcome = Ok(format!(
                "the job continues from the checkpoint {}",
                name(folder)
            ));
            // The supervisor reads this when it is restored.
            let go = Go {
                outcome,
                front_end: rustix::process::getpid().as_raw_pid(),
                is_restored: true,
            };
            hold::go(&ours.socket, &go);
            let attendant = Attendant {
                images: &restart.images,
                dir: &restart.dir,
                store: Store::new(&restart.dir),
                child: keeper,
                supervisor: plan.supervisor,
                is_restored: true,
                socket: ours.socket,
                outside,
                signals,
                relay: Relay::new(ours.stdout, ours.stderr)?,
                input: Input::default(),
                is_quiet: restart.is_quiet,
            };
            Ok(attendant.attend())
        }
    }
}

/// Restores the processes, and waits for the end of the supervisor. Returns the exit code.
fn keep(restart: &Restart, plan: &Plan, inside: Connections) -> i32 {
    let begun = begin_keeping(plan.highest);
    if let Err(error) = begun {
        printable::eprintln!("mpirun: the process numbers of a restart cannot be made: {error}");
        return 1;
    }
    if let Err(error) = restore_soon(restart, plan, &inside) {
        printable::eprintln!("mpirun: {error}");
        return 1;
    }
    // Only the supervisor has these connections from here on.
    drop(inside);
    loop {
        match sys::wait_for_any() {
            Some((pid, ended)) if pid == plan.supervisor => return ended.code(),
            Some(_) => {}
            None => return 1,
        }
    }
}

/// Prepares the first process of the PID namespace: its own `/proc`, and free process numbers.
fn begin_keeping(highest: u32) -> io::Result<()> {
    // If the front end dies, so does this process, and with it all processes of the namespace.
    let kill = rustix::process::Signal::KILL;
    rustix::process::set_parent_process_death_signal(Some(kill))?;
    rustix::process::setsid()?;
    sys::make_mount_namespace()?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None::<&CStr>)?;
    // CRIU itself must not get the number of a process that it restores.
    fs::write(LAST_PID, highest.to_string())
}

/// Restores the processes. Repeats it while the kernel keeps the old connections of an ended job
/// (TIME_WAIT); it lets a new connection replace such a loopback connection after one second.
fn restore_soon(restart: &Restart, plan: &Plan, inside: &Connections) -> Result<(), CriuError> {
    const ATTEMPTS: usize = 5;
    for _ in 1..ATTEMPTS {
        match restore(restart, plan, inside) {
            Err(CriuError::Failed { line, .. }) if line.contains(IN_USE) => {}
            done => return done,
        }
        descendants::end_all();
        std::thread::sleep(Duration::from_secs(1));
        // Their process numbers must be free again, also those of processes that took long to end.
        descendants::end_all();
        let _ = fs::write(LAST_PID, plan.highest.to_string());
    }
    restore(restart, plan, inside)
}

fn restore(restart: &Restart, plan: &Plan, inside: &Connections) -> Result<(), CriuError> {
    let descriptors = [
        inside.socket.as_fd(),
        inside.stdout.as_fd(),
        inside.stderr.as_fd(),
    ];
    let replaced = descriptors.iter().zip(&plan.dumped);
    let replaced = replaced.map(|(descriptor, dumped)| Replacement {
        descriptor: descriptor.as_raw_fd(),
        dumped: dumped.clone(),
    });
    let log = log_of(&restart.dir, "restore");
    let images = restart.found.folder.join(criu::IMAGES);
    let replaced: Vec<Replacement> = replaced.collect();
    let restored = Run {
        program: &restart.images.program,
        arguments: criu::restore_arguments(&images, &log, &replaced),
        inherited: &descriptors,
        mounts: None,
        doing: "restore",
        log: &log,
    };
    let outcome = restored.run();
    // CRIU writes statistics beside the images.
    let _ = fs::remove_file(statistics(&images));
    outcome
}

fn statistics(images: &Path) -> PathBuf {
    images.join("stats-restore")
}
