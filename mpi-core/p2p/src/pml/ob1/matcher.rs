//! The matching state of all contexts, by which an arriving message finds its receive.

use super::core::Core;
use super::matching::{Key, Matching, WordMap};
use crate::btl::ProcId;
use crate::group::Group;
use crate::pml::envelope::Context;
use crate::request::ReqId;
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Default)]
pub(super) struct Matcher {
    contexts: RefCell<WordMap<Context, Rc<Matching>>>,
    /// The matching state of the latest message's context; the next message often has the same context.
    recent: RefCell<Option<Rc<Matching>>>,
    /// Unused matching states of freed contexts, for new contexts.
    spare: RefCell<[Option<Rc<Matching>>; SPARE]>,
}

/// Maximum number of spare matching states: those of two communicators.
const SPARE: usize = 6;

impl Matcher {
    /// Returns the matching state of a context. Creates it at the first call for the context, by a communicator or an arriving message:
    /// a peer may finish the creation of a communicator, and send a message on it, earlier than this process.
    pub(super) fn matching(&self, context: Context) -> Rc<Matching> {
        if let Some(m) = &*self.recent.borrow()
            && m.context() == context
        {
            return m.clone();
        }
        let matching = self
            .contexts
            .borrow_mut()
            .entry(context)
            .or_insert_with(|| self.create(context))
            .clone();
        *self.recent.borrow_mut() = Some(matching.clone());
        matching
    }

    /// Creates the matching state of a context, in the memory of a spare one if possible.
    fn create(&self, context: Context) -> Rc<Matching> {
        let mut spare = self.spare.borrow_mut().iter_mut().find_map(Option::take);
        match spare.as_mut().and_then(Rc::get_mut) {
            Some(unused) => unused.reuse(context),
            None => spare = None,
        }
        spare.unwrap_or_else(|| Rc::new(Matching::new(context)))
    }

    /// Returns the matching state of a communicator's context (see [`Matcher::matching`]) and sets `peers`,
    /// the group to which the ranks in the context's messages refer.
    pub(super) fn matching_among(&self, context: Context, peers: &Group) -> Rc<Matching> {
        let matching = self.matching(context);
        matching.set_peers(peers);
        matching
    }

    /// Returns the matching state of a context if it exists; unlike `matching`, does not create it.
    pub(super) fn known(&self, context: Context) -> Option<Rc<Matching>> {
        self.contexts.borrow().get(&context).cloned()
    }

    /// Removes the matching state of a freed context, and returns it if it was used.
    pub(super) fn remove(&self, context: Context) -> Option<Rc<Matching>> {
        let gone = self.contexts.borrow_mut().remove(&context)?;
        self.recent.borrow_mut().take_if(|m| m.context() == context);
        if gone.is_used() {
            return Some(gone);
        }
        let mut spare = self.spare.borrow_mut();
        if let Some(slot) = spare.iter_mut().find(|slot| slot.is_none()) {
            gone.forget_peers();
            *slot = Some(gone);
        }
        None
    }

    /// Removes the receive that a message matches from its queue and returns the receive.
    #[inline(always)]
    pub(super) fn take_posted(&self, context: Context, key: Key) -> Option<ReqId> {
        let recent = self.recent.borrow();
        match &*recent {
            Some(matching) if matching.context() == context => matching.take_posted(key),
            _ => {
                drop(recent);
                self.take_elsewhere(context, key)
            }
        }
    }

    /// Implements [`Matcher::take_posted`] for a message whose context differs from that of the previous message.
    #[inline(never)]
    fn take_elsewhere(&self, context: Context, key: Key) -> Option<ReqId> {
        self.matching(context).take_posted(key)
    }

    /// Returns the context of the message that arrived last.
    #[cfg(feature = "testing")]
    pub(super) fn latest_context(&self) -> Option<Context> {
        self.recent.borrow().as_ref().map(|m| m.context())
    }
}

/// Returns true if `from` can be the sender of an unexpected message:
/// the context was chosen by a process of this job or at random,
/// and `from` has the message's source rank in the communicator, or this process does not know the communicator yet.
pub(super) fn is_plausible(core: &Core, from: ProcId, matching: &Matching, key: Key) -> bool {
    let context = matching.context();
    (context.is_random() || (context.chooser() as usize) < core.links().job_size())
        && matching.may_be_of(key, from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reused matching state must not accept messages of the peers of its previous communicator.
    #[test]
    fn an_unused_matching_state_is_used_again_without_its_peers() {
        let matcher = Matcher::default();
        let contexts = [1, 2, 3].map(|number| Context::new(0, number));
        let key = Key::new(1, 0);
        let first = matcher.matching_among(contexts[0], &Group::range(0, 2));
        assert_eq!(first.names(key), Some(1));
        let address = Rc::as_ptr(&first);
        assert!(matcher.remove(contexts[0]).is_none());
        let other = matcher.matching_among(contexts[1], &Group::range(0, 2));
        assert_ne!(Rc::as_ptr(&other), address, "still referenced");
        drop(first);

        assert!(matcher.remove(contexts[1]).is_none());
        let address = Rc::as_ptr(&other);
        drop(other);
        let again = matcher.matching(contexts[2]);
        assert_eq!(Rc::as_ptr(&again), address);
        assert_eq!(again.names(key), None);
        assert!(matcher.known(contexts[1]).is_none());

        again.post(key, ReqId(0));
        assert_eq!(matcher.take_posted(contexts[2], key), Some(ReqId(0)));
        assert!(
            matcher.remove(contexts[2]).is_some(),
            "a receive was posted"
        );
    }
}
