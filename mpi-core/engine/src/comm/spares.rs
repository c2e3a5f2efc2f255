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
//! 1. Whether there are spares ([`are_used`]) follows from the components of `MPI_COMM_WORLD`, on which all members have agreed.
//! 2. The members call [`Constructors::dup_now`](super::Constructors::dup_now) in the same order, since `MPI_Comm_dup` is collective.
//!    So the duplicates that an agreement created get the same numbers on all members; the first [`MOST`] become spares.
//! 3. A member that drops such a duplicate keeps the collectives, unless the member knows that the duplicate has been revoked.
//!    The member that has revoked it keeps nothing, so this spare is never used again.
//! 4. For a new duplicate, the members exchange a few words by a fast call on `MPI_COMM_WORLD`:
//!    a tag, the context id that rank 0 has allocated, and for each spare a word with the operations that it has executed
//!    ([`Collectives::progress`](super::Collectives::progress)), or 0 if the member still uses it.
//!    Rank 0 allocates the id before the exchange, because other threads may create communicators while it waits.
//! 5. Each member verifies the tags, which differ if another rank called another collective of the program.
//! 6. The members use the first spare for which the words of all members are equal and not 0.
//!    Without such a spare the members agree on the components as for any communicator.
//!
//! [ADR 95]: ../../../../docs/adr/0095-freed-duplicates-of-the-world-are-used-again.md

use super::selected::{Purpose, Table, Words};
use super::{Comm, CommError, Context, ControlGroup, context_id};
use crate::Error;
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
    /// Number of exchanges of words, the same on all members.
    exchanges: Cell<u64>,
    /// For each spare, the collectives of its freed duplicate; `None` while a duplicate uses them.
    kept: RefCell<[Option<Table>; MOST]>,
}

impl Spares {
    pub(super) fn of(engine: &Engine) -> &Spares {
        engine.extension_of_type()
    }

    /// Keeps the collectives of a freed duplicate until `MPI_COMM_WORLD` is freed.
    pub(super) fn keep(&self, engine: &Engine, spare: usize, table: Table) {
        match self.kept.borrow_mut().get_mut(spare) {
            Some(place) if engine.world().is_some() => *place = Some(table),
            _ => table.disable(),
        }
    }

    /// Frees what the spares use; called when `MPI_COMM_WORLD` is freed.
    pub(super) fn end(&self) {
        self.created.set(0);
        self.exchanges.set(0);
        for table in self.kept.take().into_iter().flatten() {
            table.disable();
        }
    }

    /// Returns this member's words for the next exchange; on rank 0 with an allocated context id.
    fn words(&self, world: &Comm) -> Words {
        let mut words = Words::default();
        words[TAG] = tag(self.exchanges.get());
        self.exchanges.set(self.exchanges.get() + 1);
        if world.rank() == 0 {
            words[CONTEXT] = world.engine().context_ids().next(1, false);
        }
        for (word, spare) in words[FIRST_SPARE..].iter_mut().zip(&*self.kept.borrow()) {
            let progress = spare.as_ref().and_then(|table| table.progress(world));
            *word = progress.map_or(0, |progress| progress << 1 | 1);
        }
        words
    }
}

/// Returns true if duplicates of this communicator use spares. All members get the same result.
pub(super) fn are_used(comm: &Comm) -> bool {
    comm.is_world() && comm.collectives().are_reusable()
}

/// Returns the tag of an exchange. Small integers, which other calls may have in the same cells, are not tags.
fn tag(exchange: u64) -> u64 {
    (exchange + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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

/// Creates a duplicate of `MPI_COMM_WORLD` with the collectives of a spare; `None` on all members if there is no spare.
pub(super) fn duplicate(world: &Comm, purpose: Purpose) -> Result<Option<Comm>, Error> {
    let (engine, spares) = (world.engine(), Spares::of(world.engine()));
    let mine = spares.words(world);
    let all = world.collectives().share_words(&mine)?;
    let members = &all[..all.len().min(world.size() as usize)];
    if let Some(rank) = unpaired(members, world.rank()) {
        return Err(CommError::Unpaired { rank }.into());
    }
    let context = context_id::told(
        world.group().proc(0).unwrap_or(engine.me()),
        all[0][CONTEXT],
    );
    let (Some(spare), Ok(context)) = (common_spare(members), context) else {
        // If rank 0 has no context id left, the agreement reports the error.
        if world.rank() == 0 {
            engine.context_ids().give_back(mine[CONTEXT]);
        }
        return Ok(None);
    };
    let Some(table) = spares.kept.borrow_mut()[spare].take() else {
        // Unreachable: this member's word is not 0.
        return Ok(None);
    };
    let (context, group) = (Context::numbered(context), world.group().clone());
    let comm = Comm::assemble(engine, context, group, world.rank(), String::new());
    comm.collectives().set_purpose(purpose);
    comm.collectives().reuse(table, spare);
    Ok(Some(comm))
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
        assert_ne!(tag(0), tag(4));
    }
}
