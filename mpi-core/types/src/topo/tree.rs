//! K-nomial trees; a tree of radix 2 is a binomial tree.
//!
//! The nodes of the tree are relative ranks ([`Turn`]). The root has the relative rank 0.
//! The parent of a relative rank is the same number with its lowest
//! nonzero digit set to 0 (digits in the tree's radix).
//! The relative ranks of a subtree are consecutive,
//! so the blocks of its members are contiguous in a buffer.

use super::turn::Turn;
use std::ops::Range;

/// The position of one member in a k-nomial tree.
#[derive(Clone, Copy, Debug)]
pub struct Knomial {
    turn: Turn,
    number: u32,
    radix: u32,
    /// The number of trailing zero digits of this member's relative rank.
    /// The relative ranks of its descendants differ from it in these digits only.
    digits: u32,
}

/// A child of a member, and the range of the child's subtree,
/// relative to the member's relative rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    pub rank: u32,
    pub subtree: Range<u32>,
}

impl Knomial {
    /// Creates the tree in which a parent has up to `radix - 1` children for each digit.
    /// A radix below 2 counts as 2.
    pub fn new(rank: u32, root: u32, size: u32, radix: u32) -> Knomial {
        let (turn, radix) = (Turn { size, root }, radix.max(2));
        let number = turn.number(rank);
        let mut digits = 0;
        let mut reach = 1;
        while reach < u64::from(size) && u64::from(number).is_multiple_of(reach * u64::from(radix))
        {
            reach *= u64::from(radix);
            digits += 1;
        }
        Knomial {
            turn,
            number,
            radix,
            digits,
        }
    }

    pub fn binomial(rank: u32, root: u32, size: u32) -> Knomial {
        Knomial::new(rank, root, size, 2)
    }

    /// Returns the conversion between ranks and relative ranks.
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// Returns the distance of siblings that differ by 1 in this digit.
    fn step(&self, digit: u32) -> u64 {
        u64::from(self.radix).pow(digit)
    }

    /// Returns the parent's rank; `None` for the root.
    pub fn parent(&self) -> Option<u32> {
        if self.number == 0 {
            return None;
        }
        let above = self.step(self.digits + 1);
        let parent = u64::from(self.number) / above * above;
        Some(self.turn.rank(parent as u32))
    }

    /// Returns the number of members in this member's subtree, including this member.
    pub fn subtree(&self) -> u32 {
        let left = self.turn.size - self.number;
        u64::from(left).min(self.step(self.digits)) as u32
    }

    /// Returns the children, the farthest and largest subtree first,
    /// because that child has the most data to forward.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = Child> {
        let (me, all) = (*self, u64::from(self.subtree()));
        (0..self.digits).rev().flat_map(move |digit| {
            let step = me.step(digit);
            (1..u64::from(me.radix))
                .rev()
                .map(move |times| times * step)
                .filter(move |distance| *distance < all)
                .map(move |distance| Child {
                    rank: me.turn.rank(me.number + distance as u32),
                    subtree: distance as u32..(distance + step).min(all) as u32,
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: u32, root: u32, radix: u32) {
        let mut covered = vec![0; size as usize];
        for rank in 0..size {
            let me = Knomial::new(rank, root, size, radix);
            assert_eq!(me.parent().is_none(), rank == root);
            let mut below = 1;
            // From the last child to the first, the subtrees are consecutive without a gap.
            for child in me.children().rev() {
                let its = Knomial::new(child.rank, root, size, radix);
                assert_eq!(its.parent(), Some(rank));
                assert_eq!(its.subtree(), child.subtree.len() as u32);
                assert_eq!(child.subtree.start, below);
                covered[child.rank as usize] += 1;
                below = child.subtree.end;
            }
            assert_eq!(me.subtree(), below);
        }
        let once = |(rank, count): (usize, &u32)| *count == u32::from(rank as u32 != root);
        assert!(covered.iter().enumerate().all(once));
    }

    #[test]
    fn parents_and_children_agree_and_subtrees_cover_everybody_once() {
        for size in 1..20 {
            for root in 0..size {
                for radix in 2..6 {
                    check(size, root, radix);
                }
            }
        }
    }
}
