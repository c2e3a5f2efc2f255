//! Load balancing of oversubscribed ranks over the cores of their node.
//!
//! When a job starts, or another program needs a core, the kernel may put 12 of 16 ranks on one of two cores;
//! it corrects this only after some hundred milliseconds.
//! Until then every operation takes as long as 12 context switches instead of 8.
//! So a waiting rank publishes its core from time to time, and reads the cores of the other ranks on its node.
//! If there are at least two ranks more on its core than on another core of its affinity mask, it migrates there.
//! A migration does not change the affinity mask.
//! The ranks of one core check one after another, so each sees the migrations of the earlier ones.
//!
//! A sleeping rank is counted on no core, a rank that computes on the core on which it last waited.
//! If the kernel moves the ranks back, for example for another program,
//! they wait longer before each further migration ([`Moves`]).

use mpi_base::cpu::processors;
use mpi_base::mem::Held;
use mpi_base::migrate::{self, Moves};
use mpi_base::node::{Node, NodeError};
use mpi_base::state::StatePage;
use std::cell::{Cell, RefCell};
use std::time::Instant;

/// Number of yields between two checks: `SOON` at first and after a migration.
/// Each check without a migration doubles the interval, up to `RARELY` (about 10 ms).
/// A check reads one cache line per rank, which other cores own; with 16 ranks, an interval of 512 made each operation 2 % slower.
const SOON: u32 = 8;
const RARELY: u32 = 2048;

/// Maximum number of yields until the first check of a rank that has slept;
/// until this check the rank is counted on no core.
const AWAKE: u32 = 64;

/// The state of one rank's load balancing.
pub struct Balance {
    /// The state pages of all ranks of the node.
    pages: Box<[Held<StatePage>]>,
    me: usize,
    /// The interval between two checks in yields, and the yields left until the next check.
    every: Cell<u32>,
    left: Cell<u32>,
    moves: Cell<Moves>,
    /// The cores in this process's affinity mask, as last read.
    mask: RefCell<Vec<usize>>,
}

impl Balance {
    pub fn of(node: &Node) -> Result<Balance, NodeError> {
        let pages = (0..node.nlocal()).map(|rank| node.state(rank));
        Ok(Balance {
            pages: pages.collect::<Result<_, _>>()?,
            me: node.rank() as usize,
            every: Cell::new(SOON),
            left: Cell::new(SOON),
            moves: Cell::new(Moves::NEW),
            mask: RefCell::new(processors().unwrap_or_default()),
        })
    }

    /// Counts a yield of this rank, which waits; checks the other ranks if the interval has passed.
    #[inline(always)]
    pub fn waits(&self) {
        match self.left.get() {
            0 => self.look(rustix::thread::sched_getcpu()),
            left => self.left.set(left - 1),
        }
    }

    /// Publishes that this rank is about to sleep and is on no core.
    pub fn sleeps(&self) {
        self.tell(None);
        self.left.set(self.left.get().min(AWAKE));
    }

    #[cold]
    fn look(&self, core: usize) {
        let every = (2 * self.every.get()).min(RARELY);
        self.every.set(every);
        self.left.set(every);
        self.tell(Some(core));
        let cores: Vec<usize> = self.pages.iter().filter_map(|page| core_of(page)).collect();
        let Some(to) = roomier(&cores, core, &self.mask.borrow(), self.me) else {
            return;
        };
        let (mut moves, now) = (self.moves.get(), Instant::now());
        if moves.may(now) {
            moves.count(now);
            self.moves.set(moves);
            self.every.set(SOON);
            self.left.set(SOON);
            match migrate::to(to) {
                true => self.tell(Some(to)),
                // The affinity mask has been changed, for example by another process, so it is read again.
                false => *self.mask.borrow_mut() = processors().unwrap_or_default(),
            }
        }
    }

    fn tell(&self, core: Option<usize>) {
        let core = core.and_then(|core| u32::try_from(core).ok());
        // The value is stored only if it has changed, so that the readers keep the cache line.
        if let Some(mine) = self.pages.get(self.me)
            && mine.core() != core
        {
            mine.waits_on(core);
        }
    }
}

/// Returns the core that a rank has published, if its number can be in an affinity mask.
fn core_of(page: &StatePage) -> Option<usize> {
    let core = page.core().map(|core| core as usize);
    core.filter(|core| *core < rustix::thread::CpuSet::MAX_CPU)
}

/// Returns the core of the mask with the fewest ranks, if core `mine` has at least two more; `turn` selects among equal cores.
///
/// `cores` contains the core of each rank that is counted on a core.
fn roomier(cores: &[usize], mine: usize, mask: &[usize], turn: usize) -> Option<usize> {
    let last = cores.iter().chain(mask).max()?;
    let mut ranks = vec![0usize; last + 1];
    cores.iter().for_each(|core| ranks[*core] += 1);
    let ranks_on = |core: usize| ranks.get(core).copied().unwrap_or(0);
    let fewest = mask.iter().map(|core| ranks_on(*core)).min()?;
    // With a difference of one, a migration would only exchange the loads of the cores.
    if ranks_on(mine) < fewest + 2 {
        return None;
    }
    let best: Vec<usize> = mask
        .iter()
        .copied()
        .filter(|core| ranks_on(*core) == fewest)
        .collect();
    best.get(turn % best.len()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rank_leaves_a_core_with_two_ranks_more_than_another() {
        let go = |cores: &[usize], mine, mask: &[usize]| roomier(cores, mine, mask, 0);
        assert_eq!(go(&[0, 0, 0, 1], 0, &[0, 1]), Some(1));
        assert_eq!(go(&[0, 0, 1], 0, &[0, 1]), None);
        assert_eq!(go(&[0, 0, 0, 1], 1, &[0, 1]), None);
        // A core without ranks is chosen first.
        assert_eq!(go(&[0, 0, 1], 0, &[0, 1, 2]), Some(2));
        // A rank bound to one core does not migrate.
        assert_eq!(go(&[0, 0, 0, 0], 0, &[0]), None);
        assert_eq!(go(&[0, 0, 0, 0], 0, &[]), None);
    }

    #[test]
    fn several_go_to_different_cores() {
        let cores = [0; 8];
        let to: Vec<_> = (0..6)
            .map(|turn| roomier(&cores, 0, &[0, 3, 5, 7], turn))
            .collect();
        assert_eq!(to, [3, 5, 7, 3, 5, 7].map(Some));
    }

    /// Publishes `cores` for the ranks of a node and lets rank 0 check `looks` times. Returns the core that rank 0 has then.
    fn after_looks(cores: &[Option<u32>], looks: usize) -> Option<usize> {
        let fd = Node::create(cores.len() as u32).unwrap();
        let attach = |rank| Node::attach(&fd, rank).unwrap();
        let nodes: Vec<Node> = (0..cores.len() as u32).map(attach).collect();
        for (node, core) in nodes.iter().zip(cores) {
            node.state(node.rank()).unwrap().waits_on(*core);
        }
        let even = Balance::of(&nodes[0]).unwrap();
        let here = || core_of(&nodes[0].state(0).unwrap());
        for _ in 0..looks {
            even.look(here().unwrap());
        }
        here()
    }

    #[test]
    fn a_rank_goes_to_the_free_core_and_stays_there() {
        let mine = processors().unwrap();
        let [first, second, ..] = mine[..] else {
            return;
        };
        let [first, second] = [first, second].map(|core| Some(core as u32));
        let other = |core: Option<usize>| assert_ne!(core, first.map(|first| first as usize));
        other(after_looks(&[first; 4], 1));
        other(after_looks(&[first; 4], 5));
        // Two sleeping ranks are counted on no core, so the other two are balanced and stay.
        if mine.len() == 2 {
            let even = after_looks(&[first, second, None, None], 5);
            assert_eq!(even, first.map(|first| first as usize));
        }
    }

    #[test]
    fn checks_become_rarer_while_there_is_nothing_to_move() {
        let fd = Node::create(1).unwrap();
        let even = Balance::of(&Node::attach(&fd, 0).unwrap()).unwrap();
        let told = || even.pages[0].core().is_some();
        let mut between = Vec::new();
        let until_told = || {
            let waits = (0..).find(|_| {
                even.waits();
                told()
            });
            waits.unwrap()
        };
        for _ in 0..10 {
            even.tell(None);
            between.push(until_told());
        }
        assert_eq!(between, [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 2048]);
        // A rank that has slept checks earlier, since it must soon be counted on a core again.
        even.sleeps();
        assert!(!told());
        assert_eq!(until_told(), AWAKE);
    }

    proptest! {
        /// From any placement, ranks that check one after another reach a balanced placement and keep it.
        #[test]
        fn it_ends_evenly(
            mut cores in prop::collection::vec(0usize..6, 1..80),
            used in 1usize..6,
        ) {
            let mask: Vec<usize> = (0..used).map(|core| 2 * core).collect();
            cores.iter_mut().for_each(|core| *core = mask[*core % used]);
            let mut moved = 0;
            for round in 0.. {
                let before = moved;
                for rank in 0..cores.len() {
                    if let Some(to) = roomier(&cores, cores[rank], &mask, rank) {
                        cores[rank] = to;
                        moved += 1;
                    }
                }
                if moved == before {
                    break;
                }
                prop_assert!(round < 2, "they go on moving");
            }
            let ranks_on = |core: &usize| cores.iter().filter(|other| *other == core).count();
            let (fewest, most) = (mask.iter().map(ranks_on).min(), mask.iter().map(ranks_on).max());
            prop_assert!(most <= fewest.map(|fewest| fewest + 1));
            prop_assert!(moved <= cores.len());
        }
    }
}
