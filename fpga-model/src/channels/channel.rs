//! One channel: a toggle barrier among its members, with a time limit, and counters of expired limits and early releases.
//!
//! In the RTL a channel consists of the modules `synchroniser` and `channel_machine`.

/// The flip-flops of one channel, and the number of releases, which the RTL does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// First synchroniser stage.
    pub stage1: u64,
    /// Second synchroniser stage: the input of the machine.
    pub stage2: u64,
    /// The members of the channel, as a mask.
    pub mask: u64,
    /// The level of the channel's release line.
    pub level: bool,
    /// Maximum duration of a barrier in clock edges; 0 for no limit.
    pub limit: u32,
    /// Number of clock edges since the barrier in progress began, up to `limit`.
    pub count: u32,
    /// The members that were missing when the limit first expired.
    pub late: u64,
    /// The number of barriers whose limit has expired, up to [`MOST_COUNTED`],
    /// since the members were set.
    pub expired: u8,
    /// The number of early releases since the members were set, up to [`MOST_COUNTED`]:
    /// a member's line changed again before the member could have read the previous release.
    pub early: u8,
    /// True if the limit of the barrier in progress had expired at the previous edge.
    pub overdue: bool,
    /// True if the level toggled at the previous edge.
    pub toggled1: bool,
    /// True if the level toggled two edges ago.
    pub toggled2: bool,
    /// The number of releases of the channel since power-on.
    pub releases: u64,
}

/// The maximum of the counters of expired limits and early releases, which saturate there.
pub const MOST_COUNTED: u8 = u8::MAX;

/// The change that a request makes to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Mask(u64),
    /// Reduces the members to this mask while a barrier is in progress.
    Keep(u64),
    Limit(u32),
}

impl Channel {
    const fn level_on_all_lines(&self) -> u64 {
        if self.level { u64::MAX } else { 0 }
    }

    /// Returns the members that have arrived in the barrier in progress.
    pub const fn arrived(&self) -> u64 {
        (self.stage2 ^ self.level_on_all_lines()) & self.mask
    }

    /// Returns the nodes of the mask `nodes` whose lines are not at the channel's level.
    ///
    /// Reads the second synchroniser stage, because the first one may be metastable:
    /// a line that changes at the same edge as the mask is treated as changing after it.
    pub const fn not_idle(&self, nodes: u64) -> u64 {
        (self.stage2 ^ self.level_on_all_lines()) & nodes
    }

    /// Returns true if the limit of the barrier in progress has expired.
    pub const fn is_overdue(&self) -> bool {
        let arrived = self.arrived();
        arrived != 0 && arrived != self.mask && self.limit != 0 && self.count == self.limit
    }

    /// Performs one clock edge with these levels at the pins.
    #[inline]
    pub(super) fn step(&mut self, pins: u64, change: Option<Change>) {
        match change {
            None if self.mask == 0 => self.step_without_members(pins),
            change => self.step_of_members(pins, change),
        }
    }

    /// A fast path of [`step_of_members`](Self::step_of_members) for a channel without members,
    /// in which no node can arrive. Most channels have no members.
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
        // Without this condition, a channel without members would count as a complete barrier.
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
        // A node's reaction to a release reaches `stage2` at least three edges after the release.
        if arrived != 0 && (before.toggled1 || before.toggled2) {
            self.early = before.early.saturating_add(1);
        }
        self.toggled1 = toggle;
        // After an early release is counted,
        // `toggled2` is cleared, so that it is not counted again.
        self.toggled2 = before.toggled1 && arrived == 0;
        match change {
            Some(Change::Mask(mask)) => {
                // When members are set, the channel's limit, counters and late members are cleared.
                self.mask = mask;
                self.limit = 0;
                self.count = 0;
                self.late = 0;
                self.expired = 0;
                self.early = 0;
            }
            Some(Change::Keep(mask)) => {
                // Limit and counters do not change. The next expired limit records late members again.
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
