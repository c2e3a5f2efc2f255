//! The tree of cascaded boards, for more nodes than one board has pins.
//!
//! One board is the root: its output goes to all nodes. The leaf boards have the nodes' wires,
//! and the output of each board except the root drives one wire of the board above.

/// Maximum number of wires to one board, from nodes or from lower boards.
pub const BOARD_PINS: usize = 60;

/// The tree of nodes and boards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    nodes: usize,
    /// Number of nodes per leaf board; the last leaf board may have fewer.
    share: usize,
    /// For each board the board above and the pin that this board's output drives there.
    /// The last board is the root and has `None`.
    above: Vec<Option<(usize, usize)>>,
    lowest: usize,
}

impl Tree {
    /// Builds the tree of `nodes` nodes on `boards` leaf boards,
    /// with boards above them up to one root.
    pub fn new(nodes: usize, boards: usize) -> Self {
        let boards = boards.max(1);
        let mut above = vec![None; boards];
        let (mut first, mut count) = (0, boards);
        while count > 1 {
            let next = above.len();
            let parents = count.div_ceil(BOARD_PINS);
            for child in 0..count {
                above[first + child] = Some((next + child / BOARD_PINS, child % BOARD_PINS));
            }
            above.resize(next + parents, None);
            (first, count) = (next, parents);
        }
        Self {
            nodes,
            share: nodes.div_ceil(boards),
            above,
            lowest: boards,
        }
    }

    /// Returns the board and the pin at which a node's wire ends.
    pub fn place(&self, node: usize) -> (usize, usize) {
        (node / self.share.max(1), node % self.share.max(1))
    }

    /// Returns the board above and the pin there that a board's output drives; `None` for the root.
    pub fn above(&self, board: usize) -> Option<(usize, usize)> {
        self.above[board]
    }

    /// Returns the number of boards.
    pub fn boards(&self) -> usize {
        self.above.len()
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the number of leaf boards; their indices are the lowest ones.
    pub fn lowest(&self) -> usize {
        self.lowest
    }

    /// Returns the index of the root board.
    pub fn root(&self) -> usize {
        self.above.len() - 1
    }

    /// Returns the number of boards on the path of a level from a node to the root.
    pub fn levels(&self) -> usize {
        std::iter::successors(Some(0), |&board| self.above[board].map(|(above, _)| above)).count()
    }

    /// Returns the number of wires that end at a board.
    pub fn pins(&self, board: usize) -> usize {
        match board < self.lowest {
            true => self
                .share
                .min(self.nodes.saturating_sub(board * self.share)),
            false => self
                .above
                .iter()
                .filter(|above| above.is_some_and(|(parent, _)| parent == board))
                .count(),
        }
    }

    /// Returns the lowest node of a leaf board; for another board, that of its first lower board.
    pub fn first_node(&self, board: usize) -> usize {
        let below = |board: usize| {
            let mut children = self.above.iter().enumerate();
            children.find_map(|(child, above)| {
                above
                    .is_some_and(|(parent, _)| parent == board)
                    .then_some(child)
            })
        };
        let lowest = std::iter::successors(Some(board), |&board| below(board)).last();
        lowest.unwrap_or(0) * self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_boards_hang_under_one() {
        let tree = Tree::new(960, 16);
        assert_eq!(
            (tree.boards(), tree.lowest(), tree.root(), tree.levels()),
            (17, 16, 16, 2)
        );
        assert_eq!(tree.place(959), (15, 59));
        assert_eq!((tree.pins(0), tree.pins(16)), (60, 16));
        assert_eq!((tree.above(3), tree.above(16)), (Some((16, 3)), None));
        assert_eq!((tree.first_node(5), tree.first_node(16)), (300, 0));
    }

    #[test]
    fn more_boards_than_one_takes_need_a_level_more() {
        let tree = Tree::new(61 * 2, 61);
        assert_eq!((tree.boards(), tree.levels()), (61 + 2 + 1, 3));
        assert_eq!(tree.above(60), Some((62, 0)));
        assert_eq!(tree.above(62), Some((63, 1)));
        assert_eq!((tree.pins(61), tree.pins(62), tree.pins(63)), (60, 1, 2));
    }

    #[test]
    fn one_board_is_the_root_of_itself() {
        let tree = Tree::new(7, 1);
        assert_eq!(
            (tree.boards(), tree.root(), tree.levels(), tree.pins(0)),
            (1, 0, 1, 7)
        );
    }

    #[test]
    fn a_last_board_may_have_fewer_nodes() {
        let tree = Tree::new(7, 3);
        assert_eq!([0, 1, 2].map(|board| tree.pins(board)), [3, 3, 1]);
    }
}
