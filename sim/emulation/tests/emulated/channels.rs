//! Tests of version 2 boards through parallel ports:
//! `ports::open_channels`, ppdev's interface, and the model of the board.

use crate::rigs::{can_mount, mounted};
use barrier_driver::channels::{
    ChannelBarrier, ChannelOpenError, Identity, Membership, ProgramError, ReleaseLine, Status,
};
use barrier_driver::ports::{self, BoxedChannels, BoxedIn, BoxedOut, WireError};
use barrier_driver::suite::Rig;
use barrier_emulation::channels::ChannelBoard;
use barrier_emulation::ppdev::Parports;
use barrier_emulation::trap::{self, Rights};
use embedded_hal::digital::OutputPin;
use std::convert::Infallible;
use std::thread;
use std::time::Duration;

const NODES: usize = 9;
/// Time limit that only a broken driver reaches.
const LONG: Duration = Duration::from_secs(30);

/// A version 2 board whose nodes' ports are ppdev files.
struct Ported {
    board: ChannelBoard,
    files: Parports,
}

impl Ported {
    /// Creates ports with `latch(n)` in the data register of node `n`; `None` if mounting is not allowed.
    fn with_latches(latch: impl Fn(usize) -> u8) -> Option<Self> {
        let board = ChannelBoard::power_on(NODES).expect("a legal size");
        let ports = (0..NODES)
            .map(|node| board.port(node, latch(node)))
            .collect();
        let files = mounted(ports)?;
        Some(Self { board, files })
    }

    fn open(&self, node: usize) -> BoxedChannels {
        let text = format!("ppdev:{}", self.files.path(node).display());
        // The kernel releases a closed file asynchronously,
        // so the port may still be busy for a short time.
        let opened = (0..1000).find_map(|_| match ports::open_channels(&text) {
            Err(ports::PortError::Busy { .. }) => {
                thread::yield_now();
                None
            }
            other => Some(other),
        });
        opened.expect("released").expect("an emulated port")
    }

    fn releases(&self, channel: usize) -> u64 {
        let machine = self.board.machine();
        machine.channel(channel).expect("a channel").releases
    }
}

/// Channel `C` of a board, whose members are all nodes except node 0.
struct Channel<const C: usize>(Ported);

impl<const C: usize> Rig for Channel<C> {
    type Error = WireError;
    type Out = BoxedOut;
    type In = ReleaseLine<BoxedIn>;

    fn build(nodes: usize) -> Self {
        let ported = Ported::with_latches(|_| 0).expect("`can_mount` was asked first");
        let mut first = ported.open(1);
        let members = ((1 << nodes) - 1) << 1;
        first.programmer.take(C as u8, members).expect("it is free");
        drop(first);
        Self(ported)
    }

    fn wires(&self, node: usize) -> (BoxedOut, ReleaseLine<BoxedIn>) {
        let mut channels = self.0.open(node + 1).channels.into_iter();
        let wires = channels.nth(C).expect("one of five");
        (wires.out, wires.input)
    }

    fn releases(&self) -> u64 {
        self.0.releases(C)
    }
}

mod a_channel_of_its_own_line {
    crate::rigs::claims_where!(super::can_mount => super::Channel<2>);
}

mod the_channel_that_shares_its_line_with_replies {
    crate::rigs::claims_where!(super::can_mount => super::Channel<4>);
}

fn met() -> Result<(), Infallible> {
    Ok(())
}

#[test]
fn the_hardware_is_recognised_through_a_port() {
    let Some(ported) = Ported::with_latches(|_| 0) else {
        return;
    };
    let identity = ported.open(3).programmer.identify();
    assert_eq!(
        identity,
        Ok(Identity {
            version: 2,
            nodes: NODES as u8,
            channels: 5
        })
    );
}

#[test]
fn a_session_that_a_dead_job_left_open_is_ended() {
    // Select, clock and data of node 3 are high after power-on,
    // so node 3 occupies the serial receiver for longer than a driver retries.
    let latch = |node| if node == 3 { 0b1110_0000 } else { 0 };
    let Some(ported) = Ported::with_latches(latch) else {
        return;
    };
    let mut other = ported.open(5);
    let mut third = ported.open(3);
    assert!(third.programmer.identify().is_ok());
    assert!(other.programmer.identify().is_ok());
}

/// An arrival line must not change while other lines of the same data register carry serial bits.
#[test]
fn programming_moves_no_arrival() {
    let Some(ported) = Ported::with_latches(|_| 0) else {
        return;
    };
    let mut node = ported.open(5);
    node.channels[1].out.set_high().expect("a write");
    let arrived = |ported: &Ported| {
        let machine = ported.board.machine();
        machine.channel(0).expect("a channel").releases
    };
    let before = arrived(&ported);
    let taken = node.programmer.take(1, 1 << 5);
    assert_eq!(
        taken,
        Err(ProgramError::Refused {
            channel: 1,
            status: Status::NotIdle,
            value: 1 << 5
        }),
        "its line is not at rest"
    );
    node.channels[1].out.set_low().expect("a write");
    assert_eq!(node.programmer.take(1, 1 << 5), Ok(()));
    assert_eq!(arrived(&ported), before);
}

#[test]
fn two_communicators_with_a_common_node_pass_their_barriers_at_their_own_pace() {
    let Some(ported) = Ported::with_latches(|_| 0) else {
        return;
    };
    let left = Membership {
        channel: 1,
        members: 0b00111,
    };
    let right = Membership {
        channel: 4,
        members: 0b11100,
    };
    let mut ports: Vec<_> = (0..5).map(|node| ported.open(node)).collect();
    ports[0].programmer.take(1, left.members).expect("free");
    ports[4].programmer.take(4, right.members).expect("free");
    thread::scope(|scope| {
        for (node, port) in ports.into_iter().enumerate() {
            let mut channels = port.channels.into_iter().map(Some).collect::<Vec<_>>();
            for (membership, barriers) in [(left, 30), (right, 50)] {
                if membership.members >> node & 1 == 0 {
                    continue;
                }
                let wires = channels[usize::from(membership.channel)].take();
                let wires = wires.expect("one barrier for each channel");
                scope.spawn(move || {
                    let no_programmer = None::<&mut ports::BoxedProgrammer>;
                    let mut barrier = ChannelBarrier::open(
                        wires.out,
                        wires.input,
                        membership,
                        no_programmer,
                        met,
                    )
                    .expect("a channel at rest");
                    for _ in 0..barriers {
                        barrier.enter().expect("out of the barrier");
                        barrier.wait(thread::yield_now, LONG).expect("all enter");
                    }
                    // A member closes its port only after it
                    // has read the last release of its channel.
                    barrier.into_toggle().close().expect("still");
                });
            }
        }
    });
    assert_eq!((ported.releases(1), ported.releases(4)), (30, 50));
}

#[test]
fn a_node_that_does_not_come_is_named() {
    let Some(ported) = Ported::with_latches(|_| 0) else {
        return;
    };
    let membership = Membership {
        channel: 3,
        members: 0b1011,
    };
    let mut port = ported.open(1);
    let [_, _, _, wires, _] = port.channels;
    let leader = Some(&mut port.programmer);
    let mut barrier =
        ChannelBarrier::open(wires.out, wires.input, membership, leader, met).expect("free");
    barrier.enter().expect("out of the barrier");
    let waited = barrier.wait(thread::yield_now, Duration::from_millis(20));
    assert!(waited.is_err());
    assert_eq!(barrier.missing(&mut port.programmer), Ok(0b1001));
}

#[test]
fn a_channel_that_another_job_has_is_refused_by_the_names_of_its_nodes() {
    let Some(ported) = Ported::with_latches(|_| 0) else {
        return;
    };
    ported
        .open(7)
        .programmer
        .take(2, 0b1100_0000)
        .expect("free");
    let mut port = ported.open(1);
    let [_, _, wires, ..] = port.channels;
    let membership = Membership {
        channel: 2,
        members: 0b11,
    };
    let leader = Some(&mut port.programmer);
    let refused = ChannelBarrier::open(wires.out, wires.input, membership, leader, met).err();
    assert!(
        matches!(refused, Some(ChannelOpenError::Program(_))),
        "{refused:?}"
    );
    assert_eq!(
        refused.map(|e| e.to_string()).as_deref(),
        Some("channel 2 is taken, by nodes 6, 7")
    );
}

/// With port instructions a serial bit costs two traps, with GPIO each line costs one ioctl.
/// The driver is the same in both cases.
#[test]
fn port_instructions_reach_the_channels_too() {
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    let board = ChannelBoard::power_on(2).expect("a legal size");
    let base = crate::rigs::free_base();
    let _plugged = trap::plug(base, board.port(1, 0));
    let mut port = ports::open_channels(&format!("parport:{base:#x}")).expect("an emulated port");
    assert_eq!(port.programmer.identify().map(|id| id.nodes), Ok(2));
    assert_eq!(port.programmer.take(3, 0b10), Ok(()));
    assert_eq!(board.machine().channel(3).map(|c| c.mask), Some(0b10));
}

#[test]
fn a_text_with_too_few_lines_is_refused_with_the_syntax() {
    let said = |text| match ports::open_channels(text) {
        Ok(port) => panic!("{text} was opened: {port:?}"),
        Err(e) => e.to_string(),
    };
    assert_eq!(
        said("parport:0x378,out=D0+D1,in=PE"),
        "the port \"parport:0x378,out=D0+D1,in=PE\" cannot be understood: \
         out= names 2 lines, and 8 are wanted; it is written parport:0x378"
    );
    assert!(
        said("ppdev:/dev/parport0,out=D0+D1+D2+D3+D4+D5+D6+D0").contains("out= names D0 twice")
    );
    assert!(said("rppal:in=1+2+3+4+5").contains("out= is missing; it is written rppal:out=2+3+"));
}
