//! Tests of properties that hold for any masks, any line levels and any noise.

use super::board::Board;
use fpga_model::ToggleMachine;
use fpga_model::channels::frame::{Operation, Status};
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Pins};
use proptest::prelude::*;

fn lines() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
}

fn pins() -> impl Strategy<Value = Pins> {
    let few = || prop_oneof![Just(0u64), Just(1), Just(2), any::<u64>()];
    (proptest::array::uniform5(lines()), few(), few(), few()).prop_map(
        |(arrive, select, clock, data)| Pins {
            arrive,
            select,
            clock,
            data,
        },
    )
}

proptest! {
    #[test]
    fn channel_0_after_power_on_is_version_1(
        nodes in 1..=64usize,
        stimulus in prop::collection::vec(lines(), 0..200),
    ) {
        let mut one = ToggleMachine::new(nodes).expect("a legal node count");
        let mut two = ChannelMachine::new(nodes, 5).expect("a legal size");
        for inputs in stimulus {
            one.step(inputs);
            let arrive = [inputs, 0, 0, 0, 0];
            two.step(&Pins { arrive, ..Pins::default() });
            prop_assert_eq!(one.outputs() != 0, two.releases() & 1 != 0);
            prop_assert_eq!(one.releases(), two.channel(0).expect("a channel").releases);
        }
    }

    #[test]
    fn channels_do_not_disturb_each_other(
        members in proptest::array::uniform5(1..256u64),
        watched in 0..MAX_CHANNELS,
        stimulus in prop::collection::vec((any::<bool>(), proptest::array::uniform5(0..256u64)), 0..150),
    ) {
        // The watched channel has the same stimulus on both boards;
        // only on one board the other channels change, too.
        let mut busy = Board::new(8, 5);
        busy.ask(0, Operation::SetMask, 0, 0);
        for (channel, &mask) in members.iter().enumerate() {
            let node = mask.trailing_zeros() as usize;
            prop_assert_eq!(busy.ask(node, Operation::SetMask, channel as u8, mask), (Status::Done, mask));
        }
        let mut calm = busy.clone();
        for (all, mut levels) in stimulus {
            if all {
                let releases = busy.machine.releases();
                levels = core::array::from_fn(|c| if releases >> c & 1 == 1 { 0 } else { 255 });
            }
            busy.pins.arrive = levels;
            calm.pins.arrive[watched] = levels[watched];
            for _ in 0..2 {
                busy.machine.step(&busy.pins);
                calm.machine.step(&calm.pins);
            }
            prop_assert_eq!(busy.machine.channel(watched), calm.machine.channel(watched));
        }
    }

    #[test]
    fn fast_forward_equals_stepping(
        nodes in 1..=8usize,
        channels in 1..=5usize,
        limit in 0..60u64,
        stimulus in prop::collection::vec((pins(), 0..90u64), 1..20),
    ) {
        let mut board = Board::new(nodes, channels);
        board.machine = board.machine.with_lease_bits(5);
        board.ask(0, Operation::SetLimit, 0, limit);
        let mut stepped = board.machine;
        for (pins, edges) in stimulus {
            board.machine.fast_forward(&pins, edges);
            (0..edges).for_each(|_| stepped.step(&pins));
            prop_assert_eq!(&stepped, &board.machine);
        }
    }

    #[test]
    fn noise_on_the_serial_lines_changes_no_mask(stimulus in prop::collection::vec((pins(), 0..40u64), 0..400)) {
        let mut machine = ChannelMachine::new(5, 5).expect("a legal size");
        for (pins, edges) in stimulus {
            machine.fast_forward(&pins, edges);
        }
        let masks: Vec<_> = (0..5).filter_map(|c| machine.channel(c)).map(|c| c.mask).collect();
        prop_assert_eq!(masks, vec![31, 0, 0, 0, 0]);
    }

    #[test]
    fn a_channel_releases_only_when_all_its_members_have_come_through(
        mask in 1..256u64,
        stimulus in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut board = Board::new(8, 2);
        board.ask(mask.trailing_zeros() as usize, Operation::SetMask, 1, mask);
        for bits in stimulus {
            board.pins.arrive[1] ^= u64::from(bits);
            let before = *board.machine.channel(1).expect("a channel");
            board.machine.step(&board.pins);
            let after = board.machine.channel(1).expect("a channel");
            prop_assert_eq!(after.level != before.level, before.arrived() == mask);
        }
    }
}
