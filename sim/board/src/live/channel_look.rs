//! A channel of a version 2 board, as an observer (a process that only reads the board) sees it.

use fpga_model::channels::Channel;

/// The state of a channel at one instant; bit `n` of a mask belongs to node `n`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelLook {
    /// The members of the channel; zero if the channel is free.
    pub members: u64,
    /// The members that have arrived in the barrier in progress.
    pub arrived: u64,
    /// The members that were missing when the time limit first expired.
    pub late: u64,
    /// Number of releases of the channel since power-on.
    pub releases: u64,
    /// The level of the channel's release line.
    pub level: bool,
    /// Number of barriers whose limit has expired, up to 255.
    pub expired: u8,
    /// Number of early releases, up to 255.
    pub early: u8,
}

impl ChannelLook {
    /// Returns the members that have not arrived while others wait for them.
    /// The mask is zero while no member waits.
    pub fn missing(&self) -> u64 {
        match self.arrived {
            0 => 0,
            arrived => self.members & !arrived,
        }
    }

    /// Encodes the state as five words of a reply of the served board.
    pub(crate) fn to_words(self) -> [u64; 5] {
        let flags =
            u64::from(self.level) | u64::from(self.expired) << 8 | u64::from(self.early) << 16;
        [self.members, self.arrived, self.late, self.releases, flags]
    }

    /// Decodes the words of a reply. Unknown bits are ignored,
    /// so a frame that contains unknown bits does not encode to the same bytes.
    pub(crate) fn from_words([members, arrived, late, releases, flags]: [u64; 5]) -> Self {
        Self {
            members,
            arrived,
            late,
            releases,
            level: flags & 1 == 1,
            expired: (flags >> 8) as u8,
            early: (flags >> 16) as u8,
        }
    }
}

impl From<&Channel> for ChannelLook {
    fn from(channel: &Channel) -> Self {
        Self {
            members: channel.mask,
            arrived: channel.arrived(),
            late: channel.late,
            releases: channel.releases,
            level: channel.level,
            expired: channel.expired,
            early: channel.early,
        }
    }
}
