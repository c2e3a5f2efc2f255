//! `MPI_Comm_split_type` (MPI 5.0, section 7.4.2): communicators of processes that share memory or another part of a machine.

use super::{Comm, SplitKey};
use crate::Error;
use mpi_base::hardware::{Confinement, Kind};

impl Comm {
    /// Members that share this process's memory.
    pub async fn split_shared(&self, key: i32) -> Result<Option<Comm>, Error> {
        let color = Some(u64::from(self.engine().node_id()));
        self.split(SplitKey { color, key }).await
    }

    /// Members that cannot leave the same instance of a kind of hardware; nothing for those that are not confined to one.
    pub async fn split_hardware(&self, kind: Kind, key: i32) -> Result<Option<Comm>, Error> {
        let color = self.place(&Confinement::of_this_process(), kind);
        self.split(SplitKey { color, key }).await
    }

    /// Splits by the largest kind of hardware of which members have different instances, and says which that is.
    pub async fn split_next_level(&self, key: i32) -> Result<Option<(Comm, Kind)>, Error> {
        const NOWHERE: u64 = u64::MAX;
        self.only_intra("splitting at the next level of hardware")?;
        let here = Confinement::of_this_process();
        let places = Kind::ALL.map(|kind| self.place(&here, kind).unwrap_or(NOWHERE));
        let all = self.share(&places).await?;
        let differ = |kind: &Kind| {
            let of_kind = all.chunks_exact(places.len()).map(|p| p[*kind as usize]);
            let mut confined = of_kind.filter(|p| *p != NOWHERE);
            let first = confined.next();
            // Where some are confined and some are not, those that are make a smaller group as well.
            first.is_some_and(|first| {
                let same = 1 + confined.filter(|p| *p == first).count();
                same < self.size() as usize
            })
        };
        let found = Kind::ALL.into_iter().find(differ);
        let color = found.map(|kind| places[kind as usize]);
        let color = color.filter(|p| *p != NOWHERE);
        let new = self.split(SplitKey { color, key }).await?;
        Ok(new.zip(found))
    }

    /// An instance of a kind of hardware as a number that no other machine of the job uses.
    fn place(&self, confinement: &Confinement, kind: Kind) -> Option<u64> {
        let instance = confinement.instance(kind)?;
        Some(u64::from(self.engine().node_id()) << 32 | u64::from(instance))
    }
}
