//! Handles of requests and matched messages of lanes.
//!
//! ```text
//!                   30..27  26..20      19..0
//! plain request     10      generation  1 lll iiiiiiiiiiiiiiii   index in the engine's table
//! other request     15      generation  lll iiiiiiiiiiiiiiiii    index in the lane's table
//! matched message   7       generation  lll iiiiiiiiiiiiiiiii    index in the lane's table
//! ```
//!
//! `lll` is the lane. While lanes are in use, lane 0 issues plain requests only with lane bits 0
//! ([`limit_direct`](crate::registry::request::limit_direct)).
//! Lane 0 would need three million other requests, or 2^17 matched messages, to issue such handles.

use super::{Landing, Outgoing, Place, Twin};
use crate::abi::{MPI_Message, MPI_REQUEST_NULL, MPI_Request};
use crate::handle::{self, Kind};
use crate::registry::request::DONE;
use mpi_core::pml::Mode;
use mpi_core::request::Req;
use std::cell::RefCell;
use std::rc::Rc;

const GENERATION_SHIFT: u32 = 20;
const KIND_SHIFT: u32 = 27;

/// The kind fields of the handles of the table above.
const PLAIN: usize = Kind::Request as usize;
const OTHER: usize = 15;
const MESSAGE: usize = Kind::Message as usize;

/// The bit of plain requests, whose index is that of the engine's table.
const DIRECT: usize = 1 << 19;

/// The number of plain requests of a lane that can have handles. The last index is excluded: its handle could equal [`DONE`].
const PLAIN_SHIFT: u32 = 16;
const PLAIN_INDICES: usize = (1 << PLAIN_SHIFT) - 1;
const SLAB_SHIFT: u32 = 17;
const SLAB_INDICES: usize = 1 << SLAB_SHIFT;

/// Returns true for the handles that belong to no lane: null, and an operation that has completed within its call.
#[inline]
pub fn is_free(handle: MPI_Request) -> bool {
    handle == MPI_REQUEST_NULL || handle == DONE
}

/// Returns the lane of a request. For a handle that belongs to no lane, the result is 0.
#[inline]
pub fn of_request(MPI_Request(handle): MPI_Request) -> usize {
    match handle >> KIND_SHIFT {
        PLAIN if handle & DIRECT != 0 && handle != DONE.0 => handle >> PLAIN_SHIFT & 7,
        OTHER => handle >> SLAB_SHIFT & 7,
        _ => 0,
    }
}

/// Returns the lane of a matched message.
pub fn of_message(MPI_Message(handle): MPI_Message) -> usize {
    match handle >> KIND_SHIFT {
        MESSAGE => handle >> SLAB_SHIFT & 7,
        _ => 0,
    }
}

/// Returns the handle of a plain request, if its index is small enough.
#[inline]
pub(super) fn plain_handle(lane: usize, req: &Req) -> Option<MPI_Request> {
    let index = req.index() as usize;
    let place = DIRECT | lane << PLAIN_SHIFT | index;
    (index < PLAIN_INDICES)
        .then(|| MPI_Request(handle::make(Kind::Request, req.generation(), place)))
}

/// Returns the index in the engine's table and the name of a plain request; `None` for other handles.
#[inline]
pub(super) fn plain(MPI_Request(handle): MPI_Request) -> Option<(u32, u32)> {
    let is_plain = handle >> KIND_SHIFT == PLAIN && handle & DIRECT != 0;
    is_plain.then_some(((handle & PLAIN_INDICES) as u32, handle as u32))
}

/// Objects with a generation for each slot.
pub struct Slab<T> {
    slots: Vec<(u8, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab::new()
    }
}

impl<T> Slab<T> {
    pub const fn new() -> Slab<T> {
        Slab {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns true if an index is not in use.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < SLAB_INDICES
    }

    /// Inserts an object. Returns its handle, or `None` if all indices are in use.
    fn insert(&mut self, kind: usize, lane: usize, value: T) -> Option<usize> {
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None if self.slots.len() < SLAB_INDICES => {
                self.slots.push((0, None));
                self.slots.len() - 1
            }
            None => return None,
        };
        let slot = self.slots.get_mut(index)?;
        *slot = (slot.0.wrapping_add(1) & 127, Some(value));
        let generation = usize::from(slot.0) << GENERATION_SHIFT;
        Some(kind << KIND_SHIFT | generation | lane << SLAB_SHIFT | index)
    }

    fn slot(&mut self, handle: usize) -> Option<&mut Option<T>> {
        let slot = self.slots.get_mut(handle & (SLAB_INDICES - 1))?;
        (usize::from(slot.0) == handle >> GENERATION_SHIFT & 127).then_some(&mut slot.1)
    }

    /// Returns the object of a handle.
    pub fn get(&mut self, handle: usize) -> Option<&mut T> {
        self.slot(handle)?.as_mut()
    }

    /// Returns the objects.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|(_, value)| value.as_ref())
    }

    /// Removes the object of a handle.
    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let value = self.slot(handle)?.take()?;
        self.free.push((handle & (SLAB_INDICES - 1)) as u32);
        Some(value)
    }
}

impl<T> Slab<T> {
    /// Inserts a request that is not plain.
    pub fn insert_request(&mut self, lane: usize, value: T) -> Option<MPI_Request> {
        self.insert(OTHER, lane, value).map(MPI_Request)
    }

    /// Inserts a matched message.
    pub fn insert_message(&mut self, lane: usize, value: T) -> Option<MPI_Message> {
        self.insert(MESSAGE, lane, value).map(MPI_Message)
    }
}

/// An active operation with more than one request of the engine, or with memory of this library.
pub struct Pending {
    pub receive: Option<Req>,
    pub send: Option<Req>,
    /// The packed data of the send.
    pub data: Vec<u8>,
    /// The memory for a received message of a derived datatype.
    pub landing: Option<Landing>,
}

/// The operation that a persistent request starts.
pub enum Transfer {
    Send { data: Outgoing, mode: Mode },
    Buffered { data: Outgoing },
    Receive(Place),
}

/// A persistent operation.
pub struct Persistent {
    pub twin: Rc<Twin>,
    pub transfer: Transfer,
    pub peer: i32,
    pub tag: i32,
    /// The active operation, or `None` while the request is inactive.
    pub active: RefCell<Option<Pending>>,
}

/// A request of a lane that is not plain.
pub enum Object {
    Once(Pending, Rc<Twin>),
    Persistent(Rc<Persistent>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_name_their_lane_and_those_of_no_lane_do_not() {
        let mut requests = Slab::new();
        let mut messages = Slab::new();
        for lane in 1..8 {
            let request = requests.insert_request(lane, lane).unwrap();
            let message = messages.insert_message(lane, lane).unwrap();
            assert_eq!((of_request(request), of_message(message)), (lane, lane));
            assert_eq!(requests.get(request.0), Some(&mut lane.clone()));
            assert!(i32::try_from(request.0).is_ok(), "no INTEGER of Fortran");
            assert_eq!(plain(request), None);
            let plain_request = handle::make(Kind::Request, 3, DIRECT | lane << PLAIN_SHIFT | 9);
            assert_eq!(of_request(MPI_Request(plain_request)), lane);
            assert_eq!(
                plain(MPI_Request(plain_request)),
                Some((9, plain_request as u32))
            );
        }
        for of_lane_0 in [
            MPI_REQUEST_NULL.0,
            DONE.0,
            handle::make(Kind::Request, 1, DIRECT | 7),
            handle::make(Kind::Request, 1, 7),
        ] {
            assert_eq!(of_request(MPI_Request(of_lane_0)), 0, "{of_lane_0:#x}");
        }
    }

    #[test]
    fn a_removed_object_is_not_found_and_its_slot_gets_another_handle() {
        let mut slab = Slab::new();
        let first = slab.insert_request(2, 'a').unwrap();
        assert_eq!(slab.remove(first.0), Some('a'));
        assert_eq!(slab.remove(first.0), None);
        let second = slab.insert_request(2, 'b').unwrap();
        assert_ne!(first, second);
        assert_eq!(slab.get(first.0), None);
        assert_eq!(slab.get(second.0), Some(&mut 'b'));
    }
}
