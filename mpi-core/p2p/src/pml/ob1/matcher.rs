//! The matching state of all contexts, and the way of a message to the receive that waits for it.

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
    /// The context of the last message; most messages come in runs.
    recent: RefCell<Option<Rc<Matching>>>,
}

impl Matcher {
    /// The matching state of a context, made when either a communicator or a message first names it:
    /// a peer may finish making a communicator, and send on it, before this process does.
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

    /// The same for a communicator; `peers` are those that ranks in its messages name.
    pub(super) fn matching_among(&self, context: Context, peers: &Group) -> Rc<Matching> {
        let matching = self.matching(context);
        matching.set_peers(peers);
        matching
    }

    /// The matching state of a context that has been named before.
    pub(super) fn known(&self, context: Context) -> Option<Rc<Matching>> {
        self.contexts.borrow().get(&context).cloned()
    }

    /// Takes the state of a freed context out.
    pub(super) fn remove(&self, context: Context) -> Option<Rc<Matching>> {
        let gone = self.contexts.borrow_mut().remove(&context);
        self.recent.borrow_mut().take_if(|m| m.context() == context);
        gone
    }

    /// Takes the receive for a message out of its queue.
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

    /// Takes the receive for a message in another context than that of the message before.
    #[inline(never)]
    fn take_elsewhere(&self, context: Context, key: Key) -> Option<ReqId> {
        self.matching(context).take_posted(key)
    }

    /// The context of the latest message.
    #[cfg(feature = "testing")]
    pub(super) fn latest_context(&self) -> Option<Context> {
        self.recent.borrow().as_ref().map(|m| m.context())
    }
}

/// Whether a message that no receive waits for can be one of `from`'s: its context is of a process of the job,
/// and if this process knows the communicator, `from` has the rank that the message names.
pub(super) fn is_plausible(core: &Core, from: ProcId, matching: &Matching, key: Key) -> bool {
    let context = matching.context();
    (context.is_random() || (context.chooser() as usize) < core.links().job_size())
        && matching.may_be_of(key, from)
}
