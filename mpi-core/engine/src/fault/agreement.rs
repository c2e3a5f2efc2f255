//! The agreements in which this process takes part: connects the algorithm ([`Era`]) with messages, and keeps decisions.
//!
//! A message of an agreement that this process has not begun is queued until it begins.
//! Decisions are kept for members that have not received them yet: the last two of each communicator,
//! and those of the last [`MOST_RETIRED`] freed communicators.
//! Two are enough: no member begins agreement n + 2 before all members have the decision of agreement n.

use super::deaths::Deaths;
use super::era::{Era, Out, Value};
use super::outbox::Outbox;
use super::wire::{AGREE, Key, key_of, read, write};
use mpi_transport::btl::{Header, ProcId};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

const MOST_RETIRED: usize = 256;

/// Maximum number of queued messages of agreements that this process has not begun.
const MOST_EARLY: usize = 1 << 16;

type Message = (ProcId, Header, Vec<u8>);

pub(crate) struct Agreements {
    deaths: Rc<Deaths>,
    outbox: Rc<Outbox>,
    running: RefCell<HashMap<Key, Agreement>>,
    early: RefCell<BTreeMap<Key, Vec<Message>>>,
    retired: RefCell<VecDeque<u64>>,
}

struct Agreement {
    /// The process at each place (see [`Era`]).
    places: Vec<ProcId>,
    /// The number of members of the communicator, which is the length of the bit sets in values.
    members: usize,
    era: Era,
}

/// The processes of an agreement: for each place, the process and its rank among the communicator's members.
pub(crate) struct Participants {
    pub(crate) places: Vec<ProcId>,
    pub(crate) members: Vec<u32>,
    /// The place of this process.
    pub(crate) me: u32,
}

impl Agreement {
    fn dead(&self, deaths: &Deaths) -> Vec<bool> {
        dead_places(&self.places, deaths)
    }
}

fn dead_places(places: &[ProcId], deaths: &Deaths) -> Vec<bool> {
    places.iter().map(|proc| deaths.is_dead(*proc)).collect()
}

impl Agreements {
    pub(super) fn new(deaths: Rc<Deaths>, outbox: Rc<Outbox>) -> Agreements {
        Agreements {
            deaths,
            outbox,
            running: RefCell::default(),
            early: RefCell::default(),
            retired: RefCell::default(),
        }
    }

    fn send(&self, key: Key, places: &[ProcId], out: Out) {
        for (place, say) in out {
            let (header, payload) = write(key, &say);
            let to = places[place as usize];
            self.outbox.say(to, AGREE, header, payload);
        }
    }

    /// Begins an agreement with this process's contribution.
    pub(crate) fn begin(&self, key: Key, participants: Participants, value: Value) {
        let Participants {
            places,
            members,
            me,
        } = participants;
        let speaks_of = value.dead.len();
        let (dead, mut out) = (dead_places(&places, &self.deaths), Vec::new());
        let era = Era::begin(me, members, value, &dead, &mut out);
        self.send(key, &places, out);
        let agreement = Agreement {
            places,
            members: speaks_of,
            era,
        };
        self.running.borrow_mut().insert(key, agreement);
        self.running
            .borrow_mut()
            .retain(|other, _| other.comm != key.comm || other.number + 1 >= key.number);
        let early = self.early.borrow_mut().remove(&key);
        for (from, header, payload) in early.into_iter().flatten() {
            self.on_message(from, header, &payload);
        }
    }

    /// Returns the decision, if there is one.
    pub(crate) fn decision(&self, key: Key) -> Option<Value> {
        let running = self.running.borrow();
        running.get(&key)?.era.decision().cloned()
    }

    pub(super) fn on_message(&self, from: ProcId, header: Header, payload: &[u8]) {
        let key = key_of(header);
        let mut running = self.running.borrow_mut();
        let Some(agreement) = running.get_mut(&key) else {
            drop(running);
            return self.keep(key, (from, header, payload.to_vec()));
        };
        let place = agreement.places.iter().position(|proc| *proc == from);
        let say = read(header, payload, agreement.members);
        // An invalid message is dropped.
        let (Some(place), Some(say)) = (place, say) else {
            return;
        };
        let (dead, mut out) = (agreement.dead(&self.deaths), Vec::new());
        agreement.era.on_say(place as u32, say, &dead, &mut out);
        self.send(key, &agreement.places, out);
    }

    fn keep(&self, key: Key, message: Message) {
        // A late message is dropped: its sender gets the decision from another member.
        let later = |other: &Key| other.comm == key.comm && other.number > key.number;
        let late = self.running.borrow().keys().any(later);
        if late || self.retired.borrow().contains(&key.comm) {
            return;
        }
        let mut early = self.early.borrow_mut();
        early.entry(key).or_default().push(message);
        let kept: usize = early.values().map(Vec::len).sum();
        if kept > MOST_EARLY {
            early.pop_first();
        }
    }

    /// Reports a death to all agreements.
    pub(super) fn on_death(&self) {
        for (key, agreement) in self.running.borrow_mut().iter_mut() {
            let (dead, mut out) = (agreement.dead(&self.deaths), Vec::new());
            agreement.era.on_death(&dead, &mut out);
            self.send(*key, &agreement.places, out);
        }
    }

    /// Records that a communicator has been freed.
    /// Its decisions are kept until [`MOST_RETIRED`] further communicators have been freed.
    pub(super) fn retire(&self, comm: u64) {
        let known = self.running.borrow().keys().any(|key| key.comm == comm);
        if !known {
            return;
        }
        let mut retired = self.retired.borrow_mut();
        retired.push_back(comm);
        if retired.len() > MOST_RETIRED
            && let Some(oldest) = retired.pop_front()
        {
            self.running
                .borrow_mut()
                .retain(|key, _| key.comm != oldest);
        }
        self.early.borrow_mut().retain(|key, _| key.comm != comm);
    }
}
