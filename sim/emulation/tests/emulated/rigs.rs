//! Test rigs: a board in this process whose nodes use emulated parallel ports and the real drivers.

use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ports::parallel::{INPUTS, Line, OUTPUTS};
use barrier_driver::ports::{self, BoxedIn, BoxedOut, WireError};
use barrier_driver::suite::Rig;
use barrier_emulation::parallel::{ParallelPort, Plug};
use barrier_emulation::ppdev::Parports;
use barrier_emulation::trap::{self, Plugged, Rights};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the line with this name.
pub fn line(lines: &[Line], name: &str) -> Line {
    *lines
        .iter()
        .find(|line| line.name == name)
        .expect("a line of the port")
}

/// Returns the wiring of `hdl/boards/WIRING.md`: D0 to the barrier, nACK from it.
pub fn usual() -> Plug {
    Plug::straight(line(&OUTPUTS, "D0"), line(&INPUTS, "nACK"))
}

/// Returns a board whose memory lives as long as the test program.
pub fn board(nodes: usize) -> Board<'static> {
    let memory = Memory::create(Board::layout_size(nodes, 0)).expect("memory for a small board");
    board_in(Box::leak(Box::new(memory)), nodes)
}

/// Creates a board of `nodes` nodes in this memory.
pub fn board_in(memory: &Memory, nodes: usize) -> Board<'_> {
    memory
        .init(nodes, 0)
        .expect("the memory has the right size")
}

/// Returns a port with the wires of `node`, whose data register is zero.
pub fn port(board: &Board<'static>, node: usize, plug: Plug) -> ParallelPort {
    let Wires { out, input, .. } = board.wires(node, |_| ()).expect("the wires are free");
    ParallelPort::new(plug, 0, (out, input))
}

/// Returns an I/O address that no other test in this process uses,
/// and probably none in another process.
pub fn free_base() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let place = std::process::id().wrapping_mul(512) + NEXT.fetch_add(1, Ordering::Relaxed);
    // The addresses start at 0x1000; each port has eight of them.
    0x1000 + (place % 7000) as u16 * 8
}

/// Runs the driver's suite for a rig if this machine allows it; otherwise prints the reason.
macro_rules! claims_where {
    ($can:path => $rig:ty) => {
        crate::rigs::claims_where!(@ $can, $rig:
            no_rank_leaves_before_all_have_entered,
            every_barrier_is_one_release,
            a_late_node_holds_everyone,
            open_clears_what_an_aborted_job_left,
            closing_withdraws_an_arrival,
            a_panic_withdraws_an_arrival,
            a_wait_has_a_limit_and_can_be_resumed,
            good_wires_pass_the_self_test,
            a_sleeper_is_woken_by_the_release,
            a_sleep_has_a_limit_and_can_be_resumed,
        );
    };
    (@ $can:path, $rig:ty: $($claim:ident,)*) => {
        $(
            #[test]
            fn $claim() {
                if $can() {
                    barrier_driver::suite::$claim::<$rig>();
                }
            }
        )*
    };
}
pub(crate) use claims_where;

/// A rig of ports that are accessed by `in` and `out`.
/// Different nodes use different lines, some of which the port inverts.
pub struct Instructions {
    board: Board<'static>,
    places: Vec<(String, Plugged)>,
}

impl Rig for Instructions {
    type Error = WireError;
    type Out = BoxedOut;
    type In = BoxedIn;

    fn build(nodes: usize) -> Self {
        trap::install(Rights::Granted).expect("seccomp filters are allowed");
        let board = board(nodes);
        let places = (0..nodes)
            .map(|node| {
                let (out, input) = (OUTPUTS[node % 8], INPUTS[node % 5]);
                let base = free_base();
                let plugged = trap::plug(base, port(&board, node, Plug::straight(out, input)));
                let text = format!("parport:{base:#x},out={},in={}", out.name, input.name);
                (text, plugged)
            })
            .collect();
        Self { board, places }
    }

    fn wires(&self, node: usize) -> (BoxedOut, BoxedIn) {
        let wires = ports::open(&self.places[node].0).expect("an emulated port");
        (wires.out, wires.input)
    }

    fn releases(&self) -> u64 {
        self.board.releases()
    }
}

mod by_instructions {
    barrier_driver::port_suite!(super::Instructions);
    barrier_driver::sleeper_suite!(super::Instructions);
}

/// Mounts files that answer ppdev's ioctls; `None` if this machine does not allow mounting.
pub fn mounted(ports: Vec<ParallelPort>) -> Option<Parports> {
    match Parports::mount(ports) {
        Ok(files) => Some(files),
        Err(e) => {
            eprintln!("SKIPPED: ppdev is not tested, this process may not mount /dev/fuse: {e}");
            None
        }
    }
}

/// A rig of ports that are accessed by the ioctls of ppdev.
pub struct Ioctls {
    board: Board<'static>,
    files: Parports,
}

/// Returns true if this machine allows `Ioctls`; else prints the reason.
pub fn can_mount() -> bool {
    mounted(Vec::new()).is_some()
}

impl Rig for Ioctls {
    type Error = WireError;
    type Out = BoxedOut;
    type In = BoxedIn;

    fn build(nodes: usize) -> Self {
        let board = board(nodes);
        let ports = (0..nodes).map(|node| port(&board, node, usual())).collect();
        let files = mounted(ports).expect("`can_mount` was asked first");
        Self { board, files }
    }

    fn wires(&self, node: usize) -> (BoxedOut, BoxedIn) {
        let path = self.files.path(node);
        let text = format!("ppdev:{},out=D0,in=nACK", path.display());
        // The kernel releases a closed file asynchronously,
        // so the port may still be busy for a short time.
        let opened = (0..1000).find_map(|_| match ports::open(&text) {
            Err(ports::PortError::Busy { .. }) => {
                std::thread::yield_now();
                None
            }
            other => Some(other),
        });
        let wires = opened.expect("released").expect("an emulated port");
        (wires.out, wires.input)
    }

    fn releases(&self) -> u64 {
        self.board.releases()
    }
}

mod by_ioctls {
    crate::rigs::claims_where!(super::can_mount => super::Ioctls);
}
