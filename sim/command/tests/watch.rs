//! Tests of `hwbarr watch` on boards of other processes: served, in shared memory, on a terminal.

use barrier_board::live::{Board, Boards, ChannelBoard, Memory};
use barrier_board::served::{Address, Server, Wires};
use barrier_board::tree::Tree;
use embedded_hal::digital::OutputPin;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const HWBARR: &str = env!("CARGO_BIN_EXE_hwbarr");
/// Time limit, far longer than any step of these tests takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn watch(arguments: &[&str]) -> Output {
    let mut command = Command::new(HWBARR);
    command.arg("watch").args(arguments);
    command.output().expect("hwbarr starts")
}

fn prints(arguments: &[&str]) -> String {
    let output = watch(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn refuses(arguments: &[&str]) -> String {
    let output = watch(arguments);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// Serves a board of `nodes` nodes, and runs `body` with the board's address.
fn served(nodes: usize, body: impl FnOnce(&Address)) {
    let server = Server::bind(nodes, "127.0.0.1:0");
    serving(server.expect("a port on the loopback address"), body);
}

fn serving(mut server: Server, body: impl FnOnce(&Address)) {
    let address = Address::from(server.address());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                server.turn().expect("the system waits for sockets");
            }
        });
        /// Stops the server when dropped, also if an assertion fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&over);
        body(&address);
    });
}

#[test]
fn a_served_board_of_version_2_is_shown_as_one() {
    let server = Server::bind_channels(3, "127.0.0.1:0").expect("a port on the loopback address");
    serving(server, |address| {
        let address = address.to_string();
        let shown = prints(&[&address, "--once"]);
        assert!(shown.contains("five channels (version 2)"), "{shown}");
        assert!(!shown.contains("wires are"), "{shown}");
        let lines = prints(&[&address, "--plain", "--looks", "1"]);
        assert!(lines.contains("0 of 3 connected"), "{lines}");
        let json = prints(&[&address, "--once", "--json"]);
        assert!(json.contains("\"version\":2"), "{json}");
        let powered_on = "channel 0: nodes 0-2; 0 releases\nchannel 1: free\n";
        assert!(shown.contains(powered_on), "{shown}");
    });
}

/// Held while this process has a board of its own: a child process that is started during this time
/// inherits the board, and would be listed with one board too many.
static OWN_BOARD: Mutex<()> = Mutex::new(());

/// A child process that is killed when the test ends or fails.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        let _none = OWN_BOARD.lock().unwrap_or_else(PoisonError::into_inner);
        Running(command.spawn().expect("it starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail only for a process that has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_served_board_is_shown_with_waiting_and_late_nodes() {
    served(12, |address| {
        let mut nodes: Vec<_> = (0..11)
            .map(|node| Wires::connect(address, node, 12, || ()).expect("free"))
            .collect();
        for node in [0, 1, 2, 10] {
            nodes[node].out.set_high().expect("connected");
        }
        let text = address.to_string();
        insta::assert_snapshot!(prints(&[&text, "--once"]).replace(&text, "sim:tcp://HOST:PORT"));
        let json: serde_json::Value =
            serde_json::from_str(&prints(&[&text, "--once", "--json"])).expect("JSON");
        assert_eq!(json["entered"], serde_json::json!([0, 1, 2, 10]));
        assert_eq!(
            json["awaited"],
            serde_json::json!([3, 4, 5, 6, 7, 8, 9, 11])
        );
        assert_eq!(json["connected"].as_array().map(Vec::len), Some(11));
    });
}

#[test]
fn watching_a_board_in_shared_memory_leaves_it_alone() {
    let _own = OWN_BOARD.lock().unwrap_or_else(PoisonError::into_inner);
    // This process has no other board, because the other tests use boards of other processes.
    let memory = Memory::create(Board::layout_size(3, 100)).expect("memory");
    let board = memory.init(3, 100).expect("fits");
    let mut wires = board.wires(1, |_| ()).expect("free");
    wires.out.set_high().expect("infallible");
    let before = board.record();
    let me = std::process::id().to_string();
    let json: serde_json::Value =
        serde_json::from_str(&prints(&[&me, "--once", "--json"])).expect("JSON");
    assert_eq!(json["nodes"], 3);
    assert_eq!(json["connected"], serde_json::json!([1]));
    assert_eq!(json["entered"], serde_json::json!([1]));
    assert_eq!(json["awaited"], serde_json::json!([0, 2]));
    assert_eq!(board.record(), before);
}

#[test]
fn boards_below_a_board_are_seen_as_one_with_the_output_of_the_root() {
    let _own = OWN_BOARD.lock().unwrap_or_else(PoisonError::into_inner);
    let tree = Tree::new(130, 3);
    let memory = Memory::create(Boards::layout_size(&tree, 0)).expect("memory");
    let boards = memory.init_boards(&tree, 0).expect("fits");
    let mut wires: Vec<_> = (0..130)
        .map(|node| boards.wires(node, |_| ()).expect("free"))
        .collect();
    for (node, wires) in wires.iter_mut().enumerate() {
        wires.out.set_high().expect("infallible");
        // All boards except the last have released, so the root has not released.
        if node == 127 {
            break;
        }
    }
    let me = std::process::id().to_string();
    let look = || -> serde_json::Value {
        serde_json::from_str(&prints(&[&me, "--once", "--json"])).expect("JSON")
    };
    let json = look();
    assert_eq!((&json["nodes"], &json["output"]), (&130.into(), &0.into()));
    assert_eq!(json["connected"].as_array().map(Vec::len), Some(130));
    assert_eq!(json["entered"].as_array().map(Vec::len), Some(128));
    assert_eq!(json["awaited"], serde_json::json!([128, 129]));
    let picture = prints(&[&me, "--once"]);
    assert!(picture.contains("awaited: 128, 129\n"), "{picture}");
    assert!(
        picture.contains("\n 88  # # "),
        "a row for each board: {picture}"
    );
    for wires in &mut wires[128..] {
        wires.out.set_high().expect("infallible");
    }
    let json = look();
    assert_eq!((&json["releases"], &json["output"]), (&1.into(), &1.into()));
    assert_eq!(json["entered"], serde_json::json!([]));
}

#[test]
fn a_board_of_version_2_in_memory_is_shown_as_one() {
    let _own = OWN_BOARD.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = Memory::create(ChannelBoard::layout_size(3, 0)).expect("memory");
    let board = memory.init_channels(3, 0).expect("fits");
    let lines: Vec<_> = (0..2)
        .map(|node| board.lines(node).expect("free"))
        .collect();
    // After power-on all nodes are members of channel 0; here the other nodes wait for node 2.
    lines.iter().for_each(|lines| lines.set(0, true));
    let me = std::process::id().to_string();
    let json: serde_json::Value =
        serde_json::from_str(&prints(&[&me, "--once", "--json"])).expect("JSON");
    assert_eq!(
        (&json["version"], &json["releases"]),
        (&2.into(), &0.into())
    );
    assert_eq!(json["connected"], serde_json::json!([0, 1]));
    assert_eq!(json["channels"][0]["entered"], serde_json::json!([0, 1]));
    assert_eq!(json["channels"][0]["awaited"], serde_json::json!([2]));
    assert_eq!(json["channels"][4]["members"], serde_json::json!([]));
    let shown = prints(&[&me, "--once"]);
    assert!(
        shown.contains("five channels (version 2), 1 of them taken"),
        "{shown}"
    );
    let waits = "channel 0: nodes 0-2; arrived: 0, 1; awaited: 2; 0 releases\n";
    assert!(shown.contains(waits), "{shown}");
}

#[test]
fn the_barriers_of_running_processes_are_counted_line_by_line() {
    let mut command = Command::new(HWBARR);
    command.args(["live", "--nodes", "3", "--barriers", "1000000000"]);
    let live = Running::start(command.stdout(Stdio::null()));
    let pid = live.0.id().to_string();
    let begin = Instant::now();
    let counts = loop {
        let output = watch(&[&pid, "--plain", "--looks", "5", "--every", "20ms"]);
        let lines = String::from_utf8(output.stdout).expect("UTF-8");
        let count = |line: &str| line.split_whitespace().next()?.parse::<u64>().ok();
        let counts: Vec<_> = lines.lines().map_while(count).collect();
        // The processes may not have started yet, so the loop repeats the query.
        if counts.len() == 5 && counts[0] > 0 {
            break counts;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(begin.elapsed() < LIMIT, "{lines}{said}");
    };
    assert!(counts.is_sorted() && counts[0] < counts[4], "{counts:?}");
}

/// `hwbarr watch` escapes a program's name:
/// another user may have chosen it, as the kernel takes it from the program's file.
#[test]
fn the_name_of_a_program_is_shown_and_reaches_no_terminal_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("\x1b[2J\nforged");
    std::os::unix::fs::symlink(HWBARR, &program).expect("a link");
    let mut command = Command::new(&program);
    command.args(["live", "--nodes", "2", "--barriers", "1000000000"]);
    let live = Running::start(command.stdout(Stdio::null()));
    let pid = live.0.id().to_string();
    let begin = Instant::now();
    let said = loop {
        let output = watch(&[&pid, "--once"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // The processes may not have started yet, so the loop repeats the query.
        if said.contains("forged") {
            break said;
        }
        assert!(begin.elapsed() < LIMIT, "{said}");
    };
    assert!(said.contains("(\\u{1b}[2J\\nforged)"), "{said:?}");
    assert!(
        !said.contains('\x1b') && !said.contains("\nforged"),
        "{said:?}"
    );
}

#[test]
fn what_is_no_board_is_refused_with_a_sentence() {
    let said = refuses(&["lpt1", "--once"]);
    assert!(
        said.contains("'lpt1' is neither sim:tcp://HOST:PORT nor"),
        "{said}"
    );
    let said = refuses(&["sim:tcp://nowhere", "--once"]);
    assert!(
        said.contains("\"sim:tcp://nowhere\" is no address"),
        "{said}"
    );
    let mut command = Command::new("sleep");
    let sleeper = Running::start(command.arg("60"));
    let pid = sleeper.0.id().to_string();
    let said = refuses(&[&pid, "--once"]);
    let expected = format!("process {pid} has no board in shared memory");
    assert!(said.contains(&expected), "{said}");
}

/// Creates a pseudo-terminal of 80 columns and 24 rows;
/// returns the test's end and the program's end.
fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .expect("a pseudo-terminal");
    grantpt(&ours).expect("granted");
    unlockpt(&ours).expect("unlocked");
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&ours, size).expect("a size");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let theirs = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().expect("a path"))
        .expect("the other side");
    (ours.into(), theirs)
}

/// A `hwbarr watch` process on its own terminal.
struct Screen {
    watching: Running,
    keyboard: File,
    /// The output that the terminal has received.
    output: Receiver<Vec<u8>>,
    shown: Vec<u8>,
}

impl Screen {
    fn watch(address: &Address) -> Screen {
        let (ours, theirs) = terminal();
        let side = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let mut command = Command::new(HWBARR);
        command.args(["watch", &address.to_string(), "--every", "20ms"]);
        command.stdin(side()).stdout(side()).stderr(side());
        let watching = Running::start(&mut command);
        // A separate thread reads the terminal,
        // because a program that writes to an unread terminal blocks.
        let (to, output) = channel();
        let mut reader = ours.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The read fails after the program has ended and its end of the terminal is closed.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                let _ = to.send(bytes[..count].to_vec());
            }
        });
        Screen {
            watching,
            keyboard: ours,
            output,
            shown: Vec::new(),
        }
    }

    fn shows(&mut self, what: &str) {
        let begin = Instant::now();
        while !String::from_utf8_lossy(&self.shown).contains(what) {
            let left = LIMIT.saturating_sub(begin.elapsed());
            let more = self.output.recv_timeout(left);
            self.shown.extend(more.unwrap_or_else(|_| {
                panic!("no {what:?} in {}", String::from_utf8_lossy(&self.shown))
            }));
        }
    }

    /// Checks that the terminal is restored: the program has left the alternate screen.
    fn is_given_back(&mut self) -> ExitStatus {
        self.shows("\u{1b}[?1049l");
        self.watching.0.wait().expect("it is ours")
    }
}

#[test]
fn on_a_terminal_it_is_a_screen_until_q_is_pressed() {
    served(60, |address| {
        let mut screen = Screen::watch(address);
        // The searched text is one word:
        // between words the program moves the cursor instead of writing a space.
        screen.shows("awaited");
        screen.keyboard.write_all(b"q").expect("typed");
        let status = screen.is_given_back();
        assert!(status.success(), "{status}");
    });
}

#[test]
fn a_signal_that_ends_it_gives_the_terminal_back_first() {
    served(3, |address| {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            let mut screen = Screen::watch(address);
            screen.shows("awaited");
            kill_process(Pid::from_child(&screen.watching.0), signal).expect("it runs");
            let status = screen.is_given_back();
            assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        }
    });
}

#[test]
fn a_terminal_that_has_gone_ends_it() {
    served(3, |address| {
        let (mut ours, theirs) = terminal();
        let side = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let mut command = Command::new(HWBARR);
        command.args(["watch", &address.to_string(), "--every", "20ms"]);
        command.stdin(side()).stdout(side()).stderr(side());
        let mut watching = Running::start(&mut command);
        // The command holds copies of the terminal's descriptor until it is dropped.
        drop((command, theirs));
        let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&shown).contains("awaited") {
            let count = ours.read(&mut bytes).expect("the screen");
            shown.extend_from_slice(&bytes[..count]);
        }
        drop(ours);
        let begin = Instant::now();
        while watching.0.try_wait().expect("it is ours").is_none() {
            assert!(begin.elapsed() < LIMIT, "it still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}
