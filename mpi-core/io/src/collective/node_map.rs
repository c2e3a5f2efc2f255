//! The nodes of a file's members, summarised for collective accesses.
//! The members exchange the IDs of their nodes one time, when they open the file.

/// The number of 64-bit words that each member contributes to the exchange; see [`NodeMap::words`].
pub(crate) const WORDS: usize = 3;

/// The maximum size in bytes of all buffers of a leader for accesses between nodes.
/// A leader has two buffers per aggregator.
const MEMORY: i64 = 64 << 20;

/// The bytes of the file that an aggregator handles in a round, if all members share memory.
///
/// A round then costs only one barrier of the node, so the buffer may be short,
/// and a short buffer stays in the cache. If a program opens a file for a single access,
/// the page faults of a longer buffer cost more than the copies.
const STAGED: i64 = 512 << 10;

/// A summary of the members' nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeMap {
    nodes: u32,
    /// True if two-level aggregation applies: all members may share memory within their node,
    /// there are several nodes, and at least one node has several members.
    levels: bool,
    /// True if all members may share memory within their node.
    shares: bool,
    /// The number of cores of rank 0's host.
    cores: u32,
}

impl NodeMap {
    /// Returns this member's words: its node, 1 if it may share memory, and the cores that it may use.
    pub fn words(node: u64, shares: bool, cores: usize) -> [u64; WORDS] {
        [node, shares.into(), cores as u64]
    }

    /// Evaluates the words of all members, which are in rank order.
    pub fn of(told: &[[u64; WORDS]]) -> NodeMap {
        let mut nodes: Vec<u64> = told.iter().map(|words| words[0]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let shares = told.iter().all(|words| words[1] == 1);
        NodeMap {
            nodes: nodes.len() as u32,
            shares,
            levels: shares && nodes.len() > 1 && nodes.len() < told.len(),
            cores: told.first().map_or(1, |words| words[2].clamp(1, 1 << 16)) as u32,
        }
    }

    /// Returns true if the members are on several nodes.
    pub fn spans_nodes(&self) -> bool {
        self.nodes > 1
    }

    /// Returns true if each node merges its accesses before it sends data to other nodes.
    pub fn has_levels(&self) -> bool {
        self.levels
    }

    /// Returns the default number of aggregators: max(cores, nodes).
    pub fn usual_aggregators(&self) -> u32 {
        self.cores.max(self.nodes)
    }

    /// Returns the maximum number of aggregators for `members` members.
    pub fn aggregators(&self, members: u32) -> u32 {
        match self.levels {
            true => self.nodes,
            false => members,
        }
        .max(1)
    }

    /// Returns the number of bytes of the file that an aggregator handles in a round.
    /// `wanted` is the value of the hint `cb_buffer_size`.
    pub fn part(&self, aggregators: u32, wanted: i64) -> i64 {
        match self.levels {
            true => wanted.min((MEMORY / 2 / i64::from(aggregators)).max(64 << 10)),
            false if self.shares && self.nodes == 1 => wanted.min(STAGED),
            false => wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node_map(nodes: &[u64], shares: u64) -> NodeMap {
        let told: Vec<_> = nodes.iter().map(|node| [*node, shares, 2]).collect();
        NodeMap::of(&told)
    }

    #[test]
    fn there_are_levels_where_several_nodes_have_several_members() {
        for (nodes, levels) in [
            (&[7, 7, 7][..], false),
            (&[1, 2, 3], false),
            (&[1, 2, 1], true),
            (&[5], false),
        ] {
            assert_eq!(node_map(nodes, 1).has_levels(), levels, "{nodes:?}");
            assert!(!node_map(nodes, 0).has_levels(), "{nodes:?}");
        }
    }

    #[test]
    fn each_node_has_an_aggregator_and_their_buffers_a_bound() {
        let wide = node_map(&[1, 1, 2, 2, 3, 3], 1);
        assert_eq!(wide.usual_aggregators(), 3);
        assert_eq!(wide.aggregators(6), 3);
        assert_eq!(wide.part(3, 4 << 20), 4 << 20);
        assert_eq!(wide.part(1000, 4 << 20), 64 << 10);
        let one = node_map(&[1, 1, 1], 1);
        assert_eq!((one.usual_aggregators(), one.aggregators(3)), (2, 3));
        // If members share memory, a buffer is short, and a hint can only make it shorter.
        assert_eq!(one.part(2, 4 << 20), STAGED);
        assert_eq!(one.part(2, 64 << 10), 64 << 10);
        let apart = node_map(&[1, 1, 1], 0);
        assert_eq!(apart.part(2, 1 << 30), 1 << 30);
    }
}
