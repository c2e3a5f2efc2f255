//! Tests of mpirun on a terminal with keyboard input.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tests::{Job, Started, compile, installation};

const RANKS: usize = 3;
const CTRL_C: &[u8] = b"\x03";
const CTRL_Z: &[u8] = b"\x1a";
const ENTER: &[u8] = b"\n";

/// The keyboard side (master) of a pseudo-terminal: bytes written to it are keys.
struct Keyboard(File);

impl Keyboard {
    fn press(&mut self, keys: &[u8]) {
        self.0.write_all(keys).unwrap();
    }
}

/// Opens a pseudo-terminal: returns its keyboard side, and the file for a program's input.
fn terminal() -> (Keyboard, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave: OwnedFd = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    (Keyboard(master.into()), slave.into())
}

/// Runs a command as the foreground job of a new terminal session.
fn at(terminal: File, command: &[&str]) -> Job {
    // setsid(1) of util-linux starts a new session, whose controlling terminal is standard input.
    let job = Job::command("setsid".as_ref()).alone().stdin(terminal);
    let words = ["--ctty", "--wait"].iter().chain(command);
    words.fold(job, |job, word| job.arg(word))
}

/// Returns mpirun's arguments for ranks that wait for a message and never end by themselves.
fn mpirun(options: &[&str], way: &str) -> Vec<String> {
    let mut words = vec![
        installation().join("bin/mpirun").display().to_string(),
        "-n".into(),
        RANKS.to_string(),
    ];
    words.extend(options.iter().map(ToString::to_string));
    words.extend([
        compile("leave").display().to_string(),
        way.into(),
        "1".into(),
    ]);
    words
}

fn start(terminal: File, words: &[String]) -> Started {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    at(terminal, &words).start()
}

/// Waits until all processes are stopped (`stopped`) or all are running.
fn await_stopped(processes: &[i32], stopped: bool) {
    let is_stopped = |process: &i32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    let begin = Instant::now();
    while !processes
        .iter()
        .all(|process| is_stopped(process) == stopped)
    {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "stopped is not {stopped}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_ends_the_job() {
    let (mut keyboard, terminal) = terminal();
    let job = start(terminal, &mpirun(&[], "fork"));
    job.ready(2 * RANKS);
    keyboard.press(CTRL_C);
    let outcome = job.wait();
    assert_eq!(outcome.status.code(), Some(130), "{}", outcome.stderr);
}

#[test]
fn a_second_ctrl_c_kills_ranks_that_ignore_the_first() {
    let (mut keyboard, terminal) = terminal();
    // The grace period is one hour, so the job can only end because of the second Ctrl-C.
    let job = start(terminal, &mpirun(&["--mca", "mpirun_grace", "1h"], "deaf"));
    let ranks = job.ready(RANKS);
    keyboard.press(CTRL_C);
    std::thread::sleep(Duration::from_millis(100));
    await_stopped(&ranks, false);
    keyboard.press(CTRL_C);
    let outcome = job.wait();
    assert_eq!(outcome.status.code(), Some(130), "{}", outcome.stderr);
}

#[test]
fn ctrl_z_stops_mpirun_and_all_ranks_and_fg_continues_them() {
    let (mut keyboard, terminal) = terminal();
    let script = "\"$0\" \"$@\"; echo stopped $?; read line; fg; echo ended $?";
    // A non-interactive shell has job control only if its standard error is the terminal.
    let shell = ["sh", "-c", "exec \"$@\" 2>/dev/tty", "sh"];
    let shell = [&shell[..], &["bash", "--norc", "-m", "-c", script]].concat();
    let shell: Vec<String> = shell.into_iter().map(String::from).collect();
    let words = [shell, mpirun(&[], "wait")].concat();
    let job = start(terminal, &words);
    let ranks = job.ready(RANKS);
    keyboard.press(CTRL_Z);
    // The status that the shell prints is 128 plus the number of the signal that stopped mpirun.
    assert!(["147", "148"].contains(&job.says("stopped ").as_str()));
    await_stopped(&ranks, true);
    keyboard.press(ENTER);
    await_stopped(&ranks, false);
    keyboard.press(CTRL_C);
    assert_eq!(job.says("ended "), "130");
    job.wait();
}

#[test]
fn a_program_is_buffered_as_mpirun_was_told() {
    let program = compile("buffered");
    let mpirun = installation().join("bin/mpirun");
    for (mode, printed) in [
        ("0", "a line\nand a beginning"),
        ("1", "a line\n"),
        ("2", ""),
    ] {
        let outcome = Job::command(&mpirun)
            .arg("--stream-buffering")
            .arg(mode)
            .arg(&program)
            .run();
        assert_eq!(outcome.stdout, printed, "mode {mode}");
    }
}
