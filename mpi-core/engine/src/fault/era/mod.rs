//! Early returning agreement (ERA) among processes that may fail meanwhile, with messages along a tree.
//!
//! After T. Herault et al., "Practical scalable consensus for pseudo-synchronous distributed systems", SC'15 (ERA).
//! This module is only the algorithm:
//! a state machine without a clock or a transport, with events as input and messages as output.
//!
//! Members that no earlier agreement has found dead are numbered, equally at all members.
//! Such a number is a *place*.
//! The tree is a binary heap of places. A place that is known to be dead is skipped, and its children belong to its nearest living ancestor.
//!
//! ```text
//! UP    child to parent:   the contributions of the child and of its subtree
//! DOWN  parent to child:   the decision; a place that receives it returns at once
//! ASK   new root to all:   request of the receiver's state   (the reply is UP or DOWN)
//! ```
//!
//! * As long as place 0 lives it is the root: it decides when it has received the contributions of all living places.
//! * When all places before it are dead, a place becomes the root, sends ASK to all other living places, and decides when all have replied:
//!   the decision of an earlier root if any place knows it, otherwise the merged contributions.
//! * A place whose parent dies before the decision has arrived sends its contribution to its next parent, or to the root;
//!   a place that has the decision replies with it.
//!
//! Guarantee: all members that live to the end decide the same value,
//! if every process considered dead is dead,
//! and that every death is eventually reported to all members.
//! Proof sketch: two roots never live at once,
//! because a root considers all places before it dead, and these are dead.
//! A place that has replied to a root no longer accepts a decision
//! of an earlier root ([`Era::takes`]), even one already in transfer.
//! So the replies to a root are final:
//! if no living place knows a decision then, none will return an earlier root's decision.

mod value;

pub use value::Value;

/// A message between places about one agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// The contributions of the sender and its subtree; `answers` is true in a reply to an ASK.
    Up { value: Value, answers: bool },
    /// The decision of the root at place `root`; `answers` is true in a reply to an ASK.
    Down {
        root: u32,
        value: Value,
        answers: bool,
    },
    /// The sender has become the root.
    Ask,
}

/// The next step of a place in an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The place waits for the contributions of its children.
    Gathering,
    /// The place has sent its contribution to its parent, or to a root that has requested it.
    Told(u32),
}

/// One agreement at one place, from its contribution on.
pub struct Era {
    me: u32,
    places: u32,
    /// The member at each place: values refer to members.
    members: Vec<u32>,
    /// The merged contributions so far; after the decision, the decided value.
    value: Value,
    phase: Phase,
    /// For each place, true if the place has sent UP.
    heard: Vec<bool>,
    /// The last root that has sent this place a request.
    asked_by: Option<u32>,
    /// At the root, for each place: true if the place has replied to this root's ASK.
    answered: Option<Vec<bool>>,
    /// The places to which this place has sent the decision.
    told: Vec<u32>,
    /// The place that made the decision.
    decided_by: Option<u32>,
}

/// The outgoing messages and their destinations.
pub type Out = Vec<(u32, Say)>;

impl Era {
    /// Begins with the contribution of place `me`. `members[i]` is the member at place `i`; `dead[i]` is true if place `i` is known to be dead.
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

    /// Handles a message of a place.
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
                // An outdated request of an earlier root that has died.
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

    /// Returns true if this place accepts the decision of `root`:
    /// it has no decision and has not replied to a later root.
    /// A root always accepts the decision in a reply.
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

    /// Takes the steps that have become possible.
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

    /// Acts as the root after the previous one has died.
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

    /// Records a decision and sends it on.
    fn decide(&mut self, root: u32, value: Value, dead: &[bool], out: &mut Out) {
        self.value = value;
        // A decision from a reply is labelled with this root's place,
        // so that all places that replied to this root accept it.
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

    /// Sends the decision again with the label of a later root;
    /// places that replied to that root, or to an earlier one, accept it.
    fn tell_again(&mut self, root: u32, out: &mut Out) {
        if self.decided_by.is_some_and(|before| before < root) {
            self.decided_by = Some(root);
            let say = self.down(root, false);
            out.extend(self.told.iter().map(|place| (*place, say.clone())));
        }
    }

    /// Returns all other living places.
    fn others(&self, dead: &[bool]) -> Vec<u32> {
        let lives = |place: &u32| *place != self.me && !dead[*place as usize];
        (0..self.places).filter(lives).collect()
    }

    /// Returns the place that gets this place's contribution: the nearest living ancestor.
    /// It is the root if there is no living ancestor
    /// or an ASK has arrived, because then only a root's decision is certain to be accepted.
    fn parent(&self, dead: &[bool]) -> Option<u32> {
        let above = |place: u32| place.checked_sub(1).map(|before| before / 2);
        let lives = |place: &u32| !dead[*place as usize];
        std::iter::successors(above(self.me), |place| above(*place))
            .find(lives)
            .filter(|_| self.asked_by.is_none())
            .or_else(|| (0..self.me).find(lives))
    }

    /// Returns the nearest living descendants of this place.
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
