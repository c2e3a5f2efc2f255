//! A rank's event ring: the rank's latest timestamped events, in the node's memory,
//! which exists longer than the rank.
//!
//! Ownership: the owner allocates the ring in its own arena, and then publishes the ring's offset,
//! length and clock in its control page.
//! For each event the owner writes one cell and then increments the count; no other process writes.
//! When an MPI call ends and the latest cell is a message of that call,
//! the call is merged into that cell.
//! In most programs, most calls have one message and thus one cell.
//! The launcher decodes the ring after the rank has ended for any reason. The ring has the latest
//! cells, and the count shows the number of older cells that were overwritten.
//!
//! SYNC POINT `event_ring.written`: the owner stores the count with Release, and the launcher's
//! [`Player`] loads the count with Acquire, so all cells up to the count are complete.
//! While the owner writes to a full ring, a reader may find the oldest cells overwritten.
//! Therefore the player reads only event rings of ranks that have ended.
//! A cell is complete before and after a call is merged into it,
//! because the word that marks the merge is stored last.
#![allow(unsafe_code)]

use std::cell::Cell as Plain;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::Node;
use super::clock::{Clock, Line, Moment};
use super::control::Control;
use super::event_ring_head::EventRingHead;
use super::head::{map, read_head};
use super::layout::Layout;
use crate::atomic::{AtomicU64, Ordering};
use crate::mem::{Held, PAGE, Segment, Shared};

/// One event of the ring, in one cache line.
#[repr(C, align(64))]
struct Cell([AtomicU64; WORDS]);

const WORDS: usize = 8;

// SAFETY: the words are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl Shared for Cell {}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// An MPI call that began at `at` and ended at `until`.
    Call = 1,
    /// A message of this process was passed to the transport, or was announced to the receiver.
    Sent = 2,
    /// A message was matched with its receive.
    Received = 3,
    /// A collective operation began.
    Round = 4,
    /// The process drove its wire to the hardware barrier, or saw the wire from the barrier change.
    Wire = 5,
    /// A system call on a file, from `at` until `until`.
    /// `call` is the system call, `number` the file, `extra` the offset.
    File = 6,
    /// Part `tag` of the name of file `number`, as three words in `comm`, `bytes` and `extra`.
    FileName = 7,
    /// Three counters of file `number`, starting with counter `tag`, in `comm`, `bytes` and `extra`.
    FileTotals = 8,
    /// The target of a call on a window: `peer` is the target rank, `comm` the window,
    /// `extra` the displacement, and `bytes` the length.
    Access = 9,
    /// Three words of the name of window `comm`, in `bytes`,
    /// `number` (five bytes only) and `extra`.
    WindowName = 10,
    /// The number of messages that process `comm` of the job has sent to process `peer` of the job.
    /// `call` is the kind of message, `extra` the number of messages.
    Matrix = 11,
}

/// An event; the kind determines which fields are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of event, which determines the meaning of the other fields.
    pub kind: EventKind,
    /// The time of the event: in the ring, a reading of the ring's clock;
    /// after decoding, nanoseconds of CLOCK_MONOTONIC.
    pub at: u64,
    /// The end of a call; 0 for other events.
    pub until: u64,
    /// The number of an MPI call in the function table, or the number of a collective operation;
    /// both are counted from 1.
    pub call: u16,
    /// The low 32 bits of the `pthread_t` of the thread that executed the call; 0 for other events.
    pub thread: u32,
    /// [`EventKind::Sent`]: the receiver's rank in the job.
    /// [`EventKind::Received`]: the source's rank in the communicator. Collective operation:
    /// one more than the root, or 0 without a root. [`EventKind::Wire`]: the number of the wire.
    pub peer: i32,
    /// The message's tag; the library's own messages have negative tags.
    pub tag: i32,
    /// The context ID of a message, or the communicator of a collective operation.
    pub comm: u64,
    /// Length of a message's payload in bytes. [`EventKind::Round`]:
    /// one more than the length in bytes that all members must pass, or 0 if lengths may differ.
    pub bytes: u64,
    /// The index of the event among the rank's events of the same kind, counted from 1;
    /// 0 if the event was not counted.
    pub number: u64,
    /// [`EventKind::Sent`]: the sender's rank in the communicator. [`EventKind::Round`]:
    /// the number of the operation.
    /// [`EventKind::Wire`]: the number of barriers released. Other kinds: 0.
    pub extra: u64,
}

impl Event {
    /// Returns an event of this kind at time `at` (see [`Event::at`]); all other fields are 0.
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

    /// Encodes the event, for an event ring or for the launchers of other hosts.
    pub fn words(&self) -> [u64; WORDS] {
        // The number is truncated to 40 bits: it wraps around after 2^40 (10^12) events of one kind.
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

    /// Decodes an event encoded by [`Event::words`]; `None` if the kind is unknown.
    pub fn of([at, until, what, whom, comm, bytes, number, extra]: [u64; WORDS]) -> Option<Event> {
        let kind = match what as u8 {
            1 => EventKind::Call,
            2 => EventKind::Sent,
            3 => EventKind::Received,
            4 => EventKind::Round,
            5 => EventKind::Wire,
            6 => EventKind::File,
            7 => EventKind::FileName,
            8 => EventKind::FileTotals,
            9 => EventKind::Access,
            10 => EventKind::WindowName,
            11 => EventKind::Matrix,
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

/// Indices of the words in a cell, as in [`Event::words`].
const AT: usize = 0;
const UNTIL: usize = 1;
const WHAT: usize = 2;
const EXTRA: usize = 7;

/// Decodes a cell: one event, or a message and the call that was merged into its cell.
fn events_of(mut words: [u64; WORDS]) -> [Option<Event>; 2] {
    let Some(event) = Event::of(words) else {
        return [None, None];
    };
    let is_message = matches!(event.kind, EventKind::Sent | EventKind::Received);
    if !is_message || event.call == 0 {
        return [Some(event), None];
    }
    // With a merged call, a send's last word is its source rank, and the call began at the send's time;
    // the last word of a receive is the time at which the call began.
    let began = match event.kind {
        EventKind::Received => std::mem::take(&mut words[EXTRA]),
        _ => event.at,
    };
    words[UNTIL] = 0;
    words[WHAT] = u64::from(event.kind as u8);
    let call = Event {
        until: event.until,
        call: event.call,
        thread: event.thread,
        ..Event::new(EventKind::Call, began)
    };
    [Event::of(words), Some(call)]
}

/// The owner's handle of its event ring, for writing.
#[derive(Debug)]
pub struct EventRing {
    segment: Arc<Segment>,
    head: Held<EventRingHead>,
    place: usize,
    cells: u64,
    written: Plain<u64>,
    /// The index of the cell that the next event occupies.
    next: Plain<u64>,
    clock: Clock,
}

impl EventRing {
    /// Populates the ring's pages, so that the program's first events cause no page faults.
    fn touch(&self) {
        const CELLS: usize = PAGE / size_of::<Cell>();
        for number in (0..self.cells).step_by(CELLS) {
            if let Some(Cell(words)) = self.cell(number) {
                words[AT].store(0, Ordering::Relaxed);
            }
        }
    }

    /// Returns the current time by the event ring's clock.
    #[inline]
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    #[inline(always)]
    fn cell(&self, number: u64) -> Option<&Cell> {
        let at = self.place + number as usize * size_of::<Cell>();
        self.segment.at::<Cell>(at)
    }

    /// Appends an event; if the ring is full, the oldest event is overwritten.
    #[inline]
    pub fn write(&self, event: &Event) {
        let next = self.next.get();
        let Some(cell) = self.cell(next) else {
            return;
        };
        for (place, word) in cell.0.iter().zip(event.words()) {
            place.store(word, Ordering::Relaxed);
        }
        self.next
            .set(if next + 1 == self.cells { 0 } else { next + 1 });
        let written = self.written.get() + 1;
        self.written.set(written);
        // SYNC POINT event_ring.written
        self.head.set_written(written);
    }

    /// Appends an MPI call that has ended.
    /// If the latest cell is a message of this call, the call is merged into that cell.
    #[inline]
    pub fn write_call(&self, call: u16, began: u64, until: u64, thread: u32) {
        if !self.join(call, began, until, thread) {
            self.write(&Event {
                until,
                call,
                thread,
                ..Event::new(EventKind::Call, began)
            });
        }
    }

    #[inline]
    fn join(&self, call: u16, began: u64, until: u64, thread: u32) -> bool {
        const SENT: u64 = EventKind::Sent as u64;
        const RECEIVED: u64 = EventKind::Received as u64;
        // In a ring without events this is the last cell, which is empty and decodes as no message.
        let latest = self.next.get().checked_sub(1).unwrap_or(self.cells - 1);
        let Some(Cell(words)) = self.cell(latest) else {
            return false;
        };
        let at = words[AT].load(Ordering::Relaxed);
        // The word of a message with a merged call also contains the call's number,
        // and so matches neither arm.
        match words[WHAT].load(Ordering::Relaxed) {
            SENT if at == began => {}
            RECEIVED if at >= began => words[EXTRA].store(began, Ordering::Relaxed),
            _ => return false,
        }
        let what = words[WHAT].load(Ordering::Relaxed);
        let joined = what | u64::from(call) << 8 | u64::from(thread) << 32;
        words[UNTIL].store(until, Ordering::Relaxed);
        words[WHAT].store(joined, Ordering::Release);
        true
    }
}

/// The decoded contents of an event ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// The events, in the order in which the rank wrote them.
    pub events: Vec<Event>,
    /// The number of older cells that were overwritten;
    /// a message and the call merged into its cell count as one.
    pub lost: u64,
}

impl Node {
    /// Creates this rank's event ring for at most `events` events and publishes it to the launcher.
    /// Returns `None` if the rank already has an event ring or if no memory is free.
    pub fn event_ring(&self, events: u32) -> Option<EventRing> {
        let head: Held<EventRingHead> = self
            .held(self.rank(), std::mem::offset_of!(Control, event_ring))
            .ok()?;
        if head.is_told() || events == 0 {
            return None;
        }
        let len = (events as usize).checked_mul(size_of::<Cell>())?;
        let block = self.alloc(len, align_of::<Cell>())?;
        let place = block.place().0;
        // The block stays allocated, because the launcher reads it after this process has ended.
        block.abandon();
        let clock = Clock::choose();
        head.tell(
            place,
            events.into(),
            (clock == Clock::Counter).then(Moment::now),
        );
        let ring = EventRing {
            segment: Arc::clone(&self.0.segment),
            head,
            place: place as usize,
            cells: events.into(),
            written: Plain::new(0),
            next: Plain::new(0),
            clock,
        };
        ring.touch();
        Some(ring)
    }
}

/// Decodes the event rings of a node's ranks.
#[derive(Debug)]
pub struct Player {
    segment: Arc<Segment>,
    layout: Layout,
    /// Converts ticks to nanoseconds, for ranks whose clock is the time stamp counter.
    line: Option<Line>,
}

impl Player {
    /// Creates a player for a node's memory; `None` if `fd` is not a node's memory.
    pub fn new(fd: impl AsFd) -> Option<Player> {
        let layout = read_head(&fd).ok()?;
        let segment = map(&fd, layout.total()).ok()?;
        let mut player = Player {
            segment,
            layout,
            line: None,
        };
        let counted = (0..player.layout.nlocal).find_map(|rank| player.head(rank)?.moment());
        player.line = counted.map(|moment| Line::between(moment, Moment::now()));
        Some(player)
    }

    fn head(&self, rank: u32) -> Option<&EventRingHead> {
        if rank >= self.layout.nlocal {
            return None;
        }
        let control = self.segment.at::<Control>(self.layout.control(rank))?;
        Some(&control.event_ring)
    }

    /// Decodes the event ring of a local rank; `None` if the rank has no event ring.
    pub fn play(&self, rank: u32) -> Option<Played> {
        let head = self.head(rank)?;
        let (place, cells) = head.place();
        let place = usize::try_from(place).ok()?;
        let len = usize::try_from(cells)
            .ok()?
            .checked_mul(size_of::<Cell>())?;
        // The rank's process wrote these values, so they are checked before use.
        if cells == 0 || self.layout.owner(place, len) != Some(rank) {
            return None;
        }
        let line = self.line.filter(|_| head.moment().is_some());
        let ns = |time: u64| match (time, line) {
            (0, _) | (_, None) => time,
            (ticks, Some(line)) => line.ns(ticks),
        };
        // SYNC POINT event_ring.written
        let written = head.written();
        let lost = written.saturating_sub(cells);
        let ring = self.segment.slice::<Cell>(place, cells as usize)?;
        let events = (lost..written).flat_map(|at| {
            let Cell(words) = &ring[(at % cells) as usize];
            events_of(std::array::from_fn(|word| {
                words[word].load(Ordering::Relaxed)
            }))
        });
        let events = events.flatten().map(|event| Event {
            at: ns(event.at),
            until: ns(event.until),
            ..event
        });
        Some(Played {
            events: events.collect(),
            lost,
        })
    }
}

#[cfg(test)]
mod tests;
