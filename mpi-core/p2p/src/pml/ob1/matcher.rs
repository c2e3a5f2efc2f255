//! The matching state of all contexts: finds the receive for an arriving message.

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
    /// The matching state of the last message's context, which the next message often has, too.
    recent: RefCell<Option<Rc<Matching>>>,
}

impl Matcher {
    /// Returns the matching state of a context, created when a communicator or a message first names it:
    /// a peer may finish creating a communicator, and send on it, before this process does.
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
            .or_insert_with(|| Rc::new(Matching::new(context)))
            .clone();
        *self.recent.borrow_mut() = Some(matching.clone());
        matching
    }

    /// Returns the state of [`Matcher::matching`] for a communicator.
    /// `peers` are the processes to which the ranks in its messages refer.
    pub(super) fn matching_among(&self, context: Context, peers: &Group) -> Rc<Matching> {
        let matching = self.matching(context);
        matching.set_peers(peers);
        matching
    }

    /// Returns the matching state of a context if it exists; unlike `matching`, does not create it.
    pub(super) fn known(&self, context: Context) -> Option<Rc<Matching>> {
        self.contexts.borrow().get(&context).cloned()
    }

    /// Removes the state of a freed context.
    pub(super) fn remove(&self, context: Context) -> Option<Rc<Matching>> {
        let gone = self.contexts.borrow_mut().remove(&context);
        self.recent.borrow_mut().take_if(|m| m.context() == context);
        gone
    }

    /// Takes the posted receive for a message out of its queue.
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

    /// Returns the context of the latest message.
    #[cfg(feature = "testing")]
    pub(super) fn latest_context(&self) -> Option<Context> {
        self.recent.borrow().as_ref().map(|m| m.context())
    }
}

/// Returns true if `from` may have sent an unexpected message:
/// the process that chose the context is in the job,
/// and if this process knows the communicator, `from` has the rank in the message.
pub(super) fn is_plausible(core: &Core, from: ProcId, matching: &Matching, key: Key) -> bool {
    let context = matching.context();
    (context.is_random() || (context.chooser() as usize) < core.links().job_size())
        && matching.may_be_of(key, from)
}
