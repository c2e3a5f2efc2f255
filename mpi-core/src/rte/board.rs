//! The launcher as the noticeboard of the transports.

use super::Rte;
use crate::btl::{Noticeboard, ProcId};

/// A launcher that lives as long as the process.
pub struct Board(pub &'static dyn Rte);

impl Noticeboard for Board {
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.put(key, value).map_err(|error| error.to_string())
    }

    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String> {
        self.0.get(of, key).map_err(|error| error.to_string())
    }
}
