//! The occupancy of a node's cores: whether each of its ranks has its own core.
//!
//! The occupancy determines how ranks wait for each other,
//! and which protocols and buffers they use.

/// The occupancy of the cores of a node; the discriminants are the values sent in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Occupancy {
    /// Each rank has its own core, so a rank that others wait for is running.
    Dedicated = 1,
    /// There are more ranks than cores.
    /// A waiting rank often occupies the core that the awaited rank needs.
    Oversubscribed = 2,
}

impl Occupancy {
    /// Returns the occupancy if `ranks` ranks run on `cores` cores.
    pub fn of(cores: usize, ranks: usize) -> Occupancy {
        match ranks <= cores {
            true => Occupancy::Dedicated,
            false => Occupancy::Oversubscribed,
        }
    }

    /// Returns the occupancy with this discriminant.
    pub fn from_number(number: u64) -> Option<Occupancy> {
        [Occupancy::Dedicated, Occupancy::Oversubscribed]
            .into_iter()
            .find(|occupancy| *occupancy as u64 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::Occupancy;

    #[test]
    fn one_rank_more_than_cores_is_oversubscribed() {
        assert_eq!(Occupancy::of(2, 2), Occupancy::Dedicated);
        assert_eq!(Occupancy::of(2, 3), Occupancy::Oversubscribed);
    }

    #[test]
    fn an_occupancy_is_read_from_its_number() {
        for occupancy in [Occupancy::Dedicated, Occupancy::Oversubscribed] {
            assert_eq!(Occupancy::from_number(occupancy as u64), Some(occupancy));
        }
        assert_eq!(Occupancy::from_number(0), None);
    }
}
