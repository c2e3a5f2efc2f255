//! Events on the wires of a barrier, as used by the live record, the virtual run and the waveform.

/// One change of a wire's level, or one mark of a node, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the board was powered on.
    pub at_ns: u64,
    /// The change of a level, or the mark.
    pub what: What,
}

/// A change of a wire's level, or a mark:
/// a node's program calls or leaves the barrier, or a node dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The wire from this node to the barrier went to this level.
    Wire {
        /// The node that drives the wire.
        node: usize,
        /// The new level of the wire.
        high: bool,
    },
    /// The wires from the barrier to all nodes went to this level: a release.
    Release {
        /// The new level of these wires.
        high: bool,
    },
    /// The program on this node called the barrier.
    Enter {
        /// The node whose program called the barrier.
        node: usize,
    },
    /// The program on this node returned from the barrier.
    Leave {
        /// The node whose program returned.
        node: usize,
    },
    /// This node has died.
    Down {
        /// The node that died.
        node: usize,
    },
    /// The wire from this node to the eureka line went to this level.
    Say {
        /// The node that drives the wire.
        node: usize,
        /// The new level of the wire.
        high: bool,
    },
}

/// The events of a run, oldest first, up to the record's capacity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the barrier's nodes.
    pub nodes: usize,
    /// The first events of the run, up to the record's capacity.
    pub events: Vec<Event>,
    /// Number of later events, which are not stored because the record was full.
    pub dropped: u64,
}

/// One change of an outward line (node to board) of a version 2 board, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineChange {
    /// Picoseconds since the board was powered on.
    pub at_ps: u64,
    /// The node that drives the line.
    pub node: usize,
    /// Index of the line: the arrivals of the channels, then serial clock, data and select.
    pub line: usize,
    /// The new level of the line.
    pub high: bool,
}

/// The line changes of a version 2 board, oldest first, up to the record's capacity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelRecord {
    /// Number of nodes with lines.
    pub nodes: usize,
    /// The first changes of the run, up to the record's capacity.
    pub changes: Vec<LineChange>,
    /// Number of later changes, which are not stored because the record was full.
    pub dropped: u64,
}

impl LineChange {
    /// Encodes node, line and level as a nonzero word; zero marks an entry that was never written.
    pub(crate) fn what(self) -> u64 {
        1 << 63 | (self.node as u64) << 8 | (self.line as u64) << 1 | u64::from(self.high)
    }

    /// Decodes an entry of the record; the inverse of [`what`](Self::what).
    pub(crate) fn from_words(at_ps: u64, what: u64) -> Option<Self> {
        (what >> 63 == 1).then_some(Self {
            at_ps,
            node: (what >> 8 & 0xffff) as usize,
            line: (what >> 1 & 0x7f) as usize,
            high: what & 1 == 1,
        })
    }
}

impl What {
    /// Encodes the event without its time as a nonzero word;
    /// zero marks an entry that was never written.
    pub(crate) fn to_word(self) -> u64 {
        let (kind, node) = match self {
            Self::Wire { node, high: false } => (1, node),
            Self::Wire { node, high: true } => (2, node),
            Self::Release { high: false } => (3, 0),
            Self::Release { high: true } => (4, 0),
            Self::Enter { node } => (5, node),
            Self::Leave { node } => (6, node),
            Self::Down { node } => (7, node),
            Self::Say { node, high: false } => (8, node),
            Self::Say { node, high: true } => (9, node),
        };
        kind << 32 | node as u64
    }

    /// Decodes a word of [`to_word`](Self::to_word); `None` for a word that encodes no event.
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        let node = (word & u64::from(u32::MAX)) as usize;
        Some(match word >> 32 {
            1 => Self::Wire { node, high: false },
            2 => Self::Wire { node, high: true },
            3 => Self::Release { high: false },
            4 => Self::Release { high: true },
            5 => Self::Enter { node },
            6 => Self::Leave { node },
            7 => Self::Down { node },
            8 => Self::Say { node, high: false },
            9 => Self::Say { node, high: true },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives_its_word() {
        let kinds: [fn(usize) -> What; 9] = [
            |node| What::Wire { node, high: false },
            |node| What::Wire { node, high: true },
            |_| What::Release { high: false },
            |_| What::Release { high: true },
            |node| What::Enter { node },
            |node| What::Leave { node },
            |node| What::Down { node },
            |node| What::Say { node, high: false },
            |node| What::Say { node, high: true },
        ];
        for make in kinds {
            for node in [0, 1, 59, 63] {
                assert_eq!(What::from_word(make(node).to_word()), Some(make(node)));
            }
        }
        assert_eq!(What::from_word(0), None);
    }
}
