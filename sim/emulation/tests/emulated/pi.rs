//! Tests on an emulated Raspberry Pi whose GPIO pins are connected to a board in this process,
//! with the real crates rppal and gpiocdev.

use crate::rigs::board;
use barrier_board::live::{Board, Wires};
use barrier_driver::channels::{ChannelBarrier, Membership};
use barrier_driver::ports::{self, BoxedIn, BoxedOut, WireError};
use barrier_driver::suite::Rig;
use barrier_emulation::channels::ChannelBoard;
use barrier_emulation::gpio::{Function, GpioChip, LINES, machine};
use barrier_emulation::trap::{self, PluggedChip, Rights};
use embedded_hal::digital::{InputPin, OutputPin};
use std::cell::Cell;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::time::Duration;

/// Time limit that only a broken driver reaches.
const LONG: Duration = Duration::from_secs(30);

/// Moves this thread to an emulated Raspberry Pi; returns false if the process may not mount.
pub fn on_a_pi() -> bool {
    thread_local! {
        static IS_ON: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_ON.get() {
        let folder = tempfile::tempdir().expect("a folder");
        match machine::enter(folder.path()) {
            Ok(()) => IS_ON.set(true),
            Err(e) => eprintln!("SKIPPED: GPIO is not tested, this process may not mount: {e}"),
        }
    }
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    IS_ON.get()
}

/// One of the two interfaces to the GPIO lines: registers, or character device.
pub trait Way: Sync {
    /// The prefix of the port name, before the lines.
    const PORT: &str;
}

pub struct ByRegisters;
pub struct ByCharacterDevice;

impl Way for ByRegisters {
    const PORT: &str = "rppal:";
}

impl Way for ByCharacterDevice {
    const PORT: &str = "gpio:/dev/gpiochip0,";
}

/// A rig of nodes at one GPIO header: node `n` has lines `2n` and `2n + 1`.
pub struct Header<W> {
    board: Board<'static>,
    _chip: PluggedChip,
    way: PhantomData<W>,
}

fn text<W: Way>(node: usize) -> String {
    format!("{}out={},in={}", W::PORT, 2 * node, 2 * node + 1)
}

/// Returns a chip with the wires of all nodes of this board.
fn chip(board: &Board<'static>) -> GpioChip {
    (0..board.nodes()).fold(GpioChip::default(), |chip, node| {
        let Wires { out, input, .. } = board.wires(node, |_| ()).expect("the wires are free");
        chip.plug(2 * node as u32, 2 * node as u32 + 1, (out, input))
    })
}

impl<W: Way> Rig for Header<W> {
    type Error = WireError;
    type Out = BoxedOut;
    type In = BoxedIn;

    fn build(nodes: usize) -> Self {
        let board = board(nodes);
        Self {
            _chip: trap::plug_chip(chip(&board)),
            board,
            way: PhantomData,
        }
    }

    fn wires(&self, node: usize) -> (BoxedOut, BoxedIn) {
        let wires = ports::open(&text::<W>(node)).expect("an emulated port");
        (wires.out, wires.input)
    }

    fn releases(&self) -> u64 {
        self.board.releases()
    }
}

mod by_registers {
    crate::rigs::claims_where!(super::on_a_pi => super::Header<super::ByRegisters>);
}

mod by_character_device {
    crate::rigs::claims_where!(super::on_a_pi => super::Header<super::ByCharacterDevice>);
}

/// Number of version 2 nodes at one header: each needs thirteen lines, so four nodes fit.
const NODES: usize = 4;
const EACH: usize = 13;

fn channels_text<W: Way>(node: usize) -> String {
    let lines = |lines: std::ops::Range<usize>| {
        let numbers = lines.map(|line| (node * EACH + line).to_string());
        numbers.collect::<Vec<_>>().join("+")
    };
    format!("{}out={},in={}", W::PORT, lines(0..8), lines(8..EACH))
}

fn channels_chip(board: &ChannelBoard) -> GpioChip {
    let nodes = (0..NODES).flat_map(|node| (0..8).map(move |line| (node, line)));
    nodes.fold(GpioChip::default(), |chip, (node, line)| {
        let first = node * EACH;
        // The lines clock, data and select have no inward line with the same index.
        let back = if line < 5 {
            first + 8 + line
        } else {
            LINES as usize
        };
        chip.plug((first + line) as u32, back as u32, board.line(node, line))
    })
}

/// Tests two communicators with a common node,
/// which the real driver programs and uses over GPIO lines.
fn channels_work<W: Way>() {
    if !on_a_pi() {
        return;
    }
    let board = ChannelBoard::power_on(NODES).expect("a legal size");
    let _chip = trap::plug_chip(channels_chip(&board));
    let open = |node| ports::open_channels(&channels_text::<W>(node)).expect("an emulated chip");
    let mut nodes: Vec<_> = (0..NODES).map(open).collect();
    assert_eq!(nodes[2].programmer.identify().map(|id| id.channels), Ok(5));
    let memberships =
        [(1, 0b0111), (4, 0b1100)].map(|(channel, members)| Membership { channel, members });
    for (membership, first) in memberships.into_iter().zip([0, 3]) {
        let taken = nodes[first]
            .programmer
            .take(membership.channel, membership.members);
        taken.expect("a free channel");
    }
    let mut barriers: [Vec<_>; 2] = Default::default();
    for (barriers, membership) in barriers.iter_mut().zip(memberships) {
        for node in (0..NODES).filter(|node| membership.members >> node & 1 == 1) {
            let wires = nodes[node].channels[usize::from(membership.channel)].clone();
            let no_programmer = None::<&mut ports::BoxedProgrammer>;
            let met = || Ok::<(), Infallible>(());
            let opened =
                ChannelBarrier::open(wires.out, wires.input, membership, no_programmer, met);
            barriers.push(opened.expect("a channel at rest"));
        }
    }
    let [left, right] = &mut barriers;
    right[1].enter().expect("out of the barrier");
    for _ in 0..5 {
        left.iter_mut()
            .for_each(|node| node.enter().expect("out of the barrier"));
        for node in left.iter_mut() {
            node.wait(std::thread::yield_now, LONG)
                .expect("all have entered");
        }
    }
    assert!(
        right[1].poll().expect("a read").is_pending(),
        "node 2 has not come"
    );
    assert_eq!(right[1].missing(&mut nodes[3].programmer), Ok(0b0100));
    right[0].enter().expect("out of the barrier");
    right[1]
        .wait(std::thread::yield_now, LONG)
        .expect("both have entered");
    let releases = |channel| board.machine().channel(channel).map(|c| c.releases);
    assert_eq!((releases(1), releases(4)), (Some(5), Some(1)));
}

#[test]
fn two_channels_work_by_registers() {
    channels_work::<ByRegisters>();
}

#[test]
fn two_channels_work_by_the_character_device() {
    channels_work::<ByCharacterDevice>();
}

/// Returns the error message of `open` for a port that it cannot open.
fn said(text: &str) -> String {
    match ports::open(text) {
        Ok(wires) => panic!("{text} was opened: {wires:?}"),
        Err(e) => e.to_string(),
    }
}

/// A floating wire is high, and here the barrier's level is high, too.
/// An output that starts low would therefore be an arrival.
fn becoming_an_output_does_not_move_the_wire<W: Way>() {
    if !on_a_pi() {
        return;
    }
    let board = board(2);
    let _chip = trap::plug_chip(chip(&board));
    // Both wires float high, which are two arrivals.
    let before = board.snapshot();
    assert_eq!(
        (before.inputs, before.outputs, before.releases),
        (0b11, 0b11, 1)
    );
    let wires = [0, 1].map(|node| ports::open(&text::<W>(node)).expect("an emulated port"));
    assert_eq!(
        trap::with_chip(|chip| chip.function(0)),
        Some(Function::Output)
    );
    let after = board.snapshot();
    assert_eq!(
        (after.inputs, after.outputs, after.releases),
        (0b11, 0b11, 1)
    );
    drop(wires);
}

/// When a port is dropped, its outgoing wire keeps its level.
/// The next job's `ToggleBarrier::open`, which is not tested here,
/// reads the idle level from the incoming wire and writes it to the outgoing wire.
fn a_wire_keeps_its_level_when_the_port_is_given_back<W: Way>() {
    if !on_a_pi() {
        return;
    }
    let board = board(2);
    let _chip = trap::plug_chip(chip(&board));
    for high in [true, false, true] {
        let mut wires = ports::open(&text::<W>(1)).expect("an emulated port");
        wires.out.set_state(high.into()).expect("a write");
        drop(wires);
        assert_eq!(board.snapshot().inputs >> 1 & 1 == 1, high);
    }
}

fn an_inverted_line_reads_and_writes_the_opposite<W: Way>() {
    if !on_a_pi() {
        return;
    }
    let board = board(1);
    let _chip = trap::plug_chip(chip(&board));
    let mut wires = ports::open(&format!("{}out=!0,in=!1", W::PORT)).expect("an emulated port");
    for high in [true, false] {
        wires.out.set_state(high.into()).expect("a write");
        assert_eq!(board.snapshot().inputs, u64::from(!high));
        assert_eq!(wires.input.is_high(), Ok(board.snapshot().outputs == 0));
    }
}

/// Declares each test for both interfaces.
macro_rules! both_ways {
    ($($claim:ident)*) => {
        mod registers {
            $(#[test] fn $claim() { super::$claim::<super::ByRegisters>(); })*
        }
        mod character_device {
            $(#[test] fn $claim() { super::$claim::<super::ByCharacterDevice>(); })*
        }
    };
}

both_ways! {
    becoming_an_output_does_not_move_the_wire
    a_wire_keeps_its_level_when_the_port_is_given_back
    an_inverted_line_reads_and_writes_the_opposite
}

#[test]
fn a_pin_has_one_user_in_a_process_and_is_free_again_after_it() {
    if !on_a_pi() {
        return;
    }
    let board = board(1);
    let _chip = trap::plug_chip(chip(&board));
    let first = ports::open("rppal:out=0,in=1").expect("an emulated port");
    assert_eq!(
        said("rppal:out=2,in=1"),
        "pin BCM 1 of the Raspberry Pi is in use by this process already"
    );
    drop(first);
    ports::open("rppal:out=0,in=1").expect("it has been given back");
}

#[test]
fn a_line_has_one_user_and_is_free_again_after_it() {
    if !on_a_pi() {
        return;
    }
    let board = board(1);
    let _chip = trap::plug_chip(chip(&board));
    let first = ports::open("gpio:/dev/gpiochip0,out=0,in=1").expect("an emulated port");
    let said = said("gpio:/dev/gpiochip0,out=0,in=3");
    assert!(
        said.starts_with("GPIO line 0 of /dev/gpiochip0 is in use by another process"),
        "{said}"
    );
    drop(first);
    ports::open("gpio:/dev/gpiochip0,out=0,in=1").expect("it has been given back");
}

#[test]
fn a_line_that_the_chip_lacks_is_refused_by_its_number() {
    if !on_a_pi() {
        return;
    }
    let _chip = trap::plug_chip(chip(&board(1)));
    let of_chip = said("gpio:/dev/gpiochip0,out=58,in=1");
    assert!(
        of_chip.starts_with("GPIO line 58 of /dev/gpiochip0"),
        "{of_chip}"
    );
    assert_eq!(
        said("rppal:out=58,in=1"),
        "pin BCM 58 of the Raspberry Pi cannot be used, it refused to be opened: Pin 58 is not available"
    );
}

#[test]
fn a_machine_that_is_no_raspberry_pi_is_told_so() {
    let said = said("rppal:out=0,in=1");
    assert!(
        said.contains("not a Raspberry Pi that rppal knows"),
        "{said}"
    );
}
