//! Tests of the guarantees of the channel barrier (hardware version 2): independent channels, atomic programming, and time limits.

mod board;
mod properties;

use board::Board;
use fpga_model::channels::frame::{Body, Counts, FRAME_BITS, Identity, Operation, Status};
use fpga_model::channels::{BadSize, ChannelMachine, Pins, SETTLE_EDGES};

#[test]
fn a_board_has_1_to_64_nodes_and_1_to_5_channels() {
    for (nodes, channels) in [(0, 1), (65, 1), (1, 0), (1, 6)] {
        let refused = ChannelMachine::new(nodes, channels);
        assert_eq!(refused, Err(BadSize { nodes, channels }));
    }
    assert_eq!(
        BadSize {
            nodes: 65,
            channels: 1
        }
        .to_string(),
        "1 channels for 65 nodes cannot be built: there are 1 to 5 for 1 to 64"
    );
}

#[test]
fn the_board_answers_its_identity_to_every_node() {
    for (nodes, channels) in [(1, 1), (7, 3), (60, 5), (64, 5)] {
        let mut board = Board::new(nodes, channels);
        for node in [0, nodes / 2, nodes - 1] {
            let (status, value) = board.ask(node, Operation::Identify, 9, 0);
            assert_eq!(status, Status::Done);
            let (nodes, channels) = (nodes as u8, channels as u8);
            let identity = Identity {
                version: 2,
                nodes,
                channels,
            };
            assert_eq!(Identity::from_value(value), identity);
        }
    }
}

#[test]
fn a_channel_serves_only_its_members() {
    let mut board = Board::new(7, 5);
    assert_eq!(
        board.ask(2, Operation::SetMask, 3, 0b0010110),
        (Status::Done, 0b0010110)
    );
    board.arrive(3, 0b1101001);
    assert_eq!(board.count(3), 0, "lines of other nodes release no node");
    board.arrive(3, 0b0000110);
    assert_eq!(
        board.ask(6, Operation::ReadArrived, 3, 0),
        (Status::Done, 0b0000110),
        "any node may ask which nodes have arrived"
    );
    board.arrive(3, 0b0010110);
    assert_eq!(board.count(3), 1);
    assert!(board.machine.reads(0, 3), "all nodes read the release");
    board.arrive(3, 0);
    assert_eq!(board.count(3), 2);
    assert_eq!([0, 1, 2, 4].map(|other| board.count(other)), [0; 4]);
}

#[test]
fn every_refusal_names_the_nodes_and_changes_nothing() {
    use Operation::{Identify, ReadMask, SetLimit, SetMask};
    let mut board = Board::new(7, 4);
    board.pins.arrive[2] = 0b0001000;
    assert_eq!(
        board.ask(0, SetMask, 1, 0b11),
        (Status::Done, 0b11),
        "free and at rest"
    );
    let before = *board.machine.channel(1).expect("a channel");
    for (node, operation, channel, value, expected) in [
        (0, ReadMask, 4, 0, (Status::NoSuchChannel, 0)),
        (0, SetMask, 1, 0x80, (Status::BadValue, 0x80)),
        (
            0,
            SetLimit,
            1,
            0x7_0000_0001,
            (Status::BadValue, 0x7_0000_0000),
        ),
        (2, SetLimit, 1, 9, (Status::NotMember, 0b11)),
        (2, SetMask, 1, 0, (Status::NotMember, 0b11)),
        (2, SetMask, 1, 0b110, (Status::Taken, 0b11)),
        (0, SetMask, 1, 0b111, (Status::Taken, 0b11)),
        (3, SetMask, 2, 0b011, (Status::NotMember, 0)),
        (0, SetMask, 2, 0b1011, (Status::NotIdle, 0b1000)),
        (1, SetMask, 1, 0b11, (Status::Done, 0b11)),
        (5, SetMask, 3, 0, (Status::Done, 0)),
    ] {
        assert_eq!(
            board.ask(node, operation, channel, value),
            expected,
            "node {node} {operation:?} of channel {channel} to {value:#x}"
        );
    }
    for code in (0..16).filter(|&code| Operation::from_code(code).is_none()) {
        let request = Body {
            code,
            channel: 1,
            value: u64::MAX,
        };
        assert_eq!(board.raw(0, request), (Status::NoSuchOperation, 0));
    }
    let after = *board.machine.channel(1).expect("a channel");
    assert_eq!(
        (after, board.mask(2), board.mask(3)),
        (before, 0, 0),
        "nothing of it changed anything"
    );
    assert_eq!(board.ask(1, Identify, 0, 0).0, Status::Done);
}

#[test]
fn a_channel_with_an_arrival_keeps_its_members() {
    let mut board = Board::new(4, 2);
    assert_eq!(board.ask(0, Operation::SetMask, 1, 0b0111).0, Status::Done);
    board.arrive(1, 0b0010);
    assert_eq!(
        board.ask(0, Operation::SetMask, 1, 0),
        (Status::NotIdle, 0b0010)
    );
    board.arrive(1, 0b0111);
    assert_eq!(board.ask(0, Operation::SetMask, 1, 0), (Status::Done, 0));
    // The lines of new members must be at the channel's level.
    assert_eq!(
        board.ask(3, Operation::SetMask, 1, 0b1001),
        (Status::NotIdle, 0b1000)
    );
    board.arrive(1, 0b1111);
    assert_eq!(board.ask(3, Operation::SetMask, 1, 0b1001).0, Status::Done);
    assert_eq!(board.count(1), 1);
}

#[test]
fn a_frame_with_any_wrong_bit_changes_nothing_and_is_answered() {
    let request = Body {
        code: Operation::SetMask as u8,
        channel: 1,
        value: 0b011,
    };
    for wrong in 0..FRAME_BITS {
        let mut board = Board::new(3, 2);
        board.send(0, request.frame() ^ 1 << wrong, FRAME_BITS);
        let reply = board.receive(0).expect("a reply");
        assert_eq!(
            Status::from_code(reply.code),
            Some(Status::BadCheck),
            "bit {wrong}"
        );
        assert_eq!(board.mask(1), 0, "bit {wrong}");
    }
}

#[test]
fn a_torn_frame_changes_nothing_and_the_next_one_is_received() {
    let request = Body {
        code: Operation::SetMask as u8,
        channel: 1,
        value: 0b011,
    };
    for bits in 0..FRAME_BITS {
        let mut board = Board::new(3, 2);
        board.send(0, request.frame(), bits);
        board.hang_up(0);
        assert_eq!(board.mask(1), 0, "{bits} bits");
        assert_eq!(
            board.ask(1, Operation::SetMask, 1, 0b110).0,
            Status::Done,
            "{bits} bits"
        );
    }
}

#[test]
fn silence_and_stuck_lines_are_no_frames() {
    assert_eq!(Body::from_frame(0), None);
    assert_eq!(Body::from_frame((1 << FRAME_BITS) - 1), None);
}

#[test]
fn a_second_node_waits_until_the_first_has_hung_up() {
    let mut board = Board::new(4, 5);
    let claim = |value| {
        Body {
            code: Operation::SetMask as u8,
            channel: 1,
            value,
        }
        .frame()
    };
    board.send(2, claim(0b0110), 40);
    // A node with a lower number does not get the receiver from the node that has it.
    board.send(1, claim(0b0011), FRAME_BITS);
    assert_eq!(
        board.receive(1),
        None,
        "the other node reads its release line"
    );
    board.hang_up(1);
    for bit in 40..FRAME_BITS {
        board.write(
            2,
            |p| &mut p.data,
            claim(0b0110) >> (FRAME_BITS - 1 - bit) & 1 == 1,
        );
        board.write(2, |p| &mut p.clock, true);
        board.write(2, |p| &mut p.clock, false);
    }
    let reply = board.receive(2).expect("a reply");
    assert_eq!(Status::from_code(reply.code), Some(Status::Done));
    board.hang_up(2);
    assert_eq!(
        board.ask(1, Operation::SetMask, 1, 0b0011),
        (Status::Taken, 0b0110)
    );
}

#[test]
fn a_node_that_dies_while_it_speaks_loses_the_receiver() {
    let mut board = Board::new(3, 2);
    board.machine = board.machine.with_lease_bits(12);
    board.write(0, |p| &mut p.select, true);
    board.machine.fast_forward(&board.pins, 1 << 13);
    assert_eq!(board.machine.serial().grant, 0);
    assert_eq!(
        board.ask(2, Operation::Identify, 0, 0).0,
        Status::Done,
        "although node 0 still asks"
    );
    board.hang_up(0);
    assert_eq!(board.ask(0, Operation::Identify, 0, 0).0, Status::Done);
}

#[test]
fn pulses_shorter_than_the_filter_are_not_seen() {
    let mut board = Board::new(2, 2);
    let request = Body {
        code: Operation::SetMask as u8,
        channel: 1,
        value: 0b11,
    };
    board.send(0, request.frame(), 50);
    let quiet = board.machine;
    let lines: [fn(&mut Pins) -> &mut u64; 3] =
        [|p| &mut p.clock, |p| &mut p.select, |p| &mut p.data];
    for line in lines {
        *line(&mut board.pins) ^= 1;
        board.machine.fast_forward(&board.pins, 3);
        *line(&mut board.pins) ^= 1;
        board.machine.fast_forward(&board.pins, SETTLE_EDGES);
        let (before, after) = (quiet.serial(), board.machine.serial());
        assert_eq!(
            (before.shift, before.count, before.grant),
            (after.shift, after.count, after.grant)
        );
    }
}

#[test]
fn a_release_by_a_pulse_is_early_and_one_that_every_node_waited_for_is_not() {
    let mut board = Board::new(3, 2);
    assert_eq!(board.ask(0, Operation::SetMask, 1, 0b111).0, Status::Done);
    let early = |board: &Board| board.machine.channel(1).expect("a channel").early;
    // The fastest possible node changes its line at the first edge after the release.
    for round in 1..=10 {
        let level = if round % 2 == 1 { 0b111 } else { 0 };
        board.pins.arrive[1] = level;
        while board.machine.channel(1).expect("a channel").level != (level != 0) {
            board.machine.step(&board.pins);
        }
    }
    assert_eq!((board.count(1), early(&board)), (10, 0));
    // A pulse of one or two samples releases the other nodes and is counted as an early release;
    // a longer pulse is treated as an arrival.
    for (width, expected) in [(1, 1), (2, 2), (3, 2)] {
        let rest = board.pins.arrive[1];
        for node in [0b001, 0b010] {
            board.pins.arrive[1] ^= node;
        }
        board.machine.fast_forward(&board.pins, SETTLE_EDGES);
        board.pins.arrive[1] ^= 0b100;
        board.machine.fast_forward(&board.pins, width);
        board.pins.arrive[1] ^= 0b100;
        board.machine.fast_forward(&board.pins, SETTLE_EDGES);
        assert_eq!(early(&board), expected, "a pulse of {width} edges");
        board.pins.arrive[1] = rest ^ 0b111;
        board.machine.fast_forward(&board.pins, SETTLE_EDGES);
    }
    let counts = Counts {
        expired: 0,
        early: 2,
    };
    assert_eq!(
        board.ask(0, Operation::ReadCounts, 1, 0),
        (Status::Done, counts.value())
    );
    assert_eq!(Counts::from_value(counts.value()), counts);
}

#[test]
fn the_missing_nodes_at_the_time_limit_are_latched_once() {
    let mut board = Board::new(4, 2);
    assert_eq!(board.ask(0, Operation::SetMask, 1, 0b1111).0, Status::Done);
    assert_eq!(
        board.ask(3, Operation::SetLimit, 1, 100),
        (Status::Done, 100)
    );
    let late = |board: &Board| board.machine.channel(1).expect("a channel").late;
    board.pins.arrive[1] = 0b0001;
    // The arrival reaches the machine after two edges;
    // the latch is set one edge after the limit of 100.
    board.machine.fast_forward(&board.pins, 102);
    assert_eq!(late(&board), 0);
    board.pins.arrive[1] = 0b0101;
    board.machine.fast_forward(&board.pins, 1);
    assert_eq!(
        late(&board),
        0b1110,
        "a node that has not entered in time is late"
    );
    board.machine.fast_forward(&board.pins, 1000);
    assert_eq!(
        board.ask(2, Operation::ReadLate, 1, 0),
        (Status::Done, 0b1110)
    );
    assert_eq!(
        board.ask(2, Operation::ReadArrived, 1, 0),
        (Status::Done, 0b0101)
    );
    board.arrive(1, 0b1111);
    assert_eq!(board.count(1), 1, "late-comers still release");
    board.arrive(1, 0b1110);
    board.machine.fast_forward(&board.pins, 1000);
    assert_eq!(late(&board), 0b1110, "the first cause is kept");
    board.arrive(1, 0);
    assert_eq!(board.ask(3, Operation::SetLimit, 1, 0), (Status::Done, 0));
    assert_eq!(late(&board), 0, "setting the limit clears it");
}

#[test]
fn a_node_that_reboots_cannot_change_a_mask_and_can_only_take_its_arrival_away_at_rest() {
    let mut board = Board::new(3, 5);
    let request = Body {
        code: Operation::SetMask as u8,
        channel: 1,
        value: 0b111,
    };
    assert_eq!(board.raw(0, request).0, Status::Done);
    board.arrive(1, 0b011);
    // Node 0 fails in the middle of a frame, which makes all its lines fall.
    board.send(0, request.frame(), 70);
    let fallen = |lines: u64| lines & !1;
    board.pins.arrive = board.pins.arrive.map(fallen);
    board.pins.select = fallen(board.pins.select);
    board.pins.clock = fallen(board.pins.clock);
    board.pins.data = fallen(board.pins.data);
    board.machine.fast_forward(&board.pins, 100);
    assert_eq!((board.mask(1), board.count(1)), (0b111, 0));
    assert_eq!(
        board.ask(2, Operation::ReadArrived, 1, 0),
        (Status::Done, 0b010)
    );
}

#[test]
fn a_programming_session_looks_like_this() {
    let mut board = Board::new(3, 5);
    assert_eq!(board.ask(1, Operation::SetMask, 4, 0b110).0, Status::Done);
    let names = ["select", "clock", "data", "reads"];
    let mut picture = String::from(
        "Node 1 of 3 takes channel 4 for nodes 1 and 2. One column is one write of the port.\n\
         Request: operation 2, channel 4, argument 6, check. Reply: status 1, channel 4, value 6, check.\n",
    );
    for (number, columns) in board.seen.chunks(90).enumerate() {
        picture += &format!(
            "\nwrites {} to {}\n",
            number * 90 + 1,
            number * 90 + columns.len()
        );
        for (line, name) in names.iter().enumerate() {
            let wave = columns
                .iter()
                .map(|levels| if levels[line] { '#' } else { '_' });
            picture += &format!("{name:>7} {}\n", wave.collect::<String>());
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/programming.txt");
    if std::env::var_os("GOLDEN_WRITE").is_some() {
        std::fs::write(path, &picture).expect("a file");
    }
    assert_eq!(
        picture,
        std::fs::read_to_string(path).expect("a file"),
        "GOLDEN_WRITE=1 writes it anew"
    );
}
