//! One channel: a toggle barrier among its members, with a time limit.
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
    /// How often the channel has released its members.
    pub releases: u64,
}

/// What a request changes in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Mask(u64),
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

    /// One clock edge with these levels at the pins.
    pub(super) fn step(&mut self, pins: u64, change: Option<Change>) {
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
        let expired = waiting && before.limit != 0 && before.count == before.limit;
        if expired && before.late == 0 {
            self.late = before.mask & !arrived;
        }
        match change {
            Some(Change::Mask(mask)) => {
                // A new set of members starts without what the last one had set.
                self.mask = mask;
                self.limit = 0;
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
