//! Map with ascending keys; [`Ledger::remove`] frees a value, and its key is not assigned again.
//!
//! A program may spawn jobs for days, so the records of a job are removed when the job has ended.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// The values that have not been removed, by key.
#[derive(Debug)]
pub struct Ledger<T> {
    next: usize,
    values: BTreeMap<usize, T>,
}

impl<T> Default for Ledger<T> {
    fn default() -> Ledger<T> {
        Ledger {
            next: 0,
            values: BTreeMap::new(),
        }
    }
}

impl<T> Ledger<T> {
    /// Returns the key of the next value, which equals the number of values added so far.
    pub fn next(&self) -> usize {
        self.next
    }

    /// Adds a value; returns its key.
    pub fn push(&mut self, value: T) -> usize {
        let number = self.next;
        self.values.insert(number, value);
        self.next += 1;
        number
    }

    /// Removes the last value as if it had never been added; its key is assigned again.
    pub fn take_back(&mut self) -> Option<T> {
        let last = self.next.checked_sub(1)?;
        let value = self.values.remove(&last)?;
        self.next = last;
        Some(value)
    }

    /// Returns the value of a key, unless it was removed.
    pub fn get(&self, number: usize) -> Option<&T> {
        self.values.get(&number)
    }

    /// Returns the value of a key mutably, unless it was removed.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.values.get_mut(&number)
    }

    /// Removes and returns the value of a key.
    pub fn remove(&mut self, number: usize) -> Option<T> {
        self.values.remove(&number)
    }

    /// Returns the remaining values with their keys, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.values.iter().map(|(number, value)| (*number, value))
    }

    /// Returns the remaining values mutably, in ascending order of keys.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.values_mut()
    }

    /// Returns true if any value was removed.
    pub fn has_forgotten(&self) -> bool {
        self.values.len() < self.next
    }
}

/// Access by keys whose values are known to be present; panics if the value was removed.
impl<T> Index<usize> for Ledger<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.values[&number]
    }
}

impl<T> IndexMut<usize> for Ledger<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        match self.values.get_mut(&number) {
            Some(value) => value,
            None => panic!("number {number} was taken out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_never_comes_again() {
        let mut ledger = Ledger::default();
        assert_eq!((ledger.push('a'), ledger.push('b')), (0, 1));
        assert_eq!(ledger.remove(1), Some('b'));
        assert!(ledger.has_forgotten());
        assert_eq!(ledger.push('c'), 2);
        assert_eq!((ledger.get(1), ledger[2], ledger.next()), (None, 'c', 3));
        assert_eq!(ledger.iter().collect::<Vec<_>>(), [(0, &'a'), (2, &'c')]);
    }

    #[test]
    fn only_a_value_that_is_taken_back_gives_its_number_away() {
        let mut ledger = Ledger::default();
        ledger.push('a');
        ledger.push('b');
        assert_eq!(ledger.take_back(), Some('b'));
        assert_eq!(ledger.push('c'), 1);
        ledger.remove(1);
        assert_eq!((ledger.take_back(), ledger.next()), (None, 2));
    }
}
