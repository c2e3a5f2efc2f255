//! Tests of the agreement in simulated time: pseudo-random message orders, and a death at every step of every place.

use super::{Era, Out, Say, Value};
use mpi_base::random::SplitMix64;
use std::collections::VecDeque;

struct Place {
    era: Option<Era>,
    /// Messages that arrived before this place began the agreement.
    early: Vec<(u32, Say)>,
    /// For each place, true if this place considers it dead.
    dead: Vec<bool>,
    lives: bool,
    /// The number of sends and receives before this place dies; `None` if it survives.
    steps_left: Option<u32>,
}

/// A place that dies, and the number of its steps (sends and receives) before its death.
#[derive(Clone, Copy, Debug)]
struct Death {
    place: u32,
    after: u32,
}

struct Network {
    places: Vec<Place>,
    /// The messages in transfer between each pair of places, in order.
    channels: Vec<Vec<VecDeque<Say>>>,
    chance: SplitMix64,
    contributed: Vec<u32>,
    made: Vec<u32>,
}

#[derive(Clone, Copy)]
enum Event {
    Begin(usize),
    Deliver(usize, usize),
    Notice(usize, usize),
}

impl Network {
    fn new(size: usize, deaths: &[Death], seed: u64) -> Network {
        let place = |at: usize| Place {
            era: None,
            early: Vec::new(),
            dead: vec![false; size],
            lives: true,
            steps_left: deaths
                .iter()
                .find(|death| death.place as usize == at)
                .map(|death| death.after),
        };
        Network {
            places: (0..size).map(place).collect(),
            channels: vec![vec![VecDeque::new(); size]; size],
            chance: SplitMix64(seed),
            contributed: Vec::new(),
            made: vec![0; size],
        }
    }

    /// Counts a step of place `at`. Returns true if the place survives it.
    fn step(&mut self, at: usize) -> bool {
        self.made[at] += 1;
        let place = &mut self.places[at];
        match &mut place.steps_left {
            Some(0) => place.lives = false,
            Some(left) => *left -= 1,
            None => {}
        }
        place.lives
    }

    fn send(&mut self, from: usize, out: Out) {
        for (to, say) in out {
            if !self.step(from) {
                return;
            }
            self.channels[from][to as usize].push_back(say);
        }
    }

    fn take(&mut self, at: usize, from: u32, say: Say) {
        let place = &mut self.places[at];
        let Some(era) = &mut place.era else {
            return place.early.push((from, say));
        };
        let mut out = Vec::new();
        era.on_say(from, say, &place.dead, &mut out);
        self.send(at, out);
    }

    fn events(&self) -> Vec<Event> {
        let size = self.places.len();
        let mut events = Vec::new();
        for at in 0..size {
            if !self.places[at].lives {
                continue;
            }
            if self.places[at].era.is_none() {
                events.push(Event::Begin(at));
            }
            for from in 0..size {
                if !self.channels[from][at].is_empty() {
                    events.push(Event::Deliver(from, at));
                }
                if !self.places[from].lives && !self.places[at].dead[from] {
                    events.push(Event::Notice(at, from));
                }
            }
        }
        events
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Begin(at) => {
                if !self.step(at) {
                    return;
                }
                let size = self.places.len();
                let value = Value {
                    memory: 0,
                    flag: !(1 << at),
                    number: at as u64,
                    dead: self.places[at].dead.clone(),
                    acknowledged: vec![false; size],
                };
                self.contributed.push(at as u32);
                let mut out = Vec::new();
                let dead = &self.places[at].dead;
                let era = Era::begin(at as u32, (0..size as u32).collect(), value, dead, &mut out);
                self.places[at].era = Some(era);
                self.send(at, out);
                for (from, say) in std::mem::take(&mut self.places[at].early) {
                    if self.places[at].lives {
                        self.take(at, from, say);
                    }
                }
            }
            Event::Deliver(from, at) => {
                if !self.step(at) {
                    return;
                }
                if let Some(say) = self.channels[from][at].pop_front() {
                    self.take(at, from as u32, say);
                }
            }
            Event::Notice(at, gone) => {
                let place = &mut self.places[at];
                place.dead[gone] = true;
                let mut out = Vec::new();
                if let Some(era) = &mut place.era {
                    era.on_death(&place.dead, &mut out);
                }
                self.send(at, out);
            }
        }
    }

    /// Runs until no message is in transfer and no death is unreported. Returns the decision of each place.
    fn run(&mut self) -> Vec<Option<Value>> {
        loop {
            let events = self.events();
            if events.is_empty() {
                break;
            }
            let which = self.chance.below(events.len() as u64) as usize;
            self.happen(events[which]);
        }
        let decided = |place: &Place| {
            let lives = place.lives.then_some(place.era.as_ref());
            lives.flatten().and_then(Era::decision).cloned()
        };
        self.places.iter().map(decided).collect()
    }

    fn check(&mut self, told: &str) {
        let decided = self.run();
        let mut first: Option<Value> = None;
        for (at, (place, value)) in self.places.iter().zip(&decided).enumerate() {
            if !place.lives {
                continue;
            }
            let Some(value) = value else {
                panic!("{told}: place {at} waits without end");
            };
            let same = first.get_or_insert_with(|| value.clone());
            assert_eq!(value, same, "{told}: place {at} decides something else");
        }
        let Some(value) = first else { return };
        for (at, place) in self.places.iter().enumerate() {
            let counted = value.flag >> at & 1 == 0;
            assert!(counted || !place.lives, "{told}: place {at} is left out");
            assert!(
                !value.dead[at] || !place.lives,
                "{told}: place {at} is held for dead"
            );
            assert!(
                counted || value.dead[at],
                "{told}: place {at} is left out and not held for dead"
            );
            assert!(
                !counted || self.contributed.contains(&(at as u32)),
                "{told}: place {at} has said nothing"
            );
        }
    }
}

/// Returns the maximum number of steps of a place if none dies.
fn steps(size: usize, seed: u64) -> u32 {
    let mut network = Network::new(size, &[], seed);
    network.check("no process dies");
    network.made.iter().copied().max().unwrap_or(0)
}

#[test]
fn all_that_live_decide_the_same_wherever_one_dies() {
    for size in 2..=9 {
        for seed in 1..=40_u64 {
            let seed = seed * 0x9E37_79B9;
            for place in 0..size as u32 {
                for after in 0..=steps(size, seed) {
                    let death = Death { place, after };
                    let told = format!("{size} places, seed {seed}, {death:?}");
                    Network::new(size, &[death], seed).check(&told);
                }
            }
        }
    }
}

#[test]
fn all_that_live_decide_the_same_wherever_two_die() {
    for size in 2..=5 {
        for seed in 1..=3_u64 {
            let seed = seed * 0x9E37_79B9;
            let most = steps(size, seed) + 2;
            for a in 0..size as u32 {
                for b in (0..size as u32).filter(|b| *b != a) {
                    for first in 0..=most {
                        for second in 0..=most {
                            let deaths = [
                                Death {
                                    place: a,
                                    after: first,
                                },
                                Death {
                                    place: b,
                                    after: second,
                                },
                            ];
                            let told = format!("{size} places, seed {seed}, {deaths:?}");
                            Network::new(size, &deaths, seed).check(&told);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn all_that_live_decide_the_same_whoever_dies_when() {
    let mut chance = SplitMix64(0xBAD_5EED);
    for round in 0..20_000_u64 {
        let size = 2 + chance.below(15) as usize;
        let how_many = chance.below(size as u64 + 1);
        let mut deaths: Vec<Death> = Vec::new();
        for _ in 0..how_many {
            let (place, after) = (chance.below(size as u64) as u32, chance.below(12) as u32);
            deaths.push(Death { place, after });
        }
        let told = format!("round {round}, {size} places, {deaths:?}");
        Network::new(size, &deaths, round.wrapping_mul(0x9E37_79B9) + 1).check(&told);
    }
}

#[test]
fn without_a_death_each_place_but_the_root_says_one_thing_and_hears_one() {
    let size = 32;
    let mut network = Network::new(size, &[], 7);
    network.check("no process dies");
    let messages: u32 = network.made.iter().sum::<u32>() - size as u32;
    // Each edge carries UP and DOWN; each message is a step of its sender and of its receiver.
    assert_eq!(messages, 4 * (size as u32 - 1));
}
