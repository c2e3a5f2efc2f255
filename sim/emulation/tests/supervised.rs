//! Tests of GPIO chips for a command and what it starts: the driver's port `gpio`, whose ioctls the supervisor answers.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ToggleBarrier;
use barrier_driver::ports::{self, PortError};
use barrier_emulation::gpio::GpioChip;
use barrier_emulation::supervised;
use std::convert::Infallible;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a test, far longer than any test takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum sleep of a waiting node. It is longer than [`LIMIT`],
/// so the test fails if no edge wakes the node.
const OVERSLEPT: Duration = Duration::from_secs(40);

/// Environment variable of the child process that opens the port and holds it.
const HELD: &str = "SUPERVISED_HELD";

/// Runs `work` where each node of a board has a chip, with its wires at lines 17 and 27; `None` if this machine does not permit it.
fn on_chips<T: Send>(nodes: usize, work: impl FnOnce(Board<'static>) -> T + Send) -> Option<T> {
    let memory = Memory::create(Board::layout_size(nodes, 0)).expect("memory for a small board");
    let board = Box::leak(Box::new(memory)).init(nodes, 0).expect("a board");
    let chips = (0..nodes).map(|node| {
        let Wires { out, input, .. } = board.wires(node, |_| ()).expect("the wires are free");
        GpioChip::default().plug(17, 27, (out, input))
    });
    match supervised::run(chips.collect(), || work(board)) {
        Ok(done) => Some(done),
        Err(refused) => {
            eprintln!("SKIPPED: supervised GPIO is not tested: {refused}");
            None
        }
    }
}

fn text(node: usize) -> String {
    format!("gpio:/dev/gpiochip{node},out=17,in=27")
}

#[test]
fn nodes_pass_barriers_and_an_edge_wakes_a_sleeper() {
    const NODES: usize = 3;
    const ROUNDS: u64 = 12;
    on_chips(NODES, |board| {
        let fence = Barrier::new(NODES);
        let awake = AtomicU64::new(0);
        let begun = board.releases();
        thread::scope(|scope| {
            for node in 0..NODES {
                let (fence, awake) = (&fence, &awake);
                scope.spawn(move || {
                    let wires = ports::open(&text(node)).expect("an emulated port");
                    let mut barrier = ToggleBarrier::open(wires.out, wires.input, || {
                        fence.wait();
                        Ok::<_, Infallible>(())
                    })
                    .expect("an idle barrier");
                    for round in 1..=ROUNDS {
                        let is_late = node == 0;
                        if is_late && round % 3 != 0 {
                            // In some rounds the other nodes already sleep, in others they are about to sleep.
                            thread::sleep(Duration::from_millis(round % 4));
                        }
                        barrier.enter().expect("an idle node can enter");
                        let nap = if is_late { Duration::ZERO } else { OVERSLEPT };
                        let waited = barrier.wait_asleep(thread::yield_now, nap, OVERSLEPT);
                        waited.expect("all nodes enter");
                        awake.fetch_add(1, Ordering::SeqCst);
                        let since = Instant::now();
                        while awake.load(Ordering::SeqCst) < round * NODES as u64 {
                            assert!(since.elapsed() < LIMIT, "a sleeper missed release {round}");
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(board.releases() - begun, ROUNDS);
    });
}

/// A child process opens the port and is then killed; the kernel closes its files.
#[test]
fn a_line_has_one_user_until_its_process_dies() {
    if std::env::var_os(HELD).is_some() {
        let _wires = ports::open(&text(0)).expect("an emulated port");
        println!("held");
        thread::sleep(LIMIT);
        return;
    }
    on_chips(1, |_| {
        let mut holder = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_line_has_one_user_until_its_process_dies"])
            .arg("--nocapture")
            .env(HELD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = holder.stdout.take().expect("a pipe");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(out));
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("held"))));
        let busy = ports::open(&text(0)).map(drop);
        assert!(matches!(busy, Err(PortError::Busy { .. })), "{busy:?}");
        holder.kill().expect("it runs");
        holder.wait().expect("it has ended");
        ports::open(&text(0)).expect("the line is free again");
    });
}

#[test]
fn a_line_or_chip_that_does_not_exist_is_refused() {
    on_chips(1, |_| {
        let line = ports::open("gpio:/dev/gpiochip0,out=58,in=27").map(drop);
        assert!(matches!(line, Err(PortError::Refused { .. })), "{line:?}");
        let chip = ports::open(&text(1)).map(drop);
        assert!(
            matches!(chip, Err(PortError::Unsupported { .. })),
            "{chip:?}"
        );
    });
}
