//! The occupancy of a node's cores: whether each of its ranks has a core of its own.
//!
//! It decides how ranks wait for each other, and with which protocols and buffers they exchange data.

/// The occupancy of the cores of a node; the discriminants are the values in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Occupancy {
    /// A core for each rank: a rank that is waited for is running.
    Dedicated = 1,
    /// More ranks than cores: a rank that is waited for mostly needs the core of the rank that waits.
    Oversubscribed = 2,
}

impl Occupancy {
    /// The occupancy of `cores` cores that `ranks` ranks may use.
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
