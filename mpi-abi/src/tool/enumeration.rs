//! Enumerations (section 15.3.5): names for the values of variables and of event elements.
//!
//! The handle of an enumeration is its index in `ENUMERATIONS` plus 1, since handles have no state.

use crate::abi::*;
use crate::error::Failure;
use std::ffi::c_int;

/// An enumeration of the tool interface.
#[derive(Debug, PartialEq, Eq)]
pub struct Enumeration {
    pub name: &'static str,
    /// The values with their names.
    pub items: &'static [(c_int, &'static str)],
}

/// The occupancy of a node: whether each of its ranks has its own core.
pub static OCCUPANCY: Enumeration = Enumeration {
    name: "occupancy",
    items: &[
        (0, "not initialized"),
        (1, "a core for each rank"),
        (2, "more ranks than cores"),
    ],
};

/// The levels of thread support.
pub static THREAD_LEVEL: Enumeration = Enumeration {
    name: "thread level",
    items: &[
        (MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"),
        (MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"),
        (MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"),
        (MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"),
    ],
};

/// All enumerations.
static ENUMERATIONS: [&Enumeration; 2] = [&OCCUPANCY, &THREAD_LEVEL];

impl Enumeration {
    /// Returns the handle of the enumeration.
    pub fn handle(&self) -> MPI_T_enum {
        let index = ENUMERATIONS.iter().position(|known| *known == self);
        MPI_T_enum(index.map_or(MPI_T_ENUM_NULL.0, |index| index + 1))
    }

    /// Returns the enumeration of a handle.
    pub fn of(handle: MPI_T_enum) -> Result<&'static Enumeration, Failure> {
        let index = handle.0.checked_sub(1);
        let found = index.and_then(|index| ENUMERATIONS.get(index));
        found.copied().ok_or_else(|| {
            let sentence = format!("{:#x} is not the handle of an enumeration", handle.0);
            Failure::new(MPI_T_ERR_INVALID_HANDLE, sentence)
        })
    }

    /// Returns the name of a value, for listings.
    pub fn name_of(&self, value: c_int) -> Option<&'static str> {
        let found = self.items.iter().find(|(known, _)| *known == value);
        found.map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_back_to_its_enumeration_and_values_are_unlike() {
        for known in ENUMERATIONS {
            assert_eq!(Enumeration::of(known.handle()).ok(), Some(known));
            for (value, name) in known.items {
                assert_eq!(known.name_of(*value), Some(*name));
            }
        }
        assert!(Enumeration::of(MPI_T_ENUM_NULL).is_err());
        assert!(Enumeration::of(MPI_T_enum(99)).is_err());
    }
}
