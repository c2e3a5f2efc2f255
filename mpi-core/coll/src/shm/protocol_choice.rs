//! Which way the data of long calls go: in pieces through cells, or the way they would go if there were no pieces.
//!
//! Neither is the faster one everywhere ([`crate::trial`]), so it is measured, for each operation and each order of size;
//! and since a call goes one way at all members, rank 0 decides.
//!
//! Promise: all members go the same way in the same call, and nothing is sent for that.
//!
//! Protocol. The members make the same calls in the same order, and each counts those of a class, from 0 on.
//! For each class there is a word, the [`Plan`]: up to which call it goes one way, how many calls go another from there on, and which way all behind those go.
//! 1. A member that begins a call has room for its first number in the long cells: every rank has finished the number [`LAG`] before it. Then it reads the plan, once.
//! 2. Rank 0 may write a plan when it begins a call, for the calls from [`LAG`] behind that one on.
//!    Each call takes a number at least, so a member that comes to those calls knows by 1 that rank 0 has finished the one in which it wrote, and sees the plan.
//!    A member that reads the new plan in a call before those finds in it what the old one said.
//! 3. That is so because rank 0 writes when every rank has finished a number of the last call of which the old plan says something special:
//!    all calls that are still to be read for go the one way that the old plan ends with, and that the new one begins with.
//!
//! What a call costs is the mean of what it took each member: each writes that into a word of its own, with the call's number,
//! and rank 0 reads them when it begins the next such call; a member that has not yet written, or has overwritten it, does not count.
//!
//! SYNC POINT shm.plan: the plan is ordered by `cells.finished`, as rank 0 writes it before it finishes a number and every member reads it after it has seen that.

use super::cells::DEPTH;
use crate::CallId;
use crate::trial::{Either, FREE, Known, ORDERS, Way, order_of};
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::cells::LINE;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::time::Instant;

/// So many calls, or numbers, are between writing a plan and its beginning.
const LAG: u64 = DEPTH;

/// So many calls say nothing of their way.
const COLD: u64 = 3;

/// Trying the worse way may take so small a part of the time: one in so many.
const PRICE: f32 = 64.0;

const CLASSES: usize = CallId::ALL.len() * ORDERS;
const WORD: usize = size_of::<u64>();
const STEP: usize = LINE / WORD;

/// The words that ways need for so many members: the plans, and a line for each member.
pub fn words(members: u32) -> usize {
    CLASSES.next_multiple_of(STEP) + members as usize * STEP
}

/// One communicator's ways, as one member sees them; `M` is zero at first.
pub struct ProtocolChoice<M> {
    memory: M,
    me: u32,
    members: u32,
    /// By call, the way before the first plan begins.
    first: [Way; CallId::ALL.len()],
    /// By class, how many calls have begun here.
    begun: OnceCell<Box<[Cell<u64>]>>,
    /// Rank 0's.
    decider: RefCell<Decider>,
}

/// Calls that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class(usize);

impl Class {
    fn of(call: CallId, bytes: u64) -> Class {
        Class(call as usize * ORDERS + order_of(bytes))
    }

    fn call(self) -> usize {
        self.0 / ORDERS
    }
}

/// Which way which calls of a class go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// The calls before this one go the way `before`.
    from: u64,
    before: Way,
    /// So many calls, three at most, go the way `tried`, and those behind them `then`.
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

    /// The first call of which it says nothing but `then`.
    fn end(&self) -> u64 {
        self.from + self.run
    }

    /// Not zero, which says that there is none.
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

/// What rank 0 knows.
#[derive(Default)]
struct Decider {
    /// By class; none before the first call.
    classes: Vec<Decided>,
    /// The call before, if its cost is still to be learnt.
    before: Option<Measured>,
}

#[derive(Clone, Copy, Default)]
struct Decided {
    known: Known,
    /// The first number of the last call of which the plan says something special, once that has begun.
    ends: Option<u64>,
}

/// A call under way.
#[derive(Clone, Copy)]
pub struct Measured {
    pub way: Way,
    class: Class,
    bytes: u64,
    number: u64,
    began: Instant,
}

impl<M: Deref<Target = [AtomicU64]>> ProtocolChoice<M> {
    /// Those in memory of [`words`] words.
    pub fn new(
        memory: M,
        me: u32,
        members: u32,
        first: impl Fn(CallId) -> Way,
    ) -> Option<ProtocolChoice<M>> {
        let fits = me < members && memory.len() >= words(members);
        fits.then(|| ProtocolChoice {
            memory,
            me,
            members,
            first: CallId::ALL.map(first),
            begun: OnceCell::new(),
            decider: RefCell::default(),
        })
    }

    /// The way that a call goes as long as nothing is known.
    pub fn first(&self, call: CallId) -> Way {
        self.first[call as usize]
    }

    fn plan(&self, class: Class) -> Plan {
        let first = self.first[class.call()];
        Plan::from_word(self.memory[class.0].load(Ordering::Relaxed), first)
    }

    /// What a member says about its last call: the lower bits of the number, and how many nanoseconds that took.
    fn took(&self, member: u32) -> &AtomicU64 {
        &self.memory[CLASSES.next_multiple_of(STEP) + member as usize * STEP]
    }

    /// Begins a call of blocks of so many bytes, for whose first number this member has room; `finished` says whether all have finished a number.
    pub fn begin(
        &self,
        (call, bytes): (CallId, u64),
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
        };
        if self.me == 0 {
            self.decide(&plan, call, &measured, finished);
        }
        measured
    }

    /// The call is over.
    pub fn end(&self, call: Measured) {
        let nanos = crate::trial::now().duration_since(call.began).as_nanos() as u64;
        self.say(call.number, nanos);
    }

    fn say(&self, number: u64, nanos: u64) {
        let word = number << TIME | nanos.min((1 << TIME) - 1);
        self.took(self.me).store(word, Ordering::Relaxed);
    }

    /// The mean of what members say about a call that rank 0 has ended.
    fn cost(&self, number: u64) -> Option<f32> {
        let words = (0..self.members).map(|rank| self.took(rank).load(Ordering::Relaxed));
        let said = words.filter(|word| word >> TIME == number << TIME >> TIME);
        let (sum, count) = said.fold((0, 0u64), |(sum, count), word| {
            (sum + (word & ((1 << TIME) - 1)), count + 1)
        });
        (count > 0).then(|| sum as f32 / count as f32)
    }

    /// Learns from the call before, and makes a new plan for the class of this one if the old one is used up.
    fn decide(&self, plan: &Plan, call: u64, measured: &Measured, finished: impl Fn(u64) -> bool) {
        let decider = &mut *self.decider.borrow_mut();
        if decider.classes.is_empty() {
            decider.classes = vec![Decided::default(); CLASSES];
        }
        // In the first calls memory is cold, and not only in the very first, as cells are used in turn.
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
        let first = self.first[measured.class.call()];
        let Some((way, run)) = class.wish(plan.then, first) else {
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

/// Bits of a time.
const TIME: u32 = 40;

impl Decided {
    /// What is to be tried next and how often, if that or what comes after it is not what goes on anyway.
    fn wish(&mut self, now: Way, first: Way) -> Option<(Way, u64)> {
        // The other way is tried as often as it has to be at once; of the first one there are samples meanwhile.
        let missing = self.known.missing(first.other());
        if missing > 0 {
            return Some((first.other(), missing as u64));
        }
        if self.known.missing(first) > 0 {
            return None;
        }
        // The first time it is cheap to have been wrong: what is new may have been slow for that.
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

    const CALLS: [(CallId, u64); 2] = [(CallId::Bcast, 1 << 16), (CallId::Gather, 1 << 20)];

    /// One member of a job that runs step by step.
    struct Member<'a> {
        ways: ProtocolChoice<&'a [AtomicU64]>,
        /// The last number that it has begun, and the last that it has finished.
        number: u64,
        finished: u64,
        under_way: Option<Measured>,
        /// Which way its calls have gone.
        gone: Vec<Way>,
    }

    /// Lets members make calls in an order of their own and says which way those went, of each member;
    /// call by call, `which` of [`CALLS`] it is, how many numbers it takes, less one, either way, and what it costs.
    fn play(
        members: u32,
        order: &[u32],
        which: &dyn Fn(u64) -> (usize, [u64; 2], [u64; 2]),
    ) -> Vec<Vec<Way>> {
        let memory: Vec<AtomicU64> = (0..words(members)).map(|_| AtomicU64::new(0)).collect();
        let member = |me| Member {
            ways: ProtocolChoice::new(&memory[..], me, members, |_| Way::Fragments).unwrap(),
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
                    member.ways.say(call.number, costs[call.way as usize]);
                }
            } else if member.number < slowest + DEPTH {
                let (call, more, _) = which(member.gone.len() as u64);
                let finished = |number| slowest >= number;
                let call =
                    member
                        .ways
                        .begin(CALLS[call], member.number + 1, Instant::now(), finished);
                member.number += 1 + more[call.way as usize];
                member.gone.push(call.way);
                member.under_way = Some(call);
            }
        }
        all.into_iter().map(|member| member.gone).collect()
    }

    proptest! {
        /// However far ahead of one another they are, and whatever calls cost.
        #[test]
        fn all_members_go_the_same_way_in_the_same_call(
            members in 2u32..5,
            order in prop::collection::vec(0u32..60, 3000),
            seeds in prop::collection::vec((0usize..5, 0u64..3, 0u64..3, 1u64..9, 1u64..9), 40),
        ) {
            let which = |call: u64| {
                let (which, a, b, copy, fragments) = seeds[(call / 5) as usize % seeds.len()];
                // Mostly one class, now and then the other.
                (usize::from(which == 0), [a, b], [copy * 1000, fragments * 1000])
            };
            let gone = play(members, &order, &which);
            for ways in &gone {
                let common = ways.len().min(gone[0].len());
                prop_assert_eq!(&ways[..common], &gone[0][..common]);
            }
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
