//! Comparison of the idle levels read by all nodes, which detects faults that no single node can.
//!
//! All wires from the barrier have the same level, so in an idle barrier every node reads the same level.
//! If a node reads another level, its input is floating, cut or inverted.
//! A caller that can collect the levels, as MPI can, calls [`same_level`] between [`ToggleBarrier::open`](crate::ToggleBarrier::open)
//! and [`self_test`](crate::self_test()), and names the node before a barrier hangs.

use core::{error::Error, fmt};
use embedded_hal::digital::PinState;

/// The error that names the nodes whose level differs from the majority's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelMismatch {
    /// The nodes of the minority; if both levels are equally frequent, the nodes that read high,
    /// because a disconnected input usually reads high.
    pub nodes: Vec<usize>,
    /// The level that the nodes in `nodes` have read.
    pub level: PinState,
    /// The number of nodes that read the majority's level.
    pub others: usize,
}

/// Checks that all nodes have read the same level, after all have opened the barrier and before any enters.
pub fn same_level(levels: &[PinState]) -> Result<(), LevelMismatch> {
    let with = |level| -> Vec<usize> {
        let same = levels.iter().enumerate().filter(|&(_, &l)| l == level);
        same.map(|(node, _)| node).collect()
    };
    let (low, high) = (with(PinState::Low), with(PinState::High));
    if low.is_empty() || high.is_empty() {
        return Ok(());
    }
    let (nodes, level, others) = if low.len() < high.len() {
        (low, PinState::Low, high.len())
    } else {
        (high, PinState::High, low.len())
    };
    Err(LevelMismatch {
        nodes,
        level,
        others,
    })
}

impl fmt::Display for LevelMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
        write!(
            f,
            "no node is in the barrier, node {} reads {} and {} other{} read{} {}: \
             a wire from the barrier floats, is cut or is inverted",
            names.join(", node "),
            crate::error::name(self.level),
            self.others,
            if self.others == 1 { "" } else { "s" },
            if self.others == 1 { "s" } else { "" },
            crate::error::name(!self.level),
        )
    }
}

impl Error for LevelMismatch {}

#[cfg(test)]
mod tests {
    use super::*;
    use PinState::{High, Low};

    #[test]
    fn equal_levels_agree() {
        assert_eq!(same_level(&[]), Ok(()));
        assert_eq!(same_level(&[High; 3]), Ok(()));
        assert_eq!(same_level(&[Low; 3]), Ok(()));
    }

    #[test]
    fn the_few_that_read_another_level_are_named() {
        let said = |levels: &[PinState]| {
            same_level(levels)
                .err()
                .map(|level_mismatch| level_mismatch.to_string())
        };
        assert_eq!(
            said(&[High, Low, High, High]).as_deref(),
            Some(
                "no node is in the barrier, node 1 reads low and 3 others read high: \
                 a wire from the barrier floats, is cut or is inverted"
            )
        );
        assert!(
            said(&[High, Low, High, Low, Low])
                .is_some_and(|said| said.contains("node 0, node 2 reads high"))
        );
        assert!(
            said(&[Low, High])
                .is_some_and(|said| said.contains("node 1 reads high and 1 other reads low"))
        );
    }
}
