//! Spares: the collectives of freed duplicates of `MPI_COMM_WORLD`, which later duplicates use.
//!
//! The members of a new communicator agree on its components in two rounds of messages,
//! and each component then allocates and maps its memory.
//! Most programs duplicate `MPI_COMM_WORLD`, each of their libraries once,
//! and windows, files and persistent collectives use duplicates too.
//! So the collectives of the first [`MOST`] duplicates are kept when these duplicates are freed,
//! and a later duplicate uses them again without an agreement ([ADR 95]).
//!
//! Guarantee: all members use the same spare for a duplicate,
//! and no member uses a spare before all members have left its previous communicator.
//!
//! Protocol:
//! 1. Duplicates of `MPI_COMM_WORLD` and of communicators with the same members in the same order use spares.
//!    Whether there are spares ([`are_used`]) follows from the components of the duplicated communicator, on which all members have agreed.
//! 2. The members duplicate `MPI_COMM_WORLD` by [`Constructors::dup_now`](super::Constructors::dup_now) in the same order, since `MPI_Comm_dup` is collective.
//!    So those of these duplicates that an agreement created get the same numbers on all members; the first [`MOST`] become spares.
//! 3. A member that drops such a duplicate keeps the collectives, unless the member knows that the duplicate has been revoked.
//!    The member that has revoked it keeps nothing, so this spare is never used again.
//! 4. For a new duplicate, the members exchange a few words by a fast call on the duplicated communicator:
//!    a tag, the context id that rank 0 has allocated, and for each spare a word with the operations that it has executed
//!    ([`Collectives::progress`](super::Collectives::progress)), or 0 if the member still uses it.
//!    Rank 0 allocates the id before the exchange, because other threads may create communicators while it waits.
//!    Threads may duplicate several communicators at the same time, in different orders on different members.
//!    So a member contributes 0 for a spare that it offers in another exchange, and no spare gets two users.
//! 5. Each member verifies the tags, which differ if another rank called another collective of the program.
//! 6. The members use the first spare for which the words of all members are equal and not 0.
//!    Without such a spare the members agree on the components as for any communicator.
//!
//! [ADR 95]: ../../../../docs/adr/0095-freed-duplicates-of-the-world-are-used-again.md

use super::selected::{Purpose, Table, Words};
use super::{Comm, CommError, Context, ControlGroup, Unserved, context_id};
use crate::Error;
use crate::coll::CallId;
use crate::engine::Engine;
use std::cell::{Cell, RefCell};

/// Maximum number of spares. Their memory is not freed before `MPI_COMM_WORLD`.
const MOST: usize = size_of::<Words>() / size_of::<u64>() - FIRST_SPARE;

/// Number of spares that are created at the start.
const AT_START: usize = 2;

/// Indices of the tag, the context id and the first spare's word in the exchanged words.
const TAG: usize = 0;
const CONTEXT: usize = 1;
const FIRST_SPARE: usize = 2;

/// The spares of a process.
#[derive(Default)]
pub(super) struct Spares {
    /// Number of duplicates, existing or freed, that become spares.
    created: Cell<usize>,
    /// For each spare, the collectives of its freed duplicate; `None` while a duplicate uses them or an exchange offers them.
    kept: RefCell<[Option<Box<Table>>; MOST]>,
}

impl Spares {
    pub(super) fn of(engine: &Engine) -> &Spares {
        engine.extension_of_type()
    }

    /// Keeps the collectives of a freed duplicate until `MPI_COMM_WORLD` is freed.
    pub(super) fn keep(&self, engine: &Engine, spare: usize, table: Box<Table>) {
        match self.kept.borrow_mut().get_mut(spare) {
            Some(place) if engine.world().is_some() => *place = Some(table),
            _ => table.disable(),
        }
    }

    /// Frees what the spares use; called when `MPI_COMM_WORLD` is freed.
    pub(super) fn end(&self) {
        self.created.set(0);
        for table in self.kept.take().into_iter().flatten() {
            table.disable();
        }
    }

    /// Takes all spares that this member can offer in an exchange.
    fn offer(&self) -> [Option<Box<Table>>; MOST] {
        self.kept.take()
    }

    /// Ends an offer: keeps the spares again that no duplicate uses.
    fn withdraw(&self, engine: &Engine, offered: [Option<Box<Table>>; MOST]) {
        let mut kept = self.kept.borrow_mut();
        for (slot, table) in kept.iter_mut().zip(offered) {
            match table {
                // A spare is either in `kept` or in one offer, so its slot in `kept` is empty.
                Some(table) if engine.world().is_some() => *slot = Some(table),
                Some(table) => table.disable(),
                None => {}
            }
        }
    }
}

/// Returns this member's words for an exchange; on rank 0 with an allocated context id.
fn words(parent: &Comm, offered: &[Option<Box<Table>>; MOST]) -> Words {
    let mut words = Words::default();
    words[TAG] = tag(
        parent.context().number(),
        parent.collectives().next_exchange(),
    );
    if parent.rank() == 0 {
        words[CONTEXT] = parent.engine().context_ids().next(1, false);
    }
    for (word, spare) in words[FIRST_SPARE..].iter_mut().zip(offered) {
        let progress = spare.as_ref().and_then(|table| table.progress(parent));
        *word = progress.map_or(0, |progress| progress << 1 | 1);
    }
    words
}

/// Returns true if duplicates of this communicator use spares. All members get the same result.
pub(super) fn are_used(comm: &Comm) -> bool {
    comm.collectives().are_reusable() && (comm.is_world() || has_members_of_world(comm))
}

/// Returns true if a communicator has the members of `MPI_COMM_WORLD` in the same order:
/// all processes of the job, whether this process has initialised MPI already or a session created the communicator.
fn has_members_of_world(comm: &Comm) -> bool {
    let job = 0..comm.engine().size();
    !comm.is_inter() && comm.group().iter().eq(job)
}

/// Returns the tag of an exchange, from the communicator's context id and the number of the exchange on it.
/// Small integers, which other calls may have in the same cells, are not tags,
/// and neither are the words of an earlier exchange, which the cells still contain.
fn tag(context: u64, exchange: u64) -> u64 {
    let number = context.rotate_left(32) ^ exchange;
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the first rank whose tag is not that of rank `me`.
fn unpaired(words: &[Words], me: u32) -> Option<u32> {
    let mine = words.get(me as usize)?[TAG];
    (0..)
        .zip(words)
        .find_map(|(rank, words)| (words[TAG] != mine).then_some(rank))
}

/// Returns the spare for a new duplicate, from the words of all members.
fn common_spare(words: &[Words]) -> Option<usize> {
    let [first, others @ ..] = words else {
        return None;
    };
    let is_idle =
        |at: &usize| first[*at] != 0 && others.iter().all(|other| other[*at] == first[*at]);
    let found = (FIRST_SPARE..first.len()).find(is_idle);
    found.map(|at| at - FIRST_SPARE)
}

/// Creates a duplicate of `parent` with the collectives of a spare; `None` on all members if there is no spare.
pub(super) fn duplicate(parent: &Comm, purpose: Purpose) -> Result<Option<Comm>, Error> {
    let spares = Spares::of(parent.engine());
    let mut offered = spares.offer();
    let found = agree_on_spare(parent, &offered);
    let table = match &found {
        Ok(Some((spare, _))) => offered[*spare].take(),
        _ => None,
    };
    spares.withdraw(parent.engine(), offered);
    let Some((spare, context)) = found? else {
        return Ok(None);
    };
    let Some(table) = table else {
        // Unreachable: the member offered the spare, since its word is not 0.
        return Err(Unserved::on(parent, CallId::Barrier));
    };
    let (engine, group) = (parent.engine(), parent.group().clone());
    let comm = Comm::assemble(engine, context, group, parent.rank(), String::new());
    comm.collectives().set_purpose(purpose);
    comm.collectives().reuse(table, spare);
    Ok(Some(comm))
}

/// Exchanges words with the other members, and returns the spare and the context for a new duplicate;
/// `None` on all members if there is no spare.
fn agree_on_spare(
    parent: &Comm,
    offered: &[Option<Box<Table>>; MOST],
) -> Result<Option<(usize, Context)>, Error> {
    let engine = parent.engine();
    let mine = words(parent, offered);
    let all = parent.collectives().share_words(&mine)?;
    let members = &all[..all.len().min(parent.size() as usize)];
    if let Some(rank) = unpaired(members, parent.rank()) {
        return Err(CommError::Unpaired { rank }.into());
    }
    let leader = parent.group().proc(0).unwrap_or(engine.me());
    let context = context_id::told(leader, all[0][CONTEXT]);
    match (common_spare(members), context) {
        (Some(spare), Ok(context)) => Ok(Some((spare, Context::numbered(context)))),
        // If rank 0 has no context id left, the agreement reports the error.
        _ => {
            if parent.rank() == 0 {
                engine.context_ids().give_back(mine[CONTEXT]);
            }
            Ok(None)
        }
    }
}

/// When this duplicate, which an agreement has created, is freed, its collectives become a spare.
/// Without effect if there are [`MOST`] spares, or if a component cannot be used again.
pub(super) fn keep_when_freed(duplicate: &Comm) {
    let created = &Spares::of(duplicate.engine()).created;
    let spare = created.get();
    if spare < MOST && duplicate.collectives().are_reusable() {
        created.set(spare + 1);
        duplicate.collectives().becomes_spare(spare);
    }
}

/// Creates the first spares; every process of the job calls this function at its start.
pub(super) fn create_at_start(world: &Comm) -> Result<(), Error> {
    if !are_used(world) {
        return Ok(());
    }
    let mut created = Vec::new();
    for _ in 0..AT_START {
        let conversation = world.internal().conversation();
        let members = ControlGroup::of(&conversation, world.group(), world.rank());
        let spare = world.engine().block_on(members.found(Purpose::Spare))?;
        keep_when_freed(&spare);
        if let Some(components) = spare.collectives().components() {
            components.rehearse(&spare)?;
        }
        created.push(spare);
    }
    drop(created);
    // The code of a duplication is then in the caches.
    duplicate(world, Purpose::Spare).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_must_have_left_a_spare_after_the_same_operations() {
        assert_eq!(common_spare(&[]), None);
        assert_eq!(common_spare(&[[9, 7, 0, 3, 5]]), Some(1));
        assert_eq!(common_spare(&[[9, 7, 1, 3, 5], [9, 0, 0, 3, 5]]), Some(1));
        assert_eq!(common_spare(&[[9, 7, 1, 3, 5], [9, 0, 3, 0, 5]]), Some(2));
        assert_eq!(common_spare(&[[9, 7, 1, 3, 0], [9, 0, 3, 0, 0]]), None);
    }

    #[test]
    fn a_rank_that_makes_another_call_is_found_by_its_tag() {
        assert_eq!(unpaired(&[[9, 7, 0, 0, 0], [9, 0, 0, 0, 0]], 1), None);
        assert_eq!(unpaired(&[[9, 7, 0, 0, 0], [8, 0, 0, 0, 0]], 0), Some(1));
        assert_eq!(unpaired(&[[9, 7, 0, 0, 0], [8, 0, 0, 0, 0]], 1), Some(0));
        assert_ne!(tag(0, 0), tag(0, 4));
        assert_ne!(tag(0, 1), tag(1, 0));
    }
}
