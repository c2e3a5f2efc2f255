//! In-order trees of ranks: every subtree is a range of ranks.
//! The ranks below its top are the left child's subtree, those above its top the right child's subtree.
//! The top of the whole tree is the root of the operation.
//!
//! Combining left, own and right data in such a tree keeps the order of ranks for every root,
//! so operators need not commute.

use std::ops::Range;

/// One rank's position in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InOrder {
    pub parent: Option<u32>,
    /// The child whose subtree is the range of ranks directly before this rank.
    pub left: Option<u32>,
    /// The child whose subtree is the range of ranks directly after this rank.
    pub right: Option<u32>,
}

impl InOrder {
    /// Returns a rank's position in a tree of two chains that end at the root.
    pub fn chain(rank: u32, root: u32, size: u32) -> InOrder {
        let before = rank.checked_sub(1);
        let behind = (rank + 1 < size).then_some(rank + 1);
        match rank.cmp(&root) {
            std::cmp::Ordering::Less => InOrder {
                parent: behind,
                left: before,
                right: None,
            },
            std::cmp::Ordering::Equal => InOrder {
                parent: None,
                left: before,
                right: behind,
            },
            std::cmp::Ordering::Greater => InOrder {
                parent: before,
                left: None,
                right: behind,
            },
        }
    }

    /// Returns a rank's position in a tree of two balanced binary search trees below the root.
    pub fn binary(rank: u32, root: u32, size: u32) -> InOrder {
        let (mut top, mut parent, mut all) = (root, None, 0..size);
        while top != rank {
            parent = Some(top);
            all = match rank < top {
                true => all.start..top,
                false => top + 1..all.end,
            };
            top = middle(&all).unwrap_or(rank);
        }
        InOrder {
            parent,
            left: middle(&(all.start..rank)),
            right: middle(&(rank + 1..all.end)),
        }
    }
}

fn middle(ranks: &Range<u32>) -> Option<u32> {
    (!ranks.is_empty()).then(|| ranks.start + (ranks.end - ranks.start) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends the ranks of a subtree from left to right.
    fn walk(tree: &dyn Fn(u32) -> InOrder, rank: u32, out: &mut Vec<u32>) {
        let place = tree(rank);
        for (child, is_left) in [(place.left, true), (place.right, false)] {
            if !is_left {
                out.push(rank);
            }
            if let Some(child) = child {
                assert_eq!(tree(child).parent, Some(rank));
                walk(tree, child, out);
            }
        }
    }

    #[test]
    fn from_left_to_right_the_ranks_are_in_their_order() {
        for size in 1..20 {
            for root in 0..size {
                for shape in [InOrder::chain, InOrder::binary] {
                    let tree = |rank| shape(rank, root, size);
                    assert_eq!(tree(root).parent, None);
                    let mut ranks = Vec::new();
                    walk(&tree, root, &mut ranks);
                    assert!(ranks.into_iter().eq(0..size));
                }
            }
        }
    }
}
