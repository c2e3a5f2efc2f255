//! Relative ranks: `(rank - root) mod size`. The root has the relative rank 0.

/// The conversion between ranks and relative ranks for a root in a communicator of `size` members.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub size: u32,
    pub root: u32,
}

impl Turn {
    /// Returns the relative rank of a rank: `(rank - root) mod size`.
    pub fn number(self, rank: u32) -> u32 {
        ahead(rank, self.size - self.root % self.size, self.size)
    }

    /// Returns the rank that has the relative rank `number`: `(number + root) mod size`.
    pub fn rank(self, number: u32) -> u32 {
        ahead(number, self.root, self.size)
    }
}

/// Returns `(rank + distance) mod size`. Neither argument may exceed `size`.
pub fn ahead(rank: u32, distance: u32, size: u32) -> u32 {
    ((u64::from(rank) + u64::from(distance)) % u64::from(size)) as u32
}

/// Returns `(rank - distance) mod size`.
pub fn behind(rank: u32, distance: u32, size: u32) -> u32 {
    ahead(rank, size - distance % size, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_there_and_back_is_nothing() {
        for size in 1..10 {
            for root in 0..size {
                let turn = Turn { size, root };
                assert_eq!(turn.number(root), 0);
                for rank in 0..size {
                    assert_eq!(turn.rank(turn.number(rank)), rank);
                    assert_eq!(behind(ahead(rank, root, size), root, size), rank);
                }
            }
        }
    }
}
