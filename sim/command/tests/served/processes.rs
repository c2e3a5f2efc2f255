//! Tests of a served board with many processes of one host.

use super::*;
use std::sync::atomic::Ordering;

fn address(first_line: &str) -> &str {
    first_line.rsplit(' ').next().expect("words")
}

#[test]
fn sixty_processes_pass_barriers_over_tcp_and_every_one_is_a_release() {
    let mut server = Server::start(hwbarr(), &["--listen", "127.0.0.1:0", "--once"]);
    let first = server.says("a board of 60 nodes is served at sim:tcp://127.0.0.1:");
    let output = hwbarr()
        .args(["live", "--barriers", "30", "--self-test", "--board"])
        .arg(address(&first))
        .output()
        .expect("hwbarr starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("34 releases counted by the machine, 4 of them"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    server.says("34 releases counted by the machine");
    server.process.ends_well();
    for node in 0..60 {
        for what in ["joined", "left"] {
            assert_eq!(server.counted(&format!("node {node} has {what}")), 1);
        }
    }
    assert_eq!(server.counted("died"), 0);
}

#[test]
fn all_clients_read_over_tcp_what_one_has_found() {
    let arguments = ["--nodes", "5", "--listen", "127.0.0.1:0", "--once"];
    let mut server = Server::start(hwbarr(), &arguments);
    let first = server.says("a board of 5 nodes is served at sim:tcp://127.0.0.1:");
    let output = hwbarr()
        .args(["live", "--nodes", "5", "--barriers", "25", "--eureka"])
        .args(["--board", address(&first)])
        .output()
        .expect("hwbarr starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.ends_with("and all 5 read the line high\n"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    server.says("25 releases counted by the machine");
    server.process.ends_well();
    assert_eq!(server.counted("died"), 0);
}

#[test]
fn the_log_names_a_node_that_is_killed_and_the_others_are_not_released() {
    let mut server = Server::start(hwbarr(), &["--nodes", "3", "--listen", "127.0.0.1:0"]);
    let first = server.says("a board of 3 nodes is served at");
    let board = address(&first);
    let commands = (0..3).map(|_| hwbarr()).collect();
    let mut nodes = Nodes::start(commands, board, "1000000000");
    for _fence in ["open", "start"] {
        nodes.fence();
    }
    // The process is killed after some of its thousands of barriers.
    std::thread::sleep(Duration::from_millis(50));
    nodes.0[1].0.kill();
    let died = server.says("node 1 has died, from 127.0.0.1:");
    assert!(died.ends_with(", idle"), "{died}");
    let mut observer =
        barrier_board::served::BoardObserver::connect(&board.parse().expect("an address"))
            .expect("served");
    let at_death = observer.look().expect("served").board.releases;
    std::thread::sleep(Duration::from_millis(50));
    let later = observer.look().expect("served");
    assert_eq!(later.board.releases, at_death);
    assert_eq!(
        later.board.arrived() & 0b010,
        0,
        "the dead have not arrived"
    );
    assert_eq!(later.connected, 0b101);
}

#[test]
fn a_log_without_a_reader_does_not_block_the_board() {
    let mut server = Server::start(hwbarr(), &["--nodes", "1", "--listen", "127.0.0.1:0"]);
    let first = server.says("served at");
    let board = address(&first).parse().expect("an address");
    // The server prints two lines per client: more than the pipe and the log's queue can hold.
    for _ in 0..2000 {
        barrier_board::served::Wires::connect(&board, 0, 1, || ()).expect("the board is served");
    }
    // The test now reads the log until a line that reports missing lines.
    let limit = Instant::now() + LIMIT;
    let (done, reads) = (std::sync::atomic::AtomicBool::new(false), Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(reads) {
                assert!(Instant::now() < limit, "nothing is said of missing lines");
                barrier_board::served::Wires::connect(&board, 0, 1, || ())
                    .expect("the board is served");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        server.says("lines are missing here, because the output was not read");
        done.store(true, reads);
    });
}

#[test]
fn an_address_in_use_is_named() {
    let mut server = Server::start(hwbarr(), &["--listen", "127.0.0.1:0"]);
    let first = server.says("served at");
    let place = address(&first).trim_start_matches("sim:tcp://").to_owned();
    let output = hwbarr().args(["serve", "--listen", &place]).output();
    let said = output.expect("hwbarr starts").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.starts_with(&format!("hwbarr: the board cannot be served at {place}: ")),
        "{said}"
    );
}
