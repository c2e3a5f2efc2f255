//! Addresses and fields of the register block, generated from its description.

/// Bits of a register with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    high: u32,
    low: u32,
}

impl Field {
    const fn new(high: u32, low: u32) -> Self {
        Self { high, low }
    }

    /// Returns the field's value in a word.
    pub const fn of(self, word: u32) -> u32 {
        word >> self.low & u32::MAX >> (31 - (self.high - self.low))
    }

    /// Returns a word with this value of the field, and zeros elsewhere; bits of the value beyond the field are dropped.
    pub const fn with(self, value: u32) -> u32 {
        (value & u32::MAX >> (31 - (self.high - self.low))) << self.low
    }
}

// generated from hdl/registers/registers.txt: map
/// What the register ID reads.
pub const IDENTITY: u32 = 0x5241_4254;
/// The version of the description: major, minor, patch, in bits 23:16, 15:8 and 7:0.
pub const VERSION: u32 = 0x0001_0100;

/// Registers that exist once, for the whole block.
pub mod global {
    /// Address of these registers, in bytes.
    pub const BASE: usize = 0x0;
    /// The letters TBAR, which show that the block is present and that the byte order is right.
    pub const ID: usize = 0x0;
    /// The version of this description.
    pub const VERSION: usize = 0x4;
    /// The options of this instance.
    pub const CAPS: usize = 0x8;
    /// The sizes of this instance.
    pub const SIZES: usize = 0xc;
    /// Frequency of the block's clock, 0 if unknown.
    pub const CLOCK_HZ: usize = 0x10;
    /// No effect; for tests of the bus.
    pub const SCRATCH: usize = 0x14;
    /// Enables the block.
    pub const CTRL: usize = 0x18;
    /// Events; an event in the cycle of its clear is kept.
    pub const INTR_STATE: usize = 0x20;
    /// Events that raise the line irq_o.
    pub const INTR_ENABLE: usize = 0x24;
    /// A 1 sets the event in INTR_STATE.
    pub const INTR_TEST: usize = 0x28;
    /// Cycles since the reset, bits 31:0.
    pub const TIME_LO: usize = 0x30;
    /// Cycles since the reset, bits 63:32; read TIME_HI, TIME_LO and TIME_HI until both values of TIME_HI agree.
    pub const TIME_HI: usize = 0x34;
    /// The line start_o: a release of a group in GROUPS makes it active for WIDTH cycles, from the first cycle of the new level on. A pulse in progress keeps its width, and a release during a pulse begins none.
    pub const PULSE: usize = 0x38;
    /// Bits 31:0 of TIME in the cycle of the release that began the last pulse; start_o is active from the next cycle on. Also on start_time_o.
    pub const START: usize = 0x3c;

    /// Fields of `VERSION`.
    pub mod version {
        use super::super::Field;

        /// A driver must refuse another major version.
        pub const MAJOR: Field = Field::new(23, 16);
        /// Later minor versions only add registers and fields.
        pub const MINOR: Field = Field::new(15, 8);
        /// Later patch versions only have corrections.
        pub const PATCH: Field = Field::new(7, 0);
    }

    /// Fields of `CAPS`.
    pub mod caps {
        use super::super::Field;

        /// The start pulse is present; PULSE and START read 0 otherwise.
        pub const PULSE: Field = Field::new(6, 6);
        /// TIME, FIRST and LAST are present; they read 0 otherwise.
        pub const STAMPS: Field = Field::new(3, 3);
        /// Synchroniser stages of the wires: 0, 2 or 3.
        pub const SYNC: Field = Field::new(1, 0);
    }

    /// Fields of `SIZES`.
    pub mod sizes {
        use super::super::Field;

        /// Logarithm to base 2 of the bytes from one node's page to the next, 6 to 12.
        pub const STRIDE: Field = Field::new(20, 16);
        /// Number of groups, 1 to 8.
        pub const G: Field = Field::new(11, 8);
        /// Number of nodes, 1 to 64.
        pub const N: Field = Field::new(6, 0);
    }

    /// Fields of `CTRL`.
    pub mod ctrl {
        use super::super::Field;

        /// 0: arrivals are not counted and no group releases.
        pub const ENABLE: Field = Field::new(0, 0);
    }

    /// Fields of `INTR_STATE`.
    pub mod intr_state {
        use super::super::Field;

        /// A write of MASK or ACTION was refused.
        pub const REFUSED: Field = Field::new(24, 24);
        /// A member of group g left the level before it can have seen the release.
        pub const EARLY: Field = Field::new(23, 16);
        /// The time limit of group g has expired.
        pub const LIMIT: Field = Field::new(15, 8);
        /// Group g has released.
        pub const RELEASE: Field = Field::new(7, 0);
    }

    /// Fields of `INTR_ENABLE`.
    pub mod intr_enable {
        use super::super::Field;

        /// See INTR_STATE.
        pub const REFUSED: Field = Field::new(24, 24);
        /// See INTR_STATE.
        pub const EARLY: Field = Field::new(23, 16);
        /// See INTR_STATE.
        pub const LIMIT: Field = Field::new(15, 8);
        /// See INTR_STATE.
        pub const RELEASE: Field = Field::new(7, 0);
    }

    /// Fields of `INTR_TEST`.
    pub mod intr_test {
        use super::super::Field;

        /// See INTR_STATE.
        pub const REFUSED: Field = Field::new(24, 24);
        /// See INTR_STATE.
        pub const EARLY: Field = Field::new(23, 16);
        /// See INTR_STATE.
        pub const LIMIT: Field = Field::new(15, 8);
        /// See INTR_STATE.
        pub const RELEASE: Field = Field::new(7, 0);
    }

    /// Fields of `PULSE`.
    pub mod pulse {
        use super::super::Field;

        /// One bit for each group.
        pub const GROUPS: Field = Field::new(31, 24);
        /// 1: start_o is low in a pulse and high otherwise.
        pub const INVERT: Field = Field::new(16, 16);
        /// Cycles, 0 for no pulse.
        pub const WIDTH: Field = Field::new(15, 0);
    }
}

/// One group of nodes: a barrier for its members.
pub mod group {
    /// Address of the registers of group 0, in bytes.
    pub const BASE: usize = 0x100;
    /// Bytes from the registers of one group to those of the next.
    pub const STRIDE: usize = 0x80;
    /// The members among nodes 0 to 31. Refused while the line of an old or new member differs from LEVEL. A write clears LIMIT, LATE and COUNTS.
    pub const MASK0: usize = 0x0;
    /// The members among nodes 32 to 63, with the rules of MASK0.
    pub const MASK1: usize = 0x4;
    /// The members among nodes 0 to 31 that are in the barrier in progress.
    pub const ARRIVED0: usize = 0x10;
    /// The members among nodes 32 to 63 that are in the barrier in progress.
    pub const ARRIVED1: usize = 0x14;
    /// The members among nodes 0 to 31 that were missing when the limit first expired.
    pub const LATE0: usize = 0x20;
    /// The members among nodes 32 to 63 that were missing when the limit first expired.
    pub const LATE1: usize = 0x24;
    /// The state of the barrier.
    pub const STATUS: usize = 0x30;
    /// Number of releases since the reset, modulo 2^32.
    pub const RELEASES: usize = 0x34;
    /// Cycles that a barrier may take from its first arrival, 0 for no limit. A write clears LATE.
    pub const LIMIT: usize = 0x38;
    /// Numbers of events since the members were last set.
    pub const COUNTS: usize = 0x3c;
    /// Bits 31:0 of TIME in the cycle of the first arrival of the last released barrier.
    pub const FIRST: usize = 0x40;
    /// Bits 31:0 of TIME in the cycle of the last arrival of the last released barrier; LEVEL changes one cycle later.
    pub const LAST: usize = 0x48;
    /// Refused unless the value is 0xA5000001 and the barrier is overdue: the missing members stop being members, and the others are released.
    pub const ACTION: usize = 0x58;

    /// Fields of `STATUS`.
    pub mod status {
        use super::super::Field;

        /// The barrier in progress has reached its limit.
        pub const OVERDUE: Field = Field::new(2, 2);
        /// At least one member is inside.
        pub const BUSY: Field = Field::new(1, 1);
        /// The level that the members have when they are outside.
        pub const LEVEL: Field = Field::new(0, 0);
    }

    /// Fields of `COUNTS`.
    pub mod counts {
        use super::super::Field;

        /// Number of early arrivals; 255 means 255 or more.
        pub const EARLIES: Field = Field::new(23, 16);
        /// Number of expired limits; 255 means 255 or more.
        pub const LIMITS: Field = Field::new(7, 0);
    }

    /// Fields of `ACTION`.
    pub mod action {
        use super::super::Field;

        /// Must be 0xA5.
        pub const KEY: Field = Field::new(31, 24);
        /// Must be 1.
        pub const DROP_LATE: Field = Field::new(0, 0);
    }
}

/// One node: a page of registers, which can be mapped for the process of this node only.
pub mod node {
    /// Address of the registers of node 0, in bytes.
    pub const BASE: usize = 0x1000;
    /// Bit g: the level of this node in group g; a store that changes the bit enters.
    pub const ARRIVE: usize = 0x0;
    /// Bit g: the level of group g.
    pub const LEVEL: usize = 0x4;
    /// Bit g: the line of this node in group g is at the group's level, so the node is outside.
    pub const DONE: usize = 0x8;
    /// Events of the groups of which this node is a member; an event in the cycle of its clear is kept.
    pub const INTR_STATE: usize = 0x10;
    /// Events that raise the line wake_o of this node.
    pub const INTR_ENABLE: usize = 0x14;
    /// A 1 sets the event in INTR_STATE.
    pub const INTR_TEST: usize = 0x18;
    /// A 1 inverts the bit in ARRIVE; several processes of one node can enter different groups without reading ARRIVE first.
    pub const TOGGLE: usize = 0x2c;

    /// Fields of `ARRIVE`.
    pub mod arrive {
        use super::super::Field;

        /// One bit for each group.
        pub const GROUP: Field = Field::new(7, 0);
    }

    /// Fields of `LEVEL`.
    pub mod level {
        use super::super::Field;

        /// One bit for each group.
        pub const GROUP: Field = Field::new(7, 0);
    }

    /// Fields of `DONE`.
    pub mod done {
        use super::super::Field;

        /// One bit for each group.
        pub const GROUP: Field = Field::new(7, 0);
    }

    /// Fields of `INTR_STATE`.
    pub mod intr_state {
        use super::super::Field;

        /// The time limit of group g has expired.
        pub const LIMIT: Field = Field::new(15, 8);
        /// Group g has released.
        pub const RELEASE: Field = Field::new(7, 0);
    }

    /// Fields of `INTR_ENABLE`.
    pub mod intr_enable {
        use super::super::Field;

        /// See INTR_STATE.
        pub const LIMIT: Field = Field::new(15, 8);
        /// See INTR_STATE.
        pub const RELEASE: Field = Field::new(7, 0);
    }

    /// Fields of `INTR_TEST`.
    pub mod intr_test {
        use super::super::Field;

        /// See INTR_STATE.
        pub const LIMIT: Field = Field::new(15, 8);
        /// See INTR_STATE.
        pub const RELEASE: Field = Field::new(7, 0);
    }

    /// Fields of `TOGGLE`.
    pub mod toggle {
        use super::super::Field;

        /// One bit for each group.
        pub const GROUP: Field = Field::new(7, 0);
    }
}
// end of the generated text
