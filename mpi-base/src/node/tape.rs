//! A rank's tape: what it did and when, in a ring of the node's memory that outlives it.
//!
//! Who touches what: the owner takes the ring from its own arena, tells its place and length in its control page once,
//! and writes one cell for each event, then the count; nobody else writes.
//! The launcher plays the tape when the rank has ended, however it ended; the ring keeps the latest events and the count tells how many were lost.
//!
//! SYNC POINT `tape.written`: the owner's store of the count (Release) is read by the player (Acquire), so all cells up to it are whole.
//! A player that reads while the owner still writes may find the oldest cells of a full ring overwritten; it plays tapes of ranks that have ended.

use std::cell::Cell as Plain;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::Node;
use super::control::Control;
use super::head::{map, read_head};
use crate::atomic::{AtomicU64, Ordering};
use crate::mem::{Held, Segment, Shared};

/// One event: a cache line.
#[repr(C, align(64))]
struct Cell([AtomicU64; WORDS]);

const WORDS: usize = 8;

// SAFETY: atomics only.
unsafe impl Shared for Cell {}

/// Where a rank's tape is; zeroes are a rank that has none.
#[repr(C)]
pub(super) struct TapeHead {
    place: AtomicU64,
    cells: AtomicU64,
    written: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for TapeHead {}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// An MPI call, from `at` until `until`.
    Call = 1,
    /// A message of this process was handed to the transport, or announced.
    Sent = 2,
    /// A message has met its receive.
    Received = 3,
    /// A collective operation began.
    Round = 4,
    /// The wire of the hardware barrier was driven, or was seen to have changed.
    Wire = 5,
}

/// An event; which fields mean something follows from the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// CLOCK_MONOTONIC nanoseconds.
    pub at: u64,
    /// The end of a call; else 0.
    pub until: u64,
    /// A call's number in the function table from 1, or a collective operation's.
    pub call: u16,
    /// Tells the process's threads apart.
    pub thread: u32,
    pub peer: i32,
    pub tag: i32,
    /// The context of a message, the communicator of a collective operation.
    pub comm: u64,
    pub bytes: u64,
    /// Counted from 1 among its like; 0 if it was not counted.
    pub number: u64,
    pub extra: u64,
}

impl Event {
    pub fn new(kind: EventKind, at: u64) -> Event {
        Event {
            kind,
            at,
            until: 0,
            call: 0,
            thread: 0,
            peer: 0,
            tag: 0,
            comm: 0,
            bytes: 0,
            number: 0,
            extra: 0,
        }
    }

    /// The event as it is written, and as launchers of different hosts tell it each other.
    pub fn words(&self) -> [u64; WORDS] {
        // A number that would not fit is one of more than a million years of events; it is cut.
        let number = self.number & ((1 << 40) - 1);
        [
            self.at,
            self.until,
            u64::from(self.kind as u8) | u64::from(self.call) << 8 | u64::from(self.thread) << 32,
            u64::from(self.peer as u32) | u64::from(self.tag as u32) << 32,
            self.comm,
            self.bytes,
            number,
            self.extra,
        ]
    }

    /// What [`Event::words`] said; `None` if that is no event.
    pub fn of([at, until, what, whom, comm, bytes, number, extra]: [u64; WORDS]) -> Option<Event> {
        let kind = match what as u8 {
            1 => EventKind::Call,
            2 => EventKind::Sent,
            3 => EventKind::Received,
            4 => EventKind::Round,
            5 => EventKind::Wire,
            _ => return None,
        };
        Some(Event {
            kind,
            at,
            until,
            call: (what >> 8) as u16,
            thread: (what >> 32) as u32,
            peer: whom as i32,
            tag: (whom >> 32) as i32,
            comm,
            bytes,
            number,
            extra,
        })
    }
}

/// The owner's side.
#[derive(Debug)]
pub struct Tape {
    segment: Arc<Segment>,
    head: Held<TapeHead>,
    place: usize,
    cells: u64,
    written: Plain<u64>,
}

impl std::fmt::Debug for TapeHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TapeHead").finish_non_exhaustive()
    }
}

impl Tape {
    /// Appends an event; a full tape forgets its oldest.
    #[inline]
    pub fn write(&self, event: &Event) {
        let written = self.written.get();
        let at = self.place + (written % self.cells) as usize * size_of::<Cell>();
        let Some(cell) = self.segment.at::<Cell>(at) else {
            return;
        };
        for (place, word) in cell.0.iter().zip(event.words()) {
            place.store(word, Ordering::Relaxed);
        }
        self.written.set(written + 1);
        // SYNC POINT tape.written
        self.head.written.store(written + 1, Ordering::Release);
    }
}

/// What a tape holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// In the order in which they were written.
    pub events: Vec<Event>,
    /// How many older ones the ring has forgotten.
    pub lost: u64,
}

impl Node {
    /// This rank's tape of at most so many events, told to the launcher; `None` if there is one already or no memory for it.
    pub fn tape(&self, events: u32) -> Option<Tape> {
        let head: Held<TapeHead> = self
            .held(self.rank(), std::mem::offset_of!(Control, tape))
            .ok()?;
        if head.cells.load(Ordering::Relaxed) != 0 || events == 0 {
            return None;
        }
        let len = (events as usize).checked_mul(size_of::<Cell>())?;
        let block = self.alloc(len, align_of::<Cell>())?;
        let place = block.place().0;
        // It is read after this process has ended.
        block.abandon();
        head.place.store(place, Ordering::Relaxed);
        head.cells.store(events.into(), Ordering::Release);
        Some(Tape {
            segment: Arc::clone(&self.0.segment),
            head,
            place: place as usize,
            cells: events.into(),
            written: Plain::new(0),
        })
    }
}

/// Plays the tape of a local rank from the node's memory; `None` if it has none.
pub fn play(fd: impl AsFd, rank: u32) -> Option<Played> {
    let layout = read_head(&fd).ok()?;
    if rank >= layout.nlocal {
        return None;
    }
    let segment = map(&fd, layout.total()).ok()?;
    let head = &segment.at::<Control>(layout.control(rank))?.tape;
    let cells = head.cells.load(Ordering::Acquire);
    let place = usize::try_from(head.place.load(Ordering::Relaxed)).ok()?;
    let len = usize::try_from(cells)
        .ok()?
        .checked_mul(size_of::<Cell>())?;
    // What a rank wrote is checked before it is used, as everywhere.
    if cells == 0 || layout.owner(place, len) != Some(rank) {
        return None;
    }
    // SYNC POINT tape.written
    let written = head.written.load(Ordering::Acquire);
    let lost = written.saturating_sub(cells);
    let ring = segment.slice::<Cell>(place, cells as usize)?;
    let events = (lost..written)
        .filter_map(|at| {
            let Cell(words) = &ring[(at % cells) as usize];
            Event::of(std::array::from_fn(|word| {
                words[word].load(Ordering::Relaxed)
            }))
        })
        .collect();
    Some(Played { events, lost })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        Event {
            until: 2 * number,
            call: 17,
            thread: 3,
            peer: -1,
            tag: 7,
            comm: 8 << 32,
            bytes: 1 << 33,
            number,
            extra: 5,
            ..Event::new(EventKind::Received, 1000 + number)
        }
    }

    #[test]
    fn a_tape_outlives_its_rank_and_keeps_the_latest_events() {
        let fd = Node::create(2).unwrap();
        let node = Node::attach(&fd, 1).unwrap();
        let tape = node.tape(4).unwrap();
        assert!(node.tape(4).is_none(), "a rank has one tape");
        (1..=6).for_each(|number| tape.write(&event(number)));
        drop((tape, node));
        let played = play(&fd, 1).unwrap();
        assert_eq!(played.lost, 2);
        assert_eq!(played.events, (3..=6).map(event).collect::<Vec<_>>());
        assert_eq!(play(&fd, 0), None);
        assert_eq!(play(&fd, 2), None);
    }

    #[test]
    fn a_place_outside_the_ranks_arena_is_not_believed() {
        let fd = Node::create(2).unwrap();
        let node = Node::attach(&fd, 0).unwrap();
        let tape = node.tape(4).unwrap();
        tape.write(&event(1));
        for place in [0, 64, u64::MAX, 1 << 45] {
            tape.head.place.store(place, Ordering::Relaxed);
            assert_eq!(play(&fd, 0), None);
        }
    }
}
