//! Property tests: the indexes find the same matches as a search of two lists from the front.

use super::key::{FORMS, Key};
use super::posted::Posted;
use super::unexpected::Unexpected;
use mpi_types::status::{ANY_SOURCE, ANY_TAG};
use proptest::prelude::*;

/// The reference implementation without indexes: two lists that are searched from the front.
#[derive(Default)]
struct Reference {
    posted: Vec<(Key, u32)>,
    unexpected: Vec<(Key, u32)>,
}

impl Reference {
    fn arrive(&mut self, message: Key, id: u32) -> Option<u32> {
        match self.posted.iter().position(|(k, _)| k.accepts(message)) {
            Some(at) => Some(self.posted.remove(at).1),
            None => {
                self.unexpected.push((message, id));
                None
            }
        }
    }

    fn post(&mut self, receive: Key, id: u32) -> Option<u32> {
        match self
            .unexpected
            .iter()
            .position(|(k, _)| receive.accepts(*k))
        {
            Some(at) => Some(self.unexpected.remove(at).1),
            None => {
                self.posted.push((receive, id));
                None
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrive(i32, i32),
    Post(i32, i32),
    Probe(i32, i32),
    Cancel(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let source = prop_oneof![4 => 0..3i32, 1 => Just(ANY_SOURCE)];
    let tag = prop_oneof![4 => 0..3i32, 1 => Just(ANY_TAG)];
    prop_oneof![
        5 => (0..3i32, 0..3i32).prop_map(|(s, t)| Event::Arrive(s, t)),
        5 => (source.clone(), tag.clone()).prop_map(|(s, t)| Event::Post(s, t)),
        1 => (source, tag).prop_map(|(s, t)| Event::Probe(s, t)),
        1 => (0..8usize).prop_map(Event::Cancel),
    ]
}

proptest! {
    #[test]
    fn indexes_choose_what_searching_lists_would_choose(events in prop::collection::vec(event(), 0..400)) {
        let mut reference = Reference::default();
        let (mut posted, mut unexpected) = (Posted::default(), Unexpected::default());
        for (id, event) in events.into_iter().enumerate() {
            let id = id as u32;
            match event {
                Event::Arrive(s, t) => {
                    let key = Key::new(s, t);
                    let first = posted.peek(key).copied();
                    let taken = posted.take(key);
                    prop_assert_eq!(first, taken);
                    if taken.is_none() {
                        unexpected.push(key, id);
                    }
                    prop_assert_eq!(taken, reference.arrive(key, id));
                }
                Event::Post(s, t) => {
                    let key = Key::new(s, t);
                    let taken = unexpected.take(key).map(|(_, m)| m);
                    if taken.is_none() {
                        posted.post(key, id);
                    }
                    prop_assert_eq!(taken, reference.post(key, id));
                }
                Event::Probe(s, t) => {
                    let key = Key::new(s, t);
                    let expected = reference.unexpected.iter().find(|(k, _)| key.accepts(*k)).map(|(_, m)| *m);
                    prop_assert_eq!(unexpected.peek(key).map(|(_, m)| *m), expected);
                }
                Event::Cancel(nth) if nth < reference.posted.len() => {
                    let (key, receive) = reference.posted.remove(nth);
                    prop_assert!(posted.remove(key, &receive));
                    prop_assert!(!posted.remove(key, &receive));
                }
                Event::Cancel(_) => {}
            }
            prop_assert_eq!(posted.len(), reference.posted.len());
            prop_assert_eq!(unexpected.len(), reference.unexpected.len());
        }
    }
}

#[test]
fn stale_wildcard_marks_do_not_pile_up() {
    let mut unexpected = Unexpected::default();
    unexpected.push(Key::new(0, 0), 0);
    assert!(unexpected.peek(Key::new(ANY_SOURCE, ANY_TAG)).is_some());
    for id in 0..100_000 {
        unexpected.push(Key::new(1, 1), id);
        assert_eq!(unexpected.take(Key::new(1, 1)).map(|(_, m)| m), Some(id));
        assert!(
            unexpected.stale <= STALE_BOUND,
            "{} stale marks",
            unexpected.stale
        );
    }
}

/// The maximum number of stale index entries:
/// the limit in `unexpected.rs`, the entries of one message, and one entry for each form.
const STALE_BOUND: usize = 1024 + 4 * 2 + FORMS;
