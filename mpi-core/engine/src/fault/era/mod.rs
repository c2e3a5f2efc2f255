//! Agreement among processes of which some fail meanwhile: early returning, with messages along a tree.
//!
//! After T. Herault et al., "Practical scalable consensus for pseudo-synchronous distributed systems", SC'15 (ERA).
//! This is the algorithm alone, a state machine without a clock, a transport or a process: events go in, messages come out.
//!
//! Members are numbered by their *places*: those that no earlier agreement has found dead, in one order at all of them.
//! The tree is a binary heap of places; a place that is known to be dead is passed over, and its children belong to the nearest living place above it.
//!
//! ```text
//! UP    child to parent:   what the child and all below it contribute
//! DOWN  parent to child:   what is decided; a place that knows it returns at once
//! ASK   new root to all:   what do you know?   (answered by UP or DOWN)
//! ```
//!
//! * As long as place 0 lives it is the root: it decides when it has heard from all places that live.
//! * When all places before it are dead, a place is the root, asks all others that live, and decides when all have answered:
//!   what an earlier root has decided, if any place knows it, else what they contribute.
//! * A place whose parent dies before the decision came sends what it has to its next parent, or to the root; one that has decided answers.
//!
//! Promise: all members that live to the end decide the same, if those that are held for dead are dead, and every death is told to all in the end.
//! Why: two roots never live at once, since a root holds all before it for dead, and they are.
//! A place that has answered a root takes no decision of an earlier one any more ([`Era::takes`]), be it still on its way.
//! So what a root hears is final: if no living place knows a decision then, no living place ever returns with another one.

mod value;

pub use value::Value;

/// What places say to each other about one agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// What the sender and those below it contribute; `answers` a root that has asked.
    Up { value: Value, answers: bool },
    /// What the root at that place has decided; `answers` a root that has asked.
    Down {
        root: u32,
        value: Value,
        answers: bool,
    },
    /// The sender is the root now.
    Ask,
}

/// What a place is to do with an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for those below it.
    Gathering,
    /// Has told its parent, or a root that has asked.
    Told(u32),
}

/// One agreement at one place, from its contribution on.
pub struct Era {
    me: u32,
    places: u32,
    /// Which member has which place: values speak of members.
    members: Vec<u32>,
    /// What is known so far; once decided, the decision.
    value: Value,
    phase: Phase,
    /// Which places have said UP.
    heard: Vec<bool>,
    /// The last root that has asked this place.
    asked_by: Option<u32>,
    /// Which places have answered this one, since it is the root and has asked.
    answered: Option<Vec<bool>>,
    /// Which places have been told the decision from here.
    told: Vec<u32>,
    /// The place that has decided.
    decided_by: Option<u32>,
}

/// What goes out: to which place, and what.
pub type Out = Vec<(u32, Say)>;

impl Era {
    /// Place `me` contributes a value; `members` says which member has which place, `dead` of each place whether it is known to be dead.
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

    /// What was decided.
    pub fn decision(&self) -> Option<&Value> {
        self.decided_by.is_some().then_some(&self.value)
    }

    /// More places are known to be dead.
    pub fn on_death(&mut self, dead: &[bool], out: &mut Out) {
        self.advance(dead, out);
    }

    /// A place has said something.
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
                // One that asked before has died since.
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

    /// Whether a decision counts: none has before, and it is not that of a root which a later one has replaced for this place.
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

    /// Whether all places before this one are dead.
    fn is_root(&self, dead: &[bool]) -> bool {
        (0..self.me).all(|place| dead[place as usize])
    }

    /// Does what has become due.
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

    /// Takes the place of a root that has died.
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

    /// Takes a decision and passes it on.
    fn decide(&mut self, root: u32, value: Value, dead: &[bool], out: &mut Out) {
        self.value = value;
        // What a root has found out has the place of that root, so that it counts for all that have answered it.
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

    /// A later root holds by the decision: those take it now that have answered that root, or one before it.
    fn tell_again(&mut self, root: u32, out: &mut Out) {
        if self.decided_by.is_some_and(|before| before < root) {
            self.decided_by = Some(root);
            let say = self.down(root, false);
            out.extend(self.told.iter().map(|place| (*place, say.clone())));
        }
    }

    /// All other places that live.
    fn others(&self, dead: &[bool]) -> Vec<u32> {
        let lives = |place: &u32| *place != self.me && !dead[*place as usize];
        (0..self.places).filter(lives).collect()
    }

    /// Which place this one tells: the nearest living place above; or the root, if there is none or a root has asked before,
    /// since no other place's decision counts for certain then.
    fn parent(&self, dead: &[bool]) -> Option<u32> {
        let above = |place: u32| place.checked_sub(1).map(|before| before / 2);
        let lives = |place: &u32| !dead[*place as usize];
        std::iter::successors(above(self.me), |place| above(*place))
            .find(lives)
            .filter(|_| self.asked_by.is_none())
            .or_else(|| (0..self.me).find(lives))
    }

    /// The nearest living places below.
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
