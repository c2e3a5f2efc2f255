//! Tests of node ports: two groups of leaders choose the same free channel, and leaders die;
//! one thread executes the steps of all nodes alternately.

use super::*;
use barrier_board::live::{ChannelBoard, Memory, NodeLines};
use barrier_driver::ports;

/// The members of the first group as a mask; the next constant has those of the second group.
const FIRST: u64 = 0b0011;
const SECOND: u64 = 0b1100;

struct OfNode(NodeLines<'static>);

impl ports::Lines for OfNode {
    fn set(&self, out: usize, high: bool) -> Option<()> {
        self.0.set(out, high);
        Some(())
    }

    fn get(&self, input: usize) -> Option<bool> {
        Some(self.0.get(input))
    }
}

/// Creates the node ports of a board in shared memory; all channels are free.
fn node_ports<const N: usize>() -> [NodePort; N] {
    let memory = Memory::create(ChannelBoard::layout_size(N, 0)).expect("memory for a small board");
    let memory: &'static Memory = Box::leak(Box::new(memory));
    let board = memory.init_channels(N, 0).expect("a board");
    core::array::from_fn(|node| {
        let lines = OfNode(board.lines(node).expect("free lines"));
        let lines = Lines {
            channels: ports::channels_over(lines, "a node").expect("lines"),
            node: Some(node as u32),
            watch: None,
            simulated: None,
            remote: None,
        };
        let (lead, node) = Lead::open(lines).expect("the board answers");
        NodePort {
            node,
            lead: Some(lead),
        }
    })
}

type Opened = Result<Box<dyn Wire>, OpenFailure>;

/// Opens a channel at both nodes of a group; the first takes it, and runs `meanwhile` in its first fence.
fn open(
    [first, other]: [&NodePort; 2],
    channel: u8,
    members: u64,
    meanwhile: impl FnOnce(),
) -> [Opened; 2] {
    let mut meanwhile = Some(meanwhile);
    let opened = first.open(channel, members, true, || {
        if let Some(meanwhile) = meanwhile.take() {
            meanwhile();
        }
        Ok(())
    });
    [opened, other.open(channel, members, false, || Ok(()))]
}

fn both(opened: [Opened; 2]) -> [Box<dyn Wire>; 2] {
    opened.map(|opened| match opened {
        Ok(wire) => wire,
        Err(OpenFailure::Taken) => panic!("the channel is taken"),
        Err(OpenFailure::Fault(fault)) => panic!("{}", fault.reason()),
    })
}

/// Performs one barrier of a group, which changes the level of its channel's release line.
fn pass(wires: &mut [Box<dyn Wire>; 2]) {
    for wire in &mut *wires {
        wire.enter().expect("an idle node can enter");
    }
    for wire in wires {
        while wire.poll().expect("the port works").is_pending() {}
    }
}

/// Checks that the second group, which has lost channel `lost`, opens the next one,
/// and that both groups perform barriers.
fn second_choice(ports: &[NodePort; 4], lost: u8, mut first: [Box<dyn Wire>; 2]) {
    let [_, _, leader, other] = ports;
    leader.forget(lost);
    let next = leader.free_channel(leader.in_use()).map_err(Fault::reason);
    assert_eq!(next, Ok(lost + 1));
    let mut second = both(open([leader, other], lost + 1, SECOND, || ()));
    for _ in 0..3 {
        pass(&mut first);
        pass(&mut second);
    }
}

#[test]
fn a_channel_that_another_group_took_after_the_choice_is_taken_and_the_next_one_is_free() {
    let ports = node_ports::<4>();
    let [a, b, c, d] = &ports;
    let choices = [a, c].map(|leader| leader.free_channel(0).map_err(Fault::reason));
    assert_eq!(choices, [Ok(0), Ok(0)]);
    let first = both(open([a, b], 0, FIRST, || ()));
    let [taker, _] = open([c, d], 0, SECOND, || ());
    assert!(matches!(taker, Err(OpenFailure::Taken)));
    second_choice(&ports, 0, first);
}

/// The first group is testing the channel, so the second sees its release line change.
#[test]
fn a_release_that_another_group_moves_during_the_opening_is_no_fault_of_the_wires() {
    let ports = node_ports::<4>();
    let [a, b, c, d] = &ports;
    let mut first = None;
    let [taker, other] = open([c, d], 0, SECOND, || {
        let mut wires = both(open([a, b], 0, FIRST, || ()));
        pass(&mut wires);
        first = Some(wires);
    });
    assert!(matches!(taker, Err(OpenFailure::Taken)));
    drop(other);
    second_choice(&ports, 0, first.expect("the first group has the channel"));
}

/// If no other group has taken the channel, its release line changes because of old levels or a fault,
/// so another channel would not help.
#[test]
fn a_release_that_moves_in_a_channel_of_ones_own_is_a_fault() {
    let ports = node_ports::<2>();
    let [a, b] = &ports;
    let mut leftover = both(open([a, b], 0, FIRST, || ()));
    let [taker, _] = open([a, b], 0, FIRST, || pass(&mut leftover));
    let Err(OpenFailure::Fault(fault)) = taker else {
        panic!("the release moved, so the wires cannot be trusted");
    };
    let reason = fault.reason();
    assert!(reason.contains("before all nodes were idle"), "{reason}");
}

/// The second of two nodes dies in the channel's barrier or outside of it.
/// Returns the node ports after the first node has left the channel.
fn survivor(is_inside: bool, is_entered: bool) -> [NodePort; 2] {
    let ports = node_ports::<2>();
    let [a, b] = &ports;
    let [mut first, mut second] = both(open([a, b], 0, FIRST, || ()));
    pass_one(&mut first, &mut second);
    if is_inside {
        second.enter().expect("an idle node can enter");
    }
    // The wire of a node that dies keeps its last level.
    std::mem::forget(second);
    if is_entered {
        first.enter().expect("an idle node can enter");
    }
    a.depart_without(0, first, 0b10);
    ports
}

fn pass_one(first: &mut Box<dyn Wire>, second: &mut Box<dyn Wire>) {
    for wire in [&mut *first, &mut *second] {
        wire.enter().expect("an idle node can enter");
    }
    for wire in [first, second] {
        while wire.poll().expect("the port works").is_pending() {}
    }
}

#[test]
fn one_of_two_nodes_frees_their_channel_when_the_other_has_died() {
    for (is_inside, is_entered) in [(false, false), (false, true), (true, false)] {
        let ports = survivor(is_inside, is_entered);
        let [a, b] = &ports;
        let since = Instant::now();
        while a.in_use() != 0 && since.elapsed() < Duration::from_secs(30) {}
        let free = a.free_channel(a.in_use()).map_err(Fault::reason);
        assert_eq!(free, Ok(0), "inside: {is_inside}, entered: {is_entered}");
        // The next pair of nodes uses the same lines and can take the channel again.
        b.forget(0);
        let mut wires = both(open([a, b], 0, FIRST, || ()));
        for _ in 0..3 {
            pass(&mut wires);
        }
    }
}
