//! The guard of a daemon whose processes are saved as images.
//!
//! The guard is the process that the command of a link (such as ssh) starts on another host.
//! Only this process has the command's standard files; the daemon, its child, has pipes.
//! The guard forwards the frames of the link, and orders of the front end reach the guard itself while the
//! supervisor and the daemon are silent: during a checkpoint, and before a restored daemon goes on.

use super::attend::Input;
use super::front::{become_launcher, connections};
use super::keeper::{Keeper, Restore, keep};
use super::relay::Relay;
use super::restored::{Cut, Source, cut};
use super::run::{log_of, probe, version};
use super::several::stop;
use super::still::Processes;
use super::take::{Outside, TakeError, Tree, sealing};
use super::work::{Work, timespec};
use crate::launch::frontend::{feed_rank_0, pass_on, raise_open_files};
use crate::launch::hold::{self, FromSupervisor, Go};
use crate::launch::sys::{self, Forked, Signal};
use crate::launch::wire::{
    self, Failure, Frames, FromDaemon, FromGuard, GREETING, Hello, ImagesThere, RestoreThere,
    ToDaemon, ToGuard, VERSION,
};
use crate::launch::{daemon, descendants};
use mpi_core::crs::store::read_manifest;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The signals that a guard forwards; each ends the daemon.
const WAITED: [Signal; 4] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Serves the front end at standard input and output; returns the exit code.
pub fn run() -> i32 {
    let mut link = Link::default();
    let done = match link.first() {
        Ok((bytes, First::Hello(hello))) => begin(*hello, bytes),
        Ok((_, First::Check(order))) => restart(&order, link),
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| {
        printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
        1
    })
}

/// The frames from above, which this process reads itself.
struct Link {
    frames: Frames,
    /// The time of the last bytes from above.
    heard: Instant,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            frames: Frames::new(false),
            heard: Instant::now(),
        }
    }
}

enum First {
    Hello(Box<Hello>),
    Check(Box<RestoreThere>),
}

impl Link {
    /// Reads the first frame. Returns it with all bytes that were read.
    fn first(&mut self) -> io::Result<(Vec<u8>, First)> {
        let mut all = Vec::new();
        loop {
            if let Some(order) = self.next()? {
                return match order {
                    ToDaemon::Hello(hello) => Ok((all, First::Hello(hello))),
                    ToDaemon::Guard(ToGuard::Check(order)) => Ok((all, First::Check(order))),
                    _ => Err(io::Error::other(
                        "the launcher above does not begin with a greeting",
                    )),
                };
            }
            self.read(|bytes| all.extend_from_slice(bytes))?;
        }
    }

    /// Waits for the next order of the front end, which shows signs of life; at most for `patience` after the last one
    /// (zero: without a limit).
    fn order(&mut self, patience: Duration) -> io::Result<ToGuard> {
        loop {
            match self.next()? {
                Some(ToDaemon::Guard(order)) => return Ok(order),
                Some(_) => {}
                None => {
                    let left = match patience.is_zero() {
                        true => Duration::from_secs(3600),
                        false => patience.saturating_sub(self.heard.elapsed()),
                    };
                    self.listen(left)?;
                    self.check(patience)?;
                }
            }
        }
    }

    /// Reads what has arrived, while this process works for the front end. Fails if the launcher above has ended, or has
    /// shown no sign of life for `patience` (zero: without a limit).
    fn attend(&mut self, patience: Duration) -> io::Result<()> {
        self.listen(Duration::ZERO)?;
        self.check(patience)
    }

    fn check(&self, patience: Duration) -> io::Result<()> {
        match !patience.is_zero() && self.heard.elapsed() >= patience {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    /// Waits for bytes, at most for `time`, and reads them.
    fn listen(&mut self, time: Duration) -> io::Result<()> {
        let stdin = rustix::stdio::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(time))).is_ok_and(|ready| ready > 0) {
            true => self.read(|_| ()),
            false => Ok(()),
        }
    }

    fn next(&mut self) -> io::Result<Option<ToDaemon>> {
        let next = self.frames.next_frame().map_err(io::Error::other)?;
        let next = next.map(|(_, body)| wire::open(&body));
        next.transpose().map_err(io::Error::other)
    }

    fn read(&mut self, seen: impl FnOnce(&[u8])) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(got) => {
                    seen(&buffer[..got]);
                    self.heard = Instant::now();
                    self.frames.push(&buffer[..got]);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let stdin = rustix::stdio::stdin();
                    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Writes bytes to the launcher above before there is a daemon.
fn say_above(mut rest: &[u8]) {
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Starts a new daemon, and guards it.
fn begin(hello: Hello, bytes: Vec<u8>) -> io::Result<i32> {
    let host = hello.branch.host;
    let Some(images) = hello.images else {
        return Err(io::Error::other("the launcher above takes no images"));
    };
    let checked = version(&images.program).and_then(|_| probe(&images.program, &images.dir, host));
    if let Err(error) = checked {
        let lost = FromDaemon::Lost {
            hosts: vec![host],
            why: error.to_string(),
        };
        say_above(&[GREETING, &wire::frame(host, &lost)].concat());
        return Ok(1);
    }
    sys::adopt_orphans()?;
    let nofile = raise_open_files();
    let (inside, ours, outside) = connections()?;
    let signals = sys::signal_file(&WAITED)?;
    match sys::fork()? {
        Forked::Child => {
            drop((ours, signals));
            let done = become_launcher(inside, &WAITED, |guard, stdin, signals| {
                // The daemon takes its standard input itself.
                drop(stdin);
                daemon::serve(guard, signals, nofile)
            });
            sys::exit_now(done.unwrap_or_else(|error| {
                printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
                1
            }))
        }
        Forked::Parent(child) => {
            drop(inside);
            let guard = Guard {
                images,
                child,
                daemon: child,
                is_restored: false,
                socket: ours.socket,
                outside,
                signals,
                relay: Relay::new(ours.stdout, ours.stderr)?,
                input: Input {
                    pipe: Some(ours.stdin),
                    pending: bytes,
                    is_terminal: false,
                },
            };
            Ok(guard.attend())
        }
    }
}

/// Checks images, restores them in the steps that the front end orders, and guards the restored daemon.
fn restart(order: &RestoreThere, mut link: Link) -> io::Result<i32> {
    say_above(GREETING);
    let say = |what: &FromDaemon| say_above(&wire::frame(order.host, what));
    let answer = |outcome: Result<(), Failure>| {
        say(&FromDaemon::Guard(FromGuard::Done(outcome)));
    };
    let Times { pause, patience } = Times::of(&order.images);
    let limit = order.images.limit;
    // The front end gives this host up if it is silent while it reads all images.
    let sign = |link: &mut Link| {
        say(&FromDaemon::Heartbeat);
        link.attend(patience).is_ok()
    };
    let checked = {
        let order = order.clone();
        Work::in_a_child("the check of the images", move || check(&order))
    };
    let (restore, cuts) = match checked.wait(Duration::ZERO, pause, || sign(&mut link)) {
        Ok(checked) => checked,
        Err(failure) => {
            answer(Err(failure));
            return Ok(1);
        }
    };
    sys::adopt_orphans()?;
    raise_open_files();
    let (inside, ours, outside) = connections()?;
    let signals = sys::signal_file(&WAITED)?;
    let flags = SocketFlags::CLOEXEC;
    let (socket, keepers) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The restored daemon reads and writes these without blocking.
    rustix::io::ioctl_fionbio(&inside.stdin, true)?;
    rustix::io::ioctl_fionbio(&inside.stdout, true)?;
    sys::make_pid_namespace()?;
    let keeper = match sys::fork()? {
        Forked::Child => {
            drop((ours, signals, socket));
            let inside = vec![inside.socket, inside.stdout, inside.stderr, inside.stdin];
            sys::exit_now(keep(&restore, inside, keepers))
        }
        Forked::Parent(pid) => {
            drop((inside, keepers));
            Keeper { pid, socket }
        }
    };
    answer(Ok(()));
    let go = loop {
        let work = match link.order(patience)? {
            ToGuard::Cut => Work::Done(cut(&cuts)),
            ToGuard::Restore => keeper.restore(),
            ToGuard::Undo => keeper.undo(),
            ToGuard::Resume => keeper.resume(),
            ToGuard::Go(go) => break go,
            ToGuard::End => {
                answer(Ok(()));
                return Ok(0);
            }
            _ => return Err(io::Error::other("the front end's order is out of turn")),
        };
        answer(work.wait(limit, pause, || sign(&mut link)));
    };
    hold::go(&ours.socket, &go);
    if let Err(failure) = keeper.go_on().wait(limit, pause, || sign(&mut link)) {
        return Err(io::Error::other(failure.why));
    }
    let guard = Guard {
        images: order.images.clone(),
        child: keeper.pid,
        daemon: restore.launcher,
        is_restored: true,
        socket: ours.socket,
        outside,
        signals,
        relay: Relay::new(ours.stdout, ours.stderr)?,
        input: Input {
            pipe: Some(ours.stdin),
            // Frames for the daemon may have arrived with the last order.
            pending: link.frames.into_rest(),
            is_terminal: false,
        },
    };
    Ok(guard.attend())
}

/// The times between a guard and the front end; a patience of zero is without a limit.
struct Times {
    /// The interval of signs of life.
    pause: Duration,
    patience: Duration,
}

impl Times {
    fn of(images: &ImagesThere) -> Times {
        let silence = images.silence;
        let often = Duration::from_secs(1);
        match silence.is_zero() {
            true => Times {
                pause: often,
                patience: Duration::ZERO,
            },
            false => Times {
                pause: often.min(silence / 3),
                patience: patience(silence),
            },
        }
    }
}

/// Returns the time without a message of the front end after which its host counts as lost.
/// The supervisor gives a daemon that is not silent up after the time `silence`, and meanwhile the other hosts get no message.
pub(crate) fn patience(silence: Duration) -> Duration {
    /// The maximum time for which the front end itself shows no sign of life: it commits the new checkpoint.
    const BUSY: Duration = Duration::from_secs(30);
    2 * silence + BUSY
}

fn check(order: &RestoreThere) -> Result<(Restore, Vec<Cut>), String> {
    if order.version != VERSION {
        return Err(format!(
            "this is version {VERSION}, but the launcher is version {}",
            order.version
        ));
    }
    let version = version(&order.images.program).map_err(|error| error.to_string())?;
    let manifest = read_manifest(&order.set).map_err(|damage| {
        let set = order.set.display().to_string();
        format!(
            "the checkpoint {} cannot be read, and its folder must be on a file system of all hosts: {damage}",
            printable::name(&set)
        )
    })?;
    let source = Source {
        set: &order.set,
        manifest: &manifest,
        host: order.host,
        program: &order.images.program,
        dir: &order.images.dir,
        truncates: order.truncates,
    };
    source.plan_there(&version)
}

struct Guard {
    images: ImagesThere,
    /// The daemon, or the keeper of a restored one.
    child: i32,
    /// The daemon's pid in its own PID namespace.
    daemon: i32,
    is_restored: bool,
    socket: OwnedFd,
    outside: Outside,
    signals: OwnedFd,
    relay: Relay,
    /// The frames for the daemon.
    input: Input,
}

impl Guard {
    /// Forwards frames until the daemon has ended; returns the exit code.
    fn attend(mut self) -> i32 {
        let mut hung_up = false;
        loop {
            self.relay.step();
            let input = self.wait(hung_up);
            self.relay.step();
            if !hung_up {
                match hold::receive(&self.socket) {
                    FromSupervisor::Nothing
                    | FromSupervisor::Reach(_)
                    | FromSupervisor::Death
                    | FromSupervisor::HostLost => {}
                    FromSupervisor::Closed => hung_up = true,
                    FromSupervisor::Unreadable => {
                        // mpirun gives this host up: without an answer the daemon would be silent without a limit.
                        descendants::end_all();
                        return 1;
                    }
                    FromSupervisor::Held(held) => {
                        let host = held.hosts.first().map_or(0, |((host, _), _)| *host);
                        if self.hold(host).is_err() {
                            // The front end has ended, and with it the job.
                            descendants::end_all();
                            return 1;
                        }
                    }
                }
            }
            while let Some(signal) = sys::next_signal(&self.signals) {
                if signal != libc::SIGCHLD {
                    pass_on(&self.socket, signal);
                    continue;
                }
                while let Some((pid, ended)) = sys::reap() {
                    if pid == self.child {
                        descendants::end_all();
                        self.relay.finish(|| true);
                        return ended.code();
                    }
                }
            }
            if input {
                feed_rank_0(&mut self.input.pipe, &mut self.input.pending);
            }
        }
    }

    /// Waits for an event. Returns true if a frame can be read or written.
    fn wait(&self, hung_up: bool) -> bool {
        let stdin = rustix::stdio::stdin();
        let mut fds = Vec::new();
        match &self.input.pipe {
            Some(pipe) if !self.input.pending.is_empty() => {
                fds.push(PollFd::new(pipe, PollFlags::OUT));
            }
            Some(_) => fds.push(PollFd::new(&stdin, PollFlags::IN)),
            None => {}
        }
        let has_input = !fds.is_empty();
        fds.push(PollFd::new(&self.signals, PollFlags::IN));
        if !hung_up {
            fds.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        self.relay.poll(&mut fds);
        if poll(&mut fds, None).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        has_input && fds.first().is_some_and(|fd| !fd.revents().is_empty())
    }

    /// Reports that the daemon is silent, and serves the front end until the checkpoint is over.
    fn hold(&mut self, host: u32) -> io::Result<()> {
        self.relay.empty_pipes();
        self.say(host, &FromDaemon::Held);
        let mut processes = Processes::new(self.child, self.is_restored);
        let Times { pause, patience } = Times::of(&self.images);
        let (mut link, mut dumped) = (Link::default(), None::<(PathBuf, u32)>);
        loop {
            let answer = match link.order(patience)? {
                ToGuard::Stop => {
                    let mut said = Instant::now();
                    let stopped = stop(&mut processes, || {
                        if said.elapsed() >= pause {
                            said = Instant::now();
                            self.say(host, &FromDaemon::Heartbeat);
                        }
                    });
                    FromGuard::Stopped(stopped.map_err(|failure| failure.why))
                }
                ToGuard::IsQuiet => {
                    let (quiet, queues) = processes.is_quiet();
                    FromGuard::Quiet(quiet, queues)
                }
                ToGuard::Dump { set, number } => {
                    let begun = self.dump(&set, number, &processes);
                    dumped = Some((set, number));
                    let entries = self.wait_for((host, &mut link), begun)?;
                    let entries =
                        entries.and_then(|entries| processes.check_ranks().map(|()| entries));
                    FromGuard::Dumped(entries)
                }
                ToGuard::Continue => {
                    processes.go_on();
                    FromGuard::Done(Ok(()))
                }
                ToGuard::Seal => {
                    let work = match dumped.clone() {
                        Some((set, number)) => sealing(set, number),
                        None => Work::Done(Err(Failure::of("no images were written"))),
                    };
                    let files = self.wait_for((host, &mut link), work)?;
                    FromGuard::Sealed(files.map_err(|failure| failure.why))
                }
                ToGuard::End => {
                    processes.forget_connections();
                    descendants::end_all();
                    FromGuard::Done(Ok(()))
                }
                ToGuard::Go(go) => {
                    processes.go_on();
                    self.go(&go);
                    // Frames for the daemon may have arrived with the last order.
                    self.input.pending.extend(link.frames.into_rest());
                    return Ok(());
                }
                ToGuard::Check(_)
                | ToGuard::Cut
                | ToGuard::Restore
                | ToGuard::Resume
                | ToGuard::Undo => FromGuard::Done(Err(Failure::of("the processes run already"))),
            };
            self.say(host, &FromDaemon::Guard(answer));
        }
    }

    /// Waits for work, and shows that this process lives. Fails if the launcher above has ended or is silent.
    fn wait_for<T: 'static>(
        &mut self,
        (host, link): (u32, &mut Link),
        work: Work<T>,
    ) -> io::Result<Result<T, Failure>> {
        let Times { pause, patience } = Times::of(&self.images);
        let mut lives = Ok(());
        let outcome = work.wait(self.images.limit, pause, || {
            self.say(host, &FromDaemon::Heartbeat);
            lives = link.attend(patience);
            lives.is_ok()
        });
        lives.map(|()| outcome)
    }

    fn dump(&self, set: &Path, number: u32, processes: &Processes) -> Work<Vec<(String, String)>> {
        let mounts = match self.is_restored {
            true => Some(File::open(format!("/proc/{}/ns/mnt", self.child))),
            false => None,
        };
        let mounts = match mounts.transpose().map_err(TakeError::Keeper) {
            Ok(mounts) => mounts,
            Err(error) => return Work::Done(Err(Failure::of(error.to_string()))),
        };
        let tree = Tree {
            launcher: self.daemon,
            outside: self.outside,
            mounts: mounts.as_ref().map(|mounts| mounts.as_fd()),
        };
        let log = log_of(&self.images.dir, "dump", number);
        tree.dump(&self.images.program, (set, number), &log, processes)
    }

    fn go(&self, go: &Go) {
        hold::go(&self.socket, go);
    }

    /// Sends a frame behind those of the daemon.
    fn say(&mut self, host: u32, what: &FromDaemon) {
        self.relay.send(&wire::frame(host, what));
    }
}
