//! Handle table for one kind of object: a vector of slots with a free list.

use crate::origin::{self, Origin};

use super::{FIRST_REQUESTS, GENERATION_SHIFT, INDEX_MASK, KIND_SHIFT, Kind, MORE_REQUESTS, make};

/// The objects of one kind, indexed by handle.
#[derive(Debug)]
pub struct Table<T> {
    kind: Kind,
    slots: Vec<Slot<T>>,
    /// Indices of free slots, a stack: the last freed slot is still in the cache.
    free: Vec<u32>,
    /// For each slot, the program's call that created the object.
    /// The vector is empty unless origins are recorded.
    origins: Vec<Origin>,
}

#[derive(Debug)]
struct Slot<T> {
    /// The handle of the object in the slot, or of the last removed object.
    handle: usize,
    value: Option<T>,
}

impl<T> Table<T> {
    pub const fn new(kind: Kind) -> Self {
        Table {
            kind,
            slots: Vec::new(),
            free: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Inserts an object and returns its handle.
    /// Returns `None` if 2^20 objects of the kind exist (requests: 2^19 + 2^22).
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Option<usize> {
        let slot = match self.free.pop() {
            Some(index) => {
                let slot = self.slots.get_mut(index as usize)?;
                let generation = (slot.handle >> GENERATION_SHIFT) as u32;
                let of_slot = slot.handle & !super::GENERATIONS;
                slot.handle = of_slot | make_generation(generation.wrapping_add(1));
                slot
            }
            None => self.grow()?,
        };
        slot.value = Some(value);
        let handle = slot.handle;
        if origin::is_kept() {
            self.note_origin(handle);
        }
        Some(handle)
    }

    #[cold]
    fn note_origin(&mut self, handle: usize) {
        let slot = slot_of(handle);
        if self.origins.len() <= slot {
            self.origins.resize(slot + 1, Origin::default());
        }
        self.origins[slot] = origin::here();
    }

    /// Returns the program's call that created the object, if its address was recorded.
    pub fn origin(&self, handle: usize) -> Option<Origin> {
        let origin = self.origins.get(slot_of(handle)).copied();
        origin.filter(|origin| origin.address != 0)
    }

    /// Appends a slot that has never been used.
    #[cold]
    fn grow(&mut self) -> Option<&mut Slot<T>> {
        let handle = first_handle(self.kind, self.slots.len())?;
        self.slots.push(Slot {
            handle,
            value: None,
        });
        self.slots.last_mut()
    }

    #[inline]
    pub fn get(&self, handle: usize) -> Option<&T> {
        let slot = self.slots.get(slot_of(handle))?;
        if slot.handle != handle {
            return None;
        }
        slot.value.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        let slot = self.slots.get_mut(slot_of(handle))?;
        if slot.handle != handle {
            return None;
        }
        slot.value.as_mut()
    }

    /// Removes an object. The handle becomes stale.
    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let index = slot_of(handle);
        let slot = self.slots.get_mut(index)?;
        if slot.handle != handle {
            return None;
        }
        let value = slot.value.take()?;
        self.free.push(index as u32);
        Some(value)
    }

    /// Iterates over handles and objects in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots
            .iter()
            .filter_map(|s| Some((s.handle, s.value.as_ref()?)))
    }
}

/// Returns the handle of the first object in a slot, or `None` if the slot is out of range.
fn first_handle(kind: Kind, slot: usize) -> Option<usize> {
    if kind == Kind::Request && slot >= FIRST_REQUESTS {
        let further = slot - FIRST_REQUESTS;
        let page = MORE_REQUESTS.start() + (further >> GENERATION_SHIFT);
        let handle = page << KIND_SHIFT | further & INDEX_MASK;
        return MORE_REQUESTS.contains(&page).then_some(handle);
    }
    (slot <= INDEX_MASK).then(|| make(kind, 0, slot))
}

/// Returns the slot index of a handle of any kind.
#[inline]
fn slot_of(handle: usize) -> usize {
    let page = handle >> KIND_SHIFT;
    match page < *MORE_REQUESTS.start() {
        true => handle & INDEX_MASK,
        false => {
            let further = (page - MORE_REQUESTS.start()) << GENERATION_SHIFT;
            FIRST_REQUESTS + (further | handle & INDEX_MASK)
        }
    }
}

/// Shifts a generation to its bits in a handle.
#[inline]
fn make_generation(generation: u32) -> usize {
    (generation as usize) << GENERATION_SHIFT & super::GENERATIONS
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
    fn four_million_requests_live_at_once_and_each_is_found() {
        let mut table = Table::new(Kind::Request);
        let count = FIRST_REQUESTS + (4 << GENERATION_SHIFT);
        let handles: Vec<usize> = (0..count).map(|n| table.insert(n).unwrap_or(0)).collect();
        assert_eq!(table.insert(count), None);
        for n in (0..count)
            .step_by(4099)
            .chain([FIRST_REQUESTS - 1, FIRST_REQUESTS, count - 1])
        {
            assert_eq!(table.get(handles[n]), Some(&n));
            assert_eq!(Kind::of(handles[n]), Some(Kind::Request));
            assert!(i32::try_from(handles[n]).is_ok(), "no INTEGER of Fortran");
        }
        let last = handles[count - 1];
        assert_eq!(table.remove(last), Some(count - 1));
        let again = table.insert(0).unwrap_or(0);
        assert_ne!(again, last);
        assert_eq!((table.get(last), table.get(again)), (None, Some(&0)));
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
