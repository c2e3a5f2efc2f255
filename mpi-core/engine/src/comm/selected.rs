//! The components selected for a communicator, their fast calls, and the purpose of the communicator.
#![allow(unsafe_code)]

use super::{Collectives, Comm, FastCarrier, Unserved};
use crate::Error;
use crate::coll::{CallId, FastCall};
use crate::datatype::RecvBytes;
use crate::request::Running;
use mpi_base::atomic::prefetch_value;
use std::rc::Rc;

/// Why a communicator was created: for the program, or by a component.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    #[default]
    Program,
    /// Created at the start for later duplicates (see [`spares`](super::spares)).
    Spare,
    /// Created by a component for steps of calls on another communicator.
    Steps,
}

/// The selected components, and their fast calls.
pub(super) struct Table {
    components: Box<dyn Collectives>,
    /// True if a later communicator can use the components; the same on all members.
    reusable: bool,
    /// For each [`CallId`], the maximum size in bytes of fast calls that are accepted,
    /// or [`NOTHING`].
    fast_call_limits: [i64; CallId::ALL.len()],
    /// Same as `fast_call_limits`, for fast calls that start requests.
    fast_request_limits: [i64; CallId::ALL.len()],
    /// For each [`CallId`], the carrier of its fast calls;
    /// [`NoComponent`] if there are none.
    fast_carriers: [Rc<dyn FastCarrier>; CallId::ALL.len()],
}

/// The words of a member in [`Table::share_words`].
pub(super) type Words = [u64; 5];

/// Maximum number of members of [`Table::share_words`].
pub(super) const SHARING: usize = 8;

/// The limit if no fast calls are accepted: less than the size of any call.
const NOTHING: i64 = -1;

/// Carrier that fails, for collectives without fast calls.
struct NoComponent;

impl FastCarrier for NoComponent {
    unsafe fn carry_out(&self, comm: &Comm, fast_call: &FastCall<'_>) -> Result<(), Error> {
        Err(Unserved::on(comm, fast_call.id()))
    }
}

impl Table {
    pub(super) fn new(components: Box<dyn Collectives>) -> Table {
        let no_component: Rc<dyn FastCarrier> = Rc::new(NoComponent);
        let mut fast_call_limits = [NOTHING; CallId::ALL.len()];
        let mut fast_request_limits = fast_call_limits;
        let bytes = |limit: usize| limit.min(i64::MAX as usize) as i64;
        let fast_carriers = CallId::ALL.map(|call| match components.fast_slot(call) {
            Some(slot) => {
                fast_call_limits[call as usize] = bytes(slot.limit);
                fast_request_limits[call as usize] = slot.limit_of_requests.map_or(NOTHING, bytes);
                slot.carrier
            }
            None => no_component.clone(),
        });
        Table {
            reusable: components.is_reusable(),
            components,
            fast_call_limits,
            fast_request_limits,
            fast_carriers,
        }
    }

    /// Returns true if a fast call of this size is accepted.
    #[inline(always)]
    pub(super) fn accepts(&self, call: CallId, bytes: usize) -> bool {
        bytes as i64 <= self.fast_call_limits[call as usize]
    }

    /// Returns true if a fast call of this size may start a request.
    #[inline(always)]
    pub(super) fn accepts_request(&self, call: CallId, bytes: usize) -> bool {
        bytes as i64 <= self.fast_request_limits[call as usize]
    }

    /// Starts a fast call for which [`Table::accepts_request`] returns true.
    #[inline(always)]
    pub(super) fn begin(
        &self,
        comm: &Comm,
        fast_call: FastCall<'static>,
    ) -> Result<Option<Running>, Error> {
        let carrier = &self.fast_carriers[fast_call.id() as usize];
        // SAFETY: `Table::new` stores the carrier of each collective at the index of its `CallId`.
        // The send buffer has the lifetime `'static`, and `RecvBytes::new` demands the rest of its caller.
        unsafe { carrier.begin(comm, fast_call) }
    }

    /// Carries out a fast call that is accepted.
    #[inline(always)]
    pub(super) fn carry_out(&self, comm: &Comm, fast_call: &FastCall<'_>) -> Result<(), Error> {
        let carrier = &self.fast_carriers[fast_call.id() as usize];
        // SAFETY: `Table::new` stores the carrier of each collective at the index of its `CallId`.
        unsafe { carrier.carry_out(comm, fast_call) }
    }

    /// Returns true if a later communicator of few members can use the components, and if [`Table::share_words`] is possible.
    pub(super) fn is_reusable(&self) -> bool {
        self.reusable && self.may_share(Words::default().len())
    }

    /// Allgather of a few words by a fast call; only if [`Table::is_reusable`]. The words of rank `i` are at index `i`.
    pub(super) fn share_words(&self, comm: &Comm, mine: &Words) -> Result<[Words; SHARING], Error> {
        let mut all = [Words::default(); SHARING];
        let members = (comm.size() as usize).min(SHARING);
        self.share(comm, mine, all[..members].as_flattened_mut())?;
        Ok(all)
    }

    /// Returns true if [`Table::share`] is possible with this number of words from each member; the same on all members.
    pub(super) fn may_share(&self, words: usize) -> bool {
        self.accepts(CallId::Allgather, words * size_of::<u64>())
    }

    /// Allgather of words by a fast call; only if [`Table::may_share`]. `all` has as many words for each member as `mine`.
    pub(super) fn share(&self, comm: &Comm, mine: &[u64], all: &mut [u64]) -> Result<(), Error> {
        debug_assert_eq!(all.len(), mine.len() * comm.size() as usize);
        // SAFETY: `mine` and `all` are borrowed until this function returns, and then the call is complete.
        // Words have no padding, and all bytes are valid words.
        let (send, recv) = unsafe {
            (
                std::slice::from_raw_parts(mine.as_ptr().cast(), size_of_val(mine)),
                RecvBytes::new(all.as_mut_ptr().cast(), size_of_val(all)),
            )
        };
        self.carry_out(comm, &FastCall::Allgather { send, recv })
    }

    pub(super) fn components(&self) -> &dyn Collectives {
        &*self.components
    }

    pub(super) fn progress(&self, parent: &Comm) -> Option<u64> {
        self.components.progress(parent)
    }

    /// Prefetches the memory that the next short calls use.
    pub(super) fn prefetch_next(&self) {
        prefetch_value(self);
        self.components.prefetch_next();
    }

    pub(super) fn disable(&self) {
        self.components.disable();
    }
}
