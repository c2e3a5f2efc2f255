//! The matching state of a communicator, one for each [`Plane`] of its messages.

use crate::engine::Engine;
use crate::group::Group;
use crate::pml::{Context, Matching, Plane};
use std::cell::OnceCell;
use std::rc::Rc;

/// The matching state of each plane.
pub(super) struct Planes {
    /// The planes that every communicator uses, indexed by [`Plane`].
    common: [Rc<Matching>; 3],
    /// The planes [`Plane::Announce`], [`Plane::Partition`] and [`Plane::Answer`], created at their first use.
    rare: [OnceCell<Rc<Matching>>; 3],
}

impl Planes {
    /// Creates the matching state of a communicator; the ranks in its messages refer to `peers`.
    pub(super) fn new(engine: &Engine, context: Context, peers: &Group) -> Planes {
        let plane = |plane| engine.pml().matching_among(context.plane(plane), peers);
        Planes {
            common: [
                plane(Plane::User),
                plane(Plane::Collective),
                plane(Plane::Hidden),
            ],
            rare: Default::default(),
        }
    }

    /// Returns the matching state of the program's messages.
    #[inline]
    pub(super) fn user(&self) -> &Rc<Matching> {
        &self.common[Plane::User as usize]
    }

    /// Returns the matching state of one of the planes that every communicator uses.
    #[inline]
    pub(super) fn common(&self, plane: Plane) -> Option<&Rc<Matching>> {
        self.common.get(plane as usize)
    }

    /// Returns the matching state of one of the other planes; `create` creates it at its first use.
    #[cold]
    pub(super) fn rare(
        &self,
        plane: Plane,
        create: impl FnOnce() -> Rc<Matching>,
    ) -> &Rc<Matching> {
        self.rare[plane as usize - Plane::Announce as usize].get_or_init(create)
    }
}
