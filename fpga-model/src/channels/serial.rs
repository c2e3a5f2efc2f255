//! The serial receiver: arbitration among the nodes,
//! noise filters of the lines, and the frame shift register.
//!
//! The RTL modules are `channel_arbiter`, `channel_line` and `channel_frame`.

use super::frame::{BODY_BITS, Body, CHECK_START, FRAME_BITS, check_bit};

/// The number of equal samples after which the filtered level changes.
/// From the first to the last of these samples, three clock periods pass.
pub const FILTER_EDGES: u8 = 4;

/// One serial line of the node that has the receiver: two synchroniser stages,
/// and a filtered level, which changes after [`FILTER_EDGES`] equal samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// First synchroniser stage.
    pub stage1: bool,
    /// Second synchroniser stage.
    pub stage2: bool,
    /// The number of edges for which the second stage has differed from the filtered level.
    pub run: u8,
    /// The filtered level.
    pub level: bool,
}

impl Line {
    fn step(&mut self, pin: bool) {
        let before = *self;
        self.stage1 = pin;
        self.stage2 = before.stage1;
        self.run = 0;
        if before.stage2 != before.level {
            if before.run == FILTER_EDGES - 1 {
                self.level = before.stage2;
            } else {
                self.run = before.run + 1;
            }
        }
    }
}

/// The phase of the serial receiver within a request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Request bits are shifted in.
    #[default]
    Receive = 0,
    /// The request is complete: at this edge it is checked, executed and answered.
    Execute = 1,
    /// Reply bits are shifted out.
    Reply = 2,
    /// The reply is complete; select must fall before the next request.
    Over = 3,
}

/// The flip-flops of the serial receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serial {
    /// Select of all nodes, first synchroniser stage.
    pub select1: u64,
    /// Select of all nodes, second synchroniser stage: the input of the arbiter.
    pub select2: u64,
    /// The node that has the receiver, as a mask of at most one bit.
    pub grant: u64,
    /// The nodes that have lost the receiver because their clocks did not change;
    /// each remains blocked until its select falls.
    pub blocked: u64,
    /// Number of edges since the clock of the node that has the receiver last changed.
    pub age: u32,
    /// Select of the node that has the receiver.
    pub select: Line,
    /// Clock of the node that has the receiver.
    pub clock: Line,
    /// Data of the node that has the receiver.
    pub data: Line,
    /// The level of `select` one edge ago.
    pub select_was: bool,
    /// The level of `clock` one edge ago.
    pub clock_was: bool,
    /// The current phase of the receiver.
    pub phase: Phase,
    /// The number of bits of the frame that have been shifted in this phase.
    pub count: u8,
    /// The check (CRC) of the bits shifted so far.
    pub check: u16,
    /// The body of the frame: the bits received so far, or the bits still to be sent.
    pub shift: u128,
}

const BODY: u128 = (1 << BODY_BITS) - 1;

impl Serial {
    pub(super) fn new() -> Self {
        Self {
            check: CHECK_START,
            ..Self::default()
        }
    }

    /// Returns true if a node has the receiver and its filtered select is high.
    pub(super) const fn open(&self) -> bool {
        self.grant != 0 && self.select.level
    }

    /// Returns the request to execute at this edge; the flag is true if its check bits are correct.
    pub(super) const fn request(&self) -> Option<(Body, bool)> {
        match self.phase {
            Phase::Execute if self.open() => Some((Body::from_bits(self.shift), self.check == 0)),
            _ => None,
        }
    }

    /// Returns the level of the reply line for the node that has the receiver.
    pub(super) const fn bit(&self) -> bool {
        match self.phase {
            Phase::Reply if self.count < BODY_BITS => self.shift >> (BODY_BITS - 1) & 1 == 1,
            Phase::Reply => self.check >> 15 == 1,
            _ => false,
        }
    }

    /// Returns true if no node has the receiver, is blocked,
    /// or has a high select in a synchroniser stage.
    const fn rests(&self) -> bool {
        self.grant | self.blocked | self.select1 | self.select2 == 0
    }

    /// Performs one clock edge; `reply` is the reply to the [`request`](Self::request) of this edge.
    #[inline]
    pub(super) fn step(&mut self, select: u64, clock: u64, data: u64, lease: u32, reply: Body) {
        if select == 0 && self.rests() {
            self.step_at_rest();
        } else {
            self.step_awake(select, clock, data, lease, reply);
        }
    }

    /// A fast path of [`step_awake`](Self::step_awake) for an idle receiver
    /// ([`rests`](Self::rests)), which is its state at most clock edges.
    #[inline]
    fn step_at_rest(&mut self) {
        (self.phase, self.count, self.check) = (Phase::Receive, 0, CHECK_START);
        [self.select, self.clock, self.data] = [Line::default(); 3];
        (self.select_was, self.clock_was, self.age) = (false, false, 0);
    }

    fn step_awake(&mut self, select: u64, clock: u64, data: u64, lease: u32, reply: Body) {
        let before = *self;
        self.frame(&before, reply);
        self.arbiter(&before, select, lease);
        if before.grant == 0 {
            // The line states of the previous node are cleared
            // before the lines of the next node are sampled.
            [self.select, self.clock, self.data] = [Line::default(); 3];
            (self.select_was, self.clock_was, self.age) = (false, false, 0);
            return;
        }
        // Select, clock and data have the same delay,
        // so their changes keep the order in which the node wrote them.
        self.select.step(select & before.grant != 0);
        self.clock.step(clock & before.grant != 0);
        self.data.step(data & before.grant != 0);
        self.select_was = before.select.level;
        self.clock_was = before.clock.level;
        self.age = match before.clock.level == before.clock_was {
            true => before.age.wrapping_add(1) & (lease - 1),
            false => 0,
        };
    }

    fn arbiter(&mut self, before: &Self, select: u64, lease: u32) {
        self.select1 = select;
        self.select2 = before.select1;
        let expired = before.grant != 0 && before.age == lease - 1;
        let gone = !before.select.level && before.select2 & before.grant == 0;
        let asking = before.select2 & !before.blocked;
        self.blocked = before.blocked & before.select2 | if expired { before.grant } else { 0 };
        self.grant = match before.grant {
            0 => asking & asking.wrapping_neg(),
            _ if expired || gone => 0,
            grant => grant,
        };
    }

    fn frame(&mut self, before: &Self, reply: Body) {
        if !before.open() {
            (self.phase, self.count, self.check) = (Phase::Receive, 0, CHECK_START);
            return;
        }
        // If the clock is already high when the session opens, this is not a rising clock.
        let tick = before.select_was && before.clock.level && !before.clock_was;
        let body = before.count < BODY_BITS;
        match before.phase {
            Phase::Receive if tick => {
                let bit = before.data.level;
                if body {
                    self.shift = (before.shift << 1 | u128::from(bit)) & BODY;
                }
                self.check = check_bit(before.check, bit);
                self.advance(Phase::Execute);
            }
            Phase::Execute => {
                self.shift = reply.bits();
                (self.phase, self.check) = (Phase::Reply, CHECK_START);
            }
            Phase::Reply if tick => {
                if body {
                    self.check = check_bit(before.check, before.bit());
                    self.shift = before.shift << 1 & BODY;
                } else {
                    self.check = before.check << 1;
                }
                self.advance(Phase::Over);
            }
            Phase::Receive | Phase::Reply | Phase::Over => {}
        }
    }

    fn advance(&mut self, next: Phase) {
        if self.count == FRAME_BITS - 1 {
            (self.phase, self.count) = (next, 0);
        } else {
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if the filter passes a high pulse of length `width` that begins `begin` after
    /// a clock edge; both times are in hundredths of a clock period.
    fn counts(width: u32, begin: u32) -> bool {
        let mut line = Line::default();
        (0..20).any(|edge| {
            let at = edge * 100;
            line.step((begin..begin + width).contains(&at));
            line.level
        })
    }

    #[test]
    fn a_pulse_under_three_periods_never_counts_and_one_of_four_always_does() {
        let (never, always) = (
            100 * (u32::from(FILTER_EDGES) - 1),
            100 * u32::from(FILTER_EDGES),
        );
        for begin in 0..100 {
            assert!((1..never).all(|width| !counts(width, begin)), "{begin}");
            assert!((always..600).all(|width| counts(width, begin)), "{begin}");
        }
        // Whether a pulse of 3 to 4 periods passes depends on its phase.
        // This one has 125 ns, which are 315 hundredths of a period.
        let passed = (0..100).filter(|&begin| counts(315, begin)).count();
        assert_eq!(passed, 15);
    }

    #[test]
    fn a_side_at_rest_goes_the_same_way_as_one_that_is_awake() {
        let line = |bits: u64| Line {
            stage1: bits & 1 == 1,
            stage2: bits & 2 == 2,
            run: (bits >> 2 & 3) as u8,
            level: bits & 16 == 16,
        };
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..10_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let serial = Serial {
                age: random as u32,
                select: line(random >> 10),
                clock: line(random >> 20),
                data: line(random >> 30),
                select_was: random >> 40 & 1 == 1,
                clock_was: random >> 41 & 1 == 1,
                phase: [Phase::Receive, Phase::Execute, Phase::Reply, Phase::Over]
                    [(random >> 42 & 3) as usize],
                count: (random >> 44 & 63) as u8,
                check: (random >> 48) as u16,
                shift: u128::from(random),
                ..Serial::default()
            };
            let (mut quick, mut whole) = (serial, serial);
            assert!(quick.rests());
            quick.step_at_rest();
            whole.step_awake(0, random, !random, 1 << 20, Body::default());
            assert_eq!(quick, whole);
        }
    }
}
