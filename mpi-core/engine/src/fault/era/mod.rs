//! Early returning agreement (ERA) by messages along a tree, among processes that may fail during it.
//!
//! T. Herault et al., "Practical scalable consensus for pseudo-synchronous distributed systems", SC'15 (ERA).
//! This module contains only the algorithm,
//! a state machine without clock or transport: its inputs are events, its outputs are messages.
//!
//! The members that no earlier agreement has found dead are numbered, in the same way on all members.
//! This number is a member's *place*; "a place" also means the member at that place.
//! The tree is a binary heap of places. If a place is known to be dead, its nearest living ancestor adopts its children.
//!
//! ```text
//! UP    child to parent:   the contributions of the child and of its subtree
//! DOWN  parent to child:   the decision; a place that receives it returns immediately
//! ASK   new root to all:   request for the receiver's state   (the reply is UP or DOWN)
//! ```
//!
//! * While place 0 lives, it is the root: it decides when it has received the contributions of all living places.
//! * When all places before it are dead, a place becomes the root, sends ASK to all other living places, and decides when all have replied:
//!   it takes the decision of an earlier root if any place knows one, otherwise the merged contributions.
//! * A place whose parent dies before the decision has arrived sends its contribution to its next living ancestor, or to the root;
//!   a place that has the decision replies with it.
//!
//! Guarantee: all members that survive decide the same value,
//! if every process that is considered dead is dead,
//! and every death is reported to all members in the end.
//! Proof sketch: two roots never live at the same time,
//! because a root considers all places before it dead, and only dead places are considered dead.
//! A place that has replied to a root no longer accepts a decision
//! of an earlier root ([`Era::takes`]), even if it is already in transfer.
//! So the replies to a root are final:
//! if no living place has a decision at that time, no place will later return an earlier root's.

mod value;

pub use value::Value;

/// A message of an agreement between two places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// The contributions of the sender and its subtree; `answers` is true in a reply to an ASK.
    Up { value: Value, answers: bool },
    /// The decision, which place `root` has made; `answers` is true in a reply to an ASK.
    Down {
        root: u32,
        value: Value,
        answers: bool,
    },
    /// The sender has become the root.
    Ask,
}

/// How far a place is in an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The place waits for the contributions of its children.
    Gathering,
    /// The place has sent its contribution to this place: its parent, or a root that has requested it.
    Told(u32),
}

/// The state of one place in an agreement that it has begun.
pub struct Era {
    me: u32,
    places: u32,
    /// The rank of the member at each place; the bit sets in values are indexed by this rank.
    members: Vec<u32>,
    /// The merged contributions so far; after the decision, the decided value.
    value: Value,
    phase: Phase,
    /// For each place, true if an UP has arrived from it.
    heard: Vec<bool>,
    /// The last root from which an ASK has arrived.
    asked_by: Option<u32>,
    /// On a root that has sent ASK: for each place, true if it has replied.
    answered: Option<Vec<bool>>,
    /// The places to which this place has sent the decision.
    told: Vec<u32>,
    /// The place that made the decision.
    decided_by: Option<u32>,
}

/// Outgoing messages with their destination places.
pub type Out = Vec<(u32, Say)>;

impl Era {
    /// Begins with the contribution `value` of place `me`. `members[i]` is the rank of the member at place `i`; `dead[i]` is true if place `i` is known to be dead.
    pub fn begin(me: u32, members: Vec<u32>, value: Value, dead: &[bool], out: &mut Out) -> Era {
        let places = members.len() as u32;
        let mut era = Era {
            me,
            places,
            members,
            value,
            phase: Phase::Gathering,
            heard: vec![false; places as usize],
            asked_by: None,
            answered: None,
            told: Vec::new(),
            decided_by: None,
        };
        era.advance(dead, out);
        era
    }

    /// Returns the decision, if there is one.
    pub fn decision(&self) -> Option<&Value> {
        self.decided_by.is_some().then_some(&self.value)
    }

    /// Handles newly known deaths.
    pub fn on_death(&mut self, dead: &[bool], out: &mut Out) {
        self.advance(dead, out);
    }

    /// Handles a message from place `from`.
    pub fn on_say(&mut self, from: u32, say: Say, dead: &[bool], out: &mut Out) {
        if from >= self.places {
            return;
        }
        match say {
            Say::Up { value, answers } => match self.decided_by {
                Some(root) => {
                    out.push((from, self.down(root, false)));
                    self.told.push(from);
                }
                None => {
                    self.value.merge(&value);
                    self.heard[from as usize] = true;
                    if let Some(answered) = self.answered.as_mut().filter(|_| answers) {
                        answered[from as usize] = true;
                    }
                }
            },
            Say::Ask => match self.decided_by {
                Some(root) => out.push((from, self.down(root, true))),
                // This is a late request of an earlier root, which has died.
                None if self.asked_by.is_some_and(|other| other > from) => {}
                None => {
                    self.asked_by = Some(from);
                    self.phase = Phase::Told(from);
                    out.push((from, self.up(true, dead)));
                }
            },
            Say::Down {
                root,
                value,
                answers,
            } => {
                if self.takes(root, answers) {
                    self.decide(root, value, dead, out);
                } else if self.decided_by.is_some() && root < self.places {
                    self.tell_again(root, out);
                }
            }
        }
        self.advance(dead, out);
    }

    /// Returns true if this place must accept the decision of `root`:
    /// it has no decision yet, and has not replied to a later root.
    /// A root accepts the decision in a reply in any case.
    fn takes(&self, root: u32, answers: bool) -> bool {
        let replaced = self.asked_by.is_some_and(|asked| root < asked);
        let asked = answers && self.answered.is_some();
        self.decided_by.is_none() && root < self.places && (asked || !replaced)
    }

    fn up(&mut self, answers: bool, dead: &[bool]) -> Say {
        self.value.count_dead(&self.members, dead);
        Say::Up {
            value: self.value.clone(),
            answers,
        }
    }

    fn down(&self, root: u32, answers: bool) -> Say {
        Say::Down {
            root,
            value: self.value.clone(),
            answers,
        }
    }

    /// Returns true if all places before this one are dead.
    fn is_root(&self, dead: &[bool]) -> bool {
        (0..self.me).all(|place| dead[place as usize])
    }

    /// Performs all steps that have become possible.
    fn advance(&mut self, dead: &[bool], out: &mut Out) {
        if self.decided_by.is_some() {
            if self.is_root(dead) {
                self.tell_again(self.me, out);
            }
            return;
        }
        let is_dead = |place: u32| dead.get(place as usize).copied().unwrap_or(false);
        match (self.me, self.is_root(dead)) {
            (0, _) => {
                if self.all_below_heard(dead) {
                    self.decide_own(dead, out);
                }
            }
            (_, true) => self.lead(dead, out),
            (_, false) => {
                let due = match self.phase {
                    Phase::Gathering => self.all_below_heard(dead),
                    Phase::Told(parent) => is_dead(parent),
                };
                if let Some(parent) = self.parent(dead).filter(|_| due) {
                    self.phase = Phase::Told(parent);
                    let up = self.up(false, dead);
                    out.push((parent, up));
                }
            }
        }
    }

    /// Performs the steps of a root that has replaced a dead one.
    fn lead(&mut self, dead: &[bool], out: &mut Out) {
        let others = self.others(dead);
        let answered = self.answered.get_or_insert_with(|| {
            out.extend(others.iter().map(|place| (*place, Say::Ask)));
            vec![false; dead.len()]
        });
        if others.iter().all(|place| answered[*place as usize]) {
            self.decide_own(dead, out);
        }
    }

    fn decide_own(&mut self, dead: &[bool], out: &mut Out) {
        self.value.count_dead(&self.members, dead);
        let value = self.value.clone();
        self.decide(self.me, value, dead, out);
    }

    /// Records a decision and sends it to other places.
    fn decide(&mut self, root: u32, value: Value, dead: &[bool], out: &mut Out) {
        self.value = value;
        // A root that found the decision in a reply sends it with its own place as `root`,
        // so that all places that have replied to this root accept it.
        let leads = self.answered.is_some();
        let root = if leads { self.me } else { root };
        self.decided_by = Some(root);
        let to = match leads {
            true => self.others(dead),
            false => {
                let mut below = self.children(dead);
                let heard = (0..self.places).filter(|place| self.heard[*place as usize]);
                below.extend(heard);
                below.sort_unstable();
                below.dedup();
                below
            }
        };
        let say = self.down(root, false);
        self.told.extend(&to);
        out.extend(to.into_iter().map(|place| (place, say.clone())));
    }

    /// Sends the decision again with a later root as `root`;
    /// places that have replied to this root, or to an earlier one, accept it.
    fn tell_again(&mut self, root: u32, out: &mut Out) {
        if self.decided_by.is_some_and(|before| before < root) {
            self.decided_by = Some(root);
            let say = self.down(root, false);
            out.extend(self.told.iter().map(|place| (*place, say.clone())));
        }
    }

    fn others(&self, dead: &[bool]) -> Vec<u32> {
        let lives = |place: &u32| *place != self.me && !dead[*place as usize];
        (0..self.places).filter(lives).collect()
    }

    /// Returns the place to which this place sends its contribution: its nearest living ancestor,
    /// or the root if there is no living ancestor or an ASK has arrived,
    /// because after an ASK only a root's decision is certain to be accepted.
    fn parent(&self, dead: &[bool]) -> Option<u32> {
        let above = |place: u32| place.checked_sub(1).map(|before| before / 2);
        let lives = |place: &u32| !dead[*place as usize];
        std::iter::successors(above(self.me), |place| above(*place))
            .find(lives)
            .filter(|_| self.asked_by.is_none())
            .or_else(|| (0..self.me).find(lives))
    }

    fn children(&self, dead: &[bool]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![self.me];
        while let Some(place) = open.pop() {
            for child in [2 * place + 1, 2 * place + 2] {
                if child >= self.places {
                    continue;
                }
                match dead[child as usize] {
                    true => open.push(child),
                    false => found.push(child),
                }
            }
        }
        found
    }

    fn all_below_heard(&self, dead: &[bool]) -> bool {
        let children = self.children(dead);
        children.iter().all(|place| self.heard[*place as usize])
    }
}

#[cfg(test)]
mod tests;
