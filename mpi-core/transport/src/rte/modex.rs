//! The launcher's key-value store as the modex (address exchange) of the transports.

use super::Rte;
use crate::btl::{Modex, ProcId};
#[cfg(any(test, feature = "testing"))]
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// A modex that uses the launcher's key-value store.
pub struct RteModex(pub &'static dyn Rte);

impl Modex for RteModex {
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.put(key, value).map_err(|error| error.to_string())
    }

    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String> {
        self.0.get(of, key).map_err(|error| error.to_string())
    }
}

/// A modex for tests whose ranks are threads of one process.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Debug, Default)]
pub struct TestModex(Arc<Mutex<Values>>);

/// The published values by rank and key.
#[cfg(any(test, feature = "testing"))]
type Values = HashMap<(ProcId, String), Vec<u8>>;

#[cfg(any(test, feature = "testing"))]
impl TestModex {
    /// Returns the modex as the rank `me` sees it.
    pub fn of(&self, me: ProcId) -> Arc<dyn Modex> {
        Arc::new(RankModex(self.clone(), me))
    }

    pub fn put(&self, of: ProcId, key: &str, value: &[u8]) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert((of, key.into()), value.to_vec());
    }

    pub fn get(&self, of: ProcId, key: &str) -> Option<Vec<u8>> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(&(of, key.into())).cloned()
    }
}

#[cfg(any(test, feature = "testing"))]
struct RankModex(TestModex, ProcId);

#[cfg(any(test, feature = "testing"))]
impl Modex for RankModex {
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.put(self.1, key, value);
        Ok(())
    }

    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String> {
        let none = || format!("rank {of} has not made \"{key}\" known");
        self.0.get(of, key).ok_or_else(none)
    }
}
