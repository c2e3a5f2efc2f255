//! Splits by hardware locality: communicators of processes that share memory or another hardware instance (`MPI_Comm_split_type`, MPI 5.0, section 7.4.2).

use super::{Comm, SplitKey};
use crate::Error;
use crate::topo::reorder::Place;
use mpi_base::hardware::{Confinement, Kind};
use mpi_base::yield_now::Backoff;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The functions that split a communicator by hardware.
#[derive(Clone, Copy)]
pub struct HardwareSplits<'a> {
    comm: &'a Comm,
}

impl<'a> HardwareSplits<'a> {
    pub(super) fn new(comm: &'a Comm) -> HardwareSplits<'a> {
        HardwareSplits { comm }
    }

    /// Splits into communicators of members that share memory (those on one node).
    pub async fn split_shared(self, key: i32) -> Result<Option<Comm>, Error> {
        let color = Some(self.comm.engine().place().node_id());
        self.comm
            .constructors()
            .split(SplitKey { color, key })
            .await
    }

    /// Splits into communicators of members confined to the same instance of `kind` (such as a package);
    /// members that are not confined to one instance of this kind get `None`.
    pub async fn split_hardware(self, kind: Kind, key: i32) -> Result<Option<Comm>, Error> {
        let color = self.place(&Confinement::of_this_process(), kind);
        self.comm
            .constructors()
            .split(SplitKey { color, key })
            .await
    }

    /// Splits by the largest kind of hardware of which members are confined to different instances. Returns the communicator and that kind;
    /// members that pass no `key` get `None`, and their location is ignored.
    pub async fn split_next_level(self, key: Option<i32>) -> Result<Option<(Comm, Kind)>, Error> {
        const NOWHERE: u64 = u64::MAX;
        self.comm
            .only_intra("splitting at the next level of hardware")?;
        let here = Confinement::of_this_process();
        let places = Kind::ALL.map(|kind| {
            let place = key.and_then(|_| self.place(&here, kind));
            place.unwrap_or(NOWHERE)
        });
        let mine = [&places[..], &[key.is_some().into()]].concat();
        let all = self.comm.internal().share(&mine).await?;
        let members = || {
            all.chunks_exact(mine.len())
                .filter(|m| m.last() == Some(&1))
        };
        let differ = |kind: &Kind| {
            let mut confined = members()
                .map(|m| m[*kind as usize])
                .filter(|p| *p != NOWHERE);
            let first = confined.next();
            // Members that are not confined to an instance of this kind differ from `first`.
            first.is_some_and(|first| {
                let same = 1 + confined.filter(|p| *p == first).count();
                same < members().count()
            })
        };
        let found = Kind::ALL.into_iter().find(differ);
        let color = found.map(|kind| places[kind as usize]);
        let color = color.filter(|p| *p != NOWHERE);
        let key = key.unwrap_or(0);
        let new = self
            .comm
            .constructors()
            .split(SplitKey { color, key })
            .await?;
        Ok(new.zip(found))
    }

    /// Returns the hardware location of each member in the order of ranks; every member calls this function.
    pub async fn places(self) -> Result<Vec<Place>, Error> {
        self.comm.only_intra("finding out where members are")?;
        let page = self.comm.engine().state();
        let here = page.confinement().unwrap_or(Confinement::FREE);
        let all = self.comm.internal().share(&self.whole_place(&here)).await?;
        Ok(all.as_chunks().0.to_vec())
    }

    /// Same as [`HardwareSplits::places`] without messages, if all members are on this node.
    pub fn places_here(self) -> Option<Vec<Place>> {
        let engine = self.comm.engine();
        let mut places = vec![Place::default(); self.comm.size() as usize];
        let mut found = 0;
        for (rank, local) in engine.place().members_here(self.comm.group()) {
            let page = engine.node().state(local).ok()?;
            // Each member publishes its location in MPI_Init before its first message, so this wait ends unless the member has died.
            let mut backoff = Backoff::new();
            let here = loop {
                match page.confinement() {
                    Some(here) => break here,
                    None if self.comm.usable().is_err() => return None,
                    None => {
                        engine.poll_once();
                        backoff.pause();
                    }
                }
            };
            places[rank as usize] = self.whole_place(&here);
            found += 1;
        }
        (found == self.comm.size()).then_some(places)
    }

    /// Returns a location on this node with numbers that identify hardware in the whole job.
    fn whole_place(self, here: &Confinement) -> Place {
        // The number of an instance is unique only on its node,
        // so the result is a hash of it and the node's number, which is unique in the job.
        // Processes of a node that are not confined get equal numbers.
        here.words().map(|word| self.instance_here(word))
    }

    /// Returns a number for an instance of a kind of hardware; instances on other nodes of the job have other numbers.
    fn place(self, confinement: &Confinement, kind: Kind) -> Option<u64> {
        let instance = confinement.instance(kind)?;
        Some(self.instance_here(instance))
    }

    /// Returns a number for an instance on this node, the same in all processes of the job; always less than the colour of `MPI_UNDEFINED`.
    fn instance_here(self, instance: u32) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.comm.engine().place().node_id(), instance).hash(&mut hasher);
        hasher.finish() >> 1
    }
}
