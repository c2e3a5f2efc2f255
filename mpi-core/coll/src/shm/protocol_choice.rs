//! Choice of the protocol of long calls by measurement:
//! data are sent in pieces through cells, or by single copies or messages.
//!
//! Neither protocol is faster everywhere ([`crate::trial`]), so both are measured,
//! for each collective and order of magnitude of the length (a class of calls).
//! All members must use the same protocol in a call, so rank 0 decides.
//!
//! Guarantee: all members use the same protocol in the same call, and the choice takes no message.
//!
//! Protocol. All members make the same calls in the same order,
//! and each member counts the calls of a class from 0.
//! Each class has one word, the [`Plan`]:
//! calls before number `from` use the protocol `before`, the next `run` calls use `tried`, and later calls use `then`.
//! 1. A member begins a call when the long cells of its first operation number are free: every rank has finished the operation [`LAG`] numbers before it.
//!    Then the member reads the plan once.
//! 2. Rank 0 may write a plan when it begins a call; the plan applies from [`LAG`] calls later on.
//!    Each call takes at least one operation number.
//!    So by step 1, a member that begins a call to which the plan applies has seen that rank 0 has finished
//!    the call in which it wrote the plan, and therefore also sees the plan.
//!    If a member reads the new plan in an earlier call,
//!    it finds the same protocol for that call as in the old plan.
//! 3. For step 2, rank 0 writes a plan only after every rank has finished an operation
//!    of the last trial call of the old plan:
//!    all calls that have not yet read a plan then use the final protocol of the old plan, with which the new plan begins.
//!
//! The cost of a call is the mean of the members' times:
//! each member writes its time, with the call's operation number, to a word of its own.
//! Rank 0 reads these words when it begins the next measured call.
//! Members that have not written yet, or have overwritten their word, are left out.
//!
//! SYNC POINT shm.plan: accesses to finished operation numbers (`cells.finished`) order those to the plan.
//! Rank 0 stores the plan before it stores that an operation of the same call has finished.
//! Every member loads the plan after it has loaded this operation number.

use super::layout::DEPTH;
use crate::CallId;
use crate::trial::{Either, FREE, Known, ORDERS, SMALLEST, Way, first_trial, order_of};
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::cells::LINE;
use mpi_base::mem::PAGE;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::time::Instant;

/// Number of calls, and of operations, from the write of a plan to the first call to which it applies.
const LAG: u64 = DEPTH;

/// Number of calls of each class, from the first on, whose times are ignored.
const COLD: u64 = 3;

/// Trials of the slower protocol may take at most 1 / `PRICE` of the total time.
const PRICE: f32 = 64.0;

/// Returns true for collectives that only move data, without an operator.
pub(super) fn moves_data(call: CallId) -> bool {
    matches!(
        call,
        CallId::Bcast
            | CallId::Gather
            | CallId::Scatter
            | CallId::Allgather
            | CallId::Allgatherv
            | CallId::Alltoall
    )
}

/// Length of a block in bytes from which pieces are first tried late.
const LATE_FROM: u64 = 64 << 10;

const CLASSES: usize = CallId::ALL.len() * ORDERS;
const WORD: usize = size_of::<u64>();
const STEP: usize = LINE / WORD;

/// Returns the number of shared words for `members` members: the plans, and a cache line for each member.
pub fn words(members: u32) -> usize {
    CLASSES.next_multiple_of(STEP) + members as usize * STEP
}

/// The choices for one communicator, on one member; the shared memory `M` must be zero-initialised.
pub struct ProtocolChoice<M> {
    memory: M,
    me: u32,
    members: u32,
    /// For each class, the protocol until the first plan applies.
    first: [First; CLASSES],
    /// For each class, the number of calls that this rank has begun.
    begun: OnceCell<Box<[Cell<u64>]>>,
    /// Rank 0's measurements; unused on other ranks.
    decider: RefCell<Decider>,
}

/// How the calls of a class begin.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// The protocol until the first plan applies.
    pub way: Way,
    /// True if pieces of long blocks are first tried late ([`first_trial`]), because single copies are rarely slower.
    pub is_late: bool,
}

/// A class of calls: those of one collective with lengths of one order of magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class(usize);

impl Class {
    fn of(call: CallId, bytes: u64) -> Class {
        Class(call as usize * ORDERS + order_of(bytes))
    }

    /// Returns the number of calls before the first trial of pieces, if they are tried late.
    fn late_trial_of_pieces(self) -> u64 {
        u64::from(first_trial(self.0 % ORDERS, LATE_FROM))
    }

    /// Returns the classes of a collective, from the shortest data to the longest, each with one length in bytes that belongs to it.
    fn all_of(call: CallId) -> impl Iterator<Item = (Class, u64)> {
        (0..ORDERS).map(move |order| {
            let bytes = 1 << (SMALLEST as usize + order);
            (Class::of(call, bytes), bytes)
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Number of the first call to which the plan applies; earlier calls use `before`.
    from: u64,
    before: Way,
    /// The next `run` calls (at most three) use `tried`, and all later calls use `then`.
    run: u64,
    tried: Way,
    then: Way,
}

impl Plan {
    fn new(first: Way) -> Plan {
        Plan {
            from: 0,
            before: first,
            run: 0,
            tried: first,
            then: first,
        }
    }

    fn way(&self, call: u64) -> Way {
        match call.checked_sub(self.from) {
            None => self.before,
            Some(behind) if behind < self.run => self.tried,
            Some(_) => self.then,
        }
    }

    /// Returns the number of the first call after the trial calls; this call and all later ones use `then`.
    fn end(&self) -> u64 {
        self.from + self.run
    }

    /// Encodes the plan as a word that is not zero, since zero means that there is no plan.
    fn to_word(self) -> u64 {
        let ways = [self.before, self.tried, self.then].map(|way| way as u64);
        let bits = ways
            .iter()
            .rev()
            .fold(self.run & 3, |bits, way| bits << 1 | way);
        self.from << 6 | bits << 1 | 1
    }

    fn from_word(word: u64, first: Way) -> Plan {
        if word == 0 {
            return Plan::new(first);
        }
        let way = |bit: u32| match word >> bit & 1 {
            0 => Way::Copy,
            _ => Way::Fragments,
        };
        Plan {
            from: word >> 6,
            before: way(1),
            run: word >> 4 & 3,
            tried: way(2),
            then: way(3),
        }
    }
}

#[derive(Default)]
struct Decider {
    /// The measurements of each class, and the end of its trials; empty before the first call.
    classes: Vec<Decided>,
    /// The previous measured call, until its cost has been read.
    before: Option<Measured>,
}

#[derive(Clone, Copy, Default)]
struct Decided {
    known: Known,
    /// The first operation number of the plan's last trial call, after that call has begun.
    ends: Option<u64>,
}

/// A measured call in progress.
#[derive(Clone, Copy)]
pub struct Measured {
    pub way: Way,
    class: Class,
    bytes: u64,
    number: u64,
    began: Instant,
    /// True if it is too early for the first trial of pieces.
    is_early: bool,
}

impl<M: Deref<Target = [AtomicU64]>> ProtocolChoice<M> {
    /// Creates the choices; `memory` must have at least [`words`] words.
    pub fn new(
        memory: M,
        me: u32,
        members: u32,
        first: impl Fn(CallId, u64) -> First,
    ) -> Option<ProtocolChoice<M>> {
        let fits = me < members && memory.len() >= words(members);
        let unknown = First {
            way: Way::Copy,
            is_late: false,
        };
        let mut firsts = [unknown; CLASSES];
        for call in CallId::ALL {
            for (class, bytes) in Class::all_of(call) {
                firsts[class.0] = first(call, bytes);
            }
        }
        fits.then(|| ProtocolChoice {
            memory,
            me,
            members,
            first: firsts,
            begun: OnceCell::new(),
            decider: RefCell::default(),
        })
    }

    /// Reads a word of each page of the shared memory, so that the first measured calls cause no page faults.
    pub fn map(&self) {
        const PAGE_WORDS: usize = PAGE / WORD;
        let words = self.memory.iter().step_by(PAGE_WORDS);
        for word in words.chain(self.memory.last()) {
            word.load(Ordering::Relaxed);
        }
    }

    fn plan(&self, class: Class) -> Plan {
        let first = self.first[class.0].way;
        Plan::from_word(self.memory[class.0].load(Ordering::Relaxed), first)
    }

    /// Returns the word with a member's report on its last call:
    /// the lower bits of the call's operation number, and its time in nanoseconds.
    fn took(&self, member: u32) -> &AtomicU64 {
        &self.memory[CLASSES.next_multiple_of(STEP) + member as usize * STEP]
    }

    /// Begins a call with blocks of `bytes` bytes; the cells of its first operation number must be free.
    /// `can_copy` is true if the ranks can read each other's memory; otherwise pieces are not tried late.
    /// `finished(n)` returns true if all ranks have finished operation `n`.
    pub fn begin(
        &self,
        (call, bytes): (CallId, u64),
        can_copy: bool,
        number: u64,
        began: Instant,
        finished: impl Fn(u64) -> bool,
    ) -> Measured {
        let class = Class::of(call, bytes);
        let counts = self
            .begun
            .get_or_init(|| (0..CLASSES).map(|_| Cell::new(0)).collect());
        let call = counts[class.0].replace(counts[class.0].get() + 1);
        // SYNC POINT shm.plan
        let plan = self.plan(class);
        let measured = Measured {
            way: plan.way(call),
            class,
            bytes,
            number,
            began,
            is_early: can_copy
                && self.first[class.0].way == Way::Copy
                && self.first[class.0].is_late
                && call < class.late_trial_of_pieces(),
        };
        if self.me == 0 {
            self.decide(&plan, call, &measured, finished);
        }
        measured
    }

    /// Ends the call and reports its time.
    pub fn end(&self, call: Measured) {
        let nanos = crate::trial::now().duration_since(call.began).as_nanos() as u64;
        self.report(call.number, nanos);
    }

    fn report(&self, number: u64, nanos: u64) {
        let word = number << TIME | nanos.min((1 << TIME) - 1);
        self.took(self.me).store(word, Ordering::Relaxed);
    }

    /// Returns the mean of the members' times for a call, in ns; `None` without reports.
    fn cost(&self, number: u64) -> Option<f32> {
        let words = (0..self.members).map(|rank| self.took(rank).load(Ordering::Relaxed));
        let reports = words.filter(|word| word >> TIME == number << TIME >> TIME);
        let (sum, count) = reports.fold((0, 0u64), |(sum, count), word| {
            (sum + (word & ((1 << TIME) - 1)), count + 1)
        });
        (count > 0).then(|| sum as f32 / count as f32)
    }

    /// Records the cost of the previous call; then writes a new plan for this call's class, if the old plan's trials are over.
    fn decide(&self, plan: &Plan, call: u64, measured: &Measured, finished: impl Fn(u64) -> bool) {
        let decider = &mut *self.decider.borrow_mut();
        if decider.classes.is_empty() {
            decider.classes = vec![Decided::default(); CLASSES];
        }
        // The first calls use cells that are not in the caches yet, so their times do not count.
        let counts = (call >= COLD).then_some(*measured);
        if let Some(before) = std::mem::replace(&mut decider.before, counts)
            && let Some(cost) = self.cost(before.number)
        {
            let known = &mut decider.classes[before.class.0].known;
            known.learn(before.way, cost / before.bytes.max(1) as f32);
        }
        let class = &mut decider.classes[measured.class.0];
        if call < plan.end() {
            class.ends = (call + 1 == plan.end()).then_some(measured.number);
            return;
        }
        if !class.ends.is_none_or(finished) {
            return;
        }
        let first = self.first[measured.class.0].way;
        if measured.is_early {
            return;
        }
        let Some((way, run)) = class.next_trial(plan.then, first) else {
            return;
        };
        let new = Plan {
            from: call + LAG,
            before: plan.then,
            run,
            tried: way,
            then: class.known.better().unwrap_or(first),
        };
        class.ends = None;
        // SYNC POINT shm.plan
        self.memory[measured.class.0].store(new.to_word(), Ordering::Relaxed);
    }
}

/// Number of bits of a reported time.
const TIME: u32 = 40;

impl Decided {
    /// Returns the protocol to try next and the number of trials; `None` if the current protocol continues.
    fn next_trial(&mut self, now: Way, first: Way) -> Option<(Way, u64)> {
        // The other protocol is sampled next, as many times as needed;
        // calls with the first protocol are sampled anyway.
        let missing = self.known.missing(first.other());
        if missing > 0 {
            return Some((first.other(), missing as u64));
        }
        if self.known.missing(first) > 0 {
            return None;
        }
        // The first trials may be slow only because the protocol was new, so the next trial is not deferred, whatever it costs (`FREE`).
        let way = self.known.next(FREE, PRICE);
        let goes_on = way == now && self.known.better() == Some(now);
        (!goes_on).then_some((way, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plan_is_a_word() {
        let ways = [Way::Copy, Way::Fragments];
        for (i, from) in [0, 1, 77, 1 << 50].into_iter().enumerate() {
            let plan = Plan {
                from,
                before: ways[i % 2],
                run: i as u64,
                tried: ways[i / 2],
                then: ways[(i + 1) % 2],
            };
            assert_ne!(plan.to_word(), 0);
            assert_eq!(Plan::from_word(plan.to_word(), Way::Copy), plan);
        }
        assert_eq!(Plan::from_word(0, Way::Copy), Plan::new(Way::Copy));
    }

    fn first(way: Way, is_late: bool) -> First {
        First { way, is_late }
    }

    const CALLS: [(CallId, u64); 2] = [(CallId::Bcast, 1 << 16), (CallId::Gather, 1 << 20)];

    struct Member<'a> {
        choice: ProtocolChoice<&'a [AtomicU64]>,
        /// The last operation number that the member has begun, and the last that it has finished.
        number: u64,
        finished: u64,
        under_way: Option<Measured>,
        gone: Vec<Way>,
    }

    /// Runs the members' calls in the given order of steps, and returns the protocols that each member used.
    /// `which(call)` returns the call's index in [`CALLS`],
    /// and for each protocol the number of operations minus one, and the cost.
    fn play(
        members: u32,
        order: &[u32],
        which: &dyn Fn(u64) -> (usize, [u64; 2], [u64; 2]),
    ) -> Vec<Vec<Way>> {
        let memory: Vec<AtomicU64> = (0..words(members)).map(|_| AtomicU64::new(0)).collect();
        let member = |me| Member {
            choice: ProtocolChoice::new(&memory[..], me, members, |_, _| {
                first(Way::Fragments, false)
            })
            .unwrap(),
            number: 0,
            finished: 0,
            under_way: None,
            gone: Vec::new(),
        };
        let mut all: Vec<Member<'_>> = (0..members).map(member).collect();
        for turn in order {
            let slowest = all.iter().map(|m| m.finished).min().unwrap();
            let member = &mut all[(turn % members) as usize];
            if member.finished < member.number {
                member.finished += 1;
                if let (true, Some(call)) = (member.finished == member.number, member.under_way) {
                    let (_, _, costs) = which(member.gone.len() as u64 - 1);
                    member.choice.report(call.number, costs[call.way as usize]);
                }
            } else if member.number < slowest + DEPTH {
                let (call, more, _) = which(member.gone.len() as u64);
                let finished = |number| slowest >= number;
                let call = member.choice.begin(
                    CALLS[call],
                    true,
                    member.number + 1,
                    Instant::now(),
                    finished,
                );
                member.number += 1 + more[call.way as usize];
                member.gone.push(call.way);
                member.under_way = Some(call);
            }
        }
        all.into_iter().map(|member| member.gone).collect()
    }

    proptest! {
        /// All members use the same protocol in each call, for any costs and however far members are ahead of each other.
        #[test]
        fn all_members_go_the_same_way_in_the_same_call(
            members in 2u32..5,
            order in prop::collection::vec(0u32..60, 3000),
            seeds in prop::collection::vec((0usize..5, 0u64..3, 0u64..3, 1u64..9, 1u64..9), 40),
        ) {
            let which = |call: u64| {
                let (which, a, b, copy, fragments) = seeds[(call / 5) as usize % seeds.len()];
                // Most calls are of one class, a few of the other.
                (usize::from(which == 0), [a, b], [copy * 1000, fragments * 1000])
            };
            let gone = play(members, &order, &which);
            for ways in &gone {
                let common = ways.len().min(gone[0].len());
                prop_assert_eq!(&ways[..common], &gone[0][..common]);
            }
        }
    }

    /// A collective that moves data begins with single copies and tries pieces after 128 calls; one that combines data tries them at once.
    #[test]
    fn pieces_are_first_tried_late_if_the_class_says_so() {
        for (is_late, can_copy, earliest) in
            [(true, true, 128), (true, false, COLD), (false, true, COLD)]
        {
            let call = CallId::Allgather;
            let memory: Vec<AtomicU64> = (0..words(1)).map(|_| AtomicU64::new(0)).collect();
            let choice =
                ProtocolChoice::new(&memory[..], 0, 1, |_, _| first(Way::Copy, is_late)).unwrap();
            let ways: Vec<Way> = (1..200)
                .map(|number| {
                    let measured =
                        choice.begin((call, 1 << 20), can_copy, number, Instant::now(), |_| true);
                    choice.report(number, 1000);
                    measured.way
                })
                .collect();
            let tried = ways.iter().position(|way| *way == Way::Fragments);
            let tried = tried.expect("a trial") as u64;
            assert!(
                (earliest..=earliest + 2 * LAG).contains(&tried),
                "{is_late} {can_copy}: {tried}"
            );
        }
    }

    #[test]
    fn the_cheaper_way_is_taken_and_the_other_one_rarely_tried() {
        for costs in [[1000, 4000], [4000, 1000]] {
            let which = |_: u64| (0, [0, 0], costs);
            let order: Vec<u32> = (0..2 * 2 * 600).map(|i| i / 2).collect();
            let gone = play(2, &order, &which);
            let dearer = match costs[0] > costs[1] {
                true => Way::Copy,
                false => Way::Fragments,
            };
            let times = |ways: &[Way]| ways.iter().filter(|way| **way == dearer).count();
            assert!(gone[0].len() > 500, "{}", gone[0].len());
            assert!(times(&gone[0][..20]) >= 3);
            assert!(
                (1..=3).contains(&times(&gone[0][20..])),
                "{}",
                times(&gone[0][20..])
            );
        }
    }
}
