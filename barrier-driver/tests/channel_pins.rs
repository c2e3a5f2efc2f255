//! Tests of the driver of barrier version 2 on the model and on the RTL: the port suite for each channel, and programming.

mod channel_board;

use barrier_driver::ToggleBarrier;
use barrier_driver::channels::{
    ChannelBarrier, ChannelOpenError, Counts, Heartbeat, Identity, LastLine, LocalLine, Membership,
    ProgramError, Programmer, Pulse, ReleaseLine, Rhythm, Status,
};
use barrier_driver::suite::Rig;
use channel_board::rtl::{self, Rtl};
use channel_board::{Board, Clock, Fault, Machine, NODES, Sample, Wire};
use embedded_hal::digital::PinState;
use fpga_model::channels::ChannelMachine;
use std::cell::RefCell;
use std::convert::Infallible;
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// A rig on one channel. Its members lie between two non-members, one of which drives its line high and the other low.
struct Channel<M, const C: usize>(Board<M>);

impl<M: Machine, const C: usize> Rig for Channel<M, C> {
    type Error = Infallible;
    type Out = Wire<M>;
    type In = ReleaseLine<Wire<M>>;

    fn build(nodes: usize) -> Self {
        let board = Board::<M>::power_on();
        if C == 0 {
            let given_back = board.node(0).programmer().give_back(0);
            given_back.expect("channel 0 has all nodes after power-on");
        }
        let members = (1 << nodes) - 1;
        let taken = board.node(1).programmer().take(C as u8, members << 1);
        taken.expect("a free channel");
        board.state().pins.arrive[C] = 1 << (nodes + 1);
        Self(board)
    }

    fn wires(&self, node: usize) -> (Self::Out, Self::In) {
        self.0.node(node + 1).channel(C)
    }

    fn releases(&self) -> u64 {
        self.0.releases(C)
    }
}

mod model {
    use super::{Channel, ChannelMachine};

    mod channel_0 {
        barrier_driver::port_suite!(super::Channel<super::ChannelMachine, 0>);
    }
    mod channel_1 {
        barrier_driver::port_suite!(super::Channel<super::ChannelMachine, 1>);
    }
    mod channel_2 {
        barrier_driver::port_suite!(super::Channel<super::ChannelMachine, 2>);
    }
    mod channel_3 {
        barrier_driver::port_suite!(super::Channel<super::ChannelMachine, 3>);
    }
    mod channel_4 {
        barrier_driver::port_suite!(super::Channel<super::ChannelMachine, 4>);
    }
}

/// Only three tests of the suite run on the RTL, those that a wrong machine fails; the whole suite would take a minute over the pipe.
#[test]
fn the_rtl_keeps_the_suite_on_its_first_and_last_channel() {
    if rtl::is_there() {
        barrier_driver::suite::every_barrier_is_one_release::<Channel<Rtl, 4>>();
        barrier_driver::suite::open_clears_what_an_aborted_job_left::<Channel<Rtl, 0>>();
        barrier_driver::suite::closing_withdraws_an_arrival::<Channel<Rtl, 4>>();
    }
}

/// Makes each function a test of the model and of the RTL.
macro_rules! on_both {
    // With the word `long`, the test on the RTL runs only with `--long`.
    (long $($claim:ident)*) => {
        $(mod $claim {
            #[test] fn by_model() { super::$claim::<super::ChannelMachine>(); }
            #[test]
            #[ignore = "long: cargo xtask test --long"]
            fn by_rtl() {
                if super::rtl::is_there() { super::$claim::<super::Rtl>(); }
            }
        })*
    };
    ($($claim:ident)*) => {
        mod by_model {
            $(#[test] fn $claim() { super::$claim::<super::ChannelMachine>(); })*
        }
        mod by_rtl {
            $(#[test] fn $claim() {
                if super::rtl::is_there() { super::$claim::<super::Rtl>(); }
            })*
        }
    };
}

// The faults are injected in the lines between port and board, for both machines in the same way.
// For each fault the driver repeats its request the maximum number of times, which takes several seconds on the RTL.
on_both! { long
    broken_serial_lines_are_told_apart
}

on_both! {
    the_hardware_says_what_it_is
    two_channels_with_a_common_node_go_on_by_themselves
    two_channels_at_once_are_this_waveform
    a_taken_channel_names_its_members
    a_line_that_a_dead_job_left_is_refused_by_name
    who_is_missing_is_named
    a_member_that_is_gone_is_dropped_by_those_that_wait_for_it
    one_of_two_members_frees_the_channel_of_a_dead_one
    a_heartbeat_names_the_node_that_is_silent_and_the_one_that_was_excluded
    a_request_that_noise_has_spoilt_is_sent_again
    a_node_without_the_receiver_gets_no_answer
    replies_are_not_releases
}

fn met() -> Result<(), Infallible> {
    Ok(())
}

type Leader<M> = Programmer<Wire<M>, LastLine<Wire<M>>, Clock<M>>;
type Member<M> = ChannelBarrier<Wire<M>, ReleaseLine<Wire<M>>>;

/// Opens all members of a channel from one thread, so no fence between threads is needed; the lowest-numbered member takes the channel.
fn open_all<M: Machine>(
    board: &Board<M>,
    membership: Membership,
    leader: &mut Leader<M>,
) -> Vec<Member<M>> {
    let nodes = (0..NODES).filter(|node| membership.members >> node & 1 == 1);
    let mut leader = Some(leader);
    let open = |node| {
        let (out, input) = board.node(node).channel(usize::from(membership.channel));
        ChannelBarrier::open(out, input, membership, leader.take(), met).expect("a free channel")
    };
    nodes.map(open).collect()
}

/// Sets the members' lines to the level of a free channel, as before the first fence in `open`.
fn rest<M: Machine>(board: &Board<M>, membership: Membership) {
    for node in (0..NODES).filter(|node| membership.members >> node & 1 == 1) {
        let (out, input) = board.node(node).channel(usize::from(membership.channel));
        drop(ToggleBarrier::open(out, input, met).expect("infallible"));
    }
}

fn ready<M: Machine>(member: &mut Member<M>) -> bool {
    member.poll().expect("infallible").is_ready()
}

fn the_hardware_says_what_it_is<M: Machine>() {
    let board = Board::<M>::power_on();
    for node in [0, 3, NODES - 1] {
        let identity = board.node(node).programmer().identify();
        let expected = Identity {
            version: 2,
            nodes: NODES as u8,
            channels: 5,
        };
        assert_eq!(identity, Ok(expected));
    }
}

fn two_channels_with_a_common_node_go_on_by_themselves<M: Machine>() {
    let board = Board::<M>::power_on();
    let (mut one, mut other) = (board.node(0).programmer(), board.node(2).programmer());
    let mut left = open_all(
        &board,
        Membership {
            channel: 1,
            members: 0b0111,
        },
        &mut one,
    );
    let mut right = open_all(
        &board,
        Membership {
            channel: 4,
            members: 0b1100,
        },
        &mut other,
    );
    for round in 1..=4 {
        for member in &mut left {
            member.enter().expect("out of the barrier");
        }
        right[0].enter().expect("out of the barrier");
        assert!(left.iter_mut().all(ready), "round {round}");
        assert!(!ready(&mut right[0]), "node 3 has not come");
        right[1].enter().expect("out of the barrier");
        assert!(right.iter_mut().all(ready));
        assert_eq!(
            [1, 2, 3, 4].map(|c| board.releases(c)),
            [round, 0, 0, round]
        );
    }
    for (members, leader, channel) in [(left, &mut one, 1), (right, &mut other, 4)] {
        let mut members = members.into_iter();
        let first = members.next().expect("members");
        for member in members {
            let no_programmer = None::<&mut Leader<M>>;
            member
                .close(no_programmer, met)
                .expect("a wire that is still");
        }
        first.close(Some(leader), met).expect("all rest");
        assert_eq!(leader.members(channel), Ok(0));
    }
}

/// The expected levels: one row per line, one column per access to the port; the model and the RTL must agree.
///
/// Node 2 is a member of both channels; while it waits in channel 0 for the late node 3, channel 1 passes two barriers.
const TWO_CHANNELS: &str = include_str!("golden/two_channels.txt");

fn two_channels_at_once_are_this_waveform<M: Machine>() {
    let board = Board::<M>::power_on();
    let (mut one, mut other) = (board.node(0).programmer(), board.node(2).programmer());
    let (left, right) = (0b0111, 0b1100);
    let membership = |channel, members| Membership { channel, members };
    let mut one = open_all(&board, membership(1, left), &mut one);
    let mut four = open_all(&board, membership(4, right), &mut other);
    let samples = board.record(|| {
        four[0].enter().expect("out of the barrier");
        for late in [2, 0] {
            for offset in 1..=3 {
                one[(late + offset) % 3]
                    .enter()
                    .expect("out of the barrier");
                assert!(!ready(&mut four[0]), "node 3 has not come");
            }
            assert!(one.iter_mut().all(ready));
        }
        four[1].enter().expect("out of the barrier");
        assert!(four.iter_mut().all(ready));
    });
    let row = |name: String, level: &dyn Fn(&Sample) -> bool| {
        let levels = samples.iter().map(|s| if level(s) { '#' } else { '_' });
        format!("{name:>20} {}\n", levels.collect::<String>())
    };
    let mut waveform = String::new();
    for (channel, members) in [(1, left), (4, right)] {
        for node in (0..NODES).filter(|node| members >> node & 1 == 1) {
            let level = |s: &Sample| s.arrive[channel] >> node & 1 == 1;
            waveform += &row(format!("arrive {channel} of node {node}"), &level);
        }
        let level = |s: &Sample| s.release >> channel & 1 == 1;
        waveform += &row(format!("release {channel}"), &level);
    }
    assert!(waveform == TWO_CHANNELS, "it is\n{waveform}");
}

fn a_taken_channel_names_its_members<M: Machine>() {
    let board = Board::<M>::power_on();
    let (mut one, mut other) = (board.node(1).programmer(), board.node(4).programmer());
    assert_eq!(one.take(2, 0b0_0110), Ok(()));
    assert_eq!(
        one.take(2, 0b0_0110),
        Ok(()),
        "to say it again changes nothing"
    );
    let refused = other.take(2, 0b1_0100).map_err(|e| e.to_string());
    assert_eq!(refused, Err("channel 2 is taken, by nodes 1, 2".to_owned()));
    let refused = other.give_back(2).map_err(|e| e.to_string());
    assert_eq!(
        refused,
        Err(
            "channel 2: this node would have to be a member; its members are nodes 1, 2".to_owned()
        )
    );
    assert_eq!(other.members(2), Ok(0b0110));
    let refused = other.take(5, 1 << 4).map_err(|e| e.to_string());
    assert_eq!(refused, Err("the hardware has no channel 5".to_owned()));
}

fn a_line_that_a_dead_job_left_is_refused_by_name<M: Machine>() {
    let board = Board::<M>::power_on();
    board.state().pins.arrive[3] = 0b100;
    let membership = Membership {
        channel: 3,
        members: 0b110,
    };
    let mut leader = board.node(1).programmer();
    let (out, input) = board.node(1).channel(3);
    // Node 2 of this channel has not opened, so its line still has the level that a dead job left.
    let opened = ChannelBarrier::open(out, input, membership, Some(&mut leader), met);
    let refused = opened.err();
    assert_eq!(
        refused,
        Some(ChannelOpenError::Program(ProgramError::Refused {
            channel: 3,
            status: Status::NotIdle,
            value: 0b100
        }))
    );
    assert_eq!(
        refused.map(|e| e.to_string()).as_deref(),
        Some("channel 3 is not idle: the lines of node 2 are not at rest")
    );
    assert_eq!(leader.members(3), Ok(0), "nothing has changed");
}

fn one_of_two_members_frees_the_channel_of_a_dead_one<M: Machine>() {
    let board = Board::<M>::power_on();
    let mut leader = board.node(0).programmer();
    let membership = Membership {
        channel: 1,
        members: 0b11,
    };
    for (is_inside, waits) in [(false, false), (false, true), (true, false)] {
        rest(&board, membership);
        let mut members = open_all(&board, membership, &mut leader);
        members
            .iter_mut()
            .for_each(|member| member.enter().expect("out of the barrier"));
        assert!(members.iter_mut().all(ready));
        let (dead, survivor) = (members.pop(), members.pop());
        let (mut dead, mut survivor) = dead.zip(survivor).expect("two members");
        if is_inside {
            dead.enter().expect("out of the barrier");
        }
        // A dead node's line keeps its level.
        std::mem::forget(dead);
        if waits {
            survivor.enter().expect("out of the barrier");
        }
        assert_eq!(survivor.free_without(0b10, Some(&mut leader), met), Ok(()));
        assert_eq!(
            leader.members(1),
            Ok(0),
            "inside: {is_inside}, waits: {waits}"
        );
        // Two living nodes, 4 and 5, take the freed channel.
        let mut other = board.node(4).programmer();
        let next = Membership {
            channel: 1,
            members: 0b11_0000,
        };
        rest(&board, next);
        let mut pair = open_all(&board, next, &mut other);
        for _ in 0..3 {
            pair.iter_mut()
                .for_each(|member| member.enter().expect("out of the barrier"));
            assert!(pair.iter_mut().all(ready));
        }
        let no_programmer = None::<&mut Leader<M>>;
        let [first, second] = <[Member<M>; 2]>::try_from(pair).unwrap_or_else(|_| panic!("a pair"));
        assert_eq!(second.close(no_programmer, met), Ok(()));
        assert_eq!(first.close(Some(&mut other), met), Ok(()));
    }
}

fn a_heartbeat_names_the_node_that_is_silent_and_the_one_that_was_excluded<M: Machine>() {
    let board = Board::<M>::power_on();
    let mut programmers = [0, 1].map(|node| board.node(node).programmer());
    let membership = Membership {
        channel: 4,
        members: 0b11,
    };
    let members = open_all(&board, membership, &mut programmers[0]);
    let ms = Duration::from_millis;
    let rhythm = Rhythm {
        period: ms(10),
        limit: ms(100),
    };
    let mut hearts = members
        .into_iter()
        .map(|member| Heartbeat::new(member, rhythm));
    let (mut first, mut second) = hearts.next().zip(hearts.next()).expect("two members");
    let [ours, theirs] = &mut programmers;
    for beat in 0..5 {
        let now = ms(11 * beat);
        assert_eq!(first.poll(now, ours), Ok(Pulse::Steady), "it arrives");
        assert_eq!(first.poll(now, ours), Ok(Pulse::Steady), "it waits");
        assert_eq!(second.poll(now, theirs), Ok(Pulse::Steady), "it arrives");
        assert_eq!(first.poll(now, ours), Ok(Pulse::Beat));
        assert_eq!(second.poll(now, theirs), Ok(Pulse::Beat));
    }
    // The second node stops polling.
    assert_eq!(first.poll(ms(60), ours), Ok(Pulse::Steady), "it arrives");
    assert_eq!(first.poll(ms(159), ours), Ok(Pulse::Steady));
    let silent = Pulse::Silent { nodes: 0b10 };
    assert_eq!(first.poll(ms(160), ours), Ok(silent));
    assert_eq!(
        first.into_barrier().free_without(0b10, Some(ours), met),
        Ok(())
    );
    // The second node polls again; its arrival must not change the release line.
    let releases = board.releases(4);
    assert_eq!(
        second.poll(ms(500), theirs),
        Ok(Pulse::Steady),
        "it arrives"
    );
    let excluded = Pulse::Excluded { members: 0 };
    assert_eq!(second.poll(ms(600), theirs), Ok(excluded));
    assert_eq!(board.releases(4), releases);
}

fn who_is_missing_is_named<M: Machine>() {
    let board = Board::<M>::power_on();
    let mut leader = board.node(0).programmer();
    let membership = Membership {
        channel: 1,
        members: 0b1111,
    };
    let mut members = open_all(&board, membership, &mut leader);
    assert_eq!(leader.set_limit(1, 1000), Ok(()));
    for present in [0, 2] {
        members[present].enter().expect("out of the barrier");
    }
    let waited = members[0].wait(|| (), Duration::from_millis(2));
    assert!(waited.is_err(), "two are missing");
    board.state().clock(1000);
    assert_eq!(members[0].missing(&mut leader), Ok(0b1010));
    assert_eq!(leader.late(1), Ok(0b1010));
    for late in [1, 3] {
        members[late].enter().expect("out of the barrier");
    }
    assert_eq!(members[0].missing(&mut leader), Ok(0));
    assert!(members.iter_mut().all(ready), "late-comers still release");
    assert_eq!(leader.late(1), Ok(0b1010), "and are still remembered");
}

fn a_member_that_is_gone_is_dropped_by_those_that_wait_for_it<M: Machine>() {
    let board = Board::<M>::power_on();
    let mut leader = board.node(0).programmer();
    let membership = Membership {
        channel: 1,
        members: 0b1111,
    };
    let mut members = open_all(&board, membership, &mut leader);
    assert_eq!(leader.set_limit(1, 1000), Ok(()));
    let refused = |status, value| {
        Err(ProgramError::Refused {
            channel: 1,
            status,
            value,
        })
    };
    members[0].enter().expect("out of the barrier");
    members[2].enter().expect("out of the barrier");
    // The limit is 1,000 edges, so it has expired after these 3,000 edges.
    board.state().clock(3000);
    assert_eq!(
        leader.drop_members(1, 0b1000),
        refused(Status::NotLate, 0b0101),
        "node 1 is out too"
    );
    assert_eq!(
        leader.drop_members(1, 0b1010),
        refused(Status::Minority, 0b0101),
        "two are not more than two"
    );
    members[1].enter().expect("out of the barrier");
    let counts = Counts {
        expired: 1,
        early: 0,
    };
    assert_eq!(leader.counts(1), Ok(counts));
    assert_eq!(
        leader.drop_members(1, 0b0100),
        refused(Status::NotLate, 0b0111),
        "node 2 waits"
    );
    assert_eq!(members[0].contain(0b1000, Some(&mut leader)), Ok(()));
    let no_programmer = None::<&mut Leader<M>>;
    assert_eq!(members[1].contain(0b1000, no_programmer), Ok(()));
    assert_eq!(leader.members(1), Ok(0b0111));
    assert!(
        members[..3].iter_mut().all(ready),
        "the others are released"
    );
    assert_eq!(
        leader.drop_members(1, 0b1000),
        Ok(0b0111),
        "asked again it is done"
    );
    // The dropped node changes its line in any way: barriers depend only on the remaining members.
    for round in 0..4 {
        if round == 2 {
            members[3].enter().expect("out of the barrier");
        }
        for member in &mut members[..3] {
            member.enter().expect("out of the barrier");
        }
        assert!(members[..3].iter_mut().all(ready), "round {round}");
    }
    assert_eq!(leader.counts(1), Ok(counts), "a new limit was not set");
    // The members are at rest, so the channel can be freed whatever the level of the dropped node's line.
    assert_eq!(leader.give_back(1), Ok(()));
}

fn a_request_that_noise_has_spoilt_is_sent_again<M: Machine>() {
    let board = Board::<M>::power_on();
    let mut leader = board.node(0).programmer();
    board.state().fault = Fault::Noise(300);
    assert_eq!(leader.take(1, 0b11), Ok(()));
    assert_eq!(board.state().fault, Fault::Noise(0), "the noise is over");
    assert_eq!(leader.members(1), Ok(0b11));
}

fn broken_serial_lines_are_told_apart<M: Machine>() {
    let board = Board::<M>::power_on();
    let mut leader = board.node(0).programmer();
    board.state().fault = Fault::CutReply;
    let level = PinState::High;
    assert_eq!(
        leader.identify(),
        Err(ProgramError::NoAnswer { level, tries: 8 })
    );
    board.state().fault = Fault::DataStuckLow;
    assert_eq!(leader.identify(), Err(ProgramError::Garbled { tries: 8 }));
    board.state().fault = Fault::None;
    assert!(leader.identify().is_ok());
}

/// While node 1 has the receiver, node 0 gets no reply: it reads the release level of channel 4 instead.
fn a_node_without_the_receiver_gets_no_answer<M: Machine>() {
    let board = Board::<M>::power_on();
    let mut leader = board.node(0).programmer();
    board.state().pins.select = 0b10;
    board.state().clock(20);
    let level = PinState::Low;
    assert_eq!(
        leader.identify(),
        Err(ProgramError::NoAnswer { level, tries: 8 })
    );
    board.state().pins.select = 0;
    assert!(leader.identify().is_ok());
}

fn replies_are_not_releases<M: Machine>() {
    let board = Board::<M>::power_on();
    let node = board.node(0);
    let membership = Membership {
        channel: 4,
        members: 0b11,
    };
    let mut leader = node.programmer();
    let (out, input) = node.channel(4);
    let mut member =
        ChannelBarrier::open(out, input, membership, Some(&mut leader), met).expect("free");
    member.enter().expect("out of the barrier");
    thread::scope(|scope| {
        let programming = scope.spawn(move || {
            for _ in 0..5 {
                assert_eq!(leader.members(4), Ok(0b11));
            }
        });
        while !programming.is_finished() {
            assert!(
                !ready(&mut member),
                "a bit of a reply was taken for a release"
            );
        }
    });
    let (out, input) = board.node(1).channel(4);
    let no_programmer = None::<&mut Leader<M>>;
    let mut late =
        ChannelBarrier::open(out, input, membership, no_programmer, met).expect("resting");
    late.enter().expect("out of the barrier");
    assert!(ready(&mut member) && ready(&mut late));
}

/// As on a microcontroller: the pin is in a cell on the stack, and one thread both programs and polls.
#[test]
fn one_thread_shares_the_last_line_without_a_lock() {
    type M = ChannelMachine;
    let board = Board::<M>::power_on();
    let membership = Membership {
        channel: 4,
        members: 0b11,
    };
    let pins = [0, 1].map(|node| RefCell::new(board.node(node).last_pin()));
    let lines = [0, 1].map(|node: usize| LocalLine::new(&pins[node]));
    let mut leader = board.node(0).programmer_over(lines[0].clone());
    let mut leaders = Some(&mut leader);
    let mut members = [0, 1].map(|node: usize| {
        let (out, _) = board.node(node).channel(4);
        let input = lines[node].clone();
        ChannelBarrier::open(out, input, membership, leaders.take(), met).expect("a free channel")
    });
    for round in 1..=4 {
        members[0].enter().expect("out of the barrier");
        assert_eq!(members[0].poll(), Ok(Poll::Pending));
        assert_eq!(members[0].missing(&mut leader), Ok(0b10));
        assert_eq!(members[0].poll(), Ok(Poll::Pending), "a reply's last bit");
        members[1].enter().expect("out of the barrier");
        assert!(members.iter_mut().all(|m| m.poll() == Ok(Poll::Ready(()))));
        assert_eq!(board.releases(4), round);
    }
    let [first, second] = members;
    second
        .close(
            None::<&mut Programmer<Wire<M>, LocalLine<Wire<M>>, Clock<M>>>,
            met,
        )
        .expect("a wire that is still");
    first.close(Some(&mut leader), met).expect("all rest");
    assert_eq!(leader.members(4), Ok(0));
}
