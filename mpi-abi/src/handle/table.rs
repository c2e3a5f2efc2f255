//! The table of one kind of object: a vector of slots with a list of the free ones.

use super::{GENERATION_SHIFT, INDEX_MASK, Kind, make};

/// Objects of one kind by handle.
#[derive(Debug)]
pub struct Table<T> {
    kind: Kind,
    slots: Vec<Slot<T>>,
    /// Indices of empty slots; the one freed last is given out next, because its memory is warm.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    /// The handle of the object in the slot, or the last one that was.
    handle: usize,
    value: Option<T>,
}

impl<T> Table<T> {
    pub const fn new(kind: Kind) -> Self {
        Table {
            kind,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Gives an object a handle; none when two to the power of 20 objects of the kind live.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Option<usize> {
        let slot = match self.free.pop() {
            Some(index) => {
                let slot = self.slots.get_mut(index as usize)?;
                let generation = (slot.handle >> GENERATION_SHIFT) as u32;
                slot.handle = make(self.kind, generation.wrapping_add(1), index as usize);
                slot
            }
            None => self.grow()?,
        };
        slot.value = Some(value);
        Some(slot.handle)
    }

    /// An empty slot that has never been given out.
    #[cold]
    fn grow(&mut self) -> Option<&mut Slot<T>> {
        let index = self.slots.len();
        if index > INDEX_MASK {
            return None;
        }
        self.slots.push(Slot {
            handle: make(self.kind, 0, index),
            value: None,
        });
        self.slots.last_mut()
    }

    #[inline]
    pub fn get(&self, handle: usize) -> Option<&T> {
        let slot = self.slots.get(handle & INDEX_MASK)?;
        if slot.handle != handle {
            return None;
        }
        slot.value.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        let slot = self.slots.get_mut(handle & INDEX_MASK)?;
        if slot.handle != handle {
            return None;
        }
        slot.value.as_mut()
    }

    /// Takes an object out; its handle is stale from now on.
    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let index = handle & INDEX_MASK;
        let slot = self.slots.get_mut(index)?;
        if slot.handle != handle {
            return None;
        }
        let value = slot.value.take()?;
        self.free.push(index as u32);
        Some(value)
    }

    /// Handles and objects, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots
            .iter()
            .filter_map(|s| Some((s.handle, s.value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::GENERATION_MASK;
    use super::*;

    #[test]
    fn a_freed_handle_does_not_reach_its_successor() {
        let mut table = Table::new(Kind::Group);
        let first = table.insert("first").unwrap_or(0);
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert("second").unwrap_or(0);
        assert_ne!(first, second);
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&"second"));
    }

    #[test]
    fn a_handle_of_another_kind_finds_nothing() {
        let mut groups = Table::new(Kind::Group);
        let mut infos = Table::new(Kind::Info);
        let group = groups.insert(1).unwrap_or(0);
        let info = infos.insert(2).unwrap_or(0);
        assert_eq!(groups.get(info), None);
        assert_eq!(infos.get(group), None);
        assert_eq!(groups.get(0), None);
        assert_eq!(groups.get(usize::MAX), None);
    }

    #[test]
    fn handles_stay_unlike_for_all_generations_of_a_slot() {
        let mut table = Table::new(Kind::Request);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..=GENERATION_MASK {
            let handle = table.insert(()).unwrap_or(0);
            assert!(seen.insert(handle));
            assert_eq!(table.remove(handle), Some(()));
        }
    }
}
