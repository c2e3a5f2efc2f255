//! The binomial tree.
//!
//! Number 0 is its root; a number's parent is that number without its lowest set bit,
//! and the numbers of a subtree are consecutive, so a subtree's blocks are one piece of memory.

use super::turn::Turn;
use std::ops::Range;

/// One member's place in a binomial tree.
#[derive(Clone, Copy, Debug)]
pub struct Binomial {
    turn: Turn,
    number: u32,
}

/// A child and the numbers of its subtree, counted from its parent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    pub rank: u32,
    pub subtree: Range<u32>,
}

impl Binomial {
    pub fn new(rank: u32, root: u32, size: u32) -> Binomial {
        let turn = Turn { size, root };
        Binomial {
            turn,
            number: turn.number(rank),
        }
    }

    /// The parent's rank; the root has none.
    pub fn parent(&self) -> Option<u32> {
        let parent = self.number & self.number.wrapping_sub(1);
        (self.number != 0).then(|| self.turn.rank(parent))
    }

    /// The numbers in this member's own subtree.
    pub fn subtree(&self) -> u32 {
        self.reach().min(self.turn.size - self.number)
    }

    /// The children, the largest subtree first: who has the most to pass on starts first.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = Child> {
        let (turn, number, all) = (self.turn, self.number, self.subtree());
        let steps = self.reach().trailing_zeros();
        (0..steps)
            .rev()
            .map(|s| 1 << s)
            .filter(move |step| *step < all)
            .map(move |step: u32| Child {
                rank: turn.rank(number + step),
                subtree: step..(2 * step).min(all),
            })
    }

    /// The power of two below which this member's children lie.
    fn reach(&self) -> u32 {
        match self.number {
            0 => self.turn.size.next_power_of_two(),
            n => n & n.wrapping_neg(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_children_agree_and_subtrees_cover_everybody_once() {
        for size in 1..20 {
            for root in 0..size {
                let mut covered = vec![0; size as usize];
                for rank in 0..size {
                    let me = Binomial::new(rank, root, size);
                    assert_eq!(me.parent().is_none(), rank == root);
                    let mut below = 1;
                    for child in me.children() {
                        let its = Binomial::new(child.rank, root, size);
                        assert_eq!(its.parent(), Some(rank));
                        assert_eq!(its.subtree(), child.subtree.len() as u32);
                        covered[child.rank as usize] += 1;
                        below += child.subtree.len() as u32;
                    }
                    assert_eq!(me.subtree(), below);
                }
                assert!(
                    covered
                        .iter()
                        .enumerate()
                        .all(|(r, c)| *c == u32::from(r as u32 != root))
                );
            }
        }
    }
}
