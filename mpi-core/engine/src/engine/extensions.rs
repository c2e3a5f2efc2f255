//! Storage of an engine for values of the layers above: one value per type.
//!
//! Guarantee: a value is never moved or removed while the engine lives,
//! so references to a value live as long as the engine.
//!
//! The values are in an append-only list of fewer than ten entries, one per layer.
//! No code that sends or receives messages searches the list.

use std::any::{Any, TypeId};
use std::cell::OnceCell;
use std::rc::Rc;

/// The values of one engine.
#[derive(Default)]
pub struct Extensions {
    first: Link,
}

type Link = OnceCell<Box<Entry>>;

struct Entry {
    /// The type of `value`, so that a search calls no function of the values before it.
    id: TypeId,
    value: Rc<dyn Any>,
    next: Link,
}

impl Extensions {
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        std::iter::successors(self.first.get(), |entry| entry.next.get()).map(|entry| &**entry)
    }

    /// Returns the value of type `T`, if it exists.
    pub fn known<T: 'static>(&self) -> Option<&T> {
        self.entry_of::<T>()?.value.downcast_ref()
    }

    fn entry_of<T: 'static>(&self) -> Option<&Entry> {
        let id = TypeId::of::<T>();
        self.entries().find(|entry| entry.id == id)
    }

    /// Returns the value of type `T`; `make` creates it at the first use.
    pub fn get<T: 'static>(&self, make: impl FnOnce() -> T) -> Rc<T> {
        let known = self.entry_of::<T>();
        let known = known.and_then(|entry| entry.value.clone().downcast().ok());
        known.unwrap_or_else(|| {
            // `make` may add other values, which are before this one in the list.
            let made = Rc::new(make());
            self.push(made.clone());
            made
        })
    }

    /// Returns the value of type `T`; the first use creates its default.
    pub fn of_type<T: Default + 'static>(&self) -> &T {
        loop {
            if let Some(known) = self.known() {
                return known;
            }
            self.push(Rc::new(T::default()));
        }
    }

    fn push<T: 'static>(&self, value: Rc<T>) {
        let (id, next) = (TypeId::of::<T>(), Link::new());
        let entry = Box::new(Entry { id, value, next });
        let last = self.entries().last();
        // `set` succeeds: the last entry has no successor.
        let _ = last.map_or(&self.first, |entry| &entry.next).set(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::Extensions;
    use std::rc::Rc;

    #[test]
    fn there_is_one_value_of_each_type() {
        let all = Extensions::default();
        assert_eq!(all.known::<u8>(), None);
        let first = all.get(|| 1_u8);
        let number = all.get(|| u32::from(*all.get(|| 2_u16)) + 1);
        assert!(Rc::ptr_eq(&first, &all.get(|| 9_u8)));
        assert_eq!((*number, all.known::<u16>()), (3, Some(&2)));
        assert_eq!((all.known::<u8>(), all.of_type::<i64>()), (Some(&1), &0));
    }
}
