//! One channel: a toggle barrier among its members, with a time limit, and two counters of what ought not to happen.
//!
//! In the RTL: `synchroniser` and `channel_machine`.

/// The flip-flops of one channel, and the count of releases that the model keeps beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// First synchroniser stage.
    pub stage1: u64,
    /// Second synchroniser stage; what the machine sees.
    pub stage2: u64,
    /// Which nodes take part.
    pub mask: u64,
    /// The level of the release.
    pub level: bool,
    /// How many edges a barrier may take; 0 for any number.
    pub limit: u32,
    /// How many edges the barrier in progress has taken, up to the limit.
    pub count: u32,
    /// Which nodes were missing when the limit first ran out.
    pub late: u64,
    /// How often the limit of a barrier has run out since the members were set, up to [`MOST_COUNTED`].
    pub expired: u8,
    /// How many releases were early, likewise: a member's line left the level again before its node can have seen the release.
    pub early: u8,
    /// Whether the barrier in progress had taken its limit at the last edge.
    pub overdue: bool,
    /// Whether the level has toggled at the last edge,
    pub toggled1: bool,
    /// and at the last but one.
    pub toggled2: bool,
    /// How often the channel has released its members.
    pub releases: u64,
}

/// A counter that has come so far stays there.
pub const MOST_COUNTED: u8 = u8::MAX;

/// What a request changes in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Mask(u64),
    /// These stay members, in the middle of a barrier.
    Keep(u64),
    Limit(u32),
}

impl Channel {
    const fn level_on_all_lines(&self) -> u64 {
        if self.level { u64::MAX } else { 0 }
    }

    /// The members that have arrived in the barrier in progress.
    pub const fn arrived(&self) -> u64 {
        (self.stage2 ^ self.level_on_all_lines()) & self.mask
    }

    /// Those of `nodes` whose lines are not at the channel's level.
    ///
    /// The first stage is not asked, for it may be metastable: a line that changes at the very edge at which the mask
    /// does has changed after it.
    pub const fn restless(&self, nodes: u64) -> u64 {
        (self.stage2 ^ self.level_on_all_lines()) & nodes
    }

    /// Whether the barrier in progress has taken as long as it may.
    pub const fn is_overdue(&self) -> bool {
        let arrived = self.arrived();
        arrived != 0 && arrived != self.mask && self.limit != 0 && self.count == self.limit
    }

    /// One clock edge with these levels at the pins.
    #[inline]
    pub(super) fn step(&mut self, pins: u64, change: Option<Change>) {
        match change {
            None if self.mask == 0 => self.step_without_members(pins),
            change => self.step_of_members(pins, change),
        }
    }

    /// What [`step_of_members`](Self::step_of_members) does where no node can have arrived: most channels of most boards.
    #[inline]
    fn step_without_members(&mut self, pins: u64) {
        self.stage2 = self.stage1;
        self.stage1 = pins;
        self.count = 0;
        self.overdue = false;
        self.toggled2 = self.toggled1;
        self.toggled1 = false;
    }

    #[inline]
    fn step_of_members(&mut self, pins: u64, change: Option<Change>) {
        let before = *self;
        let arrived = before.arrived();
        // A channel without members would otherwise be a barrier that every node has reached.
        let toggle = before.mask != 0 && arrived == before.mask;
        let waiting = arrived != 0 && !toggle;

        self.stage1 = pins;
        self.stage2 = before.stage1;
        self.level ^= toggle;
        self.releases += u64::from(toggle);
        self.count = match waiting {
            true if before.count == before.limit => before.count,
            true => before.count + 1,
            false => 0,
        };
        if before.is_overdue() && before.late == 0 {
            self.late = before.mask & !arrived;
        }
        self.overdue = before.is_overdue();
        if before.is_overdue() && !before.overdue {
            self.expired = before.expired.saturating_add(1);
        }
        // A release that has just left the board comes back as an arrival three edges later at the soonest.
        if arrived != 0 && (before.toggled1 || before.toggled2) {
            self.early = before.early.saturating_add(1);
        }
        self.toggled1 = toggle;
        // One release is counted once.
        self.toggled2 = before.toggled1 && arrived == 0;
        match change {
            Some(Change::Mask(mask)) => {
                // A new set of members starts without what the last one had set.
                self.mask = mask;
                self.limit = 0;
                self.count = 0;
                self.late = 0;
                self.expired = 0;
                self.early = 0;
            }
            Some(Change::Keep(mask)) => {
                // What the others have set stays, and the next that is late is latched again.
                self.mask = mask;
                self.count = 0;
                self.late = 0;
            }
            Some(Change::Limit(limit)) => {
                self.limit = limit;
                self.count = 0;
                self.late = 0;
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_without_members_goes_the_same_way_as_the_others() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..10_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let bit = |at: u32| random >> at & 1 == 1;
            let channel = Channel {
                stage1: random.rotate_left(7),
                stage2: random.rotate_left(23),
                mask: 0,
                level: bit(20),
                limit: (random >> 21 & 3) as u32,
                count: (random >> 23 & 3) as u32,
                late: random >> 25 & 1,
                expired: random as u8,
                early: (random >> 8) as u8,
                overdue: bit(26),
                toggled1: bit(27),
                toggled2: bit(28),
                releases: random >> 40,
            };
            let (mut quick, mut whole) = (channel, channel);
            quick.step_without_members(random);
            whole.step_of_members(random, None);
            assert_eq!(quick, whole);
        }
    }
}
