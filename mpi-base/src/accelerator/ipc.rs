//! Cache of other processes' device memory that is open in this process.
//!
//! Opening an IPC handle takes longer than most copies, so allocations stay open.
//! The key of an allocation is its process, buffer ID and handle:
//! an address is reused after a free, a buffer ID is not.
//! An open allocation that overlaps a newer one of its process was freed,
//! and is closed before the newer one is opened.

use super::Export;

/// Maximum number of open allocations.
const MOST: usize = 32;

/// An allocation of another process that is open in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// The number that identifies this mapping in [`Mappings::release`].
    pub number: u64,
    owner: u64,
    context: usize,
    export: Export,
    /// The address of the allocation in this process.
    pub at: u64,
    /// Number of copies in flight that use this mapping.
    users: u32,
    last_use: u64,
}

/// All allocations of other processes that are open in this process.
#[derive(Default)]
pub(super) struct Mappings {
    all: Vec<Mapping>,
    count: u64,
}

impl Mappings {
    pub const fn new() -> Mappings {
        Mappings {
            all: Vec::new(),
            count: 0,
        }
    }

    /// Returns the mapping of an exported allocation with one more user; `None` if it is not open.
    pub fn lease(&mut self, owner: u64, context: usize, export: &Export) -> Option<Mapping> {
        self.count += 1;
        let is_same = |known: &&mut Mapping| {
            let of = &known.export;
            (known.owner, known.context) == (owner, context)
                && (of.buffer, of.base, of.size) == (export.buffer, export.base, export.size)
                && of.handle == export.handle
        };
        let known = self.all.iter_mut().find(is_same)?;
        known.users += 1;
        known.last_use = self.count;
        Some(*known)
    }

    /// Removes and returns the mappings that must be closed before `export` is opened.
    /// `None` if a copy in flight uses one of them; then the allocation cannot be opened now.
    pub fn make_way(&mut self, owner: u64, export: &Export) -> Option<Vec<Mapping>> {
        let is_stale = |known: &Mapping| {
            let of = &known.export;
            let is_same = of.buffer == export.buffer && of.handle == export.handle;
            known.owner == owner && !is_same && of.overlaps(export.base, export.size)
        };
        if self
            .all
            .iter()
            .any(|known| is_stale(known) && known.users > 0)
        {
            return None;
        }
        let mut closed: Vec<Mapping> = self.all.extract_if(.., |known| is_stale(known)).collect();
        if self.all.len() >= MOST {
            let idle = self.all.iter().filter(|known| known.users == 0);
            let oldest = idle.min_by_key(|known| known.last_use)?.number;
            closed.extend(self.all.extract_if(.., |known| known.number == oldest));
        }
        Some(closed)
    }

    /// Adds the mapping of an allocation just opened, with one user, and returns the mapping.
    pub fn add(&mut self, owner: u64, context: usize, export: &Export, at: u64) -> Mapping {
        self.count += 1;
        let mapping = Mapping {
            number: self.count,
            owner,
            context,
            export: *export,
            at,
            users: 1,
            last_use: self.count,
        };
        self.all.push(mapping);
        mapping
    }

    /// Subtracts one user (a copy that has ended) from the mapping `number`.
    pub fn release(&mut self, number: u64) {
        if let Some(known) = self.all.iter_mut().find(|known| known.number == number) {
            known.users = known.users.saturating_sub(1);
        }
    }

    /// Removes and returns all allocations.
    pub fn take_all(&mut self) -> Vec<Mapping> {
        std::mem::take(&mut self.all)
    }
}

impl Mapping {
    /// Returns the context in which the allocation was opened.
    pub fn context(&self) -> usize {
        self.context
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(buffer: u64, base: u64) -> Export {
        Export {
            handle: [buffer as u8; 64],
            buffer,
            base,
            size: 100,
            offset: 0,
        }
    }

    #[test]
    fn an_allocation_stays_open_until_its_address_is_used_again() {
        let mut all = Mappings::new();
        let (old, new, other) = (export(1, 1000), export(2, 1050), export(3, 5000));
        assert!(all.lease(9, 0, &old).is_none());
        let first = all.add(9, 0, &old, 1 << 40);
        all.add(9, 0, &other, 2 << 40);
        assert_eq!(all.lease(9, 0, &old).map(|m| m.at), Some(1 << 40));
        // An export differs if its process, its context or its allocation differs.
        assert!(all.lease(8, 0, &old).is_none());
        assert!(all.lease(9, 1, &old).is_none());
        assert!(all.lease(9, 0, &new).is_none());
        // Two copies use the mapping.
        assert_eq!(all.make_way(9, &new), None);
        all.release(first.number);
        all.release(first.number);
        let closed = all.make_way(9, &new).unwrap_or_default();
        assert_eq!(closed.iter().map(|m| m.at).collect::<Vec<_>>(), [1 << 40]);
        // Overlapping addresses in another process belong to another allocation.
        assert_eq!(all.make_way(8, &other).map(|closed| closed.len()), Some(0));
    }

    #[test]
    fn of_too_many_the_one_that_was_not_used_for_longest_is_closed() {
        let mut all = Mappings::new();
        for n in 0..MOST as u64 {
            let mapping = all.add(1, 0, &export(n, n * 100), n);
            all.release(mapping.number);
        }
        all.lease(1, 0, &export(0, 0));
        let closed = all.make_way(1, &export(99, 1 << 30)).unwrap_or_default();
        assert_eq!(closed.iter().map(|m| m.at).collect::<Vec<_>>(), [1]);
    }
}
