//! A twin: host memory and the device memory that it represents, with the copies between both.
//!
//! The twin stores which bytes are being copied or have been copied, so each byte is copied at most once
//! between two calls of [`Twin::restart`].

use super::ranges::{Ranges, overlap};
use super::{Accelerator, AcceleratorError, Direction, Flight, Memory, PIECE, Strip};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of asynchronous copies to the host in flight for one message.
const AHEAD: usize = 3;

/// Maximum number of asynchronous copies to the device in flight for one twin.
/// A receiver whose network is faster than its device waits for the oldest copy.
const LANDING: usize = 16;

/// Contiguous host memory and the device memory that it represents.
pub struct Twin {
    by: &'static dyn Accelerator,
    memory: Memory,
    device: usize,
    host: usize,
    len: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The bytes whose copies have been started, and those that another process's device has written.
    started: Ranges,
    /// The copies in flight, oldest first, each with its bytes.
    flights: VecDeque<(Range<usize>, Flight)>,
    /// The received bytes in host memory whose copies to the device have not been started.
    waiting: Ranges,
    failure: Option<AcceleratorError>,
    /// True after the end of the operation: no copy may be started.
    is_closed: bool,
}

impl Twin {
    pub(super) fn new(
        (by, memory): (&'static dyn Accelerator, Memory),
        device: *mut u8,
        host: *mut u8,
        len: usize,
    ) -> Twin {
        Twin {
            by,
            memory,
            device: device.expose_provenance(),
            host: host.expose_provenance(),
            len,
            state: Mutex::default(),
        }
    }

    /// Returns the address of the host memory.
    pub(super) fn host(&self) -> usize {
        self.host
    }

    /// Returns the accelerator, the properties of the device memory, and the address of its byte `at`.
    pub(super) fn device(&self, at: usize) -> (&'static dyn Accelerator, &Memory, *mut u8) {
        let at = std::ptr::with_exposed_provenance_mut(self.device + at);
        (self.by, &self.memory, at)
    }

    /// Returns the length of the host memory and of the device memory in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares the twin for another operation: no byte is copied, and no copy has failed.
    pub fn restart(&self) {
        self.close();
        *self.state() = State::default();
    }

    /// Waits until no copy is in flight. Later calls, of messages that still refer to this twin, start no copies.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        while !state.flights.is_empty() {
            self.end_flight(&mut state, 0);
        }
    }

    /// Waits until no copy is in flight. Later calls may start copies.
    pub fn wait(&self) {
        let mut state = self.state();
        while !state.flights.is_empty() {
            self.end_flight(&mut state, 0);
        }
    }

    /// Returns the error of the first failed copy, if any copy failed.
    pub fn failure(&self) -> Option<AcceleratorError> {
        self.state().failure.clone()
    }

    /// Copies the bytes `range` of the host memory to the device, except those that were copied before.
    /// When the call returns, all of these bytes are on the device, or a copy has failed.
    pub fn land(&self, range: Range<usize>) -> Result<(), AcceleratorError> {
        let mut state = self.state();
        while state.failure.is_none()
            && let Some(gap) = state.started.first_gap(&range)
        {
            state.waiting.remove(&gap);
            self.copy(&mut state, Direction::ToDevice, gap);
        }
        let is_needed = |(bytes, _): &(Range<usize>, Flight)| overlap(bytes, &range);
        while let Some(at) = state.flights.iter().position(is_needed) {
            self.end_flight(&mut state, at);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// Starts copies of the part `part` to the host until [`AHEAD`] are in flight.
    pub(super) fn begin(&self, part: &Range<usize>) {
        let mut state = self.state();
        if self.by.has_flights() && !state.is_closed {
            self.start_ahead(&mut state, part, part.start);
        }
    }

    /// Waits until the bytes of the part `part` before `end` are in host memory, and starts the next copies of the part.
    /// After a failed copy the bytes are arbitrary, and [`Twin::failure`] returns the error.
    pub(super) fn fill(&self, part: &Range<usize>, end: usize) {
        let wanted = part.start..end.min(part.end);
        let mut state = self.state();
        while !state.is_closed {
            self.start_ahead(&mut state, part, wanted.end);
            let is_needed = |(bytes, _): &(Range<usize>, Flight)| overlap(bytes, &wanted);
            match state.flights.iter().position(is_needed) {
                Some(at) => self.end_flight(&mut state, at),
                None => return,
            }
        }
    }

    /// Starts copies of the part to the host until [`AHEAD`] are in flight; without asynchronous copies, copies the bytes before `end`.
    fn start_ahead(&self, state: &mut State, part: &Range<usize>, end: usize) {
        let in_flight = |state: &State| {
            let all = state.flights.iter();
            all.filter(|(bytes, _)| overlap(bytes, part)).count()
        };
        while state.failure.is_none()
            && in_flight(state) < AHEAD
            && let Some(gap) = state.started.first_gap(part)
        {
            let piece = gap.start..gap.end.min(gap.start + PIECE);
            if self.by.has_flights() {
                self.start(state, Direction::ToHost, piece);
            } else if piece.start < end {
                self.copy(state, Direction::ToHost, piece);
            } else {
                // A synchronous copy of a piece beyond `end` would only delay this fragment.
                return;
            }
        }
    }

    /// Handles the arrival of the bytes `range` in host memory: starts the copies of complete pieces to the device.
    /// A piece is complete if [`PIECE`] contiguous bytes have arrived.
    /// Without asynchronous copies, [`Twin::land`] copies all bytes.
    pub(super) fn arrive(&self, range: Range<usize>) {
        let mut state = self.state();
        if state.is_closed || !self.by.has_flights() {
            return;
        }
        let mut rest = range.clone();
        while let Some(gap) = state.started.first_gap(&rest) {
            rest.start = gap.end;
            state.waiting.add(gap);
        }
        let mut rest = range;
        while let Some(run) = state.waiting.first_in(&rest) {
            rest.start = run.end;
            let complete = run.start..run.end - run.len() % PIECE;
            self.start_landing(&mut state, complete);
        }
    }

    /// Starts the copies to the device of all bytes of the part that have arrived, because no more bytes will arrive.
    pub(super) fn arrived(&self, part: &Range<usize>) {
        let mut state = self.state();
        while let Some(run) = state.waiting.first_in(part) {
            let run = run.start.max(part.start)..run.end.min(part.end);
            self.start_landing(&mut state, run);
        }
    }

    /// Starts the copies of received bytes to the device, in pieces.
    fn start_landing(&self, state: &mut State, bytes: Range<usize>) {
        state.waiting.remove(&bytes);
        for start in bytes.clone().step_by(PIECE) {
            self.end_landed(state);
            if state.failure.is_some() {
                return;
            }
            let piece = start..bytes.end.min(start + PIECE);
            self.start(state, Direction::ToDevice, piece);
        }
    }

    /// Removes the oldest copies that have ended. Waits for the oldest one if [`LANDING`] are in flight.
    fn end_landed(&self, state: &mut State) {
        while let Some((_, flight)) = state.flights.front() {
            let waits = state.flights.len() >= LANDING;
            let Some(ended) = self.by.end(*flight, waits) else {
                return;
            };
            state.flights.pop_front();
            if let Err(error) = ended {
                state.failure.get_or_insert(error);
            }
        }
    }

    /// Records that another process's device has written the bytes `range` of the device memory.
    pub(super) fn skip(&self, range: Range<usize>) {
        self.state().started.add(range);
    }

    fn strip(&self, range: &Range<usize>) -> Strip {
        Strip {
            device: std::ptr::with_exposed_provenance_mut(self.device + range.start),
            host: std::ptr::with_exposed_provenance_mut(self.host + range.start),
            len: range.len(),
            stride: range.len(),
            blocks: 1,
        }
    }

    /// Starts an asynchronous copy.
    fn start(&self, state: &mut State, direction: Direction, range: Range<usize>) {
        let strip = self.strip(&range);
        state.started.add(range.clone());
        // SAFETY: the host memory is valid until the registration ends, which waits for all flights.
        match unsafe { self.by.begin(&self.memory, direction, strip) } {
            Ok(flight) => state.flights.push_back((range, flight)),
            Err(error) => state.failure = Some(error),
        }
    }

    /// Copies synchronously.
    fn copy(&self, state: &mut State, direction: Direction, range: Range<usize>) {
        let mut strips = std::iter::once(self.strip(&range));
        state.started.add(range);
        // SAFETY: the host memory is valid until the registration ends.
        let copied = unsafe { self.by.copy(&self.memory, direction, &mut strips) };
        if let Err(error) = copied {
            state.failure = Some(error);
        }
    }

    /// Waits for the copy in flight with the index `at`, and removes it.
    fn end_flight(&self, state: &mut State, at: usize) {
        if let Some((_, flight)) = state.flights.remove(at)
            && let Some(Err(error)) = self.by.end(flight, true)
        {
            state.failure.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, MEMORY};
    use super::super::twins::{self, Registered};
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::Ordering::Relaxed;

    const SEEN: u8 = 3;

    /// Host memory and device memory with their accelerator. Dropped in the order of the fields.
    struct Pair {
        registered: Registered,
        by: &'static Fake,
        host: Vec<u8>,
        device: Vec<u8>,
    }

    impl Pair {
        fn new(len: usize) -> Pair {
            let by = Fake::leaked(|| SEEN);
            let (mut host, mut device) = (vec![0; len], vec![0; len]);
            let all: (&'static dyn Accelerator, Memory) = (by, MEMORY);
            // SAFETY: the host memory is dropped after the registration.
            let registered =
                unsafe { Registered::new(all, device.as_mut_ptr(), host.as_mut_ptr(), len) };
            Pair {
                registered,
                by,
                host,
                device,
            }
        }

        fn part(&self, range: Range<usize>) -> twins::Part {
            let data = &self.host[range];
            twins::of(data.as_ptr(), data.len()).expect("a twin")
        }

        fn twin(&self) -> &Twin {
            self.registered.twin()
        }

        /// Stores received bytes in host memory and reports their arrival.
        fn receive(&mut self, range: Range<usize>) {
            for at in range.clone() {
                self.host[at] = content(at);
            }
            self.part(0..self.host.len()).arrive(range);
        }

        /// Returns the number of bytes whose copies have been started since the last call.
        fn started(&self) -> usize {
            let copies = self.by.take_started();
            assert!(copies.iter().all(|copy| copy.seen == SEEN));
            copies.iter().map(|copy| copy.len).sum()
        }
    }

    fn content(at: usize) -> u8 {
        (at ^ (at >> 7) ^ (at >> 13)) as u8 | 1
    }

    #[test]
    fn complete_pieces_are_copied_to_the_device_before_the_last_byte_arrives() {
        let len = 3 * PIECE + 1000;
        let mut pair = Pair::new(len);
        pair.receive(0..PIECE - 1);
        assert_eq!(pair.started(), 0);
        // Bytes of a second stream, such as another link's.
        pair.receive(2 * PIECE..3 * PIECE);
        assert_eq!(pair.started(), PIECE);
        pair.receive(PIECE - 1..2 * PIECE);
        assert_eq!(pair.started(), 2 * PIECE);
        // Bytes that arrive again are not copied again.
        pair.receive(PIECE..2 * PIECE);
        pair.receive(3 * PIECE..len - 1);
        assert_eq!(pair.started(), 0);
        pair.receive(len - 1..len);
        pair.part(0..len).arrived();
        assert_eq!(pair.started(), 1000);
        assert_eq!(pair.twin().land(0..len), Ok(()));
        assert_eq!((pair.started(), pair.by.in_flight()), (0, 0));
        assert!(pair.device == pair.host);
    }

    #[test]
    fn bytes_whose_arrival_was_not_reported_are_copied_at_the_end() {
        for is_synchronous in [false, true] {
            let len = 2 * PIECE;
            let mut pair = Pair::new(len);
            pair.by.is_synchronous.store(is_synchronous, Relaxed);
            pair.receive(0..PIECE);
            pair.host.fill(7);
            assert_eq!(pair.twin().land(0..len - 5), Ok(()));
            assert!(pair.device[..len - 5].iter().all(|byte| *byte == 7));
            assert_eq!(pair.device[len - 5..], [0; 5]);
            // Another process's device has written the first bytes of the next message.
            pair.twin().restart();
            pair.part(0..len).skip(PIECE);
            pair.host.fill(8);
            assert_eq!(pair.twin().land(0..len), Ok(()));
            assert_eq!((pair.device[PIECE - 1], pair.device[PIECE]), (7, 8));
        }
    }

    #[test]
    fn after_a_failure_or_the_end_no_copy_is_started() {
        let len = 4 * PIECE;
        let mut pair = Pair::new(len);
        pair.by.fails.store(true, Relaxed);
        pair.receive(0..2 * PIECE);
        assert!(pair.twin().land(0..PIECE).is_err());
        assert_eq!(pair.started(), 2 * PIECE);
        pair.receive(2 * PIECE..3 * PIECE);
        assert!(pair.twin().land(0..len).is_err());
        assert_eq!(pair.started(), 0);
        pair.by.fails.store(false, Relaxed);
        pair.twin().restart();
        assert_eq!(pair.twin().land(0..0), Ok(()));
        pair.twin().close();
        pair.receive(0..len);
        pair.part(0..len).arrived();
        pair.part(0..len).fill();
        pair.part(0..len).begin();
        assert_eq!(pair.started(), 0);
        assert!(pair.device.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn copies_to_a_slow_device_are_limited_in_number() {
        let mut pair = Pair::new(2 * LANDING * PIECE);
        for at in 0..2 * LANDING {
            pair.receive(at * PIECE..(at + 1) * PIECE);
            assert!(pair.by.in_flight() <= LANDING);
        }
    }

    #[test]
    fn parts_are_filled_without_the_bytes_of_other_parts() {
        let part = 5 * PIECE + 10;
        let mut pair = Pair::new(3 * part);
        for (at, byte) in pair.device.iter_mut().enumerate() {
            *byte = content(at);
        }
        let (second, third) = (pair.part(part..2 * part), pair.part(2 * part..3 * part));
        second.begin();
        third.begin();
        assert_eq!(pair.started(), 2 * AHEAD * PIECE);
        third.fill_to(1);
        assert_eq!(pair.host[2 * part], content(2 * part));
        second.fill();
        assert!(pair.host[part..2 * part] == pair.device[part..2 * part]);
        assert!(pair.host[..part].iter().all(|byte| *byte == 0));
        assert_eq!(pair.twin().failure(), None);
        assert!(twins::of(pair.host[1..].as_ptr(), 3 * part).is_none());
        let after = pair.host.as_ptr_range().end;
        assert!(twins::of(after, 1).is_none() && twins::of(pair.host.as_ptr(), 0).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn bytes_arrive_on_the_device_in_any_order(
            len in PIECE..4 * PIECE,
            cuts in proptest::collection::vec(0..4 * PIECE, 0..10),
            order in proptest::collection::vec(any::<u32>(), 12),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(len)).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            let mut fragments: Vec<_> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
            let mut keys = order.into_iter();
            fragments.sort_by_cached_key(|_| keys.next());
            let mut pair = Pair::new(len);
            for fragment in fragments {
                pair.receive(fragment);
            }
            pair.part(0..len).arrived();
            prop_assert_eq!(pair.started(), len);
            prop_assert_eq!(pair.twin().land(0..len), Ok(()));
            prop_assert!(pair.device == pair.host);
        }
    }
}
