//! System calls without a safe wrapper in any used crate: fork with work before exec, and signalfd.
//!
//! All `unsafe` of `mpirun` is here, except a few blocks in [`trim_memory`](super::trim_memory) and one in `control/peer.rs`.
//!
//! Promises:
//! * [`fork`] is called only while the process has one thread, so the child may call any function;
//! * a child of [`start`] makes only system calls, on memory that was prepared before the fork;
//! * a child dies with the thread that started it (`PR_SET_PDEATHSIG`)
//!   and leads its own process group;
//! * exec closes every descriptor of the launcher except those in [`Wiring`].
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// A signal number.
pub type Signal = i32;

/// Closes the descriptors above 2 that mpirun has inherited from the program that started it.
/// mpirun opens every other descriptor with `FD_CLOEXEC`, and an inherited one cannot have this flag.
pub fn close_inherited() -> io::Result<()> {
    let entries = std::fs::read_dir("/proc/self/fd")?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let numbers: Vec<RawFd> = numbers.filter(|number| *number > 2).collect();
    for number in numbers {
        // SAFETY: both calls take numbers only. No `OwnedFd` of this process has a number without the flag,
        // so nothing that is still used is closed; a number that is no longer open returns -1.
        unsafe {
            let flags = libc::fcntl(number, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC == 0 {
                libc::close(number);
            }
        }
    }
    Ok(())
}

/// Blocks the signals and returns a signalfd that reports them.
///
/// SIGHUP is left out if this process was started with it ignored: nohup(1) promises that the closing of the terminal does not end the command.
/// A signalfd would report it, since a blocked signal is not discarded.
pub fn signal_file(signals: &[Signal]) -> io::Result<OwnedFd> {
    let signals = signals
        .iter()
        .filter(|&&signal| signal != libc::SIGHUP || !is_ignored(signal));
    // SAFETY: sigemptyset initialises `set` before it is read, and all pointers to it are valid.
    // signalfd returns a new descriptor that nothing else owns.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn is_ignored(signal: Signal) -> bool {
    // SAFETY: a null action changes nothing, and sigaction fills `present` if it succeeds.
    unsafe {
        let mut present = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(signal, ptr::null(), &mut present) == 0
            && present.sa_sigaction == libc::SIG_IGN
    }
}

/// Stops this process, as the default action of SIGTSTP does; returns after SIGCONT.
pub fn stop_self() {
    // SAFETY: raise has no memory effects.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Returns the next signal of a signalfd, if one is pending.
pub fn next_signal(file: impl AsFd) -> Option<Signal> {
    let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
    let got = rustix::io::read(file, &mut info).ok()?;
    // The first 4 bytes of signalfd_siginfo are the signal's number (signalfd(2)).
    (got == info.len()).then(|| i32::from_ne_bytes([info[0], info[1], info[2], info[3]]))
}

/// Returns the next pending signal except SIGCHLD; [`reap`] finds ended children.
pub fn next_request(file: impl AsFd) -> Option<Signal> {
    std::iter::from_fn(|| next_signal(&file)).find(|&signal| signal != libc::SIGCHLD)
}

/// The process in which [`fork`] has returned: the parent, with the child's pid, or the child.
pub enum Forked {
    Parent(libc::pid_t),
    Child,
}

/// Restores the default action of SIGCHLD, which this process may have been started without.
/// If a process ignores SIGCHLD, the kernel discards the statuses of its ended children, so [`reap`] finds none (wait(2)).
pub fn wait_for_children() {
    // SAFETY: SIG_DFL installs no handler, so no code of this process runs on the signal.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Ignores SIGXFSZ: a write beyond the file size limit (`ulimit -f`) then returns an error.
/// By default the signal would kill the launcher without a message.
pub fn survive_file_limit() {
    // SAFETY: SIG_IGN installs no handler, so no code of this process runs on the signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Returns what the user can do about the error of a system call; empty for most errors.
pub fn advice(error: &io::Error) -> String {
    if error.raw_os_error() != Some(libc::EMFILE) {
        return String::new();
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    format!(
        "; ulimit -n is {limit}, and mpirun needs about 25 descriptors and 3 for each rank of this host: raise the limit"
    )
}

/// The minimum stack size for the launcher in bytes; measured, with a margin.
pub const STACK_MIN: u64 = 96 << 10;

/// Returns the free part of the main thread's stack in bytes; `None` if the stack is unlimited.
/// The environment and arguments occupy the upper part of the stack.
pub fn stack_left() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current?;
    let here = 0u8;
    // SAFETY: getauxval only reads this process's auxiliary vector; a missing entry yields 0.
    // The file name (AT_EXECFN) is the last text above the environment, at the stack's upper end.
    let top = unsafe { libc::getauxval(libc::AT_EXECFN) };
    let used = top.saturating_sub(std::ptr::from_ref(&here).addr() as u64);
    Some(limit.saturating_sub(used))
}

/// Runs `work` in a thread with a long stack if the main thread's stack is limited to less.
///
/// The thread ends before this function returns.
/// If no thread can be started, `work` runs on the main thread's stack.
pub fn on_a_long_stack<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    /// The stack size in bytes, many times what parsing the command line uses in a debug build.
    const LONG: usize = 8 << 20;
    if stack_left().is_none_or(|left| left >= LONG as u64 / 2) {
        return work();
    }
    let work = std::sync::Mutex::new(Some(work));
    let take = || work.lock().ok().and_then(|mut work| work.take());
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LONG);
        let done = thread.spawn_scoped(scope, || take().map(|work| work()));
        match done.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(Some(result))) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            _ => match take() {
                Some(work) => work(),
                None => std::process::abort(),
            },
        }
    })
}

/// Forks this process.
pub fn fork() -> io::Result<Forked> {
    debug_assert!(has_one_thread());
    // SAFETY: the child's memory is consistent, since the process has one thread:
    // `on_a_long_stack` joins its thread before it returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

fn has_one_thread() -> bool {
    let threads = || std::fs::read_dir("/proc/self/task").map(Iterator::count);
    // Without /proc the number is unknown. /proc lists an ended thread for a moment longer.
    (0..1000).any(|_| {
        let one = threads().map_or(true, |threads| threads == 1);
        if !one {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        one
    })
}

/// A program prepared for exec: all memory that the child needs is allocated before the fork.
pub struct Image {
    path: CString,
    argv: Vec<CString>,
    envp: Vec<CString>,
    /// The arguments `/bin/sh path args` for a script without `#!`, which shells run in this way.
    shell_argv: Vec<CString>,
    dir: Option<CString>,
}

/// The descriptors and limits of a new process.
pub struct Wiring<'a> {
    pub stdin: BorrowedFd<'a>,
    pub stdout: BorrowedFd<'a>,
    pub stderr: BorrowedFd<'a>,
    /// Descriptors that the process inherits under the same numbers.
    pub keep: &'a [RawFd],
    /// The pipe that receives a [`FailedStart`] if the program cannot be executed.
    pub report: BorrowedFd<'a>,
    /// The soft limit of open files with which the launcher was started.
    pub nofile: Option<u64>,
    /// The processors that the process is bound to.
    pub cpus: Option<&'a [usize]>,
}

impl Image {
    /// Allocates all memory that exec needs, before the fork; a NUL byte in a text is an error.
    pub fn new(
        path: &OsStr,
        argv: impl IntoIterator<Item = impl AsRef<OsStr>>,
        env: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
        dir: Option<&OsStr>,
    ) -> io::Result<Image> {
        let c = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
        let argv = argv
            .into_iter()
            .map(|arg| c(arg.as_ref()))
            .collect::<io::Result<Vec<_>>>()?;
        let envp = env
            .into_iter()
            .map(|(name, value)| {
                let mut pair = name.as_ref().as_bytes().to_vec();
                pair.push(b'=');
                pair.extend_from_slice(value.as_ref().as_bytes());
                CString::new(pair).map_err(io::Error::from)
            })
            .collect::<io::Result<Vec<_>>>()?;
        let path = c(path)?;
        let mut shell_argv = vec![CString::from(c"/bin/sh"), path.clone()];
        shell_argv.extend(argv.iter().skip(1).cloned());
        let dir = dir.map(c).transpose()?;
        Ok(Image {
            path,
            argv,
            envp,
            shell_argv,
            dir,
        })
    }
}

/// The size of an encoded [`FailedStart`] in bytes; pipe writes below PIPE_BUF are atomic.
const REPORT: usize = 12;

/// The report of a child that could not execute its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedStart {
    pub pid: libc::pid_t,
    pub errno: i32,
    pub step: FailedStep,
}

impl FailedStart {
    /// Reads the next report from the pipe, if any.
    pub fn read(report: impl AsFd) -> Option<FailedStart> {
        let mut bytes = [0u8; REPORT];
        if rustix::io::read(report, &mut bytes).ok()? != REPORT {
            return None;
        }
        let word = |at: usize| {
            i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(FailedStart {
            pid: word(0),
            errno: word(4),
            step: FailedStep::numbered(word(8)),
        })
    }

    /// Encodes the report. A child calls this between fork and exec, so nothing is allocated.
    pub fn to_bytes(self) -> [u8; REPORT] {
        let mut report = [0u8; REPORT];
        report[..4].copy_from_slice(&self.pid.to_ne_bytes());
        report[4..8].copy_from_slice(&self.errno.to_ne_bytes());
        report[8..].copy_from_slice(&(self.step as i32).to_ne_bytes());
        report
    }

    /// Returns the exit code that a shell would return.
    pub fn code(&self) -> i32 {
        match self.errno {
            libc::EACCES => 126,
            _ => 127,
        }
    }
}

impl std::fmt::Display for FailedStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.step {
            FailedStep::Wiring => "its standard files could not be set up",
            FailedStep::Directory => "its working directory could not be entered",
            FailedStep::Exec => "its program could not be executed",
        };
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{what}: {error}")
    }
}

/// The step of the start that failed in the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum FailedStep {
    Wiring = 1,
    Directory = 2,
    Exec = 3,
}

impl FailedStep {
    /// Returns the step with the number that a child has written; an unknown number yields `Exec`.
    pub fn numbered(number: i32) -> FailedStep {
        match number {
            1 => FailedStep::Wiring,
            2 => FailedStep::Directory,
            _ => FailedStep::Exec,
        }
    }
}

/// Starts a program in its own process group; the program dies if this process dies.
pub fn start(image: &Image, wiring: &Wiring<'_>) -> io::Result<libc::pid_t> {
    let argv = pointers(&image.argv);
    let envp = pointers(&image.envp);
    let shell_argv = pointers(&image.shell_argv);
    let cpus = wiring.cpus.map(cpu_set);
    let launcher = rustix::process::getpid();
    match fork()? {
        Forked::Parent(pid) => {
            // The parent calls setpgid as well, so that the group exists before its first signal.
            // Both calls are equivalent, so a failure of the later one is harmless.
            // SAFETY: setpgid has no memory effects.
            unsafe { libc::setpgid(pid, pid) };
            Ok(pid)
        }
        Forked::Child => {
            // SAFETY: only system calls follow.
            // All pointers are to memory from before the fork.
            // That memory is never freed, since the child ends in exec or _exit.
            unsafe {
                if let Some(set) = &cpus {
                    // An error is ignored: a processor may have gone offline meanwhile.
                    libc::sched_setaffinity(0, size_of_val(set), set);
                }
                let (errno, step) = become_program(
                    image,
                    wiring,
                    &argv,
                    &envp,
                    &shell_argv,
                    launcher.as_raw_pid(),
                );
                let pid = libc::getpid();
                let report = FailedStart { pid, errno, step }.to_bytes();
                libc::write(
                    wiring.report.as_raw_fd(),
                    report.as_ptr().cast(),
                    report.len(),
                );
                libc::_exit(127)
            }
        }
    }
}

fn cpu_set(cpus: &[usize]) -> libc::cpu_set_t {
    // SAFETY: an all-zero cpu_set_t is a valid empty set; CPU_SET ignores numbers beyond its size.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(cpu, &mut set);
        }
        set
    }
}

/// Returns the local date and time, as in `2026-11-21 11:23:12.345`.
pub fn wall_clock() -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = now.as_secs() as libc::time_t;
    // SAFETY: both pointers are to live local values, and an all-zero `tm` is valid.
    let tm = unsafe {
        let mut tm = std::mem::zeroed::<libc::tm>();
        libc::localtime_r(&seconds, &mut tm);
        tm
    };
    format!(
        "{}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec,
        now.subsec_millis()
    )
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// Executes the program; returns only on failure, with the errno and the failed step.
///
/// # Safety
/// The caller must be the child of a fork.
/// The pointer lists must end with null; their other entries must point to live strings.
unsafe fn become_program(
    image: &Image,
    wiring: &Wiring<'_>,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
    shell_argv: &[*const libc::c_char],
    launcher: libc::pid_t,
) -> (i32, FailedStep) {
    // SAFETY: these are system calls on plain numbers and on pointers.
    // By this function's contract the pointers are live and the lists end with null.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != launcher {
            // The launcher died before the prctl took effect, so no signal will arrive.
            libc::_exit(1);
        }
        // The launcher ignores these signals, and an ignored signal stays ignored over exec.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        if let Some(soft) = wiring.nofile {
            let mut limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
                limit.rlim_cur = soft.min(limit.rlim_max);
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            }
        }
        let standard = [&wiring.stdin, &wiring.stdout, &wiring.stderr];
        for (number, fd) in (0..).zip(standard) {
            // The launcher keeps 0, 1 and 2 open, so all other descriptors are above 2:
            // dup2 does not overwrite a descriptor that a later dup2 copies.
            let done = if fd.as_raw_fd() == number {
                libc::fcntl(number, libc::F_SETFD, 0)
            } else {
                libc::dup2(fd.as_raw_fd(), number)
            };
            if done < 0 {
                return (*libc::__errno_location(), FailedStep::Wiring);
            }
        }
        for &fd in wiring.keep {
            if libc::fcntl(fd, libc::F_SETFD, 0) < 0 {
                return (*libc::__errno_location(), FailedStep::Wiring);
            }
        }
        if let Some(dir) = &image.dir
            && libc::chdir(dir.as_ptr()) != 0
        {
            return (*libc::__errno_location(), FailedStep::Directory);
        }
        libc::execve(image.path.as_ptr(), argv.as_ptr(), envp.as_ptr());
        if *libc::__errno_location() == libc::ENOEXEC {
            libc::execve(c"/bin/sh".as_ptr(), shell_argv.as_ptr(), envp.as_ptr());
        }
        (*libc::__errno_location(), FailedStep::Exec)
    }
}

/// Makes this process a subreaper: orphaned descendants become its children instead of init's.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: prctl(PR_SET_CHILD_SUBREAPER) takes plain numbers and has no memory effects.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The end of a process: its exit code or the signal that killed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Killed(Signal),
}

impl Ended {
    /// Returns the exit code that a shell would report.
    pub fn code(self) -> i32 {
        match self {
            Ended::Exited(code) => code,
            Ended::Killed(signal) => 128 + signal,
        }
    }
}

/// Reaps the next child that has ended, without blocking.
pub fn reap() -> Option<(libc::pid_t, Ended)> {
    let mut status = 0;
    // SAFETY: `status` is a live local variable during the call.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    if pid <= 0 {
        return None;
    }
    Some((pid, ended_by(status)))
}

/// Waits for the end of a child.
pub fn wait_for(child: libc::pid_t) -> io::Result<Ended> {
    let ended = wait_for_one(child);
    ended
        .map(|(_, ended)| ended)
        .ok_or_else(io::Error::last_os_error)
}

/// Waits for the end of any child. Returns `None` if there is no child.
pub fn wait_for_any() -> Option<(libc::pid_t, Ended)> {
    wait_for_one(-1)
}

fn wait_for_one(child: libc::pid_t) -> Option<(libc::pid_t, Ended)> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live local variable during the call.
        let pid = unsafe { libc::waitpid(child, &mut status, 0) };
        if pid > 0 {
            return Some((pid, ended_by(status)));
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

/// Reads the status that waitpid has returned.
fn ended_by(status: i32) -> Ended {
    if libc::WIFSIGNALED(status) {
        Ended::Killed(libc::WTERMSIG(status))
    } else {
        Ended::Exited(libc::WEXITSTATUS(status))
    }
}

/// Lets the children that this process starts from here on be in its own PID namespace.
pub fn leave_pid_namespace() -> io::Result<()> {
    let own = std::fs::File::open("/proc/self/ns/pid")?;
    let kind = rustix::thread::LinkNameSpaceType::ProcessID;
    rustix::thread::move_into_link_name_space(own.as_fd(), Some(kind))?;
    Ok(())
}

/// Makes a PID namespace for the children that this process starts from here on.
pub fn make_pid_namespace() -> io::Result<()> {
    unshare(libc::CLONE_NEWPID)
}

/// Moves this process to a new mount namespace, a copy of its present one.
pub fn make_mount_namespace() -> io::Result<()> {
    unshare(libc::CLONE_NEWNS)
}

fn unshare(what: libc::c_int) -> io::Result<()> {
    // SAFETY: unshare of namespaces touches no memory and no descriptor of this process.
    match unsafe { libc::unshare(what) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Unblocks all signals, for a program that expects them.
pub fn unblock_signals() {
    // SAFETY: sigemptyset initialises `set` before it is read, and all pointers to it are valid.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, ptr::null_mut());
    }
}

/// Returns true if a child has begun to exit but is not reaped.
/// The kernel closes the process's files and unmaps its memory before it notifies the parent.
pub fn is_dying(pid: libc::pid_t) -> bool {
    /// The flag that `do_exit` in the kernel sets first; field 9 of `stat` (proc(5)).
    const PF_EXITING: u64 = 0x4;
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The program's name is in parentheses and may itself contain parentheses and spaces.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next();
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok());
    matches!(state, Some("Z" | "X")) || flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

/// Sends a signal to a process group.
pub fn signal_group(leader: libc::pid_t, signal: Signal) {
    if leader > 1 {
        // SAFETY: kill has no memory effects.
        // The leader is an unreaped child, so its pid is not reused.
        unsafe { libc::kill(-leader, signal) };
    }
}

/// Kills the remaining processes in the group of a process that has just been reaped.
pub fn end_group_of(leader: libc::pid_t) {
    if leader > 1 {
        // SAFETY: kill has no memory effects.
        // The kernel does not reuse the id of a process group that has members.
        // The id of an empty group is reused only after all other ids were assigned.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}

/// Sends a signal to a process.
pub fn signal_process(pid: libc::pid_t, signal: Signal) {
    if pid > 1 {
        // SAFETY: kill has no memory effects.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Ends this process immediately, without running destructors or exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Returns the name of a signal as in `kill -l`, with the prefix `SIG`.
pub fn signal_name(signal: Signal) -> String {
    const NAMES: [(Signal, &str); 22] = [
        (libc::SIGHUP, "HUP"),
        (libc::SIGINT, "INT"),
        (libc::SIGQUIT, "QUIT"),
        (libc::SIGILL, "ILL"),
        (libc::SIGTRAP, "TRAP"),
        (libc::SIGABRT, "ABRT"),
        (libc::SIGBUS, "BUS"),
        (libc::SIGFPE, "FPE"),
        (libc::SIGKILL, "KILL"),
        (libc::SIGUSR1, "USR1"),
        (libc::SIGSEGV, "SEGV"),
        (libc::SIGUSR2, "USR2"),
        (libc::SIGPIPE, "PIPE"),
        (libc::SIGALRM, "ALRM"),
        (libc::SIGTERM, "TERM"),
        (libc::SIGCONT, "CONT"),
        (libc::SIGSTOP, "STOP"),
        (libc::SIGTSTP, "TSTP"),
        (libc::SIGXCPU, "XCPU"),
        (libc::SIGXFSZ, "XFSZ"),
        (libc::SIGSYS, "SYS"),
        (libc::SIGIO, "IO"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(
            || format!("signal {signal}"),
            |(_, name)| format!("SIG{name}"),
        )
}
