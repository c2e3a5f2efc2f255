//! The structs of the shared objects' C interfaces: flip-flops and pins; every field is 64 bits wide.

use fpga_model::channels::{Channel, ChannelMachine, Line, MAX_CHANNELS, Phase, Pins, Serial};

/// The layout of `struct Registers` of `toggle/dv/verilated_pins.cpp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FlipFlops {
    pub stage1: u64,
    pub stage2: u64,
    pub output: u64,
}

/// The layout of `struct Channel` of `channels/dv/verilated_gates.cpp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OneChannel {
    stage1: u64,
    stage2: u64,
    mask: u64,
    level: u64,
    limit: u64,
    count: u64,
    late: u64,
    expired: u64,
    early: u64,
    overdue: u64,
    toggled1: u64,
    toggled2: u64,
}

/// The layout of `struct Line` of `channels/dv/verilated_gates.cpp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OneLine {
    stage1: u64,
    stage2: u64,
    level: u64,
    run: u64,
}

/// The layout of `struct Registers` of `channels/dv/verilated_gates.cpp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChannelFlipFlops {
    channel: [OneChannel; MAX_CHANNELS],
    select1: u64,
    select2: u64,
    grant: u64,
    blocked: u64,
    age: u64,
    select: OneLine,
    clock: OneLine,
    data: OneLine,
    select_was: u64,
    clock_was: u64,
    phase: u64,
    count: u64,
    check: u64,
    shift_low: u64,
    shift_high: u64,
}

/// The layout of `struct Pins` of `channels/dv/verilated_gates.cpp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChannelPins {
    arrive: [u64; MAX_CHANNELS],
    select: u64,
    clock: u64,
    data: u64,
}

/// The layout of `struct Outputs` of `channels/dv/verilated_gates.cpp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outputs {
    release: u64,
    last: u64,
}

impl ChannelPins {
    pub fn of(pins: &Pins) -> ChannelPins {
        let Pins {
            arrive,
            select,
            clock,
            data,
        } = *pins;
        ChannelPins {
            arrive,
            select,
            clock,
            data,
        }
    }
}

impl Outputs {
    /// Returns the outputs that the model computes.
    pub fn of(machine: &ChannelMachine) -> Outputs {
        Outputs {
            release: machine.releases().into(),
            last: machine.last_line(),
        }
    }
}

impl ChannelFlipFlops {
    pub fn of(machine: &ChannelMachine) -> ChannelFlipFlops {
        let channel = std::array::from_fn(|number| {
            let c = machine.channel(number).copied().unwrap_or_default();
            OneChannel {
                stage1: c.stage1,
                stage2: c.stage2,
                mask: c.mask,
                level: c.level.into(),
                limit: c.limit.into(),
                count: c.count.into(),
                late: c.late,
                expired: c.expired.into(),
                early: c.early.into(),
                overdue: c.overdue.into(),
                toggled1: c.toggled1.into(),
                toggled2: c.toggled2.into(),
            }
        });
        let line = |line: Line| OneLine {
            stage1: line.stage1.into(),
            stage2: line.stage2.into(),
            level: line.level.into(),
            run: line.run.into(),
        };
        let s = machine.serial();
        ChannelFlipFlops {
            channel,
            select1: s.select1,
            select2: s.select2,
            grant: s.grant,
            blocked: s.blocked,
            age: s.age.into(),
            select: line(s.select),
            clock: line(s.clock),
            data: line(s.data),
            select_was: s.select_was.into(),
            clock_was: s.clock_was.into(),
            phase: s.phase as u64,
            count: s.count.into(),
            check: s.check.into(),
            shift_low: s.shift as u64,
            shift_high: (s.shift >> 64) as u64,
        }
    }

    /// Returns the model with these flip-flops; `before` is the model one edge earlier.
    /// A channel whose level has changed has one release more than in `before`.
    pub fn after(&self, before: &ChannelMachine) -> ChannelMachine {
        let channel = std::array::from_fn(|number| {
            let was = before.channel(number).copied().unwrap_or_default();
            let c = &self.channel[number];
            let level = c.level != 0;
            Channel {
                stage1: c.stage1,
                stage2: c.stage2,
                mask: c.mask,
                level,
                limit: c.limit as u32,
                count: c.count as u32,
                late: c.late,
                expired: c.expired as u8,
                early: c.early as u8,
                overdue: c.overdue != 0,
                toggled1: c.toggled1 != 0,
                toggled2: c.toggled2 != 0,
                releases: was.releases + u64::from(level != was.level),
            }
        });
        let line = |line: &OneLine| Line {
            stage1: line.stage1 != 0,
            stage2: line.stage2 != 0,
            level: line.level != 0,
            run: line.run as u8,
        };
        let serial = Serial {
            select1: self.select1,
            select2: self.select2,
            grant: self.grant,
            blocked: self.blocked,
            age: self.age as u32,
            select: line(&self.select),
            clock: line(&self.clock),
            data: line(&self.data),
            select_was: self.select_was != 0,
            clock_was: self.clock_was != 0,
            phase: match self.phase {
                1 => Phase::Execute,
                2 => Phase::Reply,
                3 => Phase::Over,
                _ => Phase::Receive,
            },
            count: self.count as u8,
            check: self.check as u16,
            shift: u128::from(self.shift_high) << 64 | u128::from(self.shift_low),
        };
        before.load(channel, serial)
    }
}
